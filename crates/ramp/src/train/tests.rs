//! What training promises: it learns, it resumes bit for bit, threads do not matter, and trouble is named.

use super::*;
use crate::data::Dataset;
use crate::graph::FactorTree;
use crate::model::Model;
use crate::network::{Block, Network, Parameter};
use crate::storage::read_tensors;
use crate::{Error, Result};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Two pairs of noisy readings under one cause.
pub(super) fn data(rows: usize) -> Dataset {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let mut normal = || -> f32 { StandardNormal.sample(&mut rng) };
    let mut columns = vec![vec![]; 6];
    for _ in 0..rows {
        let root = normal();
        for child in 0..2 {
            let z = root + normal();
            for leaf in 0..3 {
                columns[3 * child + leaf].push(z + 0.5 * normal());
            }
        }
    }
    columns
        .into_iter()
        .enumerate()
        .fold(Dataset::new(), |d, (i, c)| {
            d.observe(format!("x{}", i + 1), 1, c).unwrap()
        })
}

pub(super) fn model(data: &Dataset) -> Model {
    Model::builder(FactorTree::from_newick("((x1,x2,x3)a,(x4,x5,x6)b)r;").unwrap())
        .seed(5)
        .build(data)
        .unwrap()
}

pub(super) fn spec() -> TrainSpec {
    TrainSpec {
        iterations: 24,
        batch: Some(64),
        mixture: Some(40),
        learning_rate: 3e-3,
        validation: 0.25,
        evaluate_every: 5,
        clip: Some(1.0),
        warmup: 4,
        decay: Decay::Cosine { to: 0.1 },
        ..Default::default()
    }
}

#[test]
fn free_energy_rises_on_samples_never_seen() {
    let data = data(600);
    let mut model = model(&data);
    let spec = TrainSpec {
        iterations: 150,
        mixture: None,
        ..spec()
    };
    let fit = Trainer::new(spec).unwrap().fit(&mut model, &data).unwrap();
    assert_eq!(fit.stop, Stop::Finished);
    let held: Vec<f64> = fit.records.iter().filter_map(|r| r.held_out).collect();
    assert!(held[held.len() - 1] > held[0] + 0.1, "{held:?}");
    assert_eq!(fit.held_out, held.iter().copied().reduce(f64::max));
}

/// Trains into a folder until an iteration, as a new process would.
pub(super) fn until(
    spec: &TrainSpec,
    folder: &Path,
    stop_at: usize,
    data: &Dataset,
) -> (Model, Result<Fit>) {
    let mut model = model(data);
    let outcome = Trainer::new(spec.clone())
        .unwrap()
        .checkpoints(folder, 4)
        .observer(move |event: &Event<'_>| match event {
            Event::Step { record, .. } if record.iteration == stop_at => Control::Stop,
            _ => Control::Continue,
        })
        .fit(&mut model, data);
    (model, outcome)
}

#[test]
fn an_interrupted_run_ends_bit_for_bit_like_an_uninterrupted_one() {
    let data = data(200);
    let folder = tempfile::tempdir().unwrap();
    for optimizer in [
        Optimizer::default(),
        Optimizer::Adam {
            decay: 0.1,
            scheduled_decay: true,
        },
        Optimizer::Sgd { momentum: 0.9 },
    ] {
        let spec = TrainSpec {
            optimizer: optimizer.clone(),
            mask: 0.2,
            ..spec()
        };
        let mut whole = model(&data);
        let fit = Trainer::new(spec.clone())
            .unwrap()
            .fit(&mut whole, &data)
            .unwrap();

        let place = folder
            .path()
            .join(format!("{optimizer:?}").replace(|c: char| !c.is_alphanumeric(), "_"));
        for stop_at in [3, 11, 12] {
            let (_, outcome) = until(&spec, &place, stop_at, &data);
            match outcome {
                Err(Error::Train(TrainError::Interrupted {
                    iteration,
                    iterations,
                })) => assert_eq!((iteration, iterations), (stop_at, 24)),
                other => panic!("{other:?}"),
            }
            assert_eq!(
                read_records(&place).unwrap().into_vec(),
                fit.records[..stop_at]
            );
        }
        // Who stops the last step stops nothing.
        let (pieces, outcome) = until(&spec, &place, 24, &data);
        assert_eq!(pieces.parameters(), whole.parameters());
        assert_eq!(outcome.unwrap().records, fit.records);
        assert_eq!(read_records(&place).unwrap().into_vec(), fit.records);
    }
}

