//! Black-box variational inference within an experiment: learning on training samples, then inference on fresh ones.

use super::{Point, Training, Watch};
use crate::baselines::{Bbvi, BbviSpec, Estimator, GenerativeTree};
use crate::error::LabError;
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

/// What BBVI is to learn from and to infer, and where its state is kept.
pub(crate) struct BbviTask<'a> {
    /// Stands before the names of pieces of work.
    pub prefix: &'a str,
    /// The parent of every node of the generative tree.
    pub parents: Vec<Option<usize>>,
    /// How many of them are latents, which come first.
    pub latents: usize,
    /// Observations of training and of fresh samples, a row each.
    pub train: &'a [Vec<f32>],
    pub test: &'a [Vec<f32>],
    pub threads: Option<usize>,
    pub folder: &'a Path,
}

/// What came of it.
pub(crate) struct BbviRun<P> {
    pub curve: Vec<P>,
    /// Posterior means of fresh samples, a row per latent.
    pub means: Vec<Vec<f64>>,
}

impl BbviSettings {
    /// The same with another estimator of gradients, for learning and inference.
    pub fn estimator(mut self, estimator: Estimator) -> Self {
        self.learning.estimator = estimator;
        self.inference.estimator = estimator;
        self
    }

    /// Learns and infers, or goes on doing so. `measure` looks at the posterior means of training samples.
    pub(crate) fn run<P: Point>(
        &self,
        task: BbviTask<'_>,
        measure: &dyn Fn(&[Vec<f64>], usize) -> P,
        watch: &mut dyn Watch,
    ) -> Result<BbviRun<P>, LabError> {
        let latents = task.latents;
        let means = |bbvi: &Bbvi| (0..latents).map(|k| bbvi.means(k)).collect::<Vec<_>>();
        let known: Vec<Vec<f32>> = task
            .train
            .iter()
            .map(|row| row[..self.n.min(row.len())].to_vec())
            .collect();
        let tree = GenerativeTree::random(task.parents, latents, self.hidden, self.learning.seed)?;
        let mut learning = Bbvi::new(tree, &known, self.learning.clone())?;
        let training = Training {
            what: &format!("{}BBVI", task.prefix),
            train: &self.learning.train(),
            threads: task.threads,
            folder: &task.folder.join("bbvi-learning"),
        };
        // Before the first step all posteriors are the prior, which correlates with nothing.
        let point = |bbvi: &Bbvi, at: usize| Ok((at > 0).then(|| measure(&means(bbvi), at)));
        let (_, curve) = training.run(self, &point, watch, |t| t.train(&mut learning))?;

        let mut inference = Bbvi::new(learning.tree(), task.test, self.inference.clone())?;
        let training = Training {
            what: &format!("{}BBVI, fresh samples", task.prefix),
            train: &self.inference.train(),
            threads: task.threads,
            folder: &task.folder.join("bbvi-inference"),
        };
        training.run(self, &|_, _| Ok(None::<()>), watch, |t| {
            t.train(&mut inference)
        })?;
        Ok(BbviRun {
            curve,
            means: means(&inference),
        })
    }
}
