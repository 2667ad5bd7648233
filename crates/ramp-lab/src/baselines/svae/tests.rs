//! The structured VAE against a dense Gaussian posterior, finite differences, and an oscillator it must find.

use super::*;
use crate::baselines::Series;
use crate::baselines::learner::tests::check_gradient;
use faer::linalg::solvers::{DenseSolveCore, Solve};
use faer::{Mat, Side};
use rand::SeedableRng;

const TEST_DYNAMICS: [f64; DYNAMICS] = [
    0.9, 0.3, -0.25, 0.8, 0.1, -0.2, -0.7, 0.2, 0.3, 0.5, -0.4, 0.6, -0.1, 0.25,
];

fn normals<const N: usize>(rng: &mut ChaCha8Rng, count: usize) -> Vec<[f64; N]> {
    (0..count)
        .map(|_| [(); N].map(|()| StandardNormal.sample(rng)))
        .collect()
}

fn covariance(raw: &[f64]) -> Small {
    let factor = factor(raw).positive();
    factor * factor.transpose()
}

/// The precision and the linear term of the whole sequence's posterior, from the joint of prior and potentials.
fn dense(dynamics: &[f64; DYNAMICS], potentials: &[[f64; POTENTIAL]]) -> (Mat<f64>, Mat<f64>) {
    let steps = potentials.len();
    let d = dynamics;
    let a = Small::square([[d[0], d[1]], [d[2], d[3]]]);
    let (b, first) = (Small::point([d[4], d[5]]), Small::point([d[9], d[10]]));
    let (q, s) = (covariance(&d[6..9]), covariance(&d[11..14]));
    // Mean and covariance of the prior by running it forwards.
    let mut means = vec![first];
    let mut marginals = vec![s];
    for t in 1..steps {
        means.push(a * means[t - 1] + b);
        marginals.push(a * marginals[t - 1] * a.transpose() + q);
    }
    let mut prior = Mat::<f64>::zeros(2 * steps, 2 * steps);
    for from in 0..steps {
        let mut block = marginals[from];
        for to in from..steps {
            for i in 0..2 {
                for j in 0..2 {
                    prior[(2 * to + i, 2 * from + j)] = block[(i, j)];
                    prior[(2 * from + j, 2 * to + i)] = block[(i, j)];
                }
            }
            block = a * block;
        }
    }
    let mut precision = prior.llt(Side::Lower).unwrap().inverse();
    let mean = Mat::from_fn(2 * steps, 1, |i, _| means[i / 2][(i % 2, 0)]);
    let mut linear = &precision * &mean;
    for (t, x) in potentials.iter().enumerate() {
        let own = covariance(&x[2..]);
        for i in 0..2 {
            linear[(2 * t + i, 0)] += x[i];
            for j in 0..2 {
                precision[(2 * t + i, 2 * t + j)] += own[(i, j)];
            }
        }
    }
    (precision, linear)
}

