//! How fast coordinates change from step to step of a sequence.

use super::linalg::inverse;
use std::collections::HashMap;

/// The change per step at each of some steps, whose sequences and places in them are given: the slope of a parabola through `reach` steps on either side, or as many on one side where a
/// sequence ends; none where no whole window holds the step.
pub fn rates(
    places: &[(usize, usize)],
    coordinates: &[Vec<f64>],
    reach: usize,
) -> Vec<Option<Vec<f64>>> {
    let rows: HashMap<(usize, usize), usize> =
        places.iter().enumerate().map(|(i, &p)| (p, i)).collect();
    let width = 2 * reach + 1;
    // By where the present step lies among those of the window.
    let slopes: Vec<Vec<f64>> = (0..width).map(|at| parabola_slope(width, at)).collect();
    let rate = |&(sequence, step): &(usize, usize)| {
        // The window around the step, or the nearest to it that is whole.
        let whole = |first: usize| -> Option<(usize, Vec<usize>)> {
            let own = (first..first + width).map(|t| rows.get(&(sequence, t)).copied());
            Some((step - first, own.collect::<Option<Vec<_>>>()?))
        };
        let mut firsts: Vec<usize> = (step.saturating_sub(width - 1)..=step).collect();
        firsts.sort_by_key(|first| (first + reach).abs_diff(step));
        let (at, own) = firsts.into_iter().find_map(whole)?;
        let mut rate = vec![0.0; coordinates[own[0]].len()];
        for (row, slope) in own.iter().zip(&slopes[at]) {
            for (to, x) in rate.iter_mut().zip(&coordinates[*row]) {
                *to += slope * x;
            }
        }
        Some(rate)
    };
    places.iter().map(rate).collect()
}

/// The weights by which values at steps 0, 1, … give the slope at one of them of the parabola that fits them best.
fn parabola_slope(width: usize, at: usize) -> Vec<f64> {
    let t: Vec<f64> = (0..width).map(|i| i as f64 - at as f64).collect();
    let powers = |i: usize| [1.0, t[i], t[i] * t[i]];
    let mut normal = vec![0.0; 9];
    for i in 0..width {
        for (p, a) in powers(i).iter().enumerate() {
            for (q, b) in powers(i).iter().enumerate() {
                normal[p * 3 + q] += a * b;
            }
        }
    }
    let inverse = inverse(3, &normal).unwrap_or_else(|| vec![0.0; 9]);
    let weight = |i: usize| {
        powers(i)
            .iter()
            .zip(&inverse[3..6])
            .map(|(a, b)| a * b)
            .sum()
    };
    (0..width).map(weight).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_those_of_parabolas_and_gaps_have_none() {
        let at = |t: f64| 1.0 + 0.5 * t - 0.02 * t * t;
        let mut places: Vec<(usize, usize)> = (0..12).map(|t| (0, t)).collect();
        // A second sequence is too short, a third has a hole.
        places.extend((0..5).map(|t| (1, t)));
        places.extend((0..12).filter(|t| *t != 6).map(|t| (2, t)));
        let coordinates: Vec<Vec<f64>> = places.iter().map(|p| vec![at(p.1 as f64)]).collect();
        let found = rates(&places, &coordinates, 3);
        for (&(sequence, t), rate) in places.iter().zip(&found) {
            match rate {
                Some(rate) => assert!((rate[0] - (0.5 - 0.04 * t as f64)).abs() < 1e-9),
                None => assert!(sequence > 0),
            }
        }
        assert!(found[..12].iter().all(Option::is_some));
        assert!(found[12..].iter().all(Option::is_none));
    }
}