#[test]
fn records_beyond_the_checkpoint_are_cut_off_and_lost_ones_are_told() {
    let data = data(200);
    let folder = tempfile::tempdir().unwrap();
    let (whole, fit) = until(&spec(), &folder.path().join("whole"), 0, &data);
    let fit = fit.unwrap();
    // As after a crash between records and checkpoint: lines of steps that the checkpoint does not know, the last cut short.
    let place = folder.path().join("pieces");
    let _ = until(&spec(), &place, 9, &data);
    let file = records_file(&place);
    let known = std::fs::read_to_string(&file).unwrap();
    let beyond = known.lines().last().unwrap().replace(":9,", ":10,");
    assert_ne!(beyond, known.lines().last().unwrap());
    std::fs::write(&file, format!("{known}{beyond}\n{}", &beyond[..20])).unwrap();
    let (pieces, outcome) = until(&spec(), &place, 0, &data);
    assert_eq!(pieces.parameters(), whole.parameters());
    assert_eq!(outcome.unwrap().records, fit.records);
    assert_eq!(read_records(&place).unwrap().into_vec(), fit.records);
    // A history that was thrown away is not made up.
    std::fs::write(&file, "").unwrap();
    let (_, outcome) = until(&spec(), &place, 0, &data);
    let sentence = outcome.unwrap_err().to_string();
    assert!(sentence.contains("is of iteration 24 but the records beside it end at 0"));
}

#[test]
fn a_checkpoint_is_as_large_after_many_steps_as_after_few() {
    let data = data(200);
    let folder = tempfile::tempdir().unwrap();
    let mut model = model(&data);
    let (mut sizes, mut lengths) = (vec![], vec![]);
    let spec = TrainSpec {
        iterations: 900,
        validation: 0.0,
        batch: Some(10),
        mixture: None,
        ..spec()
    };
    Trainer::new(spec)
        .unwrap()
        .checkpoints(folder.path(), 100)
        .observer(|event: &Event<'_>| {
            if let Event::Checkpoint { path } = event {
                sizes.push(std::fs::metadata(path).unwrap().len());
                lengths.push(
                    std::fs::metadata(records_file(folder.path()))
                        .unwrap()
                        .len(),
                );
            }
            Control::Continue
        })
        .fit(&mut model, &data)
        .unwrap();
    assert_eq!(sizes.len(), 9);
    assert!(sizes.iter().all(|s| *s == sizes[0]), "{sizes:?}");
    // The history is where it belongs, and grows by a line for a step.
    assert!(
        lengths.windows(2).all(|l| l[1] > l[0] + 5000),
        "{lengths:?}"
    );
}

#[test]
fn the_number_of_threads_changes_nothing() {
    let data = data(300);
    let run = |threads: usize| {
        let mut model = model(&data);
        let fit = Trainer::new(spec())
            .unwrap()
            .threads(threads)
            .fit(&mut model, &data)
            .unwrap();
        (model.parameters().to_vec(), fit.records)
    };
    let one = run(1);
    assert_eq!(one, run(2));
    assert_eq!(one, run(3));
}

#[test]
fn training_stops_when_held_out_samples_stop_improving_and_keeps_the_best() {
    let data = data(80);
    let mut model = model(&data);
    // Few samples and a high rate: it overfits soon.
    let spec = TrainSpec {
        iterations: 2000,
        batch: None,
        mixture: None,
        learning_rate: 2e-2,
        decay: Decay::Constant,
        patience: Some(4),
        ..spec()
    };
    let fit = Trainer::new(spec).unwrap().fit(&mut model, &data).unwrap();
    assert_eq!(fit.stop, Stop::Converged);
    assert!(fit.records.len() < 2000);
    let best = fit
        .records
        .iter()
        .filter_map(|r| r.held_out.map(|h| (r.iteration, h)))
        .fold((0, f64::MIN), |a, b| if b.1 > a.1 { b } else { a });
    assert_eq!((fit.iteration, fit.held_out), (best.0, Some(best.1)));
}

/// A network without parameters that says infinity once it has been asked often enough.
struct Trap {
    asked: AtomicUsize,
    patience: usize,
}

impl Network for Trap {
    fn inputs(&self) -> usize {
        1
    }
    fn outputs(&self) -> usize {
        2
    }
    fn parameters(&self) -> Vec<Parameter> {
        vec![]
    }
    fn initialize(&self, _: &mut ChaCha8Rng, _: &mut [f32]) {}
    fn tape_len(&self, _: usize) -> usize {
        0
    }
    fn scratch_len(&self, _: usize) -> usize {
        0
    }
    fn forward(
        &self,
        _: &[f32],
        input: Block<'_>,
        output: &mut [f32],
        _: &mut [f32],
        _: &mut [f32],
    ) {
        let sprung = self.asked.fetch_add(1, Ordering::Relaxed) >= self.patience;
        output[..input.rows()].copy_from_slice(input.data());
        output[input.rows()..].fill(if sprung { f32::INFINITY } else { 1.0 });
    }
    fn backward(
        &self,
        _: &[f32],
        _: Block<'_>,
        _: &[f32],
        _: &[f32],
        _: Option<&mut [f32]>,
        _: &mut [f32],
        _: &mut [f32],
    ) {
    }
}

