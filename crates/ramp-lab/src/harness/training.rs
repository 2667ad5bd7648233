//! A training run within an experiment, whatever is trained: a learning curve, checkpoints, a stop button, times.

use super::keep::{belongs_to_others, keep, kept};
use super::{Settings, TrainingRun, Watch};
use crate::error::LabError;
use crate::metrics::median;
use ramp::data::Dataset;
use ramp::model::Model;
use ramp::train::{
    Control, Event, Fit, TrainError, TrainSpec, Trainer, TriedStart, checkpoint_file, start_chain,
};
use serde::{Serialize, de::DeserializeOwned};
use std::path::Path;
use std::time::Instant;

/// Points on a learning curve, the start not counted.
const CURVE_POINTS: usize = 50;

/// Lets a chain begin by what its data show, while someone watches; the starts that were tried, the best first.
pub(crate) fn start(
    model: &mut Model,
    data: &Dataset,
    train: &TrainSpec,
    threads: Option<usize>,
    watch: &mut dyn Watch,
) -> Result<Vec<TriedStart>, LabError> {
    const WHAT: &str = "pretraining";
    let all: Vec<u32> = (0..data.rows() as u32).collect();
    let mut observe = |event: &Event<'_>| match event {
        Event::Start {
            iteration,
            iterations,
            ..
        } => {
            watch.start(WHAT, *iteration, *iterations);
            Control::Continue
        }
        Event::Step { record, .. } => watch.step((*record).into()),
        _ => Control::Continue,
    };
    let tried = start_chain(model, data, &all, train, threads, &mut observe);
    tried.map_err(|error| match error {
        ramp::Error::Train(TrainError::Interrupted {
            iteration,
            iterations,
        }) => LabError::Interrupted {
            what: WHAT.into(),
            iteration,
            iterations,
        },
        other => other.into(),
    })
}

/// A point of a learning curve.
pub(crate) trait Point: Serialize + DeserializeOwned {
    /// Steps taken before it was measured.
    fn iteration(&self) -> usize;
}

/// No curve is asked for.
impl Point for () {
    fn iteration(&self) -> usize {
        0
    }
}

/// What to call it, how to train, and where the state is kept.
pub(crate) struct Training<'a> {
    pub what: &'a str,
    pub train: &'a TrainSpec,
    pub threads: Option<usize>,
    /// The folder of checkpoint and curve.
    pub folder: &'a Path,
}

/// Measures a model after so many steps, where there is something to measure.
type Measure<'a, M, P> = dyn Fn(&M, usize) -> Result<Option<P>, LabError> + 'a;

impl Training<'_> {
    /// Whether an earlier session left a state, so that what the model begins with does not matter.
    pub fn goes_on(&self) -> bool {
        checkpoint_file(self.folder).exists()
    }

    /// Trains or goes on training, measuring now and then; `settings` tell whether an earlier curve belongs to it, and `fit` lets
    /// the trainer at the model.
    pub fn run<M, P: Point, E: Into<LabError>>(
        &self,
        settings: &impl Settings,
        measure: &Measure<'_, M, P>,
        watch: &mut dyn Watch,
        fit: impl FnOnce(&mut Trainer<'_, M>) -> Result<Fit, E>,
    ) -> Result<(TrainingRun, Vec<P>), LabError> {
        let curve_file = self.folder.join("curves.json");
        if self.goes_on() && belongs_to_others(&curve_file, settings) {
            return Err(LabError::OtherRun {
                folder: self.folder.into(),
            });
        }
        let mut curve: Vec<P> = kept(&curve_file, settings).unwrap_or_default();
        let every = (self.train.iterations / CURVE_POINTS).max(1);
        let mut times = vec![];
        let mut begun = Instant::now();
        let mut trouble = None;
        let mut on_event = |event: &Event<'_, M>| -> Result<Control, LabError> {
            match event {
                Event::Start {
                    iteration,
                    iterations,
                    model,
                } => {
                    watch.start(self.what, *iteration, *iterations);
                    curve.retain(|p| p.iteration() <= *iteration);
                    if *iteration == 0 {
                        curve = measure(model, 0)?.into_iter().collect();
                        // Before the first checkpoint, so that the curve of a state never lacks its beginning.
                        keep(&curve_file, settings, &curve)?;
                    }
                }
                Event::Begin => begun = Instant::now(),
                Event::Step { record, model } => {
                    times.push(begun.elapsed().as_secs_f64() * 1e3);
                    if record.iteration % every == 0 {
                        curve.extend(measure(model, record.iteration)?);
                    }
                    return Ok(watch.step((*record).into()));
                }
                Event::Checkpoint { .. } => keep(&curve_file, settings, &curve)?,
                _ => {}
            }
            Ok(Control::Continue)
        };
        let outcome = {
            let mut trainer = Trainer::new(self.train.clone())?
                .checkpoints(self.folder, (self.train.iterations / 20).max(10))
                .observer(|event: &Event<'_, M>| match on_event(event) {
                    Ok(control) => control,
                    Err(error) => {
                        trouble.get_or_insert(error);
                        Control::Stop
                    }
                });
            if let Some(threads) = self.threads {
                trainer = trainer.threads(threads);
            }
            fit(&mut trainer)
        };
        if let Some(error) = trouble {
            return Err(error);
        }
        let fit = outcome.map_err(|e| self.named(e.into()))?;
        let run = TrainingRun {
            free_energy_history: fit.records.iter().map(|r| r.free_energy).collect(),
            iterations: fit.iteration,
            ms_per_iteration: (!times.is_empty()).then(|| median(&times)),
        };
        Ok((run, curve))
    }

    /// Says what was stopped.
    fn named(&self, error: LabError) -> LabError {
        match error {
            LabError::Ramp(ramp::Error::Train(TrainError::Interrupted {
                iteration,
                iterations,
            })) => LabError::Interrupted {
                what: self.what.into(),
                iteration,
                iterations,
            },
            other => other,
        }
    }
}
