//! What a regression sees of a row: every observation as a few numbers of about unit size.

use super::reach;
use crate::Result;
use crate::encode::{Encoder, Encoding, Scale, numbers_of};
use crate::source::Samples;
use crate::table::column;
use ramp::data::Dataset;

/// One number of an observation.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Signal {
    observation: usize,
    source: Source,
    mean: f64,
    sd: f64,
    /// Somewhat more than the range of training rows; what is beyond counts as its end, so that no outlier carries a line away.
    low: f64,
    high: f64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Source {
    /// As it stands in the only column.
    Raw,
    /// As networks get it.
    Encoded(usize),
}

/// All numbers of a row, observation by observation.
#[derive(Clone, Debug)]
pub(super) struct Signals {
    signals: Vec<Signal>,
    /// For every observation, whose signals come one after the other, where they are.
    spans: Vec<std::ops::Range<usize>>,
}

impl Signals {
    /// Learns scales from the samples of the support set.
    pub fn new(encoder: &Encoder, samples: &Samples, data: &Dataset) -> Result<Self> {
        let (mut signals, mut spans) = (vec![], vec![]);
        for (observation, encoded) in encoder.observations.iter().enumerate() {
            let every = || {
                (0..encoded.encoding.features())
                    .map(Source::Encoded)
                    .collect()
            };
            let sources: Vec<Source> = match &encoded.encoding {
                // A line may be straight in ranks, or in the numbers themselves.
                Encoding::Number {
                    scale: Scale::Rank { .. },
                } => vec![Source::Raw, Source::Encoded(0)],
                Encoding::Ordinal { levels } if numbers_of(levels).is_some() => vec![Source::Raw],
                Encoding::Image { .. } => vec![],
                _ => every(),
            };
            let first = signals.len();
            for source in sources {
                let blank = Signal {
                    observation,
                    source,
                    mean: 0.0,
                    sd: 1.0,
                    low: f64::NEG_INFINITY,
                    high: f64::INFINITY,
                };
                let values = column_of(&blank, encoder, samples, data)?;
                let known = || values.iter().copied().filter(|x| x.is_finite());
                let count = known().count().max(1) as f64;
                let mean = known().sum::<f64>() / count;
                let sd = (known().map(|x| (x - mean).powi(2)).sum::<f64>() / count).sqrt();
                let (low, high) = reach(
                    known().fold(f64::INFINITY, f64::min),
                    known().fold(f64::NEG_INFINITY, f64::max),
                );
                if sd > 0.0 && sd.is_finite() {
                    signals.push(Signal {
                        mean,
                        sd,
                        low,
                        high,
                        ..blank
                    });
                }
            }
            spans.push(first..signals.len());
        }
        Ok(Signals { signals, spans })
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.signals.len()
    }

    /// Those of an observation.
    pub fn of(&self, observation: usize) -> std::ops::Range<usize> {
        self.spans[observation].clone()
    }

    /// The signals of samples, row by row; `NaN` where an observation is missing.
    pub fn values(&self, encoder: &Encoder, samples: &Samples, data: &Dataset) -> Result<Vec<f64>> {
        let width = self.len();
        let mut values = vec![f64::NAN; data.rows() * width];
        for (s, signal) in self.signals.iter().enumerate() {
            let own = column_of(signal, encoder, samples, data)?;
            for (row, x) in own.into_iter().enumerate() {
                let x = if x.is_finite() {
                    x.clamp(signal.low, signal.high)
                } else {
                    f64::NAN
                };
                values[row * width + s] = (x - signal.mean) / signal.sd;
            }
        }
        Ok(values)
    }
}

/// One signal of all samples, as it stands.
fn column_of(
    signal: &Signal,
    encoder: &Encoder,
    samples: &Samples,
    data: &Dataset,
) -> Result<Vec<f64>> {
    let encoded = &encoder.observations[signal.observation];
    let observed = data.observation(&encoded.name)?;
    let present = |row: usize, x: f64| {
        if observed.is_present(row) {
            x
        } else {
            f64::NAN
        }
    };
    Ok(match (signal.source, samples.table()) {
        (Source::Raw, Some(table)) => {
            let numbers = column(table, &encoded.columns[0])?.numbers(samples.first_row)?;
            let numbers = numbers.into_iter().enumerate();
            numbers.map(|(row, x)| present(row, x)).collect()
        }
        (Source::Raw, None) => vec![f64::NAN; data.rows()],
        (Source::Encoded(feature), _) => (0..data.rows())
            .map(|row| present(row, f64::from(observed.numbers(row)[feature])))
            .collect(),
    })
}
