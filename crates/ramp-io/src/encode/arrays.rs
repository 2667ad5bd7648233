//! Arrays as observations: numbers, vectors and images.

use super::columns::learn_scale;
use super::encoder::Items;
use super::scale::Scale;
use super::{EncodeError, Encoded, Encoding};
use crate::Result;
use crate::array::{Array, ArrayValues};
use crate::model_file::{ObservationKind, ObservationSettings};
use crate::ranks::{Parts, engine};
use ramp::collective::gather_bytes;

/// Learns how an array makes an observation, from the places among `items`; `axes` axes count samples and time.
pub(super) fn learn_array(
    settings: &ObservationSettings,
    array: &Array,
    axes: usize,
    items: &[u32],
) -> Result<Encoding> {
    let width = match kind_of(settings, array, axes)? {
        Kind::Image(shape) => return Ok(Encoding::Image { shape }),
        Kind::Numbers(width) => width,
    };
    let learned = (0..width).map(|d| {
        let known = known(array, width, d, items).collect();
        learn_feature(settings, array, (d, width), known)
    });
    of_features(array, learned.collect::<Result<_>>()?)
}

/// [`learn_array`] by ranks that each hold some of the samples: one number of all items is brought together at a time.
pub(super) fn learn_array_among(
    settings: &ObservationSettings,
    array: &Array,
    axes: usize,
    items: &[u32],
    parts: &Parts,
) -> Result<Encoding> {
    let width = match kind_of(settings, array, axes)? {
        Kind::Image(shape) => return Ok(Encoding::Image { shape }),
        Kind::Numbers(width) => width,
    };
    let learned = parts.in_turn(
        width,
        |d, to| {
            let own: Vec<u8> = known(array, width, d, items)
                .flat_map(f64::to_ne_bytes)
                .collect();
            let all = gather_bytes(&*parts.ranks, &own, Some(to)).map_err(engine)?;
            Ok((parts.ranks.rank() == to).then(|| all.concat()))
        },
        |d, bytes| {
            let words = bytes.chunks_exact(8).map(<[u8; 8]>::try_from);
            let known = words.flatten().map(f64::from_ne_bytes).collect();
            learn_feature(settings, array, (d, width), known)
        },
    )?;
    of_features(array, learned)
}

/// What an array is made of.
enum Kind {
    Image([usize; 3]),
    /// So many numbers.
    Numbers(usize),
}

/// What an array is by its shape and settings.
fn kind_of(settings: &ObservationSettings, array: &Array, axes: usize) -> Result<Kind> {
    let shape = &array.shape[axes..];
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
            ArrayValues::Bytes(_) => Ok(Kind::Image(shape)),
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
    Ok(Kind::Numbers(shape.iter().product()))
}

/// One number of every item among `items`.
fn known<'a>(
    array: &'a Array,
    width: usize,
    d: usize,
    items: &'a [u32],
) -> impl Iterator<Item = f64> + 'a {
    let at = move |i: &u32| *i as usize * width + d;
    items.iter().map(move |i| match &array.values {
        ArrayValues::Numbers(x) => f64::from(x[at(i)]),
        ArrayValues::Bytes(x) => f64::from(x[at(i)]),
    })
}

/// The scale of one of so many numbers of an array, and whether it varies at all.
fn learn_feature(
    settings: &ObservationSettings,
    array: &Array,
    (d, width): (usize, usize),
    known: Vec<f64>,
) -> Result<(Scale, bool)> {
    if known.iter().any(|x| x.is_infinite()) {
        return Err(EncodeError::InfiniteElement {
            array: array.name.clone(),
        }
        .into());
    }
    let what = format!("feature {d} of array `{}`", array.name);
    match (
        learn_scale(settings.scale.unwrap_or_default(), &known, &what),
        known.iter().find(|x| !x.is_nan()),
    ) {
        // The rim of a picture tells nothing; others of its pixels do.
        (Err(_), Some(&mean)) if width > 1 => Ok((Scale::Standard { mean, sd: 1.0 }, false)),
        (learned, _) => learned.map(|scale| (scale, true)),
    }
}

/// The way of an array whose numbers have these scales.
fn of_features(array: &Array, scales: Vec<(Scale, bool)>) -> Result<Encoding> {
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

/// The numbers that an observation has at every place.
pub(super) fn encode_array(observation: &Encoded, array: &Array, axes: usize) -> Result<Items> {
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
        (Encoding::Image { .. }, ArrayValues::Bytes(bytes)) => Ok(Items::Bytes(bytes.to_vec())),
        (Encoding::Image { .. }, ArrayValues::Numbers(_)) => Err(EncodeError::ImageNotOfBytes {
            array: array.name.clone(),
            trained: true,
        }
        .into()),
        (Encoding::Number { scale }, _) => Ok(Items::Numbers(scaled(std::slice::from_ref(scale))?)),
        (Encoding::Vector { scales }, _) => Ok(Items::Numbers(scaled(scales)?)),
        (Encoding::Categorical { .. } | Encoding::Ordinal { .. }, _) => {
            Err(EncodeError::TrainedOnCategories.into())
        }
    }
}
