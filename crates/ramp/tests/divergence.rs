//! A training that is lost ends, and says so.

use ramp::train::{Identity, Problem, TrainSpec, Trainer};

/// Good for a while, then far below its beginning, with finite numbers only.
struct Falling {
    parameters: Vec<f32>,
    falls_at: usize,
    lasts: usize,
}

impl Problem for Falling {
    type Model = Self;
    type Error = ramp::Error;

    fn model(&self) -> &Self {
        self
    }

    fn parameters(&self) -> &[f32] {
        &self.parameters
    }

    fn parameters_mut(&mut self) -> &mut [f32] {
        &mut self.parameters
    }

    fn step(&mut self, iteration: usize, gradient: &mut [f32]) -> ramp::Result<f64> {
        gradient.fill(1.0);
        let fallen = (self.falls_at..self.falls_at + self.lasts).contains(&iteration);
        Ok(if fallen { -5.0 } else { 0.5 })
    }

    fn held_out(&mut self) -> ramp::Result<Option<f64>> {
        Ok(Some(f64::from(-(self.parameters[0] - 0.02).abs())))
    }

    fn is_lost(&self, first: f64, value: f64) -> bool {
        value < first - 1.0
    }

    fn identity(&self) -> ramp::Result<Identity> {
        Ok(Identity::default())
    }
}

/// A training whose numbers are finite but lost ends when that is sure, with its best weights; one that recovers goes on.
#[test]
fn a_lost_training_ends_when_it_is_lost() {
    let folder = tempfile::tempdir().unwrap();
    let spec = TrainSpec {
        iterations: 2000,
        evaluate_every: 1,
        ..TrainSpec::default()
    };
    let falling = |lasts| Falling {
        parameters: vec![0.0; 3],
        falls_at: 50,
        lasts,
    };
    let train = |problem: &mut Falling, kept: bool| {
        let mut trainer = Trainer::new(spec.clone()).unwrap();
        if kept {
            trainer = trainer.checkpoints(folder.path(), 10);
        }
        trainer.train(problem)
    };
    assert_eq!(train(&mut falling(199), false).unwrap().steps, 2000);
    let mut lost = falling(usize::MAX - 50);
    let error = train(&mut lost, true).unwrap_err().to_string();
    assert!(
        error.contains("diverged at iteration 250: the free energy fell from 0.50 to -5.00 nats"),
        "{error}"
    );
    assert!((lost.parameters[0] - 0.02).abs() < 2e-3, "the best weights");
    let again = train(&mut falling(usize::MAX - 50), true)
        .unwrap_err()
        .to_string();
    assert!(
        again.contains("diverged at iteration 250, and would again"),
        "{again}"
    );
}
