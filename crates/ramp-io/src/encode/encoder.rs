//! How columns and arrays become observations: scales and levels are learned once from training samples and used ever after.

use super::EncodeError;
use super::levels::Levels;
use super::scale::{Scale, ScaleKind};
use crate::Result;
use crate::array::{Array, ArrayValues};
use crate::arrow::RecordBatch;
use crate::model_file::{ModelFile, ObservationKind, ObservationSettings};
use crate::source::{Content, Samples, Sequence};
use crate::table::{Column, column, columns};
use ramp::data::Dataset;
use serde::{Deserialize, Serialize};
use std::collections::{HashMap, HashSet};

/// More levels than this make no category.
const MOST_LEVELS: usize = 256;
/// The most numbers of one observation of all steps of all sequences.
const MOST_CELLS: usize = 1 << 30;
/// A column of text with more different values than this needs a word from the user.
const SURPRISING_LEVELS: usize = 64;

/// How every observation is made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Encoder {
    /// Whether samples are sequences.
    pub chain: bool,
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
            Encoding::Categorical { levels } => levels.len(),
            Encoding::Vector { scales } => scales.len(),
            Encoding::Image { shape } => shape.iter().product(),
        }
    }

    /// In a few words, for tables.
    pub fn describe(&self) -> String {
        match self {
            Encoding::Number { .. } => "number".into(),
            Encoding::Categorical { levels } => format!("{} levels", levels.len()),
            Encoding::Vector { scales } => format!("vector of {}", scales.len()),
            Encoding::Image { shape: [c, h, w] } => format!("image {c}×{h}×{w}"),
        }
    }

    fn is_sound(&self) -> bool {
        match self {
            Encoding::Number { scale } => scale.is_sound(),
            Encoding::Categorical { levels } => (2..=MOST_LEVELS).contains(&levels.len()),
            Encoding::Vector { scales } => !scales.is_empty() && scales.iter().all(Scale::is_sound),
            Encoding::Image { shape } => !shape.contains(&0),
        }
    }
}

