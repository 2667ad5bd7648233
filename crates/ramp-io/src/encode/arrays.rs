//! Arrays as observations: numbers, vectors and images.

use super::columns::learn_scale;
use super::encoder::Items;
use super::scale::Scale;
use super::{EncodeError, Encoded, Encoding};
use crate::Result;
use crate::array::{Array, ArrayValues};
use crate::model_file::{ObservationKind, ObservationSettings};

/// Learns how an array makes an observation, from the places among `items`; `axes` axes count samples and time.
pub(super) fn learn_array(
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
