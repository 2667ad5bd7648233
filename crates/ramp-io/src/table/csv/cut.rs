//! Where the rows of a text begin that are to be read by one of several: told from its bytes alone, by all of them together.
//!
//! Inside of quotes a line's end ends no row, and whether a byte stands inside of quotes depends on all bytes before it. So each reader walks through its own bytes
//! from every state that it may find them in; with what all others found, each knows the state that it is in.

use std::io;

/// What a place in a text may be within: the start of a cell, a cell, a quoted cell, or just behind a quote in a quoted cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Start,
    Cell,
    Quoted,
    Closing,
}

/// All of them, in the order of [`Walk`].
const STATES: [State; 4] = [State::Start, State::Cell, State::Quoted, State::Closing];

impl State {
    /// The state behind some bytes without a quote.
    fn behind(self, plain: &[u8], separator: u8) -> Self {
        match (self, plain.last()) {
            (state, None) | (state @ State::Quoted, _) => state,
            (_, Some(&byte)) if is_end(byte) || byte == separator => State::Start,
            _ => State::Cell,
        }
    }

    fn behind_quote(self) -> Self {
        match self {
            State::Start | State::Closing => State::Quoted,
            // In a cell that does not begin with one, a quote is like any other character.
            State::Cell => State::Cell,
            State::Quoted => State::Closing,
        }
    }
}

fn is_end(byte: u8) -> bool {
    byte == b'\n' || byte == b'\r'
}

/// The state that bytes leave one in, for each state that they may be entered in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Walk([State; 4]);

impl Default for Walk {
    fn default() -> Self {
        Walk(STATES)
    }
}

impl Walk {
    /// Walks on through some bytes.
    pub fn through(&mut self, bytes: &[u8], separator: u8) {
        let mut from = 0;
        for quote in memchr::memchr_iter(b'"', bytes) {
            let plain = &bytes[from..quote];
            from = quote + 1;
            for state in &mut self.0 {
                *state = state.behind(plain, separator).behind_quote();
            }
        }
        for state in &mut self.0 {
            *state = state.behind(&bytes[from..], separator);
        }
    }

    /// Where one is behind the bytes that was in this state before them.
    pub fn after(self, state: State) -> State {
        self.0[state as usize]
    }

    /// As a number that can be sent.
    pub fn to_number(self) -> u64 {
        let digits = self.0.iter().rev();
        digits.fold(0, |number, &state| number * 4 + state as u64)
    }

    pub fn from_number(number: u64) -> Self {
        Walk([0, 2, 4, 6].map(|shift| STATES[(number >> shift & 3) as usize]))
    }
}

/// The place behind the first end of a row, from a place in a text that is in some state; the end of the text where there is none. `read` hands out the text
/// from there on, some bytes at a time and none at its end.
pub(crate) fn next_row(
    mut state: State,
    separator: u8,
    mut read: impl FnMut(&mut Vec<u8>) -> io::Result<()>,
) -> io::Result<u64> {
    let (mut passed, mut bytes) = (0, vec![]);
    loop {
        bytes.clear();
        read(&mut bytes)?;
        if bytes.is_empty() {
            return Ok(passed);
        }
        for (at, &byte) in bytes.iter().enumerate() {
            if is_end(byte) && state != State::Quoted {
                return Ok(passed + at as u64 + 1);
            }
            state = match byte {
                b'"' => state.behind_quote(),
                byte => state.behind(&[byte], separator),
            };
        }
        passed += bytes.len() as u64;
    }
}
