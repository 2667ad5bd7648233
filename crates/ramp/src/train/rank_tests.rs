//! Any number of ranks gives the bits of one.

use super::{Control, Event, Fit, Record, TrainSpec, Trainer};
use crate::Result;
use crate::collective::Threads;
use crate::data::{Dataset, Dealt};
use crate::graph::FactorTree;
use crate::model::Model;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::path::Path;
use std::sync::Arc;

/// Numbers with a fifth of them missing.
fn gappy(count: usize, seed: u64) -> Vec<f32> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let number = |rng: &mut ChaCha8Rng| rng.random_range(-2.0..2.0);
    (0..count)
        .map(|_| match rng.random_bool(0.2) {
            true => f32::NAN,
            false => number(&mut rng),
        })
        .collect()
}

/// A tree of several families; without gaps if asked.
fn tree(rows: usize, gaps: bool) -> (Model, Dataset) {
    let tree = FactorTree::from_newick("((x1,x2,x3)a,(x4,x5)b,(x6,x7)c)d;").unwrap();
    let mut data = Dataset::new();
    for i in 1..=7 {
        let mut values = gappy(rows, i);
        if !gaps {
            values.iter_mut().for_each(|x| *x = x.max(-2.0));
        }
        data = data.observe(format!("x{i}"), 1, values).unwrap();
    }
    let model = Model::builder(tree)
        .family("a", "gaussian(2)")
        .and_then(|model| model.family("b", "categorical(3)"))
        .and_then(|model| model.family("c", "beta x gaussian"))
        .and_then(|model| model.build(&data))
        .unwrap();
    (model, data)
}

/// A chain of sequences of different lengths.
fn chain(rows: usize) -> (Model, Dataset) {
    let data = Dataset::new()
        .observe_sequence("x", 6, 1, gappy(rows * 6, 1))
        .unwrap()
        .observe_sequence("y", 6, 2, gappy(rows * 12, 2))
        .unwrap()
        .with_lengths((0..rows as u32).map(|n| 3 + n % 4).collect())
        .unwrap();
    let tree = FactorTree::sequence(6, &["x", "y"]).unwrap();
    let model = Model::builder(tree)
        .families("gaussian(2)")
        .and_then(|model| model.build(&data))
        .unwrap();
    (model, data)
}

/// Images of four pixels, some of them missing, beside a number.
fn images(rows: usize) -> (Model, Dataset) {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let mut pixels = || -> Vec<u8> {
        (0..rows * 4)
            .map(|_| rng.random_range(0..=255_u8))
            .collect()
    };
    let there = (0..rows).map(|n| n % 7 > 0).collect();
    let data = Dataset::new()
        .observe_bytes("x1", 4, pixels(), Some(there))
        .and_then(|data| data.observe_bytes("x2", 4, pixels(), None))
        .and_then(|data| data.observe("x3", 1, gappy(rows, 1)))
        .unwrap();
    let model = Model::builder(FactorTree::star(3).unwrap())
        .build(&data)
        .unwrap();
    (model, data)
}

/// What a training leaves: weights and records, bit for bit.
type Left = (Vec<u32>, Vec<Record>);

/// Trains by so many ranks, each with a copy of the model and all samples; `stop` says at which iteration which rank wishes to stop.
fn train(
    ranks: usize,
    scene: &(Model, Dataset),
    spec: &TrainSpec,
    folder: Option<&Path>,
    stop: Option<(usize, usize)>,
) -> Vec<Result<Left>> {
    train_on(ranks, scene, spec, folder, stop, false)
}

