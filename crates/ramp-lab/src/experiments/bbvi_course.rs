//! Black-box variational inference within an experiment: learning on training samples, then inference on fresh ones.

use super::fitting::{CURVE_POINTS, Point};
use super::run::{Piece, Scale, Watch, keep, kept};
use super::session::{Learns, Session};
use crate::baselines::{Bbvi, BbviSpec, Estimator, GenerativeTree};
use crate::error::LabError;
use crate::tree_data::TreeSample;
use ramp::train::Decay;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// The settings of BBVI in an experiment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BbviSettings {
    /// Training samples; each has a posterior of its own to be learned.
    pub n: usize,
    /// Hidden units of every conditional.
    pub hidden: usize,
    /// How the generative tree is learned.
    pub learning: BbviSpec,
    /// How posteriors of fresh samples are inferred once it is known.
    pub inference: BbviSpec,
}

impl BbviSettings {
    /// The settings of a scale. As in the paper: 16 hidden units, 100 Monte Carlo samples, Adam on the full batch; the step size is
    /// not given there, and this one does best.
    pub fn new(scale: Scale, iterations: usize, seed: u64) -> Self {
        let learning = BbviSpec {
            iterations,
            learning_rate: 1e-2,
            seed,
            ..BbviSpec::default()
        };
        let inference = BbviSpec {
            iterations: 300,
            samples: 25,
            learning_rate: 5e-2,
            decay: Decay::Cosine { to: 0.0 },
            learn: false,
            ..learning.clone()
        };
        let (n, learning, inference) = match scale {
            Scale::Paper => (10_000, learning, inference),
            Scale::Quick => (
                2000,
                BbviSpec {
                    iterations: iterations / 3,
                    samples: 32,
                    ..learning
                },
                BbviSpec {
                    iterations: 150,
                    samples: 16,
                    ..inference
                },
            ),
        };
        BbviSettings {
            n,
            hidden: 16,
            learning,
            inference,
        }
    }

    /// The same with another estimator of gradients, for learning and inference.
    pub fn estimator(mut self, estimator: Estimator) -> Self {
        self.learning.estimator = estimator;
        self.inference.estimator = estimator;
        self
    }
}

/// What BBVI is to learn from and to infer, and where its state is kept.
pub(super) struct BbviTask<'a> {
    /// Stands before the names of pieces of work.
    pub prefix: &'a str,
    /// The parent of every node of the generative tree.
    pub parents: Vec<Option<usize>>,
    pub train: &'a TreeSample,
    pub test: &'a TreeSample,
    pub threads: Option<usize>,
    pub folder: &'a Path,
}

/// What came of it.
pub(super) struct BbviCourse<P> {
    pub curve: Vec<P>,
    /// Posterior means of fresh samples, a row per latent.
    pub means: Vec<Vec<f64>>,
}

impl BbviSettings {
    /// Learns and infers, or goes on doing so. `measure` looks at the posteriors of training samples.
    pub(super) fn run<P: Point>(
        &self,
        task: BbviTask<'_>,
        measure: &(dyn Fn(&Bbvi, usize) -> P + Sync),
        watch: &mut dyn Watch,
    ) -> Result<Piece<BbviCourse<P>>, LabError> {
        let BbviTask {
            prefix,
            parents,
            train,
            test,
            threads,
            folder,
        } = task;
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads.unwrap_or(0))
            .build()
            .map_err(|e| LabError::Invalid(format!("cannot start threads for BBVI: {e}")))?;
        let known: Vec<Vec<f32>> = train
            .observations
            .iter()
            .map(|row| row[..self.n.min(row.len())].to_vec())
            .collect();
        let tree = GenerativeTree::random(
            parents,
            train.latents.len(),
            self.hidden,
            self.learning.seed,
        )?;
        let mut learning = Bbvi::new(tree, &known, self.learning.clone())?;
        let curve_file = folder.join("bbvi-curve.json");
        let mut curve: Vec<P> = kept(&curve_file, self).unwrap_or_default();
        let every = (self.learning.iterations / CURVE_POINTS).max(1);

        let learned = Session {
            what: &format!("{prefix}BBVI"),
            iterations: self.learning.iterations,
            file: &folder.join("bbvi-learning.safetensors"),
        };
        let note = |bbvi: &Bbvi, save: bool| {
            let at = bbvi.iteration();
            if at.is_multiple_of(every) {
                curve.retain(|p| p.iteration() < at);
                curve.push(measure(bbvi, at));
            }
            if save {
                keep(&curve_file, self, &curve)?;
            }
            Ok(())
        };
        // Before the first step all posteriors are the prior, which correlates with nothing.
        learning.resume(learned.file)?;
        if let Some(stopped) = learned.run(&mut learning, &pool, note, watch)? {
            return Ok(Piece::Interrupted(stopped));
        }

        let mut inference = Bbvi::new(
            learning.tree().clone(),
            &test.observations,
            self.inference.clone(),
        )?;
        let inferred = Session {
            what: &format!("{prefix}BBVI, fresh samples"),
            iterations: self.inference.iterations,
            file: &folder.join("bbvi-inference.safetensors"),
        };
        inference.resume(inferred.file)?;
        if let Some(stopped) = inferred.run(&mut inference, &pool, |_, _| Ok(()), watch)? {
            return Ok(Piece::Interrupted(stopped));
        }
        Ok(Piece::Done(BbviCourse {
            curve,
            means: (0..test.latents.len())
                .map(|k| inference.means(k))
                .collect(),
        }))
    }
}

impl Learns for Bbvi {
    fn iteration(&self) -> usize {
        self.iteration()
    }

    fn step(&mut self) -> Result<f64, LabError> {
        let free_energy = self.step();
        if free_energy.is_finite() {
            return Ok(free_energy);
        }
        Err(LabError::Invalid(format!(
            "BBVI lost its way: the free energy of step {} is not a number; use a smaller step size",
            self.iteration()
        )))
    }

    fn save(&self, file: &Path) -> Result<(), LabError> {
        self.save(file)
    }
}
