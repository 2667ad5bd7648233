//! Long sequences are cut into overlapping windows to learn from: a mixture needs many samples, and a chain need not be as long
//! as a series is.

use super::{Samples, Sequence};
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

/// So many sequences are enough to learn from without cutting them.
const ENOUGH: usize = 20;
/// Shorter sequences are left whole, unless asked for.
const SHORT: u32 = 100;
/// Longer ones are cut, however many there are.
const LONG: u32 = 500;
/// Steps of a window unless asked for.
const STEPS: u32 = 40;
/// About so many windows are cut at most.
const MOST: usize = 4000;

/// How samples were cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Windows {
    /// How many sequences there were.
    pub sequences: usize,
    /// The steps that they had together.
    pub steps: u64,
    /// The steps of a window.
    pub length: u32,
    /// Windows to learn from; they come first.
    pub training: usize,
    /// Windows of the time held out, which comes last in every sequence; they share no row with the others.
    pub held_out: usize,
}

impl Samples {
    /// The steps of windows that suit these sequences; `None` where they are best left whole. Only tables are cut.
    pub(crate) fn window(&self, holdout: f64) -> Option<u32> {
        let sequences = self.sequences.as_ref().filter(|_| self.table().is_some())?;
        let longest = sequences.iter().map(|s| s.length).max()?;
        let cut = longest > LONG || longest > SHORT && sequences.len() < ENOUGH;
        let room = match holdout > 0.0 {
            true => (f64::from(longest) * holdout) as u32,
            false => longest / 5,
        };
        cut.then(|| STEPS.min(room.max(4)))
    }

    /// Cuts sequences that are longer into windows of so many steps. The last of every cut sequence's time, a fraction `holdout` of it, is held out: no window
    /// lies on both sides of that cut.
    pub(crate) fn cut(mut self, length: u32, holdout: f64) -> (Samples, Windows) {
        let whole = self.sequences.take().unwrap_or_default();
        let count =
            |from: u32, to: u32| (to.saturating_sub(from) + 1).saturating_sub(length) as usize;
        let border = |s: &Sequence| match s.length > length {
            true => (f64::from(s.length) * (1.0 - holdout)).round() as u32,
            false => s.length,
        };
        let all: usize = whole.iter().map(|s| count(0, s.length).max(1)).sum();
        let stride = all.div_ceil(MOST).max(1);
        let (mut training, mut held_out) = (vec![], vec![]);
        for sequence in &whole {
            if sequence.length <= length {
                training.push(sequence.clone());
                continue;
            }
            let border = border(sequence);
            let spans = [
                (0, border, &mut training),
                (border, sequence.length, &mut held_out),
            ];
            for (from, to, into) in spans {
                for start in (0..count(from, to)).step_by(stride) {
                    into.extend(part(sequence, from + start as u32, length));
                }
            }
        }
        // Whoever takes the first few should not get neighbours.
        training.shuffle(&mut ChaCha8Rng::seed_from_u64(0));
        let windows = Windows {
            sequences: whole.len(),
            steps: whole.iter().map(|s| u64::from(s.length)).sum(),
            length,
            training: training.len(),
            held_out: held_out.len(),
        };
        training.extend(held_out);
        self.sequences = Some(training);
        (self, windows)
    }
}

/// Some steps of a sequence, if there are rows in them. Its start stays that of the whole: `offset` steps later it begins itself.
fn part(sequence: &Sequence, from: u32, length: u32) -> Option<Sequence> {
    let first = sequence.steps.partition_point(|&s| s < from);
    let last = sequence.steps.partition_point(|&s| s < from + length);
    (last > first + 1).then(|| Sequence {
        items: sequence.items[first..last].to_vec(),
        steps: sequence.steps[first..last]
            .iter()
            .map(|s| s - from)
            .collect(),
        length,
        start: sequence.start,
        offset: sequence.offset + from,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Content;
    use crate::table::table;
    use arrow_array::{ArrayRef, Int64Array};
    use std::collections::HashSet;
    use std::sync::Arc;

    fn series(lengths: &[u32]) -> Samples {
        let mut row = 0;
        let sequences = lengths.iter().map(|&length| {
            // Every seventh step has no row.
            let steps: Vec<u32> = (0..length).filter(|s| s % 7 != 3).collect();
            let items = steps.iter().map(|_| {
                row += 1;
                row - 1
            });
            Sequence {
                items: items.collect(),
                steps,
                length,
                ..Sequence::default()
            }
        });
        let sequences = sequences.collect();
        let rows: ArrayRef = Arc::new(Int64Array::from_iter_values(0..i64::from(row)));
        Samples {
            content: Content::Table(table([("x", rows)]).unwrap()),
            sequences: Some(sequences),
            first_row: 0,
        }
    }

    #[test]
    fn windows_hold_every_step_once_at_each_place_and_never_what_is_held_out() {
        let samples = series(&[300]);
        assert_eq!(samples.window(0.2), Some(40));
        let before = samples.sequences.clone().unwrap().remove(0);
        let (cut, windows) = samples.cut(40, 0.2);
        assert_eq!((windows.training, windows.held_out), (201, 21));
        let all = cut.sequences.unwrap();
        let (training, held_out) = all.split_at(windows.training);
        let rows = |part: &[Sequence]| -> HashSet<u32> {
            part.iter().flat_map(|s| s.items.clone()).collect()
        };
        assert!(rows(training).is_disjoint(&rows(held_out)));
        assert_eq!(
            rows(training).len() + rows(held_out).len(),
            before.items.len()
        );
        let mut begins: Vec<u32> = training.iter().map(|s| s.offset).collect();
        begins.sort_unstable();
        assert_eq!(begins, (0..=200).collect::<Vec<_>>());
        for window in &all {
            assert_eq!(window.length, 40);
            for (item, step) in window.items.iter().zip(&window.steps) {
                let at = before.steps.binary_search(&(step + window.offset)).unwrap();
                assert_eq!(before.items[at], *item);
            }
        }
    }

    #[test]
    fn many_or_short_sequences_stay_whole() {
        assert_eq!(series(&[90]).window(0.2), None);
        assert_eq!(series(&[200; 30]).window(0.2), None);
        assert_eq!(series(&[200, 10]).window(0.2), Some(40));
        assert_eq!(series(&[600; 30]).window(0.2), Some(40));
        let (cut, windows) = series(&[200, 10]).cut(40, 0.0);
        assert_eq!(
            (windows.training, windows.held_out, windows.steps),
            (162, 0, 210)
        );
        assert!(cut.sequences.unwrap().iter().any(|s| s.length == 10));
        // Not without end.
        let (_, windows) = series(&[100_000]).cut(40, 0.2);
        assert!(windows.training < 4100, "{}", windows.training);
    }
}
