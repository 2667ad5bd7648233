//! The structured VAE against a dense Gaussian posterior, finite differences, and an oscillator it must find.

use super::*;
use crate::baselines::Series;
use crate::baselines::learner::tests::check_gradient;
use crate::baselines::matrix::Matrix;
use faer::linalg::solvers::{DenseSolveCore, Solve};
use faer::{Mat, Side};
use rand::SeedableRng;

const DIMENSIONS: [usize; 3] = [1, 2, 3];

/// Stable dynamics of some dimension: a turn with decay, shifts and factors at random.
fn test_dynamics(layout: Layout, rng: &mut ChaCha8Rng) -> Vec<f64> {
    let mut numbers: Vec<f64> = normals(rng, 1, layout.dynamics_len())
        .concat()
        .iter()
        .map(|x| 0.4 * x)
        .collect();
    let d = layout.dim;
    for i in 0..d {
        for j in 0..d {
            let wave = 0.3 * ((i as f64) - (j as f64)).sin();
            numbers[i * d + j] = if i == j { 0.85 } else { wave };
        }
    }
    numbers
}

fn normals(rng: &mut ChaCha8Rng, count: usize, each: usize) -> Vec<Vec<f64>> {
    (0..count)
        .map(|_| (0..each).map(|_| StandardNormal.sample(rng)).collect())
        .collect()
}

fn covariance(layout: Layout, raw: &[f64]) -> Matrix {
    let factor = layout.factor(raw).positive();
    &factor * &factor.transpose()
}

/// The precision and the linear term of the whole sequence's posterior, from the joint of prior and potentials.
fn dense(layout: Layout, dynamics: &[f64], potentials: &[Vec<f64>]) -> (Mat<f64>, Mat<f64>) {
    let (steps, n) = (potentials.len(), layout.dim);
    let [a, b, q, first, s] = layout.dynamics().map(|span| &dynamics[span]);
    let (a, b, first) = (Matrix::square(n, a), Matrix::point(b), Matrix::point(first));
    let (q, s) = (covariance(layout, q), covariance(layout, s));
    // Mean and covariance of the prior by running it forwards.
    let mut means = vec![first];
    let mut marginals = vec![s];
    for t in 1..steps {
        means.push(&(&a * &means[t - 1]) + &b);
        marginals.push(&(&(&a * &marginals[t - 1]) * &a.transpose()) + &q);
    }
    let mut prior = Mat::<f64>::zeros(n * steps, n * steps);
    for from in 0..steps {
        let mut block = marginals[from].clone();
        for to in from..steps {
            for i in 0..n {
                for j in 0..n {
                    prior[(n * to + i, n * from + j)] = block[(i, j)];
                    prior[(n * from + j, n * to + i)] = block[(i, j)];
                }
            }
            block = &a * &block;
        }
    }
    let mut precision = prior.llt(Side::Lower).unwrap().inverse();
    let mean = Mat::from_fn(n * steps, 1, |i, _| means[i / n][(i % n, 0)]);
    let mut linear = &precision * &mean;
    for (t, x) in potentials.iter().enumerate() {
        let own = covariance(layout, &x[n..]);
        for i in 0..n {
            linear[(n * t + i, 0)] += x[i];
            for j in 0..n {
                precision[(n * t + i, n * t + j)] += own[(i, j)];
            }
        }
    }
    (precision, linear)
}

#[test]
fn the_smoother_is_the_dense_gaussian_posterior() {
    for (dim, steps) in DIMENSIONS
        .into_iter()
        .flat_map(|d| [(d, 1), (d, 2), (d, 12)])
    {
        let layout = Layout { dim };
        let rng = &mut ChaCha8Rng::seed_from_u64(3);
        let dynamics = test_dynamics(layout, rng);
        let potentials = normals(rng, steps, layout.potential_len());
        let (precision, linear) = dense(layout, &dynamics, &potentials);
        let factor = precision.llt(Side::Lower).unwrap();
        let (mean, cov) = (factor.solve(&linear), factor.inverse());
        let still = vec![vec![0.0; dim]; steps];
        let posterior = Posterior::new(layout, &dynamics, &potentials, &still);
        for (t, (m, c)) in posterior.means().zip(posterior.covariances()).enumerate() {
            for i in 0..dim {
                assert!((m[i] - mean[(dim * t + i, 0)]).abs() < 1e-8);
                for j in 0..dim {
                    assert!((c[(i, j)] - cov[(dim * t + i, dim * t + j)]).abs() < 1e-8);
                }
            }
        }
        // Without noise the draw is the mean.
        assert!(posterior.draws().eq(posterior.means()));

        // KL(q‖p) of two dense Gaussians: the prior is the posterior under no potentials at all.
        let mut nothing = vec![0.0; layout.potential_len()];
        nothing[dim..2 * dim].fill(-80.0);
        let (mut prior, prior_linear) = dense(layout, &dynamics, &vec![nothing; steps]);
        // A factor's diagonal cannot be quite zero.
        for i in 0..dim * steps {
            prior[(i, i)] -= 1e-6;
        }
        let prior_factor = prior.llt(Side::Lower).unwrap();
        let off = &mean - prior_factor.solve(&prior_linear);
        let log_det = |of: &Mat<f64>| {
            2.0 * of
                .diagonal()
                .column_vector()
                .iter()
                .map(|x| x.ln())
                .sum::<f64>()
        };
        let trace: f64 = (0..dim * steps).map(|i| (&prior * &cov)[(i, i)]).sum();
        let square = (off.transpose() * &prior * &off)[(0, 0)];
        let expected = 0.5
            * (trace + square - (dim * steps) as f64 + log_det(&factor.L().to_owned())
                - log_det(&prior_factor.L().to_owned()));
        let found = posterior.divergence();
        assert!(
            (found - expected).abs() < 1e-7 * (1.0 + expected),
            "{dim}, {steps}: {found} {expected}"
        );
    }
}

