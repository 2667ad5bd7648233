//! A data set: observations of the same samples, checked as they are added.

use super::observation::{Observation, Values};
use super::{DataError, Step};
use std::collections::HashMap;

type Result<T> = std::result::Result<T, DataError>;

/// A table of observations: one entry per observed variable, the same samples in each.
///
/// A missing value is `NaN`; an observation of several numbers is missing as a whole if any of them is.
///
/// ```
/// use ramp::data::Dataset;
/// let data = Dataset::new()
///     .observe("height", 1, vec![1.7, f32::NAN, 1.6])?
///     .observe("position", 2, vec![0.0, 1.0, 2.0, 3.0, 4.0, 5.0])?;
/// assert_eq!(data.rows(), 3);
/// assert!(!data.observation("height")?.is_present(1));
/// # Ok::<(), ramp::Error>(())
/// ```
///
/// The series of a chain are sequences: blocks of `[sample, time, features]`, with a length for each sample where they are
/// not all equally long.
///
/// ```
/// use ramp::data::Dataset;
/// // Two samples of up to three steps; the second is missing at its second step and has no third.
/// let data = Dataset::new()
///     .observe_sequence("pulse", 3, 1, vec![61.0, 64.0, 66.0, 58.0, f32::NAN, f32::NAN])?
///     .with_lengths(vec![3, 2])?;
/// let pulse = data.observation("pulse")?;
/// assert_eq!(pulse.step(2).numbers(0), [66.0]);
/// assert!(pulse.step(0).is_present(1) && !pulse.step(1).is_present(1));
/// # Ok::<(), ramp::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Dataset {
    pub(super) rows: usize,
    pub(super) lengths: Option<Vec<u32>>,
    pub(super) observations: Vec<Observation>,
    pub(super) by_name: HashMap<String, usize>,
}

impl Dataset {
    /// An empty data set.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a variable with `features` numbers per sample, sample after sample. `NaN` marks what is missing.
    pub fn observe(
        self,
        name: impl Into<String>,
        features: usize,
        values: Vec<f32>,
    ) -> Result<Self> {
        self.add_numbers(name.into(), None, features, values)
    }

    /// Adds a variable of bytes such as pixels, read as numbers from 0 to 1; `present` marks the samples that have it.
    pub fn observe_bytes(
        self,
        name: impl Into<String>,
        features: usize,
        values: Vec<u8>,
        present: Option<Vec<bool>>,
    ) -> Result<Self> {
        self.add_bytes(name.into(), None, features, values, present)
    }

    /// Adds a series of a chain: for every sample `steps` steps of `features` numbers each, `[sample, time, features]`.
    /// `NaN` marks what is missing, step by step. All sequences of a data set have the same number of steps; where samples
    /// are shorter, [`Dataset::with_lengths`] says so.
    pub fn observe_sequence(
        self,
        name: impl Into<String>,
        steps: usize,
        features: usize,
        values: Vec<f32>,
    ) -> Result<Self> {
        self.add_numbers(name.into(), Some(steps), features, values)
    }

    /// Adds a series of bytes such as the frames of videos, read as numbers from 0 to 1 and kept as bytes; `present` marks
    /// the samples and steps that have one, `[sample, time]`.
    pub fn observe_sequence_bytes(
        self,
        name: impl Into<String>,
        steps: usize,
        features: usize,
        values: Vec<u8>,
        present: Option<Vec<bool>>,
    ) -> Result<Self> {
        self.add_bytes(name.into(), Some(steps), features, values, present)
    }

    fn add_numbers(
        self,
        name: String,
        steps: Option<usize>,
        features: usize,
        mut values: Vec<f32>,
    ) -> Result<Self> {
        if let Some(at) = values.iter().position(|x| x.is_infinite()) {
            let cell = at / features.max(1);
            let each = steps.unwrap_or(1).max(1);
            return Err(DataError::Infinite {
                name,
                row: cell / each,
                step: steps.map(|_| cell % each),
            });
        }
        let mut present = None;
        if features > 0 && values.iter().any(|x| x.is_nan()) {
            let mask: Vec<bool> = values
                .chunks(features)
                .map(|cell| cell.iter().all(|x| !x.is_nan()))
                .collect();
            for (cell, &there) in values.chunks_mut(features).zip(&mask) {
                if !there {
                    cell.fill(0.0);
                }
            }
            present = Some(mask);
        }
        let len = values.len();
        let observation = Observation {
            name,
            features,
            steps,
            values: Values::Numbers(values),
            present,
            first: 0,
        };
        self.add(observation, len)
    }

