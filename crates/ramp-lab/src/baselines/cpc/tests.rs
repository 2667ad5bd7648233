//! CPC against finite differences, a signal it can predict and noise that nobody can.

use super::*;
use crate::baselines::Series;
use crate::baselines::learner::tests::check_gradient;
use rand::SeedableRng;
use rand_distr::{Distribution, StandardNormal};

fn normals(seed: u64, count: usize) -> Vec<f32> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    (0..count)
        .map(|_| StandardNormal.sample(&mut rng))
        .collect()
}

#[test]
fn the_objective_s_gradient_is_that_of_differences_array_by_array() {
    for (score, spread, dim) in [
        (Score::Bilinear, 0.0, 2),
        (Score::Quadratic, 0.0, 2),
        (Score::Quadratic, 0.3, 2),
        (Score::Bilinear, 0.0, 3),
        (Score::Quadratic, 0.3, 3),
    ] {
        // More steps than a block's unit of rows, and predictions that reach beyond the end.
        let (count, steps, width) = (5, 18, 4);
        let data = Series::new(steps, width, normals(1, count * steps * width)).unwrap();
        let spec = CpcSpec {
            encoder: vec![6],
            context: vec![5],
            window: 3,
            ahead: 4,
            score,
            spread,
            dim,
            ..CpcSpec::default()
        };
        let learner = Learner::<Cpc>::new(spec, &data).unwrap();
        let batch = Batch::new(vec![0, 1, 2, 4], 1, 1);
        check_gradient(&learner.model, &learner.parameters, &data, &batch);
    }
}

#[test]
fn the_objective_is_the_mean_log_probability_of_the_right_sequence() {
    let (count, steps, width) = (4, 7, 3);
    let data = Series::new(steps, width, normals(2, count * steps * width)).unwrap();
    let spec = CpcSpec {
        window: 2,
        ahead: 3,
        ..CpcSpec::default()
    };
    let learner = Learner::<Cpc>::new(spec, &data).unwrap();
    let seen: Vec<Seen> = (0..count)
        .map(|i| {
            learner
                .model
                .see(&learner.parameters, &Frames::read(&data, i))
        })
        .collect();
    let (mut total, mut terms) = (0.0, 0.0);
    for time in 0..steps {
        for ahead in 1..=3 {
            let Some(from) = time.checked_sub(ahead) else {
                continue;
            };
            for i in 0..count {
                let score = |j: usize| -> f64 {
                    let code = seen[j].code(time);
                    let [x, y] = [0, 1].map(|d| f64::from(code[d]));
                    let features = [x, y, x * x, x * y, y * y];
                    let u = |f: usize| {
                        let place = (ahead - 1) * 5 + f;
                        f64::from(seen[i].predicted.output[place * seen[i].rows + from])
                    };
                    (0..5).map(|f| u(f) * features[f]).sum()
                };
                let all: f64 = (0..count).map(|j| score(j).exp()).sum();
                total += score(i) - all.ln();
                terms += 1.0;
            }
        }
    }
    let mut expected = total / terms;
    let outputs: [fn(&Seen) -> &Pass; 2] = [|s| &s.encoded, |s| &s.context];
    for output in outputs {
        let flat: Vec<f64> = seen
            .iter()
            .flat_map(|s| points((&output(s).output, s.rows), steps))
            .collect();
        let of = |d: usize| {
            flat.iter()
                .skip(d)
                .step_by(2)
                .copied()
                .collect::<Vec<f64>>()
        };
        let centred = [0, 1].map(|d| {
            let centre = crate::metrics::mean(&of(d));
            of(d).iter().map(|x| x - centre).collect::<Vec<f64>>()
        });
        for (i, j, wanted) in [(0, 0, 1.0), (0, 1, 0.0), (1, 0, 0.0), (1, 1, 1.0)] {
            let products: Vec<f64> = centred[i]
                .iter()
                .zip(&centred[j])
                .map(|(a, b)| a * b)
                .collect();
            expected -= 0.1 * (crate::metrics::mean(&products) - wanted).powi(2);
        }
    }
    let batch = Batch::new((0..count).collect(), 1, 1);
    let mut gradient = vec![0.0; learner.parameters.len()];
    let value = learner.model.gradient(
        &learner.parameters,
        &data,
        &batch,
        &mut vec![],
        &mut gradient,
    );
    assert!((value - expected).abs() < 1e-5, "{value} {expected}");
}

