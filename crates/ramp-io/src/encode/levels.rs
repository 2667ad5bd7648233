//! The levels of a category, as cells spell them.

use crate::table::Column;
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

/// A one for the level of every row and zeros for the others; a cell that holds no level is missing, and counted in `unseen`.
pub(super) fn one_hot(levels: &[String], column: Column<'_>, unseen: &mut u64) -> Vec<f32> {
    let places = Levels::new(levels);
    let texts = column.texts();
    let mut values = vec![0.0; texts.len() * levels.len()];
    for (text, to) in texts.iter().zip(values.chunks_exact_mut(levels.len())) {
        match text.as_deref().map(|text| places.find(text)) {
            Some(Some(level)) => to[level] = 1.0,
            other => {
                *unseen += u64::from(other.is_some());
                to.fill(f32::NAN);
            }
        }
    }
    values
}

fn number_bits(text: &str) -> Option<u64> {
    text.trim().parse::<f64>().ok().map(f64::to_bits)
}