#[test]
fn a_number_gone_astray_stops_training_and_leaves_the_last_good_checkpoint() {
    let data = data(100);
    let tree = FactorTree::from_newick("((x1,x2,x3)a,(x4,x5,x6)b)r;").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let spec = TrainSpec {
        iterations: 50,
        validation: 0.0,
        mixture: None,
        ..spec()
    };
    // Four blocks a step: the trap springs within the sixth step.
    let trap = Trap {
        asked: AtomicUsize::new(0),
        patience: 4 * 5 + 2,
    };
    let mut model = Model::builder(tree)
        .own_network("x1>a", Box::new(trap))
        .build(&data)
        .unwrap();
    let mut saved = vec![];
    let error = Trainer::new(spec.clone())
        .unwrap()
        .checkpoints(folder.path(), 2)
        .observer(|event: &Event<'_>| {
            if let Event::Checkpoint { path } = event {
                saved.push(read_tensors(path).unwrap().unwrap().arrays().unwrap());
            }
            Control::Continue
        })
        .fit(&mut model, &data);
    let sentence = error.unwrap_err().to_string();
    assert!(
        sentence.contains(
            "diverged at iteration 6: the free energy of latent `a` is not finite; lower the learning rate of 0.0"
        ),
        "{sentence}"
    );
    assert!(model.parameters().iter().all(|p| p.is_finite()));
    assert_eq!(saved.len(), 2);
    let path = folder.path().join("checkpoint.safetensors");
    let left = read_tensors(&path).unwrap().unwrap();
    assert_eq!(left.arrays().unwrap().single, saved[1].single);
    // From there it would lead to the same place, so nobody goes on without a word.
    let again = Trainer::new(spec)
        .unwrap()
        .checkpoints(folder.path(), 2)
        .fit(&mut model, &data);
    let sentence = again.unwrap_err().to_string();
    assert!(
        sentence.contains("a training that diverged at iteration 6, and would again"),
        "{sentence}"
    );
}

#[test]
fn checkpoints_of_other_models_data_and_settings_are_refused() {
    let data = data(100);
    let folder = tempfile::tempdir().unwrap();
    let train = |spec: TrainSpec, model: &mut Model, data: &Dataset| {
        Trainer::new(spec)
            .unwrap()
            .checkpoints(folder.path(), 5)
            .fit(model, data)
            .map(|_| ())
    };
    train(
        TrainSpec {
            iterations: 2,
            ..spec()
        },
        &mut model(&data),
        &data,
    )
    .unwrap();
    let say = |r: Result<()>| r.unwrap_err().to_string();
    let other = TrainSpec {
        learning_rate: 1e-4,
        ..spec()
    };
    assert!(say(train(other, &mut model(&data), &data)).contains("other training settings"));
    let tree = FactorTree::from_newick("((x1,x2,x3)a,(x4,x5,x6)b)r;").unwrap();
    let mut larger = Model::builder(tree)
        .families("gaussian(2)")
        .unwrap()
        .build(&data)
        .unwrap();
    assert!(say(train(spec(), &mut larger, &data)).contains("belongs to another model"));
    let fewer = self::data(95);
    assert!(
        say(train(spec(), &mut model(&fewer), &fewer))
            .contains("made with 100 samples but the data now has 95")
    );

    let path = folder.path().join("checkpoint.safetensors");
    let whole = std::fs::read(&path).unwrap();
    for cut in [0, 1, 7, 9, 200, whole.len() / 2, whole.len() - 1] {
        std::fs::write(&path, &whole[..cut]).unwrap();
        let sentence = say(train(spec(), &mut model(&data), &data));
        assert!(
            sentence.contains("checkpoint.safetensors") && sentence.contains("damaged"),
            "{sentence}"
        );
    }
    let mut garbled = whole.clone();
    garbled[40] ^= 0x55;
    std::fs::write(&path, &garbled).unwrap();
    assert!(train(spec(), &mut model(&data), &data).is_err());
}

#[test]
fn an_unwritable_folder_is_named() {
    let data = data(100);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("occupied");
    std::fs::write(&file, "").unwrap();
    let error = Trainer::new(spec())
        .unwrap()
        .checkpoints(file.join("run"), 5)
        .fit(&mut model(&data), &data);
    let sentence = error.unwrap_err().to_string();
    assert!(
        sentence.contains("cannot") && sentence.contains("occupied"),
        "{sentence}"
    );
}