    fn add_bytes(
        self,
        name: String,
        steps: Option<usize>,
        features: usize,
        values: Vec<u8>,
        present: Option<Vec<bool>>,
    ) -> Result<Self> {
        let len = values.len();
        if let Some(mask) = &present
            && mask.len().checked_mul(features) != Some(len)
        {
            return Err(DataError::MaskLength {
                name,
                bytes: len,
                mask: mask.len(),
                features,
            });
        }
        let observation = Observation {
            name,
            features,
            steps,
            values: Values::Bytes(values),
            present: present.filter(|mask| !mask.iter().all(|&p| p)),
            first: 0,
        };
        self.add(observation, len)
    }

    fn add(mut self, observation: Observation, len: usize) -> Result<Self> {
        let name = observation.name.clone();
        let width = observation
            .features
            .checked_mul(observation.steps.unwrap_or(1));
        let width = match width {
            Some(width) if width > 0 && len.is_multiple_of(width) => width,
            _ => {
                return Err(DataError::PartOfSample {
                    name,
                    numbers: len,
                    width: width.unwrap_or(usize::MAX),
                });
            }
        };
        let rows = len / width;
        if let Some(first) = self.observations.first()
            && rows != self.rows
        {
            return Err(DataError::OtherRows {
                name,
                rows,
                other: first.name.clone(),
                expected: self.rows,
            });
        }
        if self.by_name.contains_key(&name) {
            return Err(DataError::Twice { name });
        }
        if let Some(steps) = observation.steps {
            let others = self.observations.iter();
            if let Some((other, expected)) = others
                .filter_map(|o| Some((&o.name, o.steps?)))
                .find(|(_, expected)| *expected != steps)
            {
                return Err(DataError::OtherSteps {
                    name,
                    steps,
                    other: other.clone(),
                    expected,
                });
            }
            check_lengths(self.lengths.as_deref().unwrap_or(&[]), steps)?;
        }
        self.rows = rows;
        self.by_name.insert(name, self.observations.len());
        self.observations.push(observation);
        Ok(self)
    }

    /// Some of the samples, in this order.
    ///
    /// # Panics
    /// If there is no such sample.
    #[must_use]
    pub fn select(&self, samples: &[u32]) -> Self {
        fn pick<T: Copy>(values: &[T], width: usize, samples: &[u32]) -> Vec<T> {
            samples
                .iter()
                .flat_map(|&n| &values[n as usize * width..][..width])
                .copied()
                .collect()
        }
        Dataset {
            rows: samples.len(),
            lengths: self.lengths.as_ref().map(|l| pick(l, 1, samples)),
            observations: self
                .observations
                .iter()
                .map(|o| Observation {
                    name: o.name.clone(),
                    features: o.features,
                    steps: o.steps,
                    values: match &o.values {
                        Values::Numbers(x) => Values::Numbers(pick(x, o.width(), samples)),
                        Values::Bytes(x) => Values::Bytes(pick(x, o.width(), samples)),
                    },
                    present: o
                        .present
                        .as_ref()
                        .map(|p| pick(p, o.steps.unwrap_or(1), samples)),
                    first: 0,
                })
                .collect(),
            by_name: self.by_name.clone(),
        }
    }

    /// Says how many steps of a chain each sample has; latents after its last step then have no part in anything.
    /// Without this, every sample is as long as its sequences.
    pub fn with_lengths(mut self, lengths: Vec<u32>) -> Result<Self> {
        if lengths.len() != self.rows {
            return Err(DataError::LengthCount {
                lengths: lengths.len(),
                rows: self.rows,
            });
        }
        if let Some(steps) = self.steps() {
            check_lengths(&lengths, steps)?;
        }
        self.lengths = Some(lengths);
        Ok(self)
    }

