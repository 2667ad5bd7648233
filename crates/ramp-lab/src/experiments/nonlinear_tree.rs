//! The nonlinear tree: RAMP against BBVI and a supervised Gaussian approximation (paper, "Nonlinear Tree").

use super::bbvi_course::{BbviSettings, BbviTask};
use super::clock::Clock;
use super::fitting::{Fitting, Point};
use super::nonlinear_tree_figures::{Scatter, bars_figure, course_figure, scatter_figure};
use super::run::{
    Outcome, PerMethod, Piece, Recipe, Scale, Watch, paper_training, peak_rss_mb, write_json,
};
use crate::baselines::{Bbvi, SupervisedGaussian};
use crate::error::LabError;
use crate::metrics::{pearson, spearman};
use crate::nonlinear_data::{NonlinearTree, reciprocal};
use crate::tree_data::TreeSample;
use ramp::data::Dataset;
use ramp::family::Inputs;
use ramp::graph::FactorTree;
use ramp::model::Model;
use ramp::network::{MlpSpec, NetworkSpec};
use ramp::train::{Decay, Optimizer, TrainSpec};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// The settings of one run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NonlinearTreeRun {
    /// How large.
    pub scale: Scale,
    /// How trained.
    pub recipe: Recipe,
    /// Where the data come from.
    pub tree: NonlinearTree,
    /// Training samples.
    pub n: usize,
    /// Fresh samples on which everything is measured.
    pub test: usize,
    /// Hidden layers of every network.
    pub hidden: Vec<usize>,
    /// What networks see of beliefs.
    pub inputs: Inputs,
    /// The training settings.
    pub train: TrainSpec,
    /// The settings of BBVI.
    pub bbvi: BbviSettings,
    /// The seed of data, weights and batches.
    pub seed: u64,
    /// Threads; all of the machine's by default.
    pub threads: Option<usize>,
}

impl NonlinearTreeRun {
    /// The settings of a scale and a recipe.
    pub fn new(scale: Scale, recipe: Recipe, seed: u64) -> Self {
        let paper = paper_training(scale, seed);
        let (inputs, train) = match recipe {
            Recipe::Paper => (Inputs::Natural, paper),
            // With a soft start. A higher rate or more iterations overfit the root, so far from the data; decay of weights holds
            // that back.
            Recipe::Ours => {
                let (iterations, warmup, learning_rate) = match scale {
                    Scale::Paper => (600, 180, 1e-3),
                    Scale::Quick => (400, 120, 1e-3),
                };
                let train = TrainSpec {
                    iterations,
                    warmup,
                    learning_rate,
                    batch: Some(1000),
                    decay: Decay::Cosine { to: 0.0 },
                    optimizer: Optimizer::Adam {
                        decay: 0.03,
                        scheduled_decay: false,
                    },
                    ..paper
                };
                (Inputs::Moments, train)
            }
        };
        NonlinearTreeRun {
            scale,
            recipe,
            tree: NonlinearTree::default(),
            n: 10_000,
            test: 10_000,
            hidden: vec![64, 64],
            inputs,
            train,
            bbvi: BbviSettings::new(scale, 3000, seed),
            seed,
            threads: None,
        }
    }
}

/// A point of a learning curve.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SpearmanPoint {
    /// Steps taken.
    pub iteration: usize,
    /// Absolute Spearman correlation of posterior means with true latents.
    pub spearman: Vec<f64>,
}

impl Point for SpearmanPoint {
    fn iteration(&self) -> usize {
        self.iteration
    }
}

/// Everything a run measured, on fresh samples unless said otherwise.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct NonlinearTreeResults {
    /// Absolute Spearman correlations of posterior means with true latents.
    pub spearman: PerMethod,
    /// Absolute Pearson correlations of posterior means with clipped reciprocals of true latents.
    pub pearson_reciprocal: PerMethod,
    /// The level of every latent, 0 for the root.
    pub depth_of_latent: Vec<usize>,
    /// The learning curve of RAMP.
    pub history: Vec<SpearmanPoint>,
    /// The learning curve of BBVI, on the samples it learns from.
    pub bbvi_history: Vec<SpearmanPoint>,
    /// The free energy of every iteration's batch, in nats.
    pub free_energy_history: Vec<f64>,
    /// Steps taken by RAMP.
    pub iterations: usize,
    /// The median time of a training step of RAMP, in milliseconds; absent when the session took none.
    pub ms_per_iteration: Option<f64>,
    /// Wall time of BBVI over all sessions, in seconds.
    pub bbvi_seconds: f64,
    /// Wall time over all sessions, in seconds.
    pub seconds: f64,
    /// The most memory held, in MB.
    pub peak_rss_mb: Option<f64>,
    /// The settings.
    pub settings: NonlinearTreeRun,
    /// The version of this software.
    pub version: String,
}

