//! How columns and arrays become observations: scales and levels are learned once from training samples and used ever after.

use super::EncodeError;
use super::arrays::{encode_array, learn_array, learn_array_among};
use super::climate::season;
use super::columns::{MOST_LEVELS, encode_columns, learn_columns};
use super::ordinal::can_be_monotone;
use super::scale::Scale;
use super::season::{Climate, Season};
use crate::Result;
use crate::array::Array;
use crate::arrow::RecordBatch;
use crate::model_file::{ModelFile, ObservationSettings};
use crate::ranks::Parts;
use crate::source::{Content, Samples, Sequence};
use crate::table::{Column, column, columns};
use ramp::data::Dataset;
use serde::{Deserialize, Serialize};
use std::collections::{HashMap, HashSet};

/// The most numbers of one observation of all steps of all sequences.
const MOST_CELLS: usize = 1 << 30;

/// How every observation is made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Encoder {
    /// Whether samples are sequences.
    pub chain: bool,
    /// The clock of a chain with seasons.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub season: Option<Season>,
    /// In the order of the tree's observations, or of the chain's `observe`.
    pub observations: Vec<Encoded>,
}

/// How one observation is made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Encoded {
    /// Its name in the tree.
    pub name: String,
    /// The columns, or the array, that it is made from.
    pub columns: Vec<String>,
    /// The way.
    pub encoding: Encoding,
    /// What is usual for each of its numbers at a time of the season, on their scale; none where it has no season.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub climate: Vec<Climate>,
}

/// Ways from cells to numbers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub enum Encoding {
    /// A number.
    Number {
        /// Its scale.
        scale: Scale,
    },
    /// A one for the level and zeros for the others.
    Categorical {
        /// The levels.
        levels: Vec<String>,
    },
    /// A one for the level and zeros for the others; the levels have an order.
    Ordinal {
        /// The levels, in their order.
        levels: Vec<String>,
    },
    /// Several numbers.
    Vector {
        /// A scale for each.
        scales: Vec<Scale>,
    },
    /// Pixels from 0 to 1.
    Image {
        /// Channels, height, width.
        shape: [usize; 3],
    },
}

impl Encoding {
    /// Numbers per sample.
    pub fn features(&self) -> usize {
        match self {
            Encoding::Number { .. } => 1,
            Encoding::Categorical { levels } | Encoding::Ordinal { levels } => levels.len(),
            Encoding::Vector { scales } => scales.len(),
            Encoding::Image { shape } => shape.iter().product(),
        }
    }

    /// Whether its values have an order: a number's, and ordered levels'.
    pub fn is_ordered(&self) -> bool {
        matches!(self, Encoding::Number { .. } | Encoding::Ordinal { .. })
    }

    /// Where the numbers that it made of a value stand in that order.
    pub(crate) fn place(numbers: &[f32]) -> f64 {
        match numbers {
            [one] => f64::from(*one),
            levels => (0..)
                .zip(levels)
                .map(|(l, &x)| f64::from(l) * f64::from(x))
                .sum(),
        }
    }

    /// In a few words, for tables.
    pub fn describe(&self) -> String {
        match self {
            Encoding::Number { .. } => "number".into(),
            Encoding::Categorical { levels } => format!("{} levels", levels.len()),
            Encoding::Ordinal { levels } => format!("{} ordered levels", levels.len()),
            Encoding::Vector { scales } => format!("vector of {}", scales.len()),
            Encoding::Image { shape: [c, h, w] } => format!("image {c}×{h}×{w}"),
        }
    }

    fn is_sound(&self) -> bool {
        match self {
            Encoding::Number { scale } => scale.is_sound(),
            Encoding::Categorical { levels } | Encoding::Ordinal { levels } => {
                (2..=MOST_LEVELS).contains(&levels.len())
            }
            Encoding::Vector { scales } => !scales.is_empty() && scales.iter().all(Scale::is_sound),
            Encoding::Image { shape } => !shape.contains(&0),
        }
    }
}