#[test]
fn draws_have_the_posterior_s_covariance_over_time() {
    // A draw is the mean and a linear map of the noise; the map times its transpose is the covariance.
    let steps = 5;
    for dim in DIMENSIONS {
        let layout = Layout { dim };
        let rng = &mut ChaCha8Rng::seed_from_u64(4);
        let dynamics = test_dynamics(layout, rng);
        let potentials = normals(rng, steps, layout.potential_len());
        let (precision, _) = dense(layout, &dynamics, &potentials);
        let expected = precision.llt(Side::Lower).unwrap().inverse();
        let at = |noise: &[Vec<f64>]| -> Vec<f64> {
            let posterior = Posterior::new(layout, &dynamics, &potentials, noise);
            posterior.draws().flatten().copied().collect()
        };
        let still = vec![vec![0.0; dim]; steps];
        let mean = at(&still);
        let columns: Vec<Vec<f64>> = (0..dim * steps)
            .map(|k| {
                let mut noise = still.clone();
                noise[k / dim][k % dim] = 1.0;
                at(&noise).iter().zip(&mean).map(|(a, b)| a - b).collect()
            })
            .collect();
        for i in 0..dim * steps {
            for j in 0..dim * steps {
                let found: f64 = columns.iter().map(|c| c[i] * c[j]).sum();
                assert!((found - expected[(i, j)]).abs() < 1e-8);
            }
        }
    }
}

#[test]
fn gradients_of_the_chain_are_those_of_differences() {
    let steps = 6;
    for dim in DIMENSIONS {
        let layout = Layout { dim };
        let rng = &mut ChaCha8Rng::seed_from_u64(5);
        let start = test_dynamics(layout, rng);
        let potentials = normals(rng, steps, layout.potential_len());
        let (noise, pulls) = (normals(rng, steps, dim), normals(rng, steps, dim));
        let value = |dynamics: &[f64], potentials: &[Vec<f64>]| {
            let posterior = Posterior::new(layout, dynamics, potentials, &noise);
            let draws = posterior.draws().flatten();
            let read: f64 = draws.zip(pulls.iter().flatten()).map(|(z, p)| z * p).sum();
            read - 0.7 * posterior.divergence()
        };
        let slopes = Posterior::new(layout, &start, &potentials, &noise).backward(&pulls, -0.7);
        let step = 1e-5;
        let check = |found: f64, at: &dyn Fn(f64) -> f64, what: &str| {
            let expected = (at(step) - at(-step)) / (2.0 * step);
            assert!(
                (found - expected).abs() < 1e-6 * (1.0 + expected.abs()),
                "{dim}, {what}: {found} {expected}"
            );
        };
        for i in 0..start.len() {
            let at = |by: f64| {
                let mut moved = start.clone();
                moved[i] += by;
                value(&moved, &potentials)
            };
            check(slopes.dynamics[i], &at, &format!("dynamics {i}"));
        }
        for t in 0..steps {
            for i in 0..layout.potential_len() {
                let at = |by: f64| {
                    let mut moved = potentials.clone();
                    moved[t][i] += by;
                    value(&start, &moved)
                };
                check(slopes.potentials[t][i], &at, &format!("potential {t}, {i}"));
            }
        }
    }
}

