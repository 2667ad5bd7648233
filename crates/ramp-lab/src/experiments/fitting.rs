//! Training RAMP within an experiment: learning curves, checkpoints, a stop button, times.

use super::run::{Interrupted, Piece, Settings, Watch, belongs_to_others, keep, kept};
use crate::error::LabError;
use crate::metrics::median;
use ramp::data::Dataset;
use ramp::model::Model;
use ramp::train::{Control, Event, Record, Stop, TrainSpec, Trainer, checkpoint_file};
use serde::{Serialize, de::DeserializeOwned};
use std::path::Path;
use std::time::Instant;

/// Points on a learning curve, the start not counted.
pub(super) const CURVE_POINTS: usize = 50;

/// A point of a learning curve.
pub(super) trait Point: Serialize + DeserializeOwned {
    /// Steps taken before it was measured.
    fn iteration(&self) -> usize;
}

/// How to train, and where the state is kept.
pub(super) struct Fitting<'a> {
    pub what: &'a str,
    pub train: &'a TrainSpec,
    pub threads: Option<usize>,
    /// The folder of the checkpoint.
    pub folder: &'a Path,
}

/// A trained model's course.
pub(super) struct Fitted<P> {
    pub iteration: usize,
    pub records: Vec<Record>,
    pub curve: Vec<P>,
    /// The median time of a step; absent when this session took none.
    pub ms_per_iteration: Option<f64>,
}

impl Fitting<'_> {
    /// Whether an earlier session left a state, so that what the model begins with does not matter.
    pub fn goes_on(&self) -> bool {
        checkpoint_file(self.folder).exists()
    }

    /// Trains a model or goes on doing so, measuring it now and then; `settings` tell whether an earlier curve belongs to it.
    pub fn run<P: Point>(
        &self,
        model: &mut Model,
        data: &Dataset,
        settings: &impl Settings,
        measure: &dyn Fn(&Model, usize) -> Result<P, LabError>,
        watch: &mut dyn Watch,
    ) -> Result<Piece<Fitted<P>>, LabError> {
        let curve_file = self.folder.join("curves.json");
        if self.goes_on() && belongs_to_others(&curve_file, settings) {
            return Err(LabError::Invalid(format!(
                "{} holds the state of a run with other settings; give this one another folder",
                self.folder.display()
            )));
        }
        let mut curve: Vec<P> = kept(&curve_file, settings).unwrap_or_default();
        let every = (self.train.iterations / CURVE_POINTS).max(1);
        let mut times = vec![];
        let mut begun = Instant::now();
        let mut trouble = None;
        let fit = {
            let observer = |event: &Event<'_>| match event {
                Event::Start {
                    iteration,
                    iterations,
                    model,
                } => {
                    watch.start(self.what, *iteration, *iterations);
                    curve.retain(|p| p.iteration() <= *iteration);
                    if *iteration == 0 {
                        let first = measure(model, 0).map(|p| curve = vec![p]);
                        // Before the first checkpoint, so that the curve of a state never lacks its beginning.
                        trouble = first
                            .and_then(|()| keep(&curve_file, settings, &curve))
                            .err();
                    }
                    match trouble {
                        Some(_) => Control::Stop,
                        None => Control::Continue,
                    }
                }
                Event::Begin => {
                    begun = Instant::now();
                    Control::Continue
                }
                Event::Step { record, model } => {
                    times.push(begun.elapsed().as_secs_f64() * 1e3);
                    if record.iteration % every == 0 {
                        match measure(model, record.iteration) {
                            Ok(point) => curve.push(point),
                            Err(error) => trouble = Some(error),
                        }
                    }
                    match trouble {
                        Some(_) => Control::Stop,
                        None => watch.step((*record).into()),
                    }
                }
                Event::Checkpoint { .. } => {
                    trouble = trouble.take().or(keep(&curve_file, settings, &curve).err());
                    Control::Continue
                }
                _ => Control::Continue,
            };
            let mut trainer = Trainer::new(self.train.clone())?
                .checkpoints(self.folder, every.max(10))
                .observer(observer);
            if let Some(threads) = self.threads {
                trainer = trainer.threads(threads);
            }
            trainer.fit(model, data)?
        };
        if let Some(error) = trouble {
            return Err(error);
        }
        if fit.stop == Stop::Interrupted {
            return Ok(Piece::Interrupted(Interrupted {
                what: self.what.into(),
                iteration: fit.records.len(),
                iterations: self.train.iterations,
            }));
        }
        Ok(Piece::Done(Fitted {
            iteration: fit.iteration,
            records: fit.records,
            curve,
            ms_per_iteration: (!times.is_empty()).then(|| median(&times)),
        }))
    }
}