    /// The steps of each sample, where they were given.
    pub fn lengths(&self) -> Option<&[u32]> {
        self.lengths.as_deref()
    }

    /// The steps of the sequences, where there are any.
    pub fn steps(&self) -> Option<usize> {
        self.observations.iter().find_map(|o| o.steps)
    }

    /// A number that differs between data sets that differ, for all practical purposes: so that training does not go on
    /// with other data than it began with.
    pub fn fingerprint(&self) -> u64 {
        let mut print = Fingerprint::of(self.rows);
        self.lengths.iter().for_each(|l| print.lengths(l));
        for o in &self.observations {
            print.begin(o);
            print.values(&o.values);
            o.present.iter().for_each(|p| print.present(p));
        }
        print.hash
    }

    /// How many samples.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// All variables, in the order in which they were added.
    pub fn observations(&self) -> &[Observation] {
        &self.observations
    }

    /// A variable by its name; the error lists what there is.
    pub fn observation(&self, name: &str) -> Result<&Observation> {
        match self.by_name.get(name) {
            Some(&i) => Ok(&self.observations[i]),
            None => Err(DataError::Unknown {
                name: name.into(),
                have: self.observations.iter().map(|o| o.name.clone()).collect(),
            }),
        }
    }

    /// A variable that has no time axis.
    pub(crate) fn single(&self, name: &str) -> Result<Step<'_>> {
        match self.observation(name)? {
            found if found.steps.is_some() => {
                Err(DataError::UnexpectedSequence { name: name.into() })
            }
            found => Ok(found.step(0)),
        }
    }

    /// A variable that has one.
    pub(crate) fn sequence(&self, name: &str) -> Result<&Observation> {
        match self.observation(name)? {
            found if found.steps.is_none() => {
                Err(DataError::ExpectedSequence { name: name.into() })
            }
            found => Ok(found),
        }
    }
}

/// The number of a data set, from its parts in their order: FNV-1a over whole words, quick, and the same on every machine.
pub(super) struct Fingerprint {
    pub(super) hash: u64,
}

impl Fingerprint {
    /// Of so many samples.
    pub fn of(rows: usize) -> Self {
        let mut print = Fingerprint {
            hash: 0xcbf2_9ce4_8422_2325,
        };
        print.mix(rows as u64);
        print
    }

    fn mix(&mut self, word: u64) {
        self.hash = (self.hash ^ word).wrapping_mul(0x0000_0100_0000_01b3);
        self.hash ^= self.hash >> 32;
    }

    pub fn lengths(&mut self, lengths: &[u32]) {
        lengths.iter().for_each(|&l| self.mix(u64::from(l)));
    }

    /// What an observation is called and looks like.
    pub fn begin(&mut self, o: &Observation) {
        o.name.bytes().for_each(|b| self.mix(u64::from(b)));
        self.mix(o.features as u64);
        o.steps.iter().for_each(|&steps| self.mix(steps as u64));
    }

    pub fn values(&mut self, values: &Values) {
        match values {
            Values::Numbers(x) => x.iter().for_each(|x| self.mix(u64::from(x.to_bits()))),
            Values::Bytes(x) => x.iter().for_each(|&x| self.mix(u64::from(x))),
        }
    }

    pub fn present(&mut self, present: &[bool]) {
        present.iter().for_each(|&p| self.mix(u64::from(p)));
    }
}

