//! What the command says, to whomever still listens: a closed pipe or a full disk behind a stream is no reason to leave work undone.

use std::io::{Error, ErrorKind, Write};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

/// The first error of standard output.
static TROUBLE: Mutex<Option<Error>> = Mutex::new(None);

/// Whether nothing is to be said: of several ranks, one speaks.
static MUTED: AtomicBool = AtomicBool::new(false);

/// Says nothing from now on, or speaks again.
pub fn mute(muted: bool) {
    MUTED.store(muted, Ordering::Relaxed);
}

pub fn is_muted() -> bool {
    MUTED.load(Ordering::Relaxed)
}

/// A text without characters that a terminal obeys: names of columns and files come from anywhere.
fn harmless(text: &str) -> String {
    let obeyed = |c: char| {
        c.is_control() && !matches!(c, '\n' | '\t')
            || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match obeyed(c) {
            true => shown.extend(c.escape_unicode()),
            false => shown.push(c),
        }
    }
    shown
}

/// Writes to standard output.
pub fn print(text: &str) {
    if is_muted() {
        return;
    }
    let text = harmless(text);
    let mut out = std::io::stdout().lock();
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    if let Err(error) = written {
        let mut trouble = TROUBLE.lock().unwrap_or_else(|e| e.into_inner());
        trouble.get_or_insert(error);
    }
}

/// Writes a line to the error stream; whoever closed that does not want to know.
pub fn print_note(text: &str) {
    if is_muted() {
        return;
    }
    let _ = writeln!(std::io::stderr(), "{}", harmless(text));
}

/// Writes what went wrong, in one line whatever the names in it.
pub fn complain(sentence: &str) {
    print_note(&format!("ramp: {}", sentence.replace('\n', "\\n")));
}

/// What went wrong with standard output. A reader that went away, such as `head`, is nothing wrong.
pub fn trouble() -> Option<Error> {
    let mut trouble = TROUBLE.lock().unwrap_or_else(|e| e.into_inner());
    trouble
        .take()
        .filter(|error| error.kind() != ErrorKind::BrokenPipe)
}

/// Prints as `print!` does, and never panics.
macro_rules! say {
    ($($part:tt)*) => { $crate::output::print(&format!($($part)*)) };
}

/// Prints as `eprintln!` does, and never panics.
macro_rules! note {
    ($($part:tt)*) => { $crate::output::print_note(&format!($($part)*)) };
}

pub(crate) use {note, say};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terminals_obey_nothing_that_is_said() {
        assert_eq!(harmless("ä\tb\n"), "ä\tb\n");
        assert_eq!(harmless("a\u{1b}]0;x\u{7}b"), "a\\u{1b}]0;x\\u{7}b");
        assert_eq!(harmless("\r\u{9b}2J\u{202e}"), "\\u{d}\\u{9b}2J\\u{202e}");
    }
}