#[test]
fn bad_settings_are_sentences() {
    let say = |spec: TrainSpec| spec.check().unwrap_err().to_string();
    assert!(
        say(TrainSpec {
            learning_rate: -1.0,
            ..spec()
        })
        .contains("learning_rate must be a positive number, not -1")
    );
    assert!(
        say(TrainSpec {
            learning_rate: f64::NAN,
            ..spec()
        })
        .contains("learning_rate")
    );
    assert!(
        say(TrainSpec {
            batch: Some(0),
            ..spec()
        })
        .contains("batch must be at least 1")
    );
    assert!(
        say(TrainSpec {
            validation: 1.0,
            ..spec()
        })
        .contains("validation")
    );
    assert!(
        say(TrainSpec {
            patience: Some(2),
            validation: 0.0,
            ..spec()
        })
        .contains("patience needs validation samples")
    );
    assert!(
        say(TrainSpec {
            clip: Some(0.0),
            ..spec()
        })
        .contains("clip")
    );
    let data = data(100);
    let large = TrainSpec {
        batch: Some(90),
        ..spec()
    };
    let error = Trainer::new(large)
        .unwrap()
        .fit(&mut model(&data), &data)
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("a batch of 90 is larger than the 75 training samples"),
        "{error}"
    );
}

#[test]
fn learning_rates_follow_their_schedule() {
    let spec = TrainSpec {
        iterations: 110,
        warmup: 10,
        learning_rate: 1.0,
        decay: Decay::Cosine { to: 0.2 },
        ..spec()
    };
    assert!((spec.schedule().rate(0) - 0.1).abs() < 1e-12);
    assert!((spec.schedule().rate(10) - 1.0).abs() < 1e-12);
    assert!((spec.schedule().rate(60) - 0.6).abs() < 1e-12);
    assert!((spec.schedule().rate(110) - 0.2).abs() < 1e-12);
    let step = TrainSpec {
        warmup: 0,
        decay: Decay::Step {
            every: 10,
            factor: 0.5,
        },
        ..spec
    };
    assert_eq!(
        [
            step.schedule().rate(9),
            step.schedule().rate(10),
            step.schedule().rate(25)
        ],
        [1.0, 0.5, 0.25]
    );
}

#[test]
fn adam_takes_the_textbook_steps() {
    for scheduled_decay in [false, true] {
        takes_the_textbook_steps(scheduled_decay);
    }
}

fn takes_the_textbook_steps(scheduled_decay: bool) {
    // Against a plain f64 version on a made-up sequence of gradients.
    let adam = Optimizer::Adam {
        decay: 0.1,
        scheduled_decay,
    };
    let lost = if scheduled_decay { 0.25 } else { 1.0 } * 0.01 * 0.1;
    // A weight, a bias, and a weight of a unit with four times as many inputs as are usual.
    let group = |at, decays, part| Group {
        span: at..at + 1,
        decays,
        part,
    };
    let groups = [
        group(0, true, 1.0),
        group(1, false, 1.0),
        group(2, true, 0.25),
    ];
    let gradients = [[0.3f32, -2.0, 0.5], [0.1, 1.0, 0.1], [-0.7, 0.0, -3.0]];
    let (mut p, mut memory) = (vec![1.0f32, -1.0, 2.0], super::optimizer::Memory::new(3));
    let (mut q, mut m, mut v) = ([1.0f64, -1.0, 2.0], [0.0f64; 3], [0.0f64; 3]);
    for (t, g) in gradients.iter().enumerate() {
        adam.step(t + 1, (0.01, 0.25), g, &groups, &mut p, &mut memory);
        for i in 0..3 {
            let g = f64::from(g[i]);
            m[i] = 0.9 * m[i] + 0.1 * g;
            v[i] = 0.999 * v[i] + 0.001 * g * g;
            let (mh, vh) = (
                m[i] / (1.0 - 0.9f64.powi(t as i32 + 1)),
                v[i] / (1.0 - 0.999f64.powi(t as i32 + 1)),
            );
            let part = groups[i].part;
            let lost = if groups[i].decays { part * lost } else { 0.0 };
            q[i] = q[i] * (1.0 - lost) + part * 0.01 * mh / (vh.sqrt() + 1e-8);
        }
    }
    assert!(
        p.iter()
            .zip(q)
            .all(|(a, b)| (f64::from(*a) - b).abs() < 1e-5),
        "{p:?} or {q:?}"
    );
}
