//! The levels of a category, as cells spell them.

use std::collections::HashMap;

/// Finds the level that a cell holds.
#[derive(Clone, Debug)]
pub struct Levels<'a> {
    by_text: HashMap<&'a str, usize>,
    by_number: HashMap<u64, usize>,
}

impl<'a> Levels<'a> {
    /// Looks among these.
    pub fn new(levels: &'a [String]) -> Self {
        let mut by_number = HashMap::new();
        for (i, level) in levels.iter().enumerate() {
            if let Some(bits) = number_bits(level) {
                by_number.entry(bits).or_insert(i);
            }
        }
        let by_text = levels.iter().enumerate().map(|(i, l)| (&l[..], i));
        Levels {
            by_text: by_text.collect(),
            by_number,
        }
    }

    /// The place of the level that is spelled so, or is the same number: one format spells a level `1`, another `1.0`.
    pub fn find(&self, text: &str) -> Option<usize> {
        let same = || self.by_number.get(&number_bits(text)?);
        self.by_text.get(text).or_else(same).copied()
    }
}

fn number_bits(text: &str) -> Option<u64> {
    text.trim().parse::<f64>().ok().map(f64::to_bits)
}
