//! Data sets: for every observed variable a block of numbers, and which of them are missing.

use crate::{Error, Result};
use std::collections::HashMap;

/// The observations of one variable for all samples.
#[derive(Clone, Debug)]
pub struct Observation {
    name: String,
    features: usize,
    values: Values,
    /// `None` where every sample has it.
    present: Option<Vec<bool>>,
}

#[derive(Clone, Debug)]
enum Values {
    Numbers(Vec<f32>),
    /// Kept as bytes and widened per block: images are four times smaller so.
    Bytes(Vec<u8>),
}

impl Observation {
    /// The variable's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Numbers per sample.
    pub fn features(&self) -> usize {
        self.features
    }

    /// Whether a sample has it.
    pub fn is_present(&self, row: usize) -> bool {
        self.present.as_ref().is_none_or(|p| p[row])
    }

    /// Whether every sample has it.
    pub fn is_complete(&self) -> bool {
        self.present.is_none()
    }

    /// One sample's numbers; zeros where it is missing.
    pub fn numbers(&self, row: usize) -> Vec<f32> {
        let mut numbers = vec![0.0; self.features];
        self.write(row, &mut numbers, 1);
        numbers
    }

    /// Writes one sample's numbers with a given distance between them; zeros where it is missing.
    pub fn write(&self, row: usize, to: &mut [f32], stride: usize) {
        let span = row * self.features..(row + 1) * self.features;
        match &self.values {
            Values::Numbers(numbers) if stride == 1 => {
                to[..self.features].copy_from_slice(&numbers[span]);
            }
            Values::Bytes(bytes) if stride == 1 => {
                let to = &mut to[..self.features];
                for (to, bytes) in to.chunks_mut(64).zip(bytes[span].chunks(64)) {
                    // Most of many pictures is background.
                    if bytes.iter().fold(0, |any, x| any | x) == 0 {
                        to.fill(0.0);
                        continue;
                    }
                    for (to, &x) in to.iter_mut().zip(bytes) {
                        *to = f32::from(x) * (1.0 / 255.0);
                    }
                }
            }
            Values::Numbers(numbers) => {
                for (i, &x) in numbers[span].iter().enumerate() {
                    to[i * stride] = x;
                }
            }
            Values::Bytes(bytes) => {
                for (i, &x) in bytes[span].iter().enumerate() {
                    to[i * stride] = f32::from(x) * (1.0 / 255.0);
                }
            }
        }
    }
}

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
#[derive(Clone, Debug, Default)]
pub struct Dataset {
    rows: usize,
    lengths: Option<Vec<u32>>,
    observations: Vec<Observation>,
    by_name: HashMap<String, usize>,
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
        mut values: Vec<f32>,
    ) -> Result<Self> {
        let name = name.into();
        if let Some(at) = values.iter().position(|x| x.is_infinite()) {
            return Err(Error::Invalid(format!(
                "observation `{name}` is infinite in row {}; replace it or mark it missing with NaN",
                at / features.max(1)
            )));
        }
        let mut present = None;
        if features > 0 && values.iter().any(|x| x.is_nan()) {
            let mask: Vec<bool> = values
                .chunks(features)
                .map(|sample| sample.iter().all(|x| !x.is_nan()))
                .collect();
            for (sample, &there) in values.chunks_mut(features).zip(&mask) {
                if !there {
                    sample.fill(0.0);
                }
            }
            present = Some(mask);
        }
        let len = values.len();
        self.add(
            Observation {
                name,
                features,
                values: Values::Numbers(values),
                present,
            },
            len,
        )
    }

    /// Adds a variable of bytes such as pixels, read as numbers from 0 to 1; `present` marks the samples that have it.
    pub fn observe_bytes(
        self,
        name: impl Into<String>,
        features: usize,
        values: Vec<u8>,
        present: Option<Vec<bool>>,
    ) -> Result<Self> {
        let name = name.into();
        let len = values.len();
        if let Some(mask) = &present
            && mask.len() * features != len
        {
            return Err(Error::Invalid(format!(
                "observation `{name}` has {len} bytes but a mask for {} samples of {features}",
                mask.len()
            )));
        }
        let present = present.filter(|mask| !mask.iter().all(|&p| p));
        self.add(
            Observation {
                name,
                features,
                values: Values::Bytes(values),
                present,
            },
            len,
        )
    }

    fn add(mut self, observation: Observation, len: usize) -> Result<Self> {
        let Observation { name, features, .. } = &observation;
        if *features == 0 || !len.is_multiple_of(*features) {
            return Err(Error::Invalid(format!(
                "observation `{name}` has {len} numbers, which is not a whole number of samples of {features}"
            )));
        }
        let rows = len / features;
        if !self.observations.is_empty() && rows != self.rows {
            return Err(Error::Invalid(format!(
                "observation `{name}` has {rows} samples but `{}` has {}",
                self.observations[0].name, self.rows
            )));
        }
        if self.by_name.contains_key(name) {
            return Err(Error::Invalid(format!(
                "observation `{name}` is given twice"
            )));
        }
        self.rows = rows;
        self.by_name.insert(name.clone(), self.observations.len());
        self.observations.push(observation);
        Ok(self)
    }

    /// Some of the samples, in this order.
    ///
    /// # Panics
    /// If there is no such sample.
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
                    values: match &o.values {
                        Values::Numbers(x) => Values::Numbers(pick(x, o.features, samples)),
                        Values::Bytes(x) => Values::Bytes(pick(x, o.features, samples)),
                    },
                    present: o.present.as_ref().map(|p| pick(p, 1, samples)),
                })
                .collect(),
            by_name: self.by_name.clone(),
        }
    }

    /// Says how many steps of a chain each sample has; latents after its last step then have no part in anything.
    /// Without this, every sample is as long as the chain.
    pub fn with_lengths(mut self, lengths: Vec<u32>) -> Result<Self> {
        if lengths.len() != self.rows {
            return Err(Error::Invalid(format!(
                "there are {} lengths for {} sequences",
                lengths.len(),
                self.rows
            )));
        }
        self.lengths = Some(lengths);
        Ok(self)
    }

    /// The steps of each sample, where they were given.
    pub fn lengths(&self) -> Option<&[u32]> {
        self.lengths.as_deref()
    }

    /// A number that differs between data sets that differ, for all practical purposes: so that training does not go on
    /// with other data than it began with.
    pub fn fingerprint(&self) -> u64 {
        // FNV-1a over whole words: quick, and the same on every machine.
        let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
        let mut mix = |word: u64| {
            hash = (hash ^ word).wrapping_mul(0x0000_0100_0000_01b3);
            hash ^= hash >> 32;
        };
        mix(self.rows as u64);
        self.lengths
            .iter()
            .flatten()
            .for_each(|&l| mix(u64::from(l)));
        for o in &self.observations {
            o.name.bytes().for_each(|b| mix(u64::from(b)));
            mix(o.features as u64);
            match &o.values {
                Values::Numbers(x) => x.iter().for_each(|x| mix(u64::from(x.to_bits()))),
                Values::Bytes(x) => x.iter().for_each(|&x| mix(u64::from(x))),
            }
            o.present.iter().flatten().for_each(|&p| mix(u64::from(p)));
        }
        hash
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
            None => {
                let mut have: Vec<&str> = self
                    .observations
                    .iter()
                    .take(8)
                    .map(|o| &o.name[..])
                    .collect();
                if self.observations.len() > 8 {
                    have.push("…");
                }
                Err(Error::Invalid(format!(
                    "observation `{name}` named in the tree is not in the data, which has {}",
                    if have.is_empty() {
                        "none".into()
                    } else {
                        have.join(", ")
                    }
                )))
            }
        }
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
}
