//! Steps of training cost no memory: neither the loop nor RAMP's own steps ask the allocator once they are warm.

use ramp::data::Dataset;
use ramp::graph::FactorTree;
use ramp::model::Model;
use ramp::train::{Control, Event, Identity, Problem, TrainSpec, Trainer};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Counts how often memory is asked for.
struct Counting;

static ASKED: AtomicUsize = AtomicUsize::new(0);

unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ASKED.fetch_add(1, Ordering::Relaxed);
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        unsafe { System.dealloc(memory, layout) }
    }
    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        ASKED.fetch_add(1, Ordering::Relaxed);
        unsafe { System.realloc(memory, layout, size) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// −Σ(x − i)², whose top is at 0, 1, 2, …
struct Hill(Vec<f32>);

impl Problem for Hill {
    type Model = Self;
    type Error = ramp::Error;

    fn model(&self) -> &Self {
        self
    }

    fn parameters(&self) -> &[f32] {
        &self.0
    }

    fn parameters_mut(&mut self) -> &mut [f32] {
        &mut self.0
    }

    fn step(&mut self, _: usize, gradient: &mut [f32]) -> ramp::Result<f64> {
        let mut value = 0.0;
        for (i, (x, g)) in self.0.iter().zip(gradient).enumerate() {
            *g = -2.0 * (x - i as f32);
            value -= f64::from(x - i as f32).powi(2);
        }
        Ok(value)
    }

    fn identity(&self) -> ramp::Result<Identity> {
        Ok(Identity::default())
    }
}

/// The only test of this file: requests of all threads are counted, those of a test beside it would be too.
#[test]
fn warm_steps_ask_for_no_memory() {
    the_loop_climbs_a_hill();
    steps_of_trees_and_chains();
}

fn the_loop_climbs_a_hill() {
    let folder = tempfile::tempdir().unwrap();
    for kept in [false, true] {
        let mut hill = Hill(vec![0.0; 5]);
        let spec = TrainSpec {
            iterations: 900,
            learning_rate: 0.05,
            clip: Some(3.0),
            ..TrainSpec::default()
        };
        let mut asked = Vec::with_capacity(900);
        let mut trainer = Trainer::new(spec).unwrap();
        if kept {
            trainer = trainer.checkpoints(folder.path(), 1_000_000);
        }
        let mut trainer = trainer.observer(|event: &Event<'_, Hill>| {
            if let Event::Step { .. } = event {
                asked.push(ASKED.load(Ordering::Relaxed));
            }
            Control::Continue
        });
        trainer.train(&mut hill).unwrap();
        drop(trainer);
        // The first record makes room for its line.
        let between = asked[899] - asked[2];
        assert_eq!(between, 0, "requests in 897 steps, with records: {kept}");
        for (i, x) in hill.0.iter().enumerate() {
            assert!((x - i as f32).abs() < 0.05, "{i}: {x}");
        }
    }
}

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

/// A tree of several families, one of them of a size that no kernel is compiled for.
fn tree() -> (Model, Dataset) {
    let tree = FactorTree::from_newick("((x1,x2,x3)a,(x4,x5)b,(x6,x7)c)d;").unwrap();
    let mut data = Dataset::new();
    for i in 1..=7 {
        data = data.observe(format!("x{i}"), 1, gappy(400, i)).unwrap();
    }
    let model = Model::builder(tree)
        .family("a", "gaussian(7)")
        .and_then(|model| model.family("b", "categorical(3)"))
        .and_then(|model| model.family("c", "beta x gaussian"))
        .and_then(|model| model.build(&data))
        .unwrap();
    (model, data)
}

/// A chain of sequences of different lengths.
fn chain() -> (Model, Dataset) {
    let data = Dataset::new()
        .observe_sequence("x", 6, 1, gappy(300 * 6, 1))
        .unwrap()
        .observe_sequence("y", 6, 2, gappy(300 * 12, 2))
        .unwrap()
        .with_lengths((0..300).map(|n| 3 + n % 4).collect())
        .unwrap();
    let tree = FactorTree::sequence(6, &["x", "y"]).unwrap();
    let model = Model::builder(tree)
        .families("gaussian(2)")
        .and_then(|model| model.build(&data))
        .unwrap();
    (model, data)
}

fn steps_of_trees_and_chains() {
    for threads in [1, 2] {
        for (what, (mut model, data)) in [("tree", tree()), ("chain", chain())] {
            let spec = TrainSpec {
                iterations: 260,
                batch: Some(100),
                mixture: Some(70),
                mask: 0.3,
                validation: 0.2,
                evaluate_every: 5,
                ..TrainSpec::default()
            };
            let mut asked = Vec::with_capacity(spec.iterations);
            let mut trainer =
                Trainer::new(spec)
                    .unwrap()
                    .threads(threads)
                    .observer(|event: &Event<'_>| {
                        if let Event::Step { .. } = event {
                            asked.push(ASKED.load(Ordering::Relaxed));
                        }
                        Control::Continue
                    });
            trainer.fit(&mut model, &data).unwrap();
            drop(trainer);
            // The queue by which work enters rayon's threads is a list of blocks of 63 places, each asked for when it is due: a
            // step or an evaluation enters once. A further thread warms up when it is first given something to do, whenever that is.
            let entries = 300;
            let most = entries / 63 + 1 + 150 * (threads - 1);
            let between = asked[259] - asked[9];
            assert!(
                between <= most,
                "{between} requests in 250 steps of a {what} on {threads} threads"
            );
        }
    }
}