impl NonlinearTreeRun {
    /// Trains all methods, measures and writes `results.json` and figures into a folder; goes on from what is there.
    pub fn run(
        &self,
        out: &Path,
        watch: &mut dyn Watch,
    ) -> Result<Outcome<NonlinearTreeResults>, LabError> {
        let (results, scatter) = match self.measure(&out.join("checkpoint"), "", watch)? {
            Piece::Done(done) => done,
            Piece::Interrupted(at) => return Ok(Outcome::Interrupted(at)),
        };
        let files = results.write(out, &scatter)?;
        Ok(Outcome::Done {
            results: Box::new(results),
            files,
        })
    }

    /// All but the writing; `prefix` stands before the names of pieces of work.
    pub(super) fn measure(
        &self,
        folder: &Path,
        prefix: &str,
        watch: &mut dyn Watch,
    ) -> Result<Piece<(NonlinearTreeResults, Scatter)>, LabError> {
        let mut clock = Clock::new(watch, folder, self);
        let mut train = self
            .tree
            .sample(self.n.saturating_add(self.test), self.seed)?;
        let test = train.split_off(self.n);
        let (data, test_data) = (train.dataset()?, test.dataset()?);
        let gaussian = SupervisedGaussian::fit(&train)?.means(&test.observations)?;

        let tree =
            FactorTree::balanced(self.tree.depth, self.tree.arity).map_err(ramp::Error::from)?;
        let network = NetworkSpec::Mlp(MlpSpec {
            hidden: self.hidden.clone(),
            ..MlpSpec::default()
        });
        let mut model = Model::builder(tree)
            .inputs(self.inputs)
            .message_network(network.clone())
            .observation_network(network)
            .init(self.recipe.init())
            .seed(self.seed)
            .build(&data)?;
        let before = means(&model, &test_data)?;
        let fitting = Fitting {
            what: &format!("{prefix}RAMP"),
            train: &self.train,
            threads: self.threads,
            folder,
        };
        let point = |model: &Model, iteration: usize| {
            Ok(SpearmanPoint {
                iteration,
                spearman: spearmans(&means(model, &test_data)?, &test),
            })
        };
        let fitted = match fitting.run(&mut model, &data, self, &point, &mut clock)? {
            Piece::Done(fitted) => fitted,
            Piece::Interrupted(at) => return Ok(Piece::Interrupted(at)),
        };
        let latents = train.latents.len();
        let bbvi_point = |bbvi: &Bbvi, iteration: usize| {
            let means: Vec<Vec<f64>> = (0..latents).map(|k| bbvi.means(k)).collect();
            SpearmanPoint {
                iteration,
                spearman: spearmans(&means, &train),
            }
        };
        let task = BbviTask {
            prefix,
            parents: self.tree.parents()?,
            train: &train,
            test: &test,
            threads: self.threads,
            folder,
        };
        let bbvi = match self.bbvi.run(task, &bbvi_point, &mut clock)? {
            Piece::Done(bbvi) => bbvi,
            Piece::Interrupted(at) => return Ok(Piece::Interrupted(at)),
        };

        let after = means(&model, &test_data)?;
        let of_each = |measure: fn(&[Vec<f64>], &TreeSample) -> Vec<f64>| PerMethod {
            ramp: measure(&after, &test),
            gaussian: measure(&gaussian, &test),
            bbvi: measure(&bbvi.means, &test),
        };
        let results = NonlinearTreeResults {
            spearman: of_each(spearmans),
            pearson_reciprocal: of_each(reciprocal_pearsons),
            depth_of_latent: self.tree.depth_of_latent()?,
            history: fitted.curve,
            bbvi_history: bbvi.curve,
            free_energy_history: fitted.records.iter().map(|r| r.free_energy).collect(),
            iterations: fitted.iteration,
            ms_per_iteration: fitted.ms_per_iteration,
            bbvi_seconds: clock.spent_on("BBVI"),
            seconds: clock.seconds(),
            peak_rss_mb: peak_rss_mb(),
            settings: self.clone(),
            version: env!("CARGO_PKG_VERSION").into(),
        };
        let truth = test.latents.iter().map(|row| reciprocals(row)).collect();
        let scatter = Scatter {
            truth,
            before,
            after,
        };
        Ok(Piece::Done((results, scatter)))
    }
}