/// What observations are made of, item by item (rows of a table, or places in arrays).
pub(super) enum Items {
    Numbers(Vec<f32>),
    Bytes(Vec<u8>),
}

impl Encoder {
    /// Learns how to make these observations from the training samples among some.
    pub fn learn(
        file: &ModelFile,
        observations: &[String],
        samples: &Samples,
        training: &[u32],
    ) -> Result<Self> {
        check_known(file, observations)?;
        let items = items_of(samples, training);
        let season = season(file, samples)?;
        let places = Places::of(&samples.content);
        let monotone = can_be_monotone(file)?;
        let encoded = observations
            .iter()
            .map(|name| {
                let settings = settings_of(file, name);
                let columns = columns_of(&settings, name);
                let encoding = match &samples.content {
                    Content::Table(_) => {
                        let columns = columns
                            .iter()
                            .map(|c| places.column(c))
                            .collect::<Result<Vec<_>>>()?;
                        let ordinal =
                            file.monotone(name).unwrap_or(true) && monotone.contains(name);
                        learn_columns(&settings, &columns, &items, ordinal)
                    }
                    Content::Arrays(_) => {
                        let axes = if samples.sequences.is_some() { 2 } else { 1 };
                        let array = places.array(only_array(name, &columns)?)?;
                        learn_array(&settings, array, axes, &items)
                    }
                };
                finished(name, columns, encoding)
            })
            .collect::<Result<_>>()?;
        let mut encoder = Encoder {
            chain: samples.sequences.is_some(),
            season,
            observations: encoded,
        };
        encoder.learn_climate(samples, &items)?;
        Ok(encoder)
    }

    /// [`learn`](Self::learn) by ranks that each hold some of the samples: one column at a time is brought together on one of them. Samples are rows of a table, or arrays.
    pub(crate) fn learn_among(
        file: &ModelFile,
        observations: &[String],
        samples: &Samples,
        training: &[u32],
        parts: &Parts,
    ) -> Result<Self> {
        check_known(file, observations)?;
        let season = season(file, samples)?;
        let encoded = match &samples.content {
            Content::Table(table) => {
                let monotone = can_be_monotone(file)?;
                let columns = |at: usize| {
                    let name = &observations[at];
                    columns_of(&settings_of(file, name), name)
                };
                parts.in_turn(
                    observations.len(),
                    |at, to| parts.gather_columns(table, &columns(at), to),
                    |at, table| {
                        let (name, names) = (&observations[at], columns(at));
                        let own = names.iter().map(|name| column(&table, name));
                        let own = own.collect::<Result<Vec<_>>>()?;
                        let ordinal =
                            file.monotone(name).unwrap_or(true) && monotone.contains(name);
                        let settings = settings_of(file, name);
                        let encoding = learn_columns(&settings, &own, training, ordinal);
                        finished(name, names, encoding)
                    },
                )?
            }
            Content::Arrays(_) => {
                let places = Places::of(&samples.content);
                let axes = if samples.sequences.is_some() { 2 } else { 1 };
                let items = items_of(samples, &parts.own(training));
                let mut encoded = vec![];
                for name in observations {
                    let settings = settings_of(file, name);
                    let columns = columns_of(&settings, name);
                    let array = places.array(only_array(name, &columns)?)?;
                    let encoding = learn_array_among(&settings, array, axes, &items, parts);
                    encoded.push(finished(name, columns, encoding)?);
                }
                encoded
            }
        };
        Ok(Encoder {
            chain: samples.sequences.is_some(),
            season,
            observations: encoded,
        })
    }

    /// Whether an encoder read from a file can be used.
    pub fn is_sound(&self) -> bool {
        self.observations.iter().all(|o| {
            let climate = o.climate.is_empty() || o.climate.len() == o.encoding.features();
            let season = o
                .climate
                .iter()
                .all(|c| self.season.as_ref().is_some_and(|s| s.is_sound(c)));
            o.encoding.is_sound() && !o.columns.is_empty() && climate && season
        })
    }

