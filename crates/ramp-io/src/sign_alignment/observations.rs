//! Before training: observations that run against the others of their latent get mirrored networks, so that all agree on its sign.

use crate::Result;
use crate::encode::{Encoder, Encoding};
use crate::source::Samples;
use ramp::data::Dataset;
use ramp::graph::{FactorTree, Rooted};

/// Samples that decide.
const LOOKED_AT: usize = 2000;
/// Steps of the power iteration; only signs are wanted.
const STEPS: usize = 30;

/// Those of the training samples that decide.
pub(crate) fn looked_at(training: &[u32]) -> &[u32] {
    &training[..training.len().min(LOOKED_AT)]
}

/// Which observations, of the encoder's, run against the others (reverse-keyed items of a questionnaire, say): from the leaves
/// upwards, every latent is taken for the leading component of what hangs on it, and what loads on that with a minus is reversed.
pub(crate) fn reversed_observations(
    tree: &FactorTree,
    encoder: &Encoder,
    few: Samples,
) -> Result<Vec<bool>> {
    // Items of sequences count as samples: their observations at one step hang on one latent.
    let few = Samples {
        sequences: None,
        ..few
    };
    let flat = Encoder {
        chain: false,
        season: None,
        observations: encoder.observations.clone(),
    };
    let mut reversed = vec![false; encoder.observations.len()];
    if few.table().is_none() {
        return Ok(reversed);
    }
    let (data, _) = flat.encode(&few)?;
    let scores: Vec<Option<Vec<f64>>> = encoder
        .observations
        .iter()
        .map(|o| match o.encoding.is_ordered() {
            true => numbers(&data, &o.name).map(Some),
            false => Ok(None),
        })
        .collect::<Result<_>>()?;
    if encoder.chain {
        let known: Vec<usize> = (0..scores.len()).filter(|&i| scores[i].is_some()).collect();
        let parts: Vec<&[f64]> = known.iter().filter_map(|&i| scores[i].as_deref()).collect();
        for (&i, loading) in known.iter().zip(leading(&parts).0) {
            reversed[i] = loading < 0.0;
        }
        return Ok(reversed);
    }
    let place: std::collections::HashMap<&str, usize> = encoder
        .observations
        .iter()
        .enumerate()
        .map(|(i, o)| (&o.name[..], i))
        .collect();
    upwards(tree, &place, scores, &mut reversed);
    Ok(reversed)
}

/// Standardised numbers, zero where one is missing.
fn numbers(data: &Dataset, name: &str) -> Result<Vec<f64>> {
    let observation = data.observation(name)?;
    let mut all: Vec<f64> = (0..data.rows())
        .map(|row| Encoding::place(&observation.numbers(row)))
        .collect();
    standardise(&mut all, |row| observation.is_present(row));
    Ok(all)
}

fn standardise(values: &mut [f64], present: impl Fn(usize) -> bool) {
    let known: Vec<usize> = (0..values.len()).filter(|&r| present(r)).collect();
    let n = known.len().max(1) as f64;
    let mean = known.iter().map(|&r| values[r]).sum::<f64>() / n;
    let size = (known
        .iter()
        .map(|&r| (values[r] - mean).powi(2))
        .sum::<f64>()
        / n)
        .sqrt();
    for (row, value) in values.iter_mut().enumerate() {
        *value = if present(row) && size > 0.0 {
            (*value - mean) / size
        } else {
            0.0
        };
    }
}

/// The leading component of some series: loadings whose sum is not negative, and the component's own series.
fn leading(parts: &[&[f64]]) -> (Vec<f64>, Vec<f64>) {
    let rows = parts.first().map_or(0, |p| p.len());
    let mut loadings = vec![1.0; parts.len()];
    // A start that no series is at right angles to by design.
    for (i, loading) in loadings.iter_mut().enumerate() {
        *loading += 0.01 * (i as f64).sin();
    }
    let mut score = vec![0.0; rows];
    for _ in 0..STEPS {
        score.fill(0.0);
        for (part, loading) in parts.iter().zip(&loadings) {
            score
                .iter_mut()
                .zip(*part)
                .for_each(|(s, x)| *s += loading * x);
        }
        for (part, loading) in parts.iter().zip(&mut loadings) {
            *loading = part.iter().zip(&score).map(|(x, s)| x * s).sum();
        }
        let size = loadings.iter().map(|l| l * l).sum::<f64>().sqrt();
        if size == 0.0 {
            return (vec![1.0; parts.len()], score);
        }
        loadings.iter_mut().for_each(|l| *l /= size);
    }
    if loadings.iter().sum::<f64>() < 0.0 {
        loadings.iter_mut().for_each(|l| *l = -*l);
        score.iter_mut().for_each(|s| *s = -*s);
    }
    (loadings, score)
}

/// Goes through the tree from its leaves to its root.
fn upwards(
    tree: &FactorTree,
    place: &std::collections::HashMap<&str, usize>,
    mut scores: Vec<Option<Vec<f64>>>,
    reversed: &mut [bool],
) {
    let rooted = Rooted::new(tree);
    let mut latent_scores: Vec<Option<Vec<f64>>> = vec![None; tree.variable_count()];
    // Observations below each latent, to be reversed together.
    let mut below: Vec<Vec<usize>> = vec![vec![]; tree.variable_count()];
    // Against the order from the root, children come before their parents.
    let latents = rooted.order.iter().rev().filter(|&&v| tree.is_latent(v));
    for &latent in latents {
        let mut parts: Vec<Vec<f64>> = vec![];
        let mut who: Vec<Vec<usize>> = vec![];
        let children = rooted
            .outward(tree, latent)
            .flat_map(|factor| tree.variables_of(factor))
            .filter(|&&v| v != latent);
        for &child in children {
            let (score, leaves) = if tree.is_latent(child) {
                (
                    latent_scores[child.index()].take(),
                    std::mem::take(&mut below[child.index()]),
                )
            } else {
                let i = place.get(tree.name(child)).copied();
                (i.and_then(|i| scores[i].take()), i.into_iter().collect())
            };
            if let Some(score) = score {
                parts.push(score);
                who.push(leaves);
            }
        }
        if parts.is_empty() {
            continue;
        }
        let (loadings, mut score) = leading(&parts.iter().map(|p| &p[..]).collect::<Vec<_>>());
        for (leaves, loading) in who.iter().zip(&loadings) {
            if *loading < 0.0 {
                leaves.iter().for_each(|&i| reversed[i] = !reversed[i]);
            }
        }
        standardise(&mut score, |_| true);
        latent_scores[latent.index()] = Some(score);
        below[latent.index()] = who.concat();
    }
}
