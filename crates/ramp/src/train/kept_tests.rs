//! What is left of a training: the best weights when it diverges, records in bounded memory, checkpoints that cannot silently change.

use super::tests::{data, model, spec, until};
use super::*;
use crate::Error;

#[test]
fn a_training_that_diverges_keeps_the_best_weights_so_far() {
    let data = data(200);
    let spec = TrainSpec {
        iterations: 400,
        learning_rate: 1e30,
        clip: None,
        warmup: 0,
        decay: Decay::Constant,
        evaluate_every: 1,
        optimizer: Optimizer::Sgd { momentum: 0.0 },
        ..spec()
    };
    let mut model = model(&data);
    let mut seen: Vec<(f64, Vec<f32>)> = vec![];
    let error = Trainer::new(spec)
        .unwrap()
        .observer(|event: &Event<'_>| {
            if let Event::Step { record, model } = event
                && let Some(held_out) = record.held_out
            {
                seen.push((held_out, model.parameters().to_vec()));
            }
            Control::Continue
        })
        .fit(&mut model, &data)
        .unwrap_err();
    let Error::Train(TrainError::Diverged {
        best,
        learning_rate,
        ..
    }) = error
    else {
        panic!("{error}");
    };
    assert_eq!(learning_rate, 1e30);
    assert!(error.to_string().contains("a learning rate of"), "{error}");
    match best {
        None => assert!(seen.is_empty()),
        Some(best) => {
            let most = seen.iter().map(|s| s.0).fold(f64::NEG_INFINITY, f64::max);
            assert_eq!(seen[best - 1].0, most);
            assert_eq!(seen[best - 1].1, model.parameters());
        }
    }
}

#[test]
fn records_are_held_in_bounded_memory() {
    let record = |iteration: usize| Record {
        iteration,
        free_energy: iteration as f64,
        held_out: None,
        gradient_norm: 1.0,
        rate: 0.1,
    };
    for steps in [0, 1, 65_536, 65_537, 1_000_003] {
        let mut records = Records::default();
        (1..=steps).for_each(|i| records.push(record(i)));
        assert_eq!(records.steps(), steps);
        let held = records.into_vec();
        assert!(held.len() <= 65_537, "{}", held.len());
        assert!(held.len() >= steps.min(32_768));
        assert_eq!(held.last(), (steps > 0).then(|| record(steps)).as_ref());
        assert!(held.windows(2).all(|w| w[0].iteration < w[1].iteration));
        if steps <= 65_536 {
            assert_eq!(held.len(), steps);
        }
    }
}

#[test]
fn every_flipped_bit_of_a_checkpoint_or_its_records_is_noticed() {
    let data = data(200);
    let folder = tempfile::tempdir().unwrap();
    let _ = until(&spec(), folder.path(), 9, &data);
    let files = [checkpoint_file(folder.path()), records_file(folder.path())];
    let whole = files.clone().map(|file| std::fs::read(file).unwrap());
    let resumed = || {
        let (model, outcome) = until(&spec(), folder.path(), 0, &data);
        outcome.map(|fit| (model.parameters().to_vec(), fit.records))
    };
    let right = resumed().unwrap();
    let mut refused = 0;
    for trial in 0..120_usize {
        let file = trial % 2;
        for (file, whole) in files.iter().zip(&whole) {
            std::fs::write(file, whole).unwrap();
        }
        let mut bytes = whole[file].clone();
        let at = (trial.wrapping_mul(2_654_435_761) >> 7) % bytes.len();
        bytes[at] ^= 1 << (trial / 2 % 8);
        std::fs::write(&files[file], bytes).unwrap();
        match resumed() {
            Ok(found) => assert_eq!(found, right, "file {file}, byte {at}"),
            Err(_) => refused += 1,
        }
    }
    assert!(refused > 100, "{refused}");
}

#[test]
fn a_start_is_measured_as_validation_samples_are() {
    let data = data(200);
    let mut model = model(&data);
    let first = Trainer::new(spec())
        .unwrap()
        .fit(&mut model, &data)
        .unwrap();
    assert_eq!(first.start, None);
    // The weights of the best look, which the next training begins with: the same samples say the same of them.
    let mut again = model.clone();
    let fit = Trainer::new(spec())
        .unwrap()
        .measure_start()
        .fit(&mut again, &data)
        .unwrap();
    assert_eq!(fit.start, first.held_out);
    let unmeasured = Trainer::new(spec())
        .unwrap()
        .fit(&mut model, &data)
        .unwrap();
    // Looking changes nothing.
    assert_eq!(model.parameters(), again.parameters());
    assert_eq!(unmeasured.iteration, fit.iteration);
}

#[test]
fn a_training_ends_where_it_is_told_to_with_those_weights() {
    let data = data(200);
    for ends_at in [0, 7, 24, 90] {
        let (mut model, mut there) = (model(&data), vec![]);
        let start = model.parameters().to_vec();
        let fit = Trainer::new(spec())
            .unwrap()
            .ends_at(ends_at)
            .observer(|event: &Event<'_>| {
                if let Event::Step { record, model } = event
                    && record.iteration == ends_at.min(24)
                {
                    there = model.parameters().to_vec();
                }
                Control::Continue
            })
            .fit(&mut model, &data)
            .unwrap();
        assert_eq!(
            (fit.steps, fit.iteration),
            (ends_at.min(24), ends_at.min(24))
        );
        assert_eq!(model.parameters(), if ends_at == 0 { start } else { there });
    }
}