/// The loss at the end of learning, averaged over some batches.
fn learned(data: &Series) -> (f64, Learner<Cpc>) {
    let spec = CpcSpec {
        learning: LearningSpec {
            iterations: 300,
            batch: 16,
            learning_rate: 5e-3,
            ..CpcSpec::default().learning
        },
        encoder: vec![32],
        context: vec![32],
        window: 4,
        ahead: 3,
        ..CpcSpec::default()
    };
    let mut cpc = Learner::<Cpc>::new(spec, data).unwrap();
    let fit = ramp::train::Trainer::new(cpc.train_spec())
        .unwrap()
        .train(&mut cpc.on(data).unwrap())
        .unwrap();
    let last: Vec<f64> = fit.records[250..].iter().map(|r| -r.free_energy).collect();
    (crate::metrics::mean(&last), cpc)
}

#[test]
fn a_predictable_signal_is_told_apart_and_noise_is_not() {
    let (count, steps, width) = (400, 30, 4);
    let chance = 16_f64.ln();
    let random = normals(3, 2 * count);
    let wave: Vec<f32> = (0..count)
        .flat_map(|i| (0..steps * width).map(move |k| (i, k / width, k % width)))
        .map(|(i, t, d)| {
            // A phase and a speed of its own for every sequence.
            let (phase, speed) = (3.0 * random[2 * i], 0.3 * random[2 * i + 1]);
            (phase + speed * t as f32 + 0.8 * d as f32).sin()
        })
        .collect();
    let (loss, cpc) = learned(&Series::new(steps, width, wave).unwrap());
    assert!(loss < 0.5 * chance, "{loss} of {chance}");
    let fresh = Series::new(steps, width, normals(5, 2 * steps * width)).unwrap();
    assert_eq!(cpc.embed(&fresh).unwrap().len(), 2 * steps * 2);
    assert_eq!(cpc.codes(&fresh).unwrap().len(), 2 * steps * 2);

    let noise = Series::new(steps, width, normals(4, count * steps * width)).unwrap();
    let (loss, _) = learned(&noise);
    assert!((loss - chance).abs() < 0.02 * chance, "{loss} of {chance}");
}

#[test]
fn the_present_depends_on_the_past_only() {
    let (steps, width) = (20, 3);
    let mut values = normals(6, 2 * steps * width);
    let at = |values: &[f32]| {
        let data = Series::new(steps, width, values.to_vec()).unwrap();
        Learner::<Cpc>::new(CpcSpec::default(), &data)
            .unwrap()
            .embed(&data)
            .unwrap()
    };
    let before = at(&values);
    values[12 * width] += 1.0;
    let after = at(&values);
    // Steps 12 to 19 have it in their window of 8.
    for t in 0..steps {
        let same = before[2 * t..2 * t + 2] == after[2 * t..2 * t + 2];
        assert_eq!(same, t < 12, "step {t}");
    }
}

#[test]
fn settings_without_a_meaning_are_refused() {
    let data = Series::new(5, 2, normals(7, 30)).unwrap();
    let one = Series::new(5, 2, normals(7, 10)).unwrap();
    let good = CpcSpec::default();
    assert!(Learner::<Cpc>::new(good.clone(), &data).is_ok());
    assert!(Learner::<Cpc>::new(good.clone(), &one).is_err());
    for wrong in [
        CpcSpec {
            window: 0,
            ..good.clone()
        },
        CpcSpec {
            spread: -0.1,
            ..good.clone()
        },
        CpcSpec {
            ahead: 0,
            ..good.clone()
        },
        CpcSpec {
            encoder: vec![0],
            ..good.clone()
        },
    ] {
        assert!(Learner::<Cpc>::new(wrong, &data).is_err());
    }
    let mut cpc = Learner::<Cpc>::new(good, &data).unwrap();
    let wider = Series::new(5, 3, normals(7, 30)).unwrap();
    let message = cpc.on(&wider).err().unwrap().to_string();
    assert!(message.contains("observations of 2 numbers"), "{message}");
}