impl NonlinearTreeResults {
    fn write(&self, out: &Path, scatter: &Scatter) -> Result<Vec<PathBuf>, LabError> {
        let json = out.join("results.json");
        let mut files = vec![json.clone()];
        for (figure, name) in [
            (bars_figure(self), "bars"),
            (course_figure(self), "learning"),
            (scatter_figure(scatter, &self.depth_of_latent)?, "scatter"),
        ] {
            let written = figure.write(out, name)?;
            files.extend([written.svg, written.png]);
        }
        // Last: whoever sees results finds the figures too.
        write_json(&json, self)?;
        Ok(files)
    }
}

/// Posterior means, a row per latent.
fn means(model: &Model, data: &Dataset) -> Result<Vec<Vec<f64>>, LabError> {
    let posterior = model.posterior(data)?;
    Ok(posterior.latents().iter().map(|l| l.means(0)).collect())
}

/// Of as many samples as there are means: BBVI may learn from fewer.
fn spearmans(means: &[Vec<f64>], sample: &TreeSample) -> Vec<f64> {
    let pairs = means.iter().zip(&sample.latents);
    pairs
        .map(|(means, truth)| spearman(means, &truth[..means.len()]).abs())
        .collect()
}

fn reciprocal_pearsons(means: &[Vec<f64>], sample: &TreeSample) -> Vec<f64> {
    let pairs = means.iter().zip(&sample.latents);
    pairs
        .map(|(means, truth)| pearson(means, &reciprocals(&truth[..means.len()])).abs())
        .collect()
}

fn reciprocals(values: &[f32]) -> Vec<f64> {
    values.iter().map(|&z| reciprocal(f64::from(z))).collect()
}

#[cfg(test)]
mod tests {
    use super::super::run::tests::{StopAfter, done};
    use super::*;

    pub(in super::super) fn small() -> NonlinearTreeRun {
        let mut run = NonlinearTreeRun::new(Scale::Quick, Recipe::Ours, 3);
        (run.n, run.test, run.hidden) = (300, 200, vec![8]);
        run.train = TrainSpec {
            iterations: 20,
            batch: Some(100),
            ..run.train
        };
        run.bbvi.n = 100;
        run.bbvi.learning.iterations = 15;
        run.bbvi.inference.iterations = 10;
        run
    }

    #[test]
    fn a_run_in_pieces_measures_what_a_whole_run_measures() {
        let folder = tempfile::tempdir().unwrap();
        let whole = done(small().run(&folder.path().join("whole"), &mut ()).unwrap());
        let out = folder.path().join("pieces");
        for steps in [6, 14 + 5, 10 + 4] {
            let stopped = small().run(&out, &mut StopAfter(steps)).unwrap();
            assert!(matches!(stopped, Outcome::Interrupted(_)), "{steps}");
            assert!(!out.join("results.json").exists());
        }
        let pieces = done(small().run(&out, &mut ()).unwrap());
        assert_eq!(whole.spearman, pieces.spearman);
        assert_eq!(whole.pearson_reciprocal, pieces.pearson_reciprocal);
        let iterations = |r: &NonlinearTreeResults| -> Vec<usize> {
            let both = r.history.iter().chain(&r.bbvi_history);
            both.map(|p| p.iteration).collect()
        };
        assert_eq!(iterations(&whole), iterations(&pieces));
    }

    #[test]
    fn results_hold_what_they_promise() {
        let folder = tempfile::tempdir().unwrap();
        done(small().run(folder.path(), &mut ()).unwrap());
        let text = std::fs::read(folder.path().join("results.json")).unwrap();
        let json: serde_json::Value = serde_json::from_slice(&text).unwrap();
        for measure in ["spearman", "pearson_reciprocal"] {
            for method in ["ramp", "gaussian", "bbvi"] {
                let values = json.pointer(&format!("/{measure}/{method}")).unwrap();
                let values = values.as_array().unwrap();
                assert_eq!(values.len(), 7);
                let possible = |v: &serde_json::Value| (0.0..=1.0).contains(&v.as_f64().unwrap());
                assert!(values.iter().all(possible), "{measure} {method}");
            }
        }
    }
}