/// [`train`], each rank perhaps with some of the samples only: the later ones with more.
fn train_on(
    ranks: usize,
    (model, data): &(Model, Dataset),
    spec: &TrainSpec,
    folder: Option<&Path>,
    stop: Option<(usize, usize)>,
    dealt: bool,
) -> Vec<Result<Left>> {
    let of_rank = |own: Threads| -> Result<Left> {
        use crate::collective::Collective;
        let own: Arc<dyn Collective> = Arc::new(own);
        let rank = own.rank();
        let mut model = model.clone();
        let part = match dealt {
            true => {
                let until = |r: usize| (data.rows() * r * (r + 1) / ranks / (ranks + 1)) as u32;
                let part: Vec<u32> = (until(rank)..until(rank + 1)).collect();
                Some(Dealt::new(data.select(&part), own.clone())?)
            }
            false => None,
        };
        let mut trainer = Trainer::new(spec.clone())?
            .threads(1)
            .ranks(&*own)
            .observer(move |event: &Event<'_>| match (event, stop) {
                (Event::Step { record, .. }, Some((who, when)))
                    if rank == who && record.iteration == when =>
                {
                    Control::Stop
                }
                _ => Control::Continue,
            });
        if let Some(folder) = folder {
            trainer = trainer.checkpoints(folder, 4);
        }
        let Fit { records, .. } = match &part {
            Some(part) => trainer.fit(&mut model, part)?,
            None => trainer.fit(&mut model, data)?,
        };
        drop(trainer);
        let bits = model.parameters().iter().map(|p| p.to_bits()).collect();
        Ok((bits, records))
    };
    std::thread::scope(|scope| {
        let all: Vec<_> = (Threads::group(ranks).into_iter())
            .map(|own| scope.spawn(|| of_rank(own)))
            .collect();
        all.into_iter().map(|rank| rank.join().unwrap()).collect()
    })
}

#[test]
fn any_number_of_ranks_gives_the_bits_of_one() {
    let gaps = TrainSpec {
        iterations: 12,
        batch: Some(700),
        mixture: Some(500),
        mask: 0.3,
        validation: 0.2,
        evaluate_every: 3,
        ..TrainSpec::default()
    };
    // More rows than one chunk of the pairwise kernel takes.
    let whole = TrainSpec {
        iterations: 2,
        validation: 0.05,
        evaluate_every: 1,
        ..TrainSpec::default()
    };
    // Fewer shards than ranks.
    let tiny = TrainSpec {
        iterations: 20,
        batch: Some(20),
        clip: Some(0.1),
        ..TrainSpec::default()
    };
    let noisy = TrainSpec {
        noise: 0.5,
        ..gaps.clone()
    };
    for (what, scene, spec) in [
        ("noise on images", images(1500), &noisy),
        ("a tree with gaps", tree(1000, true), &gaps),
        ("a tree of many rows", tree(2600, false), &whole),
        ("a tree of many rows with gaps", tree(2600, true), &whole),
        ("a tree in small batches", tree(100, true), &tiny),
        ("a chain", chain(1000), &gaps),
    ] {
        let mut alone = scene.0.clone();
        let fit = Trainer::new(spec.clone())
            .and_then(|mut trainer| trainer.fit(&mut alone, &scene.1))
            .unwrap();
        let bits: Vec<u32> = alone.parameters().iter().map(|p| p.to_bits()).collect();
        let all = (1..5).map(|ranks| (ranks, false));
        for (ranks, dealt) in all.chain([(2, true), (3, true)]) {
            let all = train_on(ranks, &scene, spec, None, None, dealt);
            for (rank, left) in all.into_iter().enumerate() {
                let (weights, records) = left.unwrap();
                let which = format!("{what}: rank {rank} of {ranks}, dealt: {dealt}");
                assert!(weights == bits, "{which}");
                assert_eq!(records, fit.records, "{which}");
            }
        }
    }
}

/// Whichever rank stops it, with however many ranks it goes on.
#[test]
fn a_stopped_training_goes_on_with_other_ranks() {
    let scene = tree(400, true);
    let spec = TrainSpec {
        iterations: 30,
        batch: Some(100),
        mask: 0.2,
        validation: 0.2,
        evaluate_every: 5,
        ..TrainSpec::default()
    };
    let folder = tempfile::tempdir().unwrap();
    let whole = train(1, &scene, &spec, None, None).remove(0).unwrap();
    for (ranks, stop) in [(3, (1, 7)), (2, (0, 13)), (1, (0, 15)), (4, (3, 22))] {
        for left in train(ranks, &scene, &spec, Some(folder.path()), Some(stop)) {
            let said = left.unwrap_err().to_string();
            let wanted = format!("stopped after iteration {} of 30", stop.1);
            assert!(said.contains(&wanted), "{said}");
        }
    }
    for left in train(2, &scene, &spec, Some(folder.path()), None) {
        assert!(left.unwrap() == whole);
    }
    // The checkpoint of one process is that of many.
    let other = tempfile::tempdir().unwrap();
    train(1, &scene, &spec, Some(other.path()), None)
        .remove(0)
        .unwrap();
    for file in ["checkpoint.safetensors", "records.jsonl"] {
        let read = |folder: &Path| std::fs::read(folder.join(file)).unwrap();
        assert!(read(folder.path()) == read(other.path()), "{file}");
    }
}

