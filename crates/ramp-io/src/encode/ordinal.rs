//! Ordered levels, such as the answers of a questionnaire: a one among zeros, in their order.

use super::EncodeError;
use super::levels::one_hot;
use crate::Result;
use crate::model_file::ModelFile;
use crate::table::Column;
use ramp::family::{AnyFamily, DiagonalGaussian, Gaussian};
use ramp::graph::Tying;
use std::collections::HashSet;

/// Whole numbers with a wider range than this are numbers, not levels.
const WIDEST: f64 = 11.0;

/// The observations whose messages can be monotone: those of a Gaussian latent with a network of their own.
pub(crate) fn can_be_monotone(file: &ModelFile) -> Result<HashSet<String>> {
    let separate = file.networks.tying.is_none_or(|t| t == Tying::Separate);
    if file.chain().is_some() || !separate {
        return Ok(HashSet::new());
    }
    let tree = file.build_tree(2)?;
    let gaussian = |latent: &str| {
        matches!(
            file.latents.family_of(latent).parts(),
            [AnyFamily::Gaussian(Gaussian { .. })]
                | [AnyFamily::Diagonal(DiagonalGaussian { dim: 1 })]
        )
    };
    let observations = (tree.observations().iter())
        .filter(|&&x| tree.latent_of(x).is_some_and(|v| gaussian(tree.name(v))));
    Ok(observations.map(|&x| tree.name(x).to_string()).collect())
}

/// The levels of whole numbers, every one from the least to the greatest; `None` if there are other numbers or too many.
pub(super) fn whole_levels(known: &[f64]) -> Option<Vec<String>> {
    let present = || known.iter().copied().filter(|x| !x.is_nan());
    if !present().all(|x| x.fract() == 0.0) {
        return None;
    }
    let least = present().fold(f64::INFINITY, f64::min);
    let greatest = present().fold(f64::NEG_INFINITY, f64::max);
    if !(1.0..WIDEST).contains(&(greatest - least)) {
        return None;
    }
    let count = (greatest - least) as usize + 1;
    Some((0..count).map(|i| (least + i as f64).to_string()).collect())
}

/// The levels as numbers, if all of them are and they rise.
pub(crate) fn numbers_of(levels: &[String]) -> Option<Vec<f64>> {
    let numbers: Option<Vec<f64>> = levels.iter().map(|l| l.trim().parse().ok()).collect();
    numbers.filter(|n| n.windows(2).all(|w| w[0] < w[1]))
}

/// A one for the level of every row and zeros for the others. A number between two levels is shared by them in proportion, one beyond
/// the last counts as the last; a word that is no level is missing and counted.
pub(super) fn encode(
    levels: &[String],
    column: Column<'_>,
    first_row: usize,
    unseen: &mut u64,
) -> Result<Vec<f32>> {
    let count = levels.len();
    if let (Some(places), Ok(numbers)) = (numbers_of(levels), column.numbers(first_row)) {
        let mut values = vec![0.0; numbers.len() * count];
        for (row, (&x, to)) in numbers
            .iter()
            .zip(values.chunks_exact_mut(count))
            .enumerate()
        {
            if x.is_infinite() {
                return Err(EncodeError::InfiniteCell {
                    column: column.name().to_owned(),
                    row: first_row + row + 1,
                }
                .into());
            }
            share(&places, x, to);
        }
        return Ok(values);
    }
    Ok(one_hot(levels, column, unseen))
}

fn share(places: &[f64], x: f64, to: &mut [f32]) {
    if x.is_nan() {
        return to.fill(f32::NAN);
    }
    let after = places.partition_point(|&p| p < x);
    match after {
        0 => to[0] = 1.0,
        n if n == places.len() => to[n - 1] = 1.0,
        n => {
            let way = ((x - places[n - 1]) / (places[n] - places[n - 1])) as f32;
            to[n - 1] = 1.0 - way;
            to[n] = way;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_with_few_levels_are_levels() {
        let levels = |x: &[f64]| whole_levels(x).map(|l| l.join(" "));
        assert_eq!(levels(&[1.0, 5.0, f64::NAN, 2.0]).unwrap(), "1 2 3 4 5");
        assert_eq!(levels(&[0.0, 1.0]).unwrap(), "0 1");
        assert_eq!(levels(&[-1.0, 1.0]).unwrap(), "-1 0 1");
        for none in [
            &[1.5, 2.0][..],
            &[0.0, 11.0],
            &[3.0, 3.0],
            &[f64::NAN],
            &[0.0, 1e300],
        ] {
            assert_eq!(levels(none), None, "{none:?}");
        }
    }

    #[test]
    fn numbers_between_levels_are_shared_and_those_beyond_are_the_last() {
        let places = [1.0, 2.0, 4.0];
        for (x, expected) in [
            (2.0, [0.0, 1.0, 0.0]),
            (3.5, [0.0, 0.25, 0.75]),
            (-7.0, [1.0, 0.0, 0.0]),
            (9.0, [0.0, 0.0, 1.0]),
        ] {
            let mut to = [0.0; 3];
            share(&places, x, &mut to);
            assert_eq!(to, expected, "{x}");
        }
    }
}
