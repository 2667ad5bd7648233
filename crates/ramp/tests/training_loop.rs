//! The training loop by itself: what it does between two steps costs no memory.

use ramp::train::{Control, Event, Identity, Problem, TrainSpec, Trainer};
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

#[test]
fn steps_ask_for_no_memory_and_climb_the_hill() {
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