/// What observations are made of, item by item (rows of a table, or places in arrays).
enum Items {
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
        if let Some(unknown) = file.observations.keys().find(|k| !observations.contains(k)) {
            return Err(EncodeError::NotInTree {
                name: unknown.clone(),
                known: observations.to_vec(),
            }
            .into());
        }
        let items: Vec<u32> = match &samples.sequences {
            None => training.to_vec(),
            Some(sequences) => training
                .iter()
                .flat_map(|&n| &sequences[n as usize].items)
                .copied()
                .collect(),
        };
        let default = ObservationSettings::default();
        let places = Places::of(&samples.content);
        let encoded = observations
            .iter()
            .map(|name| {
                let settings = file.observations.get(name).unwrap_or(&default);
                let columns = settings
                    .columns
                    .clone()
                    .unwrap_or_else(|| vec![name.clone()]);
                let encoding = match &samples.content {
                    Content::Table(_) => {
                        let columns = columns
                            .iter()
                            .map(|c| places.column(c))
                            .collect::<Result<Vec<_>>>()?;
                        learn_columns(settings, &columns, &items)
                    }
                    Content::Arrays(_) => {
                        let axes = if samples.sequences.is_some() { 2 } else { 1 };
                        if let [_, second, ..] = &columns[..] {
                            return Err(EncodeError::SeveralArrays {
                                name: name.clone(),
                                second: second.clone(),
                            }
                            .into());
                        }
                        learn_array(settings, places.array(&columns[0])?, axes, &items)
                    }
                }
                .map_err(|why| EncodeError::InObservation {
                    name: name.clone(),
                    source: Box::new(why),
                })?;
                Ok(Encoded {
                    name: name.clone(),
                    columns,
                    encoding,
                })
            })
            .collect::<Result<_>>()?;
        Ok(Encoder {
            chain: samples.sequences.is_some(),
            observations: encoded,
        })
    }

    /// Whether an encoder read from a file can be used.
    pub fn is_sound(&self) -> bool {
        self.observations
            .iter()
            .all(|o| o.encoding.is_sound() && !o.columns.is_empty())
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
        let places = Places::of(&samples.content);
        let mut unseen = 0;
        let mut data = Dataset::new();
        let steps = samples.steps().max(2);
        for observation in &self.observations {
            let features = observation.encoding.features();
            let items = match &samples.content {
                Content::Table(table) => {
                    let columns = observation
                        .columns
                        .iter()
                        .map(|c| places.column(c))
                        .collect::<Result<Vec<_>>>()?;
                    Items::Numbers(encode_columns(
                        &observation.encoding,
                        &columns,
                        table.num_rows(),
                        samples.first_row,
                        &mut unseen,
                    )?)
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

/// The numbers of a column, none of them infinite.
fn finite(column: Column<'_>, first_row: usize) -> Result<Vec<f64>> {
    let numbers = column.numbers(first_row)?;
    match numbers.iter().position(|x| x.is_infinite()) {
        None => Ok(numbers),
        Some(row) => Err(EncodeError::InfiniteCell {
            column: column.name().to_owned(),
            row: first_row + row + 1,
        }
        .into()),
    }
}

/// A column on its scale.
fn scaled(column: Column<'_>, scale: &Scale, first_row: usize) -> Result<Vec<f32>> {
    let numbers = finite(column, first_row)?;
    let apply = |(row, &x): (usize, &f64)| match scale.apply(x) as f32 {
        y if y.is_infinite() => Err(EncodeError::BeyondScale {
            column: column.name().to_owned(),
            row: first_row + row + 1,
            value: x,
        }
        .into()),
        y => Ok(y),
    };
    numbers.iter().enumerate().map(apply).collect()
}

fn learn_columns(
    settings: &ObservationSettings,
    columns: &[Column<'_>],
    items: &[u32],
) -> Result<Encoding> {
    let scale = |column: Column<'_>| -> Result<Scale> {
        let all = finite(column, 0)?;
        let known: Vec<f64> = items.iter().map(|&i| all[i as usize]).collect();
        learn_scale(
            settings.scale.unwrap_or_default(),
            &known,
            &format!("column `{}`", column.name()),
        )
    };
    let number = columns[0].numbers(0);
    match settings.kind {
        Some(ObservationKind::Image) => Err(EncodeError::ImageFromTable.into()),
        Some(ObservationKind::Vector) => Ok(Encoding::Vector {
            scales: columns.iter().map(|&c| scale(c)).collect::<Result<_>>()?,
        }),
        Some(ObservationKind::Number) => Ok(Encoding::Number {
            scale: scale(columns[0])?,
        }),
        None if number.is_ok() && settings.levels.is_none() => Ok(Encoding::Number {
            scale: scale(columns[0])?,
        }),
        kind => {
            let column = columns[0];
            let texts = column.texts();
            let mut levels: Vec<String> = match &settings.levels {
                Some(levels) => levels.clone(),
                None => {
                    let mut found: Vec<&String> = items
                        .iter()
                        .filter_map(|&i| texts[i as usize].as_ref())
                        .collect();
                    found.sort_unstable();
                    found.dedup();
                    found.into_iter().cloned().collect()
                }
            };
            if settings.levels.is_none() && levels.iter().all(|l| l.trim().parse::<f64>().is_ok()) {
                let value = |l: &String| l.trim().parse::<f64>().unwrap_or(f64::NAN);
                levels.sort_by(|a, b| value(a).total_cmp(&value(b)));
            }
            if settings.levels.is_some() {
                let places = Levels::new(&levels);
                let mut known = items.iter().filter_map(|&i| texts[i as usize].as_deref());
                let first = known.clone().next();
                if let Some(cell) = first
                    && known.all(|text| places.find(text).is_none())
                {
                    return Err(EncodeError::NoneOfItsLevels {
                        column: column.name().to_owned(),
                        cell: cell.into(),
                    }
                    .into());
                }
            } else if let (None, Err(source)) = (kind, number) {
                let numbers = levels
                    .iter()
                    .filter(|l| l.trim().parse::<f64>().is_ok())
                    .count();
                if numbers >= 3 && 2 * numbers > levels.len() {
                    return Err(EncodeError::AlmostNumbers {
                        source: Box::new(source),
                    }
                    .into());
                }
            }
            let most = if kind.is_some() || settings.levels.is_some() {
                MOST_LEVELS
            } else {
                SURPRISING_LEVELS
            };
            match levels.len() {
                0 => Err(EncodeError::AllMissing {
                    what: format!("column `{}`", column.name()),
                }
                .into()),
                1 => Err(EncodeError::Constant {
                    what: format!("column `{}`", column.name()),
                    value: format!("`{}`", levels[0]),
                }
                .into()),
                n if n > most => Err(EncodeError::TooManyLevels {
                    column: column.name().to_owned(),
                    levels: n,
                    asked_for: most == MOST_LEVELS,
                }
                .into()),
                _ => Ok(Encoding::Categorical { levels }),
            }
        }
    }
}

fn learn_scale(kind: ScaleKind, known: &[f64], what: &str) -> Result<Scale> {
    Scale::learn(kind, known).ok_or_else(|| {
        let value = known.iter().find(|x| !x.is_nan());
        let what = what.to_string();
        match value {
            None => EncodeError::AllMissing { what },
            Some(x) => EncodeError::Constant {
                what,
                value: x.to_string(),
            },
        }
        .into()
    })
}

fn learn_array(
    settings: &ObservationSettings,
    array: &Array,
    axes: usize,
    items: &[u32],
) -> Result<Encoding> {
    let shape = &array.shape[axes..];
    let width: usize = shape.iter().product();
    let image = match settings.kind {
        Some(kind) => kind == ObservationKind::Image,
        None => matches!(array.values, ArrayValues::Bytes(_)) && shape.len() >= 2,
    };
    if image {
        let shape = match *shape {
            [h, w] => [1, h, w],
            [c, h, w] => [c, h, w],
            _ => {
                return Err(EncodeError::NotAnImage {
                    array: array.name.clone(),
                    shape: shape.to_vec(),
                }
                .into());
            }
        };
        return match array.values {
            ArrayValues::Bytes(_) => Ok(Encoding::Image { shape }),
            ArrayValues::Numbers(_) => Err(EncodeError::ImageNotOfBytes {
                array: array.name.clone(),
                trained: false,
            }
            .into()),
        };
    }
    if settings.kind == Some(ObservationKind::Categorical) || settings.levels.is_some() {
        return Err(EncodeError::CategoryFromArray.into());
    }
    let kind = settings.scale.unwrap_or_default();
    let value = |i: usize| match &array.values {
        ArrayValues::Numbers(x) => f64::from(x[i]),
        ArrayValues::Bytes(x) => f64::from(x[i]),
    };
    let scales = (0..width)
        .map(|d| {
            let known: Vec<f64> = items
                .iter()
                .map(|&i| value(i as usize * width + d))
                .collect();
            if known.iter().any(|x| x.is_infinite()) {
                return Err(EncodeError::InfiniteElement {
                    array: array.name.clone(),
                }
                .into());
            }
            let what = format!("feature {d} of array `{}`", array.name);
            match (
                learn_scale(kind, &known, &what),
                known.iter().find(|x| !x.is_nan()),
            ) {
                // The rim of a picture tells nothing; others of its pixels do.
                (Err(_), Some(&mean)) if width > 1 => {
                    Ok((Scale::Standard { mean, sd: 1.0 }, false))
                }
                (learned, _) => learned.map(|scale| (scale, true)),
            }
        })
        .collect::<Result<Vec<_>>>()?;
    if scales.iter().all(|(_, varies)| !varies) {
        return Err(EncodeError::ConstantArray {
            array: array.name.clone(),
        }
        .into());
    }
    let scales: Vec<Scale> = scales.into_iter().map(|(scale, _)| scale).collect();
    Ok(match <[Scale; 1]>::try_from(scales) {
        Ok([scale]) => Encoding::Number { scale },
        Err(scales) => Encoding::Vector { scales },
    })
}

fn encode_columns(
    encoding: &Encoding,
    columns: &[Column<'_>],
    rows: usize,
    first_row: usize,
    unseen: &mut u64,
) -> Result<Vec<f32>> {
    match encoding {
        Encoding::Number { scale } => scaled(columns[0], scale, first_row),
        Encoding::Vector { scales } => {
            let parts = columns
                .iter()
                .zip(scales)
                .map(|(&column, scale)| scaled(column, scale, first_row))
                .collect::<Result<Vec<_>>>()?;
            Ok((0..rows)
                .flat_map(|row| parts.iter().map(move |p| p[row]))
                .collect())
        }
        Encoding::Categorical { levels } => {
            let places = Levels::new(levels);
            let mut values = vec![0.0; rows * levels.len()];
            for (row, text) in columns[0].texts().iter().enumerate() {
                let to = &mut values[row * levels.len()..][..levels.len()];
                match text.as_deref().map(|text| places.find(text)) {
                    Some(Some(level)) => to[level] = 1.0,
                    other => {
                        *unseen += u64::from(other.is_some());
                        to.fill(f32::NAN);
                    }
                }
            }
            Ok(values)
        }
        Encoding::Image { .. } => Err(EncodeError::TrainedOnImages.into()),
    }
}

fn encode_array(observation: &Encoded, array: &Array, axes: usize) -> Result<Items> {
    let width: usize = array.shape[axes..].iter().product();
    let features = observation.encoding.features();
    if width != features {
        return Err(EncodeError::WrongWidth {
            array: array.name.clone(),
            width,
            trained: features,
        }
        .into());
    }
    let scaled = |scales: &[Scale]| {
        let value = |i: usize| match &array.values {
            ArrayValues::Numbers(x) => f64::from(x[i]),
            ArrayValues::Bytes(x) => f64::from(x[i]),
        };
        let all = array.shape.iter().product::<usize>();
        (0..all)
            .map(|i| match value(i) {
                x if x.is_infinite() => Err(EncodeError::InfiniteElement {
                    array: array.name.clone(),
                }
                .into()),
                x => Ok(scales[i % width].apply(x) as f32),
            })
            .collect::<Result<Vec<_>>>()
    };
    match (&observation.encoding, &array.values) {
        (Encoding::Image { .. }, ArrayValues::Bytes(bytes)) => Ok(Items::Bytes(bytes.clone())),
        (Encoding::Image { .. }, ArrayValues::Numbers(_)) => Err(EncodeError::ImageNotOfBytes {
            array: array.name.clone(),
            trained: true,
        }
        .into()),
        (Encoding::Number { scale }, _) => Ok(Items::Numbers(scaled(std::slice::from_ref(scale))?)),
        (Encoding::Vector { scales }, _) => Ok(Items::Numbers(scaled(scales)?)),
        (Encoding::Categorical { .. }, _) => Err(EncodeError::TrainedOnCategories.into()),
    }
}