/// Whether no sequence is longer than its data.
fn check_lengths(lengths: &[u32], steps: usize) -> Result<()> {
    match lengths.iter().position(|&l| l as usize > steps) {
        None => Ok(()),
        Some(sequence) => Err(DataError::LengthBeyondData {
            sequence,
            length: lengths[sequence],
            steps,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn say<T: std::fmt::Debug>(result: Result<T>) -> String {
        result.unwrap_err().to_string()
    }

    #[test]
    fn mistakes_are_named() {
        let data = Dataset::new().observe("a", 1, vec![1.0, 2.0]).unwrap();
        assert!(
            say(data.clone().observe("b", 1, vec![1.0]))
                .contains("`b` has 1 samples but `a` has 2")
        );
        assert!(say(data.clone().observe("a", 1, vec![1.0, 2.0])).contains("`a` is given twice"));
        assert!(
            say(data.clone().observe("b", 2, vec![1.0, 2.0, 3.0])).contains("not a whole number")
        );
        assert!(
            say(data.clone().observe("b", 1, vec![1.0, f32::INFINITY]))
                .contains("infinite in row 1")
        );
        assert!(
            say(data.observation("c"))
                .contains("`c` named in the tree is not in the data, which has a")
        );
    }

    #[test]
    fn mistakes_in_sequences_are_named() {
        let data = Dataset::new()
            .observe_sequence("a", 3, 1, vec![1.0; 6])
            .unwrap();
        assert_eq!((data.rows(), data.steps()), (2, Some(3)));
        assert!(
            say(data.clone().observe_sequence("b", 2, 1, vec![1.0; 4]))
                .contains("`b` has 2 steps but `a` has 3")
        );
        assert!(
            say(data.clone().observe_sequence("b", 3, 1, vec![1.0; 9]))
                .contains("`b` has 3 samples but `a` has 2")
        );
        assert!(
            say(data.clone().observe_sequence("b", 3, 1, vec![1.0; 7]))
                .contains("not a whole number of samples of 3")
        );
        for (steps, features) in [(0, 1), (1, 0), (usize::MAX, 2)] {
            let wrong = data.clone().observe_sequence("b", steps, features, vec![]);
            assert!(say(wrong).contains("not a whole number"));
        }
        let mut values = vec![0.0; 6];
        values[4] = f32::NEG_INFINITY;
        assert!(
            say(data.clone().observe_sequence("b", 3, 1, values))
                .contains("infinite in row 1 at step 2")
        );
        assert!(
            say(data.clone().with_lengths(vec![3])).contains("there are 1 lengths for 2 sequences")
        );
        assert!(
            say(data.with_lengths(vec![1, 4]))
                .contains("sequence 1 has 4 steps but there is data for 3")
        );
        let bytes = Dataset::new().observe_sequence_bytes("v", 2, 3, vec![0; 12], Some(vec![true]));
        assert!(say(bytes).contains("a mask for 1 samples"));
    }

    #[test]
    fn a_sample_with_one_missing_number_is_missing_and_reads_as_zero() {
        let data = Dataset::new()
            .observe("a", 2, vec![1.0, f32::NAN, 3.0, 4.0])
            .unwrap();
        let a = data.observation("a").unwrap();
        let mut to = [9.0; 4];
        a.write(0, &mut to, 2);
        assert_eq!(to, [0.0, 9.0, 0.0, 9.0]);
        assert!(!a.is_present(0) && a.is_present(1));
    }

    #[test]
    fn a_step_is_a_slice_of_its_sequence() {
        let frames: Vec<u8> = (0..24).collect();
        let present: Vec<bool> = [true, true, false, true].into();
        let data = Dataset::new()
            .observe_sequence_bytes("video", 2, 6, frames, Some(present))
            .unwrap();
        let video = data.observation("video").unwrap();
        let expected: Vec<f32> = (6..12).map(|x| x as f32 * (1.0 / 255.0)).collect();
        assert_eq!(video.step(1).numbers(0), expected);
        assert!(!video.step(0).is_present(1) && video.step(1).is_present(1));
        assert!(video.is_present(1) && !video.is_complete());
        // Beyond the end there is nothing.
        assert!(!video.step(2).is_present(0));
        assert_eq!(video.step(2).numbers(0), [0.0; 6]);
        // Others among the samples are the same sequences.
        let turned = data.select(&[1, 0]);
        let again = turned.observation("video").unwrap();
        assert_eq!(again.step(1).numbers(1), expected);
        assert!(!again.step(0).is_present(0));
        assert_ne!(turned.fingerprint(), data.fingerprint());
    }
}
