//! The zero of a chain's latents after training: the mean belief of the training samples is made the prior's mean, as it is of right beliefs.
//!
//! Free energies hardly tell where a chain has its zero. Weights that validation samples chose before the rate had fallen had means 0.004 to 0.014 standard deviations of the prior
//! off (linear chain of 12 steps, 9,000 sequences, seeds 0 to 3 and 21), nearly the same at all steps. The last weights of trainings without validation samples were within 0.003
//! on seeds 1, 3 and 21, but up to 0.009 off at a fifth of the rate, where too little was learned. Against narrow posteriors 10,000 ranks notice that. The mean of right beliefs over samples
//! is the prior's, without any label, so a constant in all messages mends it; what else the weights say stays.

use crate::Result;
use crate::data::Gather;
use crate::model::Model;

/// How near the mean belief comes to the prior's mean, in its standard deviations.
const NEAR: f64 = 1e-3;
/// Samples whose beliefs are in memory together, and numbers that they show, at most; constants, so that sums do not depend on who computes them.
const CHUNK: usize = 1024;
const NUMBERS: usize = 1 << 26;

/// Moves the zero of a chain's Gaussian latents to where the mean belief of the training samples is the prior's; other models stay as they are. Where samples are dealt to ranks,
/// all of them call this together, and all get the same bits. Returns the weights as they were, if they are others now.
pub(super) fn centre(
    model: &mut Model,
    data: &dyn Gather,
    training: &[u32],
) -> Result<Option<Vec<f32>>> {
    let Some(dim) = model.centred_coordinates() else {
        return Ok(None);
    };
    let before = model.parameters().to_vec();
    let mut at = mean_belief(model, data, training, dim)?;
    if size(&at) < NEAR {
        return Ok(None);
    }
    // Broyden's method: the mean is nearly linear in the constant, and how steep it is shows on the way. Where a step went too far, the next knows it.
    let mut inverse: Vec<Vec<f64>> = (0..dim)
        .map(|i| (0..dim).map(|j| f64::from(u8::from(i == j))).collect())
        .collect();
    for _ in 0..2 * dim + 3 {
        let step: Vec<f64> = times(&inverse, &at).iter().map(|x| -x).collect();
        let kept = model.parameters().to_vec();
        model.add_to_messages(&step);
        let now = mean_belief(model, data, training, dim)?;
        let change: Vec<f64> = now.iter().zip(&at).map(|(now, at)| now - at).collect();
        let expected = times(&inverse, &change);
        let along: f64 = step.iter().zip(&expected).map(|(s, e)| s * e).sum();
        if size(&now) < size(&at) {
            at = now;
        } else {
            model.parameters_mut().copy_from_slice(&kept);
        }
        if size(&at) < NEAR || !along.is_finite() || along == 0.0 {
            break;
        }
        let row: Vec<f64> = (0..dim)
            .map(|j| (0..dim).map(|i| step[i] * inverse[i][j]).sum())
            .collect();
        for i in 0..dim {
            for j in 0..dim {
                inverse[i][j] += (step[i] - expected[i]) * row[j] / along;
            }
        }
    }
    Ok((model.parameters() != before).then_some(before))
}

/// The mean of the training samples' beliefs over all of their steps.
fn mean_belief(model: &Model, data: &dyn Gather, training: &[u32], dim: usize) -> Result<Vec<f64>> {
    let mut sums = vec![0.0; dim];
    let mut count = 0;
    let chunk = (NUMBERS / model.numbers_per_sample().max(1)).clamp(1, CHUNK);
    for samples in training.chunks(chunk) {
        count += model.add_belief_means(&data.gather(samples)?, &mut sums)?;
    }
    Ok(sums.iter().map(|sum| sum / count.max(1) as f64).collect())
}

fn size(x: &[f64]) -> f64 {
    x.iter().map(|x| x * x).sum::<f64>().sqrt()
}

fn times(matrix: &[Vec<f64>], x: &[f64]) -> Vec<f64> {
    let product = |row: &Vec<f64>| row.iter().zip(x).map(|(a, x)| a * x).sum();
    matrix.iter().map(product).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Dataset;
    use crate::graph::{FactorTree, Tying};
    use crate::train::{TrainSpec, Trainer};
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;
    use rand_distr::{Distribution, StandardNormal};

    const STEPS: usize = 6;

    /// A state that forgets, read with noise at every step.
    fn chain(rows: usize) -> Dataset {
        let mut random = ChaCha8Rng::seed_from_u64(4);
        let mut normal = || -> f32 { StandardNormal.sample(&mut random) };
        let mut values = vec![];
        for _ in 0..rows {
            let mut z = normal();
            for _ in 0..STEPS {
                values.push(z + 0.7 * normal());
                z = 0.8 * z + 0.6 * normal();
            }
        }
        let data = Dataset::new();
        data.observe_sequence("x", STEPS, 1, values).unwrap()
    }

    fn model(data: &Dataset, family: &str) -> Model {
        let builder = Model::builder(FactorTree::sequence(STEPS, &["x"]).unwrap());
        let builder = builder.families(family).unwrap().tying(Tying::Role);
        builder.seed(3).build(data).unwrap()
    }

    #[test]
    fn any_weights_are_centred_and_centred_ones_stay() {
        let data = chain(300);
        let all: Vec<u32> = (0..300).collect();
        for (family, dim) in [
            ("gaussian", 1),
            ("gaussian(2)", 2),
            ("diagonal_gaussian(2)", 2),
        ] {
            let mut model = model(&data, family);
            model.add_to_messages(&[0.3, -0.2][..dim]);
            let off = size(&mean_belief(&model, &data, &all, dim).unwrap());
            let weights = model.parameters().to_vec();
            let before = centre(&mut model, &data, &all).unwrap();
            assert_eq!(before, Some(weights));
            let left = size(&mean_belief(&model, &data, &all, dim).unwrap());
            assert!(off > 0.05 && left < NEAR, "{family}: {off} {left}");
            assert_eq!(centre(&mut model, &data, &all).unwrap(), None);
        }
    }

    /// What validation samples chose is centred on training samples, at no cost on the former.
    #[test]
    fn a_fit_ends_with_the_mean_belief_at_the_mean_of_the_prior() {
        let data = chain(600);
        let spec = TrainSpec {
            batch: Some(60),
            validation: 0.2,
            learning_rate: 1e-2,
            ..TrainSpec::for_chain(60)
        };
        let mut model = model(&data, "gaussian");
        let mut trainer = Trainer::new(spec.clone()).unwrap();
        let fit = trainer.fit(&mut model, &data).unwrap();
        let training = spec.split(600).unwrap().training;
        let left = size(&mean_belief(&model, &data, &training, 1).unwrap());
        assert!(left < NEAR, "{left}");
        let chosen = fit.records.iter().filter_map(|r| r.held_out);
        let chosen = chosen.fold(f64::NEG_INFINITY, f64::max);
        assert!(fit.held_out.unwrap() > chosen - 1e-3, "{fit:?}");
    }
}
