//! What baselines of the pendulum learn from: equally long sequences of observations, read one observation at a time.

use crate::error::LabError;

/// Equally long sequences of equally wide observations.
pub trait Sequences: Sync {
    /// How many sequences.
    fn count(&self) -> usize;
    /// Observations in a sequence.
    fn steps(&self) -> usize;
    /// Numbers in an observation.
    fn width(&self) -> usize;
    /// Writes one observation.
    fn read(&self, sequence: usize, step: usize, to: &mut [f32]);
}

/// Sequences of any numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    steps: usize,
    width: usize,
    values: Vec<f32>,
}

impl Series {
    /// Sequence after sequence, step after step, number after number.
    ///
    /// ```
    /// use ramp_lab::baselines::{Sequences, Series};
    /// let two = Series::new(3, 1, vec![0.0, 1.0, 2.0, 5.0, 6.0, 7.0])?;
    /// assert_eq!(two.count(), 2);
    /// # Ok::<(), ramp_lab::error::LabError>(())
    /// ```
    pub fn new(steps: usize, width: usize, values: Vec<f32>) -> Result<Self, LabError> {
        let one = steps * width;
        if one == 0 || values.is_empty() || !values.len().is_multiple_of(one) {
            return Err(LabError::Invalid(format!(
                "{} numbers are not a number of sequences with {steps} steps of {width}",
                values.len()
            )));
        }
        Ok(Series {
            steps,
            width,
            values,
        })
    }
}

impl Sequences for Series {
    fn count(&self) -> usize {
        self.values.len() / (self.steps * self.width)
    }

    fn steps(&self) -> usize {
        self.steps
    }

    fn width(&self) -> usize {
        self.width
    }

    fn read(&self, sequence: usize, step: usize, to: &mut [f32]) {
        to.copy_from_slice(
            &self.values[(sequence * self.steps + step) * self.width..][..self.width],
        );
    }
}