/// Every rank says the same sentence about what differs; nothing is written.
#[test]
fn ranks_that_differ_do_not_begin() {
    let (model, data) = tree(200, true);
    let (_, other_data) = tree(200, false);
    let spec = TrainSpec {
        iterations: 5,
        ..TrainSpec::default()
    };
    let other_spec = TrainSpec {
        learning_rate: 0.3,
        ..spec.clone()
    };
    let mut other_model = model.clone();
    other_model.parameters_mut()[3] += 1.0;
    for (last, wanted) in [
        (
            (&model, &other_data, &spec),
            "rank 2 has other data than rank 0",
        ),
        (
            (&model, &data, &other_spec),
            "rank 2 has other training settings",
        ),
        ((&other_model, &data, &spec), "rank 2 has another model"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let of_rank = |own: Threads, (model, data, spec): (&Model, &Dataset, &TrainSpec)| {
            let trainer = Trainer::new(spec.clone())?.threads(1).ranks(&own);
            let mut trainer = trainer.checkpoints(folder.path(), 2);
            trainer.fit(&mut model.clone(), data)
        };
        std::thread::scope(|scope| {
            let all: Vec<_> = (Threads::group(3).into_iter().enumerate())
                .map(|(rank, own)| {
                    let given = if rank == 2 {
                        last
                    } else {
                        (&model, &data, &spec)
                    };
                    scope.spawn(move || of_rank(own, given))
                })
                .collect();
            for rank in all {
                let said = rank.join().unwrap().unwrap_err().to_string();
                assert!(said.contains(wanted), "{said}");
            }
        });
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}

/// A rank that is gone ends the others, and what they had stays.
#[test]
fn a_rank_that_dies_ends_all_and_the_rest_goes_on_from_the_checkpoint() {
    let scene = tree(300, true);
    let spec = TrainSpec {
        iterations: 12,
        batch: Some(100),
        ..TrainSpec::default()
    };
    let whole = train(1, &scene, &spec, None, None).remove(0).unwrap();
    let folder = tempfile::tempdir().unwrap();
    std::thread::scope(|scope| {
        let all: Vec<_> = (Threads::group(3).into_iter().enumerate())
            .map(|(rank, own)| {
                let (scene, spec, folder) = (&scene, &spec, folder.path());
                scope.spawn(move || {
                    let mut trainer = Trainer::new(spec.clone())?.threads(1).ranks(&own).observer(
                        move |event: &Event<'_>| match event {
                            Event::Step { record, .. } if rank == 1 && record.iteration == 6 => {
                                std::panic::resume_unwind(Box::new("gone"))
                            }
                            _ => Control::Continue,
                        },
                    );
                    trainer = trainer.checkpoints(folder, 4);
                    trainer.fit(&mut scene.0.clone(), &scene.1)
                })
            })
            .collect();
        for (rank, thread) in all.into_iter().enumerate() {
            match thread.join() {
                Err(_) => assert_eq!(rank, 1),
                Ok(left) => {
                    let said = left.unwrap_err().to_string();
                    assert!(
                        said.contains("is gone, so the others stopped too"),
                        "{said}"
                    );
                }
            }
        }
    });
    for left in train(2, &scene, &spec, Some(folder.path()), None) {
        assert!(left.unwrap() == whole);
    }
}

/// The first thing that ranks say to each other: all of them stop, whichever differs.
#[test]
fn a_rank_of_another_version_stops_all() {
    use crate::collective::Collective;
    use crate::train::same_version;
    for differs in [None, Some(0), Some(1), Some(2)] {
        std::thread::scope(|scope| {
            for own in Threads::group(3) {
                scope.spawn(move || {
                    let version = match differs == Some(own.rank()) {
                        true => "0.0.1-forged",
                        false => env!("CARGO_PKG_VERSION"),
                    };
                    let said = same_version(&own, version).map_err(|e| e.to_string());
                    // Where rank 0 is the odd one, rank 1 is the first that has another.
                    let wanted = differs.map(|rank| rank.max(1));
                    match (said, wanted) {
                        (Ok(()), None) => {}
                        (Err(said), Some(rank)) => {
                            let wanted = format!(
                                "rank {rank} has another version of this software than rank 0"
                            );
                            assert!(said.starts_with(&wanted), "{said}");
                        }
                        (said, wanted) => panic!("{said:?} {wanted:?}"),
                    }
                });
            }
        });
    }
}
