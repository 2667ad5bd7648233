//! What training samples offer for an observation: the values of columns, row by row of the support set and, where there are seasons,
//! for any moment.

use crate::Result;
use crate::encode::{Encoded, Encoding, Levels, Season, numbers_of};
use crate::table::Column;

/// What one column may be filled with.
pub(super) struct Candidates {
    /// As they stand in the support set's table.
    pub texts: Vec<Option<String>>,
    pub values: Values,
    /// Encoded numbers of rows where a season makes other values of them at other moments.
    seasonal: Option<(usize, Vec<f64>)>,
    /// The rows of numbers in ascending order.
    ascending: Vec<u32>,
}

pub(super) enum Values {
    Numbers(Vec<f64>),
    /// The place of each row's level among all of them.
    Levels {
        levels: Vec<String>,
        codes: Vec<Option<usize>>,
    },
}

impl Candidates {
    /// Those of one column of an observation; `encoded` has its numbers, row by row, where it has a season.
    pub fn new(
        column: Column<'_>,
        observation: &Encoded,
        feature: usize,
        encoded: Option<&[f64]>,
    ) -> Result<Self> {
        let texts = column.texts();
        let values = match &observation.encoding {
            // Ordered levels that are numbers have means.
            Encoding::Ordinal { levels } if numbers_of(levels).is_some() => {
                Values::Numbers(column.numbers(0)?)
            }
            Encoding::Categorical { levels } | Encoding::Ordinal { levels } => {
                let places = Levels::new(levels);
                let code = |text: &Option<String>| places.find(text.as_deref()?);
                Values::Levels {
                    codes: texts.iter().map(code).collect(),
                    levels: levels.clone(),
                }
            }
            _ => Values::Numbers(column.numbers(0)?),
        };
        let mut ascending = vec![];
        if let Values::Numbers(numbers) = &values {
            ascending = (0..numbers.len() as u32).collect();
            ascending.retain(|&row| numbers[row as usize].is_finite());
            ascending.sort_by(|&a, &b| numbers[a as usize].total_cmp(&numbers[b as usize]));
        }
        Ok(Candidates {
            ascending,
            texts,
            values,
            seasonal: encoded.map(|numbers| (feature, numbers.to_vec())),
        })
    }

    /// The mean and the variance of numbers by their weights.
    pub fn moments(&self, weights: &[f64], item: &dyn Fn(usize) -> usize) -> Option<(f64, f64)> {
        let Values::Numbers(numbers) = &self.values else {
            return None;
        };
        let each = || {
            weights
                .iter()
                .enumerate()
                .map(|(i, w)| (numbers[item(i)], w))
        };
        let mean = each().map(|(x, w)| w * x).sum::<f64>();
        let variance = each().map(|(x, w)| w * (x - mean).powi(2)).sum();
        Some((mean, variance))
    }

    /// The number of a row.
    pub fn number(&self, row: usize) -> Option<f64> {
        match &self.values {
            Values::Numbers(numbers) => Some(numbers[row]),
            Values::Levels { .. } => None,
        }
    }

    /// The row whose number is nearest to one.
    pub fn nearest(&self, number: f64) -> Option<usize> {
        let Values::Numbers(numbers) = &self.values else {
            return None;
        };
        let at = |i: usize| self.ascending.get(i).map(|&row| row as usize);
        let above = self
            .ascending
            .partition_point(|&r| numbers[r as usize] < number);
        match (above.checked_sub(1).and_then(at), at(above)) {
            (Some(a), Some(b)) => Some(if number - numbers[a] < numbers[b] - number {
                a
            } else {
                b
            }),
            (one, other) => one.or(other),
        }
    }

    /// The number that a row of the support set stands for at a moment; `None` where it stands for itself.
    pub fn at(
        &self,
        row: usize,
        observation: &Encoded,
        season: Option<&Season>,
        moment: Option<f64>,
    ) -> Option<f64> {
        let (feature, numbers) = self.seasonal.as_ref()?;
        observation.decode(season, *feature, numbers[row], moment)
    }

    /// The numbers that rows of the support set stand for at a moment.
    pub fn numbers(
        &self,
        rows: &[usize],
        observation: &Encoded,
        season: Option<&Season>,
        moment: Option<f64>,
    ) -> Option<Vec<f64>> {
        let Values::Numbers(own) = &self.values else {
            return None;
        };
        let value = |&row: &usize| {
            self.at(row, observation, season, moment)
                .unwrap_or(own[row])
        };
        Some(rows.iter().map(value).collect())
    }
}
