//! The rivals of the pendulum in the course of learning: steps, a stop button, a checkpoint, points for every frame.

use super::pendulum_reading::Embedding;
use super::run::{Interrupted, Piece, Recipe, Scale, Step, Watch};
use super::session::{Learns, Session};
use crate::baselines::{
    Cpc, CpcSpec, Learner, LearningSpec, Score, SequenceModel, Sequences, Svae, SvaeSpec,
};
use crate::error::LabError;
use crate::pendulum::Films;
use ramp::train::Control;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// The settings of all rivals.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RivalSettings {
    /// The structured variational autoencoder.
    pub svae: SvaeSpec,
    /// Contrastive predictive coding.
    pub cpc: CpcSpec,
}

impl RivalSettings {
    /// The settings of a scale; the paper's recipe has contrastive coding as it was proposed.
    pub(super) fn new(scale: Scale, recipe: Recipe, seed: u64) -> Self {
        let learning = |spec: LearningSpec| match scale {
            Scale::Paper => LearningSpec { seed, ..spec },
            Scale::Quick => LearningSpec {
                iterations: 300,
                starts: spec.starts.min(2),
                trial: spec.trial.min(60),
                seed,
                ..spec
            },
        };
        let (svae, cpc) = (SvaeSpec::default(), CpcSpec::default());
        let svae = SvaeSpec {
            learning: learning(svae.learning),
            ..svae
        };
        let cpc = CpcSpec {
            learning: learning(cpc.learning),
            ..cpc
        };
        let cpc = match recipe {
            Recipe::Ours => cpc,
            Recipe::Paper => CpcSpec {
                score: Score::Bilinear,
                spread: 0.0,
                learning: LearningSpec {
                    starts: 1,
                    ..cpc.learning
                },
                ..cpc
            },
        };
        RivalSettings { svae, cpc }
    }
}

/// The points of training and test films.
pub(super) struct Read {
    pub train: Embedding,
    pub test: Embedding,
}

/// What all rivals learn from.
pub(super) struct RivalTask<'a> {
    pub train: &'a Films,
    pub test: &'a Films,
    pub folder: &'a Path,
    pub threads: Option<usize>,
}

impl RivalTask<'_> {
    /// Learns both, or goes on doing so.
    pub fn run(
        &self,
        settings: &RivalSettings,
        watch: &mut dyn Watch,
    ) -> Result<Piece<[Read; 2]>, LabError> {
        let svae = match self.learn::<Svae>(settings.svae.clone(), "svae", watch)? {
            Piece::Done(read) => read,
            Piece::Interrupted(at) => return Ok(Piece::Interrupted(at)),
        };
        let cpc = match self.learn::<Cpc>(settings.cpc.clone(), "cpc", watch)? {
            Piece::Done(read) => read,
            Piece::Interrupted(at) => return Ok(Piece::Interrupted(at)),
        };
        Ok(Piece::Done([svae, cpc]))
    }

    fn learn<M: SequenceModel + Send>(
        &self,
        spec: M::Spec,
        name: &str,
        watch: &mut dyn Watch,
    ) -> Result<Piece<Read>, LabError> {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(self.threads.unwrap_or(0))
            .build()
            .map_err(|e| LabError::Invalid(format!("cannot start threads for {}: {e}", M::NAME)))?;
        let file = self.folder.join(format!("{name}.safetensors"));
        let mut learner = Learner::<M>::new(spec, self.train)?;
        let learning = learner.model().learning().clone();
        learner.resume(&file)?;
        if learner.iteration() == 0 && learning.starts > 1 {
            let tried = learning.trial * learning.starts;
            watch.start(&format!("{}, choosing a start", M::NAME), 0, tried);
            let mut taken = 0;
            let chosen = pool.install(|| {
                learner.choose_start(self.train, &mut |_, free_energy| {
                    taken += 1;
                    watch.step(Step {
                        iteration: taken,
                        free_energy,
                        held_out: None,
                    })
                })
            })?;
            if chosen == Control::Stop {
                return Ok(Piece::Interrupted(Interrupted {
                    what: M::NAME.into(),
                    iteration: 0,
                    iterations: learning.iterations,
                }));
            }
        }
        let session = Session {
            what: M::NAME,
            iterations: learning.iterations,
            file: &file,
        };
        let mut pupil = Pupil {
            learner,
            films: self.train,
        };
        if let Some(stopped) = session.run(&mut pupil, &pool, |_, _| Ok(()), watch)? {
            return Ok(Piece::Interrupted(stopped));
        }
        let learner = pupil.learner;
        let points = |films: &Films| -> Result<Embedding, LabError> {
            let points = pool.install(|| learner.embed(films as &dyn Sequences))?;
            Ok(Embedding {
                features: 2,
                plane: points.chunks_exact(2).map(|p| (p[0], p[1])).collect(),
                points,
            })
        };
        Ok(Piece::Done(Read {
            train: points(self.train)?,
            test: points(self.test)?,
        }))
    }
}

/// A rival and what it learns from.
struct Pupil<'a, M> {
    learner: Learner<M>,
    films: &'a Films,
}

impl<M: SequenceModel + Send> Learns for Pupil<'_, M> {
    fn iteration(&self) -> usize {
        self.learner.iteration()
    }

    fn step(&mut self) -> Result<f64, LabError> {
        self.learner.step(self.films)
    }

    fn save(&self, file: &Path) -> Result<(), LabError> {
        self.learner.save(file)
    }
}
