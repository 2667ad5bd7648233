//! Columns of a table as observations: numbers on a scale, vectors, and levels of a category.

use super::levels::{Levels, one_hot};
use super::ordinal::{self, whole_levels};
use super::scale::{Scale, ScaleKind};
use super::{EncodeError, Encoding};
use crate::Result;
use crate::model_file::{ObservationKind, ObservationSettings};
use crate::table::{Column, is_comma_number};

/// More levels than this make no category.
pub(super) const MOST_LEVELS: usize = 256;
/// A column of text with more different values than this needs a word from the user.
const SURPRISING_LEVELS: usize = 64;

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

/// Learns how these columns make an observation, from the rows among `items`; few whole numbers are ordered levels where its message
/// can be monotone.
pub(super) fn learn_columns(
    settings: &ObservationSettings,
    columns: &[Column<'_>],
    items: &[u32],
    ordinal: bool,
) -> Result<Encoding> {
    let known = |column: Column<'_>| -> Result<Vec<f64>> {
        let all = finite(column, 0)?;
        Ok(items.iter().map(|&i| all[i as usize]).collect())
    };
    let scale = |column: Column<'_>| -> Result<Scale> {
        learn_scale(
            settings.scale.unwrap_or_default(),
            &known(column)?,
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
        None if number.is_ok() && settings.levels.is_none() => {
            let levels = match settings.scale {
                None if ordinal => whole_levels(&known(columns[0])?),
                _ => None,
            };
            Ok(match levels {
                Some(levels) => Encoding::Ordinal { levels },
                None => Encoding::Number {
                    scale: scale(columns[0])?,
                },
            })
        }
        Some(ObservationKind::Ordinal) if !ordinal && number.is_ok() => Ok(Encoding::Number {
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
                let plain = |l: &&String| l.trim().parse::<f64>().is_ok();
                let numbers = levels.iter().filter(plain).count();
                let commas = levels.iter().filter(|l| is_comma_number(l)).count();
                let most = numbers + commas >= 3 && 2 * (numbers + commas) > levels.len();
                if most || commas > 0 && numbers + commas == levels.len() {
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
                _ if kind == Some(ObservationKind::Ordinal) => Ok(Encoding::Ordinal { levels }),
                _ => Ok(Encoding::Categorical { levels }),
            }
        }
    }
}

/// A scale that was learned, or why there is none.
pub(super) fn learn_scale(kind: ScaleKind, known: &[f64], what: &str) -> Result<Scale> {
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

/// The numbers that an observation has in every row; cells with levels that were never seen are counted in `unseen`.
pub(super) fn encode_columns(
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
        Encoding::Categorical { levels } => Ok(one_hot(levels, columns[0], unseen)),
        Encoding::Ordinal { levels } => ordinal::encode(levels, columns[0], first_row, unseen),
        Encoding::Image { .. } => Err(EncodeError::TrainedOnImages.into()),
    }
}