    /// All scales, in order.
    pub(crate) fn scales_mut(&mut self) -> impl Iterator<Item = &mut Scale> {
        self.observations
            .iter_mut()
            .flat_map(|o| match &mut o.encoding {
                Encoding::Number { scale } => std::slice::from_mut(scale),
                Encoding::Vector { scales } => &mut scales[..],
                Encoding::Categorical { .. }
                | Encoding::Ordinal { .. }
                | Encoding::Image { .. } => &mut [],
            })
    }

    /// The columns or arrays that are needed, each once.
    pub fn columns(&self) -> Vec<String> {
        let mut seen = HashSet::new();
        let all = self.observations.iter().flat_map(|o| &o.columns);
        all.filter(|column| seen.insert(&column[..]))
            .cloned()
            .collect()
    }

    /// Samples as observations, and how many cells held a level that was never seen in training: such cells count as
    /// missing.
    pub fn encode(&self, samples: &Samples) -> Result<(Dataset, u64)> {
        self.encode_steps(samples, samples.steps())
    }

    /// [`encode`](Self::encode) of sequences with room for so many steps, of which others have more.
    pub(crate) fn encode_steps(&self, samples: &Samples, steps: usize) -> Result<(Dataset, u64)> {
        let places = Places::of(&samples.content);
        let mut unseen = 0;
        let mut data = Dataset::new();
        let moments = self.season.as_ref().map(|season| season.moments(samples));
        let steps = steps.max(2);
        for observation in &self.observations {
            let features = observation.encoding.features();
            let items = match &samples.content {
                Content::Table(table) => {
                    let columns = observation
                        .columns
                        .iter()
                        .map(|c| places.column(c))
                        .collect::<Result<Vec<_>>>()?;
                    let mut numbers = encode_columns(
                        &observation.encoding,
                        &columns,
                        table.num_rows(),
                        samples.first_row,
                        &mut unseen,
                    )?;
                    if let (Some(season), Some(moments)) = (&self.season, &moments) {
                        observation.without_season(season, moments, &mut numbers);
                    }
                    Items::Numbers(numbers)
                }
                Content::Arrays(_) => {
                    let array = places.array(&observation.columns[0])?;
                    encode_array(observation, array, if self.chain { 2 } else { 1 })?
                }
            };
            let name = &observation.name;
            let Some(sequences) = &samples.sequences else {
                data = match items {
                    Items::Numbers(values) => data.observe(name, features, values)?,
                    Items::Bytes(values) => data.observe_bytes(name, features, values, None)?,
                };
                continue;
            };
            if steps
                .saturating_mul(sequences.len())
                .saturating_mul(features)
                > MOST_CELLS
            {
                return Err(EncodeError::TooLarge {
                    sequences: sequences.len(),
                    steps,
                }
                .into());
            }
            data = match items {
                // Arrays are laid out as sequences already: samples × time × …, missing where a sample has ended.
                Items::Numbers(values) if samples.table().is_none() && samples.room() == steps => {
                    data.observe_sequence(name, steps, features, values)?
                }
                Items::Bytes(values) if samples.room() == steps => {
                    data.observe_sequence_bytes(name, steps, features, values, None)?
                }
                Items::Numbers(from) => {
                    let mut values = vec![f32::NAN; steps * sequences.len() * features];
                    place(sequences, steps, features, &from, &mut values);
                    data.observe_sequence(name, steps, features, values)?
                }
                Items::Bytes(from) => {
                    let mut values = vec![0; steps * sequences.len() * features];
                    place(sequences, steps, features, &from, &mut values);
                    let mut present = vec![false; steps * sequences.len()];
                    place(
                        sequences,
                        steps,
                        1,
                        &vec![true; from.len() / features],
                        &mut present,
                    );
                    data.observe_sequence_bytes(name, steps, features, values, Some(present))?
                }
            };
        }
        if let Some(sequences) = &samples.sequences {
            data = data.with_lengths(sequences.iter().map(|s| s.length).collect())?;
        }
        Ok((data, unseen))
    }
}