#[test]
fn the_smoother_is_the_dense_gaussian_posterior() {
    for steps in [1, 2, 12] {
        let rng = &mut ChaCha8Rng::seed_from_u64(3);
        let potentials = normals::<POTENTIAL>(rng, steps);
        let (precision, linear) = dense(&TEST_DYNAMICS, &potentials);
        let factor = precision.llt(Side::Lower).unwrap();
        let (mean, cov) = (factor.solve(&linear), factor.inverse());
        let posterior = Posterior::new(&TEST_DYNAMICS, &potentials, &vec![[0.0; 2]; steps]);
        for (t, (m, c)) in posterior.means().zip(posterior.covariances()).enumerate() {
            for i in 0..2 {
                assert!((m[i] - mean[(2 * t + i, 0)]).abs() < 1e-8);
                for j in 0..2 {
                    assert!((c[(i, j)] - cov[(2 * t + i, 2 * t + j)]).abs() < 1e-8);
                }
            }
        }
        // Without noise the draw is the mean.
        assert!(posterior.draws().eq(posterior.means()));

        // KL(q‖p) of two dense Gaussians: the prior is the posterior under no potentials at all.
        let mut nothing = potentials.clone();
        nothing
            .iter_mut()
            .for_each(|x| *x = [0.0, 0.0, -80.0, -80.0, 0.0]);
        let (mut prior, prior_linear) = dense(&TEST_DYNAMICS, &nothing);
        // A factor's diagonal cannot be quite zero.
        for i in 0..2 * steps {
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
        let trace: f64 = (0..2 * steps).map(|i| (&prior * &cov)[(i, i)]).sum();
        let square = (off.transpose() * &prior * &off)[(0, 0)];
        let expected = 0.5
            * (trace + square - 2.0 * steps as f64 + log_det(&factor.L().to_owned())
                - log_det(&prior_factor.L().to_owned()));
        let found = posterior.divergence();
        assert!(
            (found - expected).abs() < 1e-8 * (1.0 + expected),
            "{found} {expected}"
        );
    }
}

#[test]
fn draws_have_the_posterior_s_covariance_over_time() {
    // A draw is the mean and a linear map of the noise; the map times its transpose is the covariance.
    let steps = 5;
    let rng = &mut ChaCha8Rng::seed_from_u64(4);
    let potentials = normals::<POTENTIAL>(rng, steps);
    let (precision, _) = dense(&TEST_DYNAMICS, &potentials);
    let expected = precision.llt(Side::Lower).unwrap().inverse();
    let at = |noise: &[[f64; 2]]| -> Vec<f64> {
        Posterior::new(&TEST_DYNAMICS, &potentials, noise)
            .draws()
            .flatten()
            .collect()
    };
    let mean = at(&[[0.0; 2]; 5]);
    let columns: Vec<Vec<f64>> = (0..2 * steps)
        .map(|k| {
            let mut noise = [[0.0; 2]; 5];
            noise[k / 2][k % 2] = 1.0;
            at(&noise).iter().zip(&mean).map(|(a, b)| a - b).collect()
        })
        .collect();
    for i in 0..2 * steps {
        for j in 0..2 * steps {
            let found: f64 = columns.iter().map(|c| c[i] * c[j]).sum();
            assert!((found - expected[(i, j)]).abs() < 1e-8);
        }
    }
}

#[test]
fn gradients_of_the_chain_are_those_of_differences() {
    let steps = 6;
    let rng = &mut ChaCha8Rng::seed_from_u64(5);
    let potentials = normals::<POTENTIAL>(rng, steps);
    let (noise, pulls) = (normals::<2>(rng, steps), normals::<2>(rng, steps));
    let value = |dynamics: &[f64; DYNAMICS], potentials: &[[f64; POTENTIAL]]| {
        let posterior = Posterior::new(dynamics, potentials, &noise);
        let read: f64 = posterior
            .draws()
            .zip(&pulls)
            .map(|(z, p)| z[0] * p[0] + z[1] * p[1])
            .sum();
        read - 0.7 * posterior.divergence()
    };
    let slopes = Posterior::new(&TEST_DYNAMICS, &potentials, &noise).backward(&pulls, -0.7);
    let step = 1e-5;
    let check = |found: f64, at: &dyn Fn(f64) -> f64, what: &str| {
        let expected = (at(step) - at(-step)) / (2.0 * step);
        assert!(
            (found - expected).abs() < 1e-6 * (1.0 + expected.abs()),
            "{what}: {found} {expected}"
        );
    };
    for i in 0..DYNAMICS {
        let at = |by: f64| {
            let mut moved = TEST_DYNAMICS;
            moved[i] += by;
            value(&moved, &potentials)
        };
        check(slopes.dynamics[i], &at, &format!("dynamics {i}"));
    }
    for t in 0..steps {
        for i in 0..POTENTIAL {
            let at = |by: f64| {
                let mut moved = potentials.clone();
                moved[t][i] += by;
                value(&TEST_DYNAMICS, &moved)
            };
            check(slopes.potentials[t][i], &at, &format!("potential {t}, {i}"));
        }
    }
}

#[test]
fn the_bound_s_gradient_is_that_of_differences_array_by_array() {
    for likelihood in [Likelihood::Bernoulli, Likelihood::Gaussian] {
        let rng = &mut ChaCha8Rng::seed_from_u64(6);
        // Wide enough for the layer that skips zeros, and some pixels are zero.
        let (steps, width) = (5, 300);
        let values = normals::<1>(rng, 3 * steps * width);
        let values = values.iter().map(|[x]| (0.4 * x).clamp(0.0, 1.0) as f32);
        let data = Series::new(steps, width, values.collect()).unwrap();
        let spec = SvaeSpec {
            encoder: vec![7],
            decoder: vec![6],
            likelihood,
            ..SvaeSpec::default()
        };
        let learner = Learner::<Svae>::new(spec, &data).unwrap();
        let mut start = learner.parameters.clone();
        for (parameter, [x]) in start
            .iter_mut()
            .zip(normals::<1>(rng, learner.parameters.len()))
        {
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
    let seen = normals::<2>(rng, 6);
    let (mut values, mut states) = (vec![], vec![]);
    for _ in 0..count {
        let [mut state] = normals::<2>(rng, 1)[..] else {
            unreachable!("one was asked for")
        };
        for _ in 0..steps {
            states.push(state);
            for row in &seen {
                let noise: f64 = StandardNormal.sample(rng);
                values.push((row[0] * state[0] + row[1] * state[1] + 0.7 * noise) as f32);
            }
            let [x, y] = state;
            let [kick] = normals::<2>(rng, 1)[..] else {
                unreachable!("one was asked for")
            };
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
    };
    let mut svae = Learner::<Svae>::new(spec, &data).unwrap();
    ramp::train::Trainer::new(svae.train_spec())
        .unwrap()
        .train(&mut svae.on(&data).unwrap())
        .unwrap();
    let [[a, b], [c, d]] = svae.dynamics().transition;
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
        assert!(Small::square(state.covariance).determinant() > 0.0);
    }
}
