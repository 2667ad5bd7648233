//! Observations of a chain with seasons: numbers by how far they are from what is usual, and back.

use super::columns::encode_columns;
use super::scale::Scale;
use super::season::Season;
use super::{EncodeError, Encoded, Encoder, Encoding};
use crate::Result;
use crate::model_file::ModelFile;
use crate::source::{Content, Samples, Sequence};
use crate::table::column;

impl Encoder {
    /// Learns what is usual for every number at a time of the season, from the rows among `items`.
    pub(super) fn learn_climate(&mut self, samples: &Samples, items: &[u32]) -> Result<()> {
        let (Some(season), Content::Table(table)) = (&self.season, &samples.content) else {
            return Ok(());
        };
        let all = season.moments(samples);
        let moments: Vec<f64> = items.iter().map(|&i| all[i as usize]).collect();
        for observation in &mut self.observations {
            if observation.scale(0).is_none() {
                continue;
            }
            let columns: Vec<_> = observation
                .columns
                .iter()
                .map(|c| column(table, c))
                .collect::<Result<_>>()?;
            let scores = encode_columns(
                &observation.encoding,
                &columns,
                table.num_rows(),
                samples.first_row,
                &mut 0,
            )?;
            let features = observation.encoding.features();
            observation.climate = (0..features)
                .map(|d| {
                    let score = |&i: &u32| f64::from(scores[i as usize * features + d]);
                    let numbers: Vec<f64> = items.iter().map(score).collect();
                    season.learn(&moments, &numbers)
                })
                .collect();
        }
        Ok(())
    }
}

impl Encoder {
    /// One number of an observation as it is encoded, row by row of a table; `None` where it has no season.
    pub(crate) fn numbers(
        &self,
        samples: &Samples,
        observation: &Encoded,
        feature: usize,
    ) -> Result<Option<Vec<f64>>> {
        let (Some(season), Some(table)) = (&self.season, samples.table()) else {
            return Ok(None);
        };
        let features = observation.climate.len();
        if features == 0 {
            return Ok(None);
        }
        let columns: Vec<_> = observation
            .columns
            .iter()
            .map(|c| column(table, c))
            .collect::<Result<_>>()?;
        let rows = table.num_rows();
        let mut numbers = encode_columns(&observation.encoding, &columns, rows, 0, &mut 0)?;
        observation.without_season(season, &season.moments(samples), &mut numbers);
        let own = numbers
            .chunks_exact(features)
            .map(|row| f64::from(row[feature]));
        Ok(Some(own.collect()))
    }
}

impl Encoded {
    /// The scale of one of its numbers, where it is made of numbers.
    fn scale(&self, feature: usize) -> Option<&Scale> {
        match &self.encoding {
            Encoding::Number { scale } => Some(scale),
            Encoding::Vector { scales } => scales.get(feature),
            _ => None,
        }
    }

    /// Numbers on their scale, by how far they are from what is usual; NaN stays.
    pub(super) fn without_season(&self, season: &Season, moments: &[f64], numbers: &mut [f32]) {
        if self.climate.is_empty() {
            return;
        }
        for (row, &moment) in numbers.chunks_exact_mut(self.climate.len()).zip(moments) {
            for (x, climate) in row.iter_mut().zip(&self.climate) {
                let (mean, sd) = season.usual(climate, moment);
                *x = ((f64::from(*x) - mean) / sd) as f32;
            }
        }
    }

    /// The value that an encoded number has, at a moment where there are seasons; `None` where it is no number, or nobody knows the moment.
    pub fn decode(
        &self,
        season: Option<&Season>,
        feature: usize,
        number: f64,
        moment: Option<f64>,
    ) -> Option<f64> {
        let scale = self.scale(feature)?;
        let Some(climate) = self.climate.get(feature) else {
            return Some(scale.invert(number));
        };
        let (mean, sd) = season?.usual(climate, moment?);
        Some(scale.invert(mean + sd * number))
    }
}

/// The seasons that the model file asks for. They need moments.
pub(super) fn season(file: &ModelFile, samples: &Samples) -> Result<Option<Season>> {
    let Some(chain) = file.chain() else {
        return Ok(None);
    };
    let periods = chain.season.clone().unwrap_or_default();
    let Some(step) = chain.step.filter(|_| !periods.is_empty()) else {
        return Ok(None);
    };
    let known = |sequences: &Vec<Sequence>| sequences.iter().all(|s| s.start.is_some());
    match samples.sequences.as_ref().is_some_and(known) {
        true => Ok(Some(Season { step, periods })),
        false => Err(EncodeError::SeasonWithoutTime.into()),
    }
}
