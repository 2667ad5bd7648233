//! Numbers on a common scale: a network learns best from inputs around zero and of unit size.

use ramp::infer::normal_quantile;
use serde::{Deserialize, Serialize};

/// How numbers are scaled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ScaleKind {
    /// By rank, to normal scores: the same whatever monotone distortion a column has been through.
    #[default]
    Rank,
    /// To mean zero and standard deviation one.
    Standard,
    /// Not at all.
    None,
}

/// A learned scale.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub enum Scale {
    /// Straight lines between known values and their normal scores; flat beyond.
    Rank {
        /// Values, ascending.
        values: Vec<f64>,
        /// Their scores.
        scores: Vec<f64>,
    },
    /// `(x − mean) / sd`.
    Standard {
        /// The mean.
        mean: f64,
        /// The standard deviation.
        sd: f64,
    },
    /// `x`.
    None,
}

/// Values kept by [`Scale::Rank`]: enough that straight lines between them cannot be told from the curve.
const KNOTS: usize = 512;

impl Scale {
    /// Learns a scale from values, of which `NaN`s are left out; `None` if all are the same or there are none.
    pub fn learn(kind: ScaleKind, values: &[f64]) -> Option<Self> {
        let mut known: Vec<f64> = values.iter().copied().filter(|x| !x.is_nan()).collect();
        known.sort_unstable_by(f64::total_cmp);
        let (first, last) = (known.first()?, known.last()?);
        if first == last {
            return None;
        }
        Some(match kind {
            ScaleKind::None => Scale::None,
            ScaleKind::Standard => {
                // In units of the largest, so that no square overflows or vanishes.
                let (n, unit) = (known.len() as f64, first.abs().max(last.abs()));
                let mean = known.iter().map(|x| x / unit).sum::<f64>() / n;
                let square = |x: &f64| (x / unit - mean).powi(2);
                let sd = (known.iter().map(square).sum::<f64>() / n).sqrt();
                let scale = Scale::Standard {
                    mean: mean * unit,
                    sd: sd * unit,
                };
                return scale.is_sound().then_some(scale);
            }
            ScaleKind::Rank => rank(&known),
        })
    }

    /// A value on the scale; `NaN` stays.
    pub fn apply(&self, x: f64) -> f64 {
        match self {
            Scale::None => x,
            Scale::Standard { mean, sd } => match (x - mean) / sd {
                // The difference of two huge numbers.
                far if far.is_infinite() => x / sd - mean / sd,
                near => near,
            },
            Scale::Rank { .. } if x.is_nan() => x,
            Scale::Rank { values, scores } => {
                let after = values.partition_point(|&v| v < x);
                if after == 0 {
                    return scores[0];
                }
                if after == values.len() {
                    return scores[after - 1];
                }
                let (a, b) = (values[after - 1], values[after]);
                let way = match b - a {
                    // Halves of huge numbers are apart by less than the largest.
                    gap if gap.is_infinite() => (x / 2.0 - a / 2.0) / (b / 2.0 - a / 2.0),
                    gap => (x - a) / gap,
                };
                // Rounding must not lead past a neighbour.
                let (low, high) = (scores[after - 1], scores[after]);
                match way {
                    1.0 => high,
                    way => (low + (high - low) * way).min(high),
                }
            }
        }
    }

    /// The value that has a score: the nearest known one beyond those that were learned from.
    pub fn invert(&self, score: f64) -> f64 {
        match self {
            Scale::None => score,
            Scale::Standard { mean, sd } => mean + sd * score,
            Scale::Rank { .. } if score.is_nan() => score,
            Scale::Rank { values, scores } => {
                let after = scores.partition_point(|&s| s < score);
                match after {
                    0 => values[0],
                    n if n == values.len() => values[n - 1],
                    n => {
                        let (low, high) = (scores[n - 1], scores[n]);
                        let way = (score - low) / (high - low);
                        values[n - 1] * (1.0 - way) + values[n] * way
                    }
                }
            }
        }
    }

    /// Whether a scale read from a file can be used.
    pub fn is_sound(&self) -> bool {
        match self {
            Scale::None => true,
            Scale::Standard { mean, sd } => mean.is_finite() && sd.is_finite() && *sd > 0.0,
            Scale::Rank { values, scores } => {
                let rising = |x: &[f64]| {
                    x.iter().all(|v| v.is_finite()) && x.windows(2).all(|w| w[0] < w[1])
                };
                values.len() > 1 && values.len() == scores.len() && rising(values) && rising(scores)
            }
        }
    }
}

/// Normal scores of the average ranks of distinct values, of which at most [`KNOTS`] are kept, evenly spaced in score: the
/// tails, where curves bend most, are then as well covered as the middle.
fn rank(sorted: &[f64]) -> Scale {
    let n = sorted.len() as f64;
    let (mut values, mut scores): (Vec<f64>, Vec<f64>) = (vec![], vec![]);
    let mut start = 0;
    for group in sorted.chunk_by(|a, b| a == b) {
        let middle = start as f64 + group.len() as f64 / 2.0;
        start += group.len();
        values.push(group[0]);
        scores.push(normal_quantile(middle / n));
    }
    if values.len() > KNOTS {
        let last = values.len() - 1;
        let gap = (scores[last] - scores[0]) / (KNOTS - 1) as f64;
        let mut kept = vec![0];
        for i in 1..last {
            if scores[i] >= scores[0] + gap * kept.len() as f64 {
                kept.push(i);
            }
        }
        kept.push(last);
        values = kept.iter().map(|&i| values[i]).collect();
        scores = kept.iter().map(|&i| scores[i]).collect();
    }
    // To unit size: a column of few levels would else be smaller than one of many.
    let size = {
        let scale = Scale::Rank {
            values: values.clone(),
            scores: scores.clone(),
        };
        (sorted.iter().map(|&x| scale.apply(x).powi(2)).sum::<f64>() / n).sqrt()
    };
    scores.iter_mut().for_each(|s| *s /= size);
    Scale::Rank { values, scores }
}
