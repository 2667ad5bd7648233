//! Which samples have which message.

/// Which samples have which message: one whose subtree holds no observation has none.
#[derive(Clone, Debug, Default)]
pub struct Presence {
    rows: Vec<Option<Vec<u32>>>,
}

impl Presence {
    /// Everything is there.
    pub fn complete(messages: usize) -> Self {
        Presence {
            rows: vec![None; messages],
        }
    }

    /// From a list of samples, ascending, for every message; `None` stands for all.
    pub fn new(rows: Vec<Option<Vec<u32>>>) -> Self {
        Presence { rows }
    }

    /// The samples that have a message, ascending; `None` stands for all.
    pub fn rows(&self, message: usize) -> Option<&[u32]> {
        self.rows[message].as_deref()
    }

    /// The lists of all messages.
    pub fn into_rows(self) -> Vec<Option<Vec<u32>>> {
        self.rows
    }

    /// Puts another list of samples in the place of a message's.
    pub fn replace(&mut self, message: usize, rows: Option<Vec<u32>>) -> Option<Vec<u32>> {
        std::mem::replace(&mut self.rows[message], rows)
    }

    /// What `own` samples have, followed by what `more` others have.
    pub fn concat(&self, own: usize, other: &Presence, more: usize, messages: usize) -> Presence {
        let list = |rows: Option<&[u32]>, count: usize| -> Vec<u32> {
            rows.map_or_else(|| (0..count as u32).collect(), <[u32]>::to_vec)
        };
        Presence::new(
            (0..messages)
                .map(|m| match (self.rows(m), other.rows(m)) {
                    (None, None) => None,
                    (a, b) => {
                        let mut rows = list(a, own);
                        rows.extend(list(b, more).iter().map(|n| n + own as u32));
                        Some(rows)
                    }
                })
                .collect(),
        )
    }
}