#[test]
fn the_bound_s_gradient_is_that_of_differences_array_by_array() {
    for (likelihood, dim) in [
        (Likelihood::Bernoulli, 2),
        (Likelihood::Gaussian, 2),
        (Likelihood::Gaussian, 3),
    ] {
        let rng = &mut ChaCha8Rng::seed_from_u64(6);
        // Wide enough for the layer that skips zeros, and some pixels are zero.
        let (steps, width) = (5, 300);
        let values = normals(rng, 1, 3 * steps * width).concat();
        let values = values.iter().map(|x| (0.4 * x).clamp(0.0, 1.0) as f32);
        let data = Series::new(steps, width, values.collect()).unwrap();
        let spec = SvaeSpec {
            encoder: vec![7],
            decoder: vec![6],
            likelihood,
            dim,
            ..SvaeSpec::default()
        };
        let learner = Learner::<Svae>::new(spec, &data).unwrap();
        let mut start = learner.parameters.clone();
        let moves = normals(rng, 1, start.len()).concat();
        for (parameter, x) in start.iter_mut().zip(moves) {
            *parameter += 0.1 * x as f32;
        }
        let batch = Batch::new(vec![0, 2], 1, 1);
        check_gradient(&learner.model, &start, &data, &batch);
    }
}

/// A rotation with noise, seen through a linear map with noise.
fn oscillator(count: usize, steps: usize) -> (Series, Vec<[f64; 2]>) {
    let rng = &mut ChaCha8Rng::seed_from_u64(7);
    let (turn, decay) = (0.3_f64, 0.98);
    let seen = normals(rng, 6, 2);
    let (mut values, mut states) = (vec![], vec![]);
    let pair = |rng: &mut ChaCha8Rng| -> [f64; 2] { [(); 2].map(|()| StandardNormal.sample(rng)) };
    for _ in 0..count {
        let mut state = pair(rng);
        for _ in 0..steps {
            states.push(state);
            for row in &seen {
                let noise: f64 = StandardNormal.sample(rng);
                values.push((row[0] * state[0] + row[1] * state[1] + 0.7 * noise) as f32);
            }
            let ([x, y], kick) = (state, pair(rng));
            state = [
                decay * (turn.cos() * x - turn.sin() * y) + 0.15 * kick[0],
                decay * (turn.sin() * x + turn.cos() * y) + 0.15 * kick[1],
            ];
        }
    }
    (Series::new(steps, seen.len(), values).unwrap(), states)
}

/// R² of the least-squares map from points to a coordinate of states.
fn linear_r2(points: &[f64], truth: &[f64]) -> f64 {
    let design = Mat::from_fn(truth.len(), 3, |i, j| match j {
        2 => 1.0,
        _ => points[2 * i + j],
    });
    let target = Mat::from_fn(truth.len(), 1, |i, _| truth[i]);
    let normal = design.transpose() * &design;
    let weights = normal
        .llt(Side::Lower)
        .unwrap()
        .solve(design.transpose() * &target);
    let fitted = design * weights;
    let fitted: Vec<f64> = (0..truth.len()).map(|i| fitted[(i, 0)]).collect();
    crate::metrics::r_squared(truth, &fitted)
}

#[test]
fn a_linear_oscillator_is_recovered_from_noisy_observations() {
    let (data, states) = oscillator(60, 40);
    let spec = SvaeSpec {
        learning: LearningSpec {
            iterations: 600,
            batch: 20,
            learning_rate: 2e-2,
            ..SvaeSpec::default().learning
        },
        encoder: vec![],
        decoder: vec![],
        likelihood: Likelihood::Gaussian,
        ..SvaeSpec::default()
    };
    let mut svae = Learner::<Svae>::new(spec, &data).unwrap();
    ramp::train::Trainer::new(svae.train_spec())
        .unwrap()
        .train(&mut svae.on(&data).unwrap())
        .unwrap();
    let [a, b, c, d] = svae.dynamics().transition[..] else {
        panic!("two dimensions");
    };
    // A complex pair decay · exp(±i turn) has the sum 2 decay cos(turn) and the product decay².
    let (sum, product) = (a + d, a * d - b * c);
    assert!(
        sum * sum < 4.0 * product,
        "no rotation in {:?}",
        svae.dynamics()
    );
    let (decay, turn) = (product.sqrt(), (sum / (2.0 * product.sqrt())).acos());
    assert!(
        (decay - 0.98).abs() < 0.03 && (turn - 0.3).abs() < 0.03,
        "{decay} {turn}"
    );
    let points = svae.embed(&data).unwrap();
    for k in 0..2 {
        let truth: Vec<f64> = states.iter().map(|s| s[k]).collect();
        let r2 = linear_r2(&points, &truth);
        assert!(r2 > 0.9, "coordinate {k}: {r2}");
    }
    let sd = svae.parameters[svae.model.log_sd()].exp();
    assert!((sd - 0.7).abs() < 0.05, "noise {sd}");

    // The states' means are the embedding, and their covariances are covariances.
    let one = svae.states(&data, 1).unwrap();
    for (t, state) in one.iter().enumerate() {
        assert_eq!(state.mean[..], points[2 * (40 + t)..][..2]);
        assert!(Matrix::square(2, &state.covariance).determinant() > 0.0);
    }
}