/// Settings must be about observations of the tree.
fn check_known(file: &ModelFile, observations: &[String]) -> Result<(), EncodeError> {
    match file.observations.keys().find(|k| !observations.contains(k)) {
        None => Ok(()),
        Some(unknown) => Err(EncodeError::NotInTree {
            name: unknown.clone(),
            known: observations.to_vec(),
        }),
    }
}

/// The items of some samples, in their order.
fn items_of(samples: &Samples, some: &[u32]) -> Vec<u32> {
    let Some(sequences) = &samples.sequences else {
        return some.to_vec();
    };
    let items = some.iter().flat_map(|&n| &sequences[n as usize].items);
    let mut items: Vec<u32> = items.copied().collect();
    // Windows overlap.
    items.sort_unstable();
    items.dedup();
    items
}

/// What the file says of an observation.
fn settings_of(file: &ModelFile, name: &str) -> ObservationSettings {
    file.observations.get(name).cloned().unwrap_or_default()
}

/// What an observation is made from.
fn columns_of(settings: &ObservationSettings, name: &str) -> Vec<String> {
    let columns = settings.columns.clone();
    columns.unwrap_or_else(|| vec![name.to_string()])
}

/// The one array that an observation is made from.
fn only_array<'a>(name: &str, columns: &'a [String]) -> Result<&'a str, EncodeError> {
    match columns {
        [_, second, ..] => Err(EncodeError::SeveralArrays {
            name: name.into(),
            second: second.clone(),
        }),
        _ => Ok(&columns[0]),
    }
}

/// An observation with the way that was learned for it, or why there is none.
fn finished(name: &str, columns: Vec<String>, encoding: Result<Encoding>) -> Result<Encoded> {
    let encoding = encoding.map_err(|why| EncodeError::InObservation {
        name: name.into(),
        source: Box::new(why),
    })?;
    Ok(Encoded {
        name: name.into(),
        columns,
        encoding,
        climate: vec![],
    })
}

/// Puts every item of sequences in its place in a block of `[sample, time, features]`.
fn place<T: Copy>(sequences: &[Sequence], steps: usize, features: usize, from: &[T], to: &mut [T]) {
    for (sequence, to) in sequences.iter().zip(to.chunks_exact_mut(steps * features)) {
        for (&item, &step) in sequence.items.iter().zip(&sequence.steps) {
            to[step as usize * features..][..features]
                .copy_from_slice(&from[item as usize * features..][..features]);
        }
    }
}

/// Columns and arrays by name, for tables with very many of them.
struct Places<'a> {
    columns: HashMap<&'a str, Column<'a>>,
    arrays: &'a [Array],
    table: Option<&'a RecordBatch>,
}

impl<'a> Places<'a> {
    fn of(content: &'a Content) -> Self {
        match content {
            Content::Table(table) => Places {
                columns: columns(table).map(|c| (c.name(), c)).collect(),
                arrays: &[],
                table: Some(table),
            },
            Content::Arrays(arrays) => Places {
                columns: HashMap::new(),
                arrays,
                table: None,
            },
        }
    }

    fn column(&self, name: &str) -> Result<Column<'a>> {
        match (self.columns.get(name), self.table) {
            (Some(column), _) => Ok(*column),
            (None, Some(table)) => column(table, name),
            (None, None) => Err(EncodeError::NoColumn { name: name.into() }.into()),
        }
    }

    fn array(&self, name: &str) -> Result<&'a Array> {
        self.arrays.iter().find(|a| a.name == name).ok_or_else(|| {
            EncodeError::NoArray {
                name: name.into(),
                known: self.arrays.iter().map(|a| a.name.clone()).collect(),
            }
            .into()
        })
    }
}
