//! What training samples offer for an observation: the values of columns, row by row of the support set and, where there are seasons,
//! for any moment.

use crate::Result;
use crate::encode::{Encoded, Encoding, Levels, Season};
use crate::table::Column;

/// What one column may be filled with.
pub(super) struct Candidates {
    /// As they stand in the support set's table.
    pub texts: Vec<Option<String>>,
    pub values: Values,
    /// Encoded numbers of rows where a season makes other values of them at other moments.
    seasonal: Option<(usize, Vec<f64>)>,
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
            Encoding::Categorical { levels } => {
                let places = Levels::new(levels);
                let code = |text: &Option<String>| places.find(text.as_deref()?);
                Values::Levels {
                    codes: texts.iter().map(code).collect(),
                    levels: levels.clone(),
                }
            }
            _ => Values::Numbers(column.numbers(0)?),
        };
        Ok(Candidates {
            texts,
            values,
            seasonal: encoded.map(|numbers| (feature, numbers.to_vec())),
        })
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
