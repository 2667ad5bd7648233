//! One variable's block of numbers, step by step where it is a sequence.

/// The observations of one variable, or of one series of a chain, for all samples: one block `[sample, (time,) features]`.
#[derive(Clone, Debug)]
pub struct Observation {
    pub(super) name: String,
    pub(super) features: usize,
    /// `None` where there is no time axis.
    pub(super) steps: Option<usize>,
    pub(super) values: Values,
    /// For every sample and step; `None` where every one has it.
    pub(super) present: Option<Vec<bool>>,
    /// The first sample whose numbers are held: of a batch that several ranks share, each holds those of its own samples.
    pub(super) first: usize,
}

#[derive(Clone, Debug)]
pub(super) enum Values {
    Numbers(Vec<f32>),
    /// Kept as bytes and widened per block: images are four times smaller so.
    Bytes(Vec<u8>),
}

impl Observation {
    /// The variable's name, or the series'.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether it is kept as bytes: an image.
    pub fn is_bytes(&self) -> bool {
        matches!(self.values, Values::Bytes(_))
    }

    /// Numbers per sample, or per step of a sequence.
    pub fn features(&self) -> usize {
        self.features
    }

    /// The steps of a sequence; `None` for what has no time axis.
    pub fn steps(&self) -> Option<usize> {
        self.steps
    }

    /// One step of a sequence, counted from 0; beyond the last one everything is missing. What has no time axis has one step.
    pub fn step(&self, step: usize) -> Step<'_> {
        Step {
            observation: self,
            step,
        }
    }

    /// Whether a sample has it; of a sequence, at any step.
    pub fn is_present(&self, row: usize) -> bool {
        let steps = self.steps.unwrap_or(1);
        self.present
            .as_ref()
            .is_none_or(|p| p[row * steps..][..steps].contains(&true))
    }

    /// Whether every sample has it, at every step.
    pub fn is_complete(&self) -> bool {
        self.present.is_none()
    }

    /// One sample's numbers, those of a sequence step by step; zeros where they are missing.
    pub fn numbers(&self, row: usize) -> Vec<f32> {
        let mut numbers = vec![0.0; self.width()];
        self.write(row, &mut numbers, 1);
        numbers
    }

    /// Writes one sample's numbers with a given distance between them; zeros where they are missing.
    pub fn write(&self, row: usize, to: &mut [f32], stride: usize) {
        let width = self.width();
        self.values
            .write((row - self.first) * width, width, to, stride);
    }

    /// Numbers per sample, all steps included.
    pub(super) fn width(&self) -> usize {
        self.steps.unwrap_or(1) * self.features
    }
}

/// One step of a sequence, or all of an observation without a time axis: a view of its block, nothing is copied.
#[derive(Clone, Copy, Debug)]
pub struct Step<'a> {
    observation: &'a Observation,
    step: usize,
}

impl<'a> Step<'a> {
    /// What it is a step of.
    pub fn observation(&self) -> &'a Observation {
        self.observation
    }

    /// Numbers per sample.
    pub fn features(&self) -> usize {
        self.observation.features
    }

    /// Where a sample's step lies among all steps of all samples, if there is data for it.
    fn cell(&self, row: usize) -> Option<usize> {
        let steps = self.observation.steps.unwrap_or(1);
        (self.step < steps).then_some(row * steps + self.step)
    }

    /// Whether a sample has it.
    pub fn is_present(&self, row: usize) -> bool {
        match (self.cell(row), &self.observation.present) {
            (None, _) => false,
            (Some(_), None) => true,
            (Some(cell), Some(present)) => present[cell],
        }
    }

    /// Whether there is nothing missing in the whole sequence that this is a step of, and the step is within it.
    pub(crate) fn is_complete(&self) -> bool {
        self.cell(0).is_some() && self.observation.is_complete()
    }

    /// One sample's numbers; zeros where they are missing.
    pub fn numbers(&self, row: usize) -> Vec<f32> {
        let mut numbers = vec![0.0; self.features()];
        self.write(row, &mut numbers, 1);
        numbers
    }

    /// Writes one sample's numbers with a given distance between them; zeros where they are missing.
    pub fn write(&self, row: usize, to: &mut [f32], stride: usize) {
        let features = self.features();
        match self.cell(row) {
            Some(cell) => {
                let observation = self.observation;
                let before = observation.first * observation.width();
                let start = cell * features - before;
                observation.values.write(start, features, to, stride);
            }
            None => (0..features).for_each(|i| to[i * stride] = 0.0),
        }
    }
}

impl Values {
    /// Bytes that a number takes.
    pub(super) fn size(&self) -> usize {
        match self {
            Values::Numbers(_) => size_of::<f32>(),
            Values::Bytes(_) => 1,
        }
    }

    /// All numbers as they lie in memory.
    pub(super) fn bytes(&self) -> &[u8] {
        match self {
            Values::Numbers(numbers) => bytemuck::cast_slice(numbers),
            Values::Bytes(bytes) => bytes,
        }
    }

    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        match self {
            Values::Numbers(numbers) => bytemuck::cast_slice_mut(numbers),
            Values::Bytes(bytes) => bytes,
        }
    }

    /// So many zeros of the same kind.
    pub(super) fn zeros_like(&self, count: usize) -> Self {
        match self {
            Values::Numbers(_) => Values::Numbers(vec![0.0; count]),
            Values::Bytes(_) => Values::Bytes(vec![0; count]),
        }
    }

    /// Writes a run of numbers with a given distance between them.
    fn write(&self, start: usize, count: usize, to: &mut [f32], stride: usize) {
        let span = start..start + count;
        match self {
            Values::Numbers(numbers) if stride == 1 => {
                to[..count].copy_from_slice(&numbers[span]);
            }
            Values::Bytes(bytes) if stride == 1 => {
                let to = &mut to[..count];
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
