//! Misspecified trees: RAMP on randomly perturbed trees over data from the balanced one (paper, "Structural Misspecification").

mod data;
mod figures;

use crate::error::LabError;
use crate::experiments::linear_tree::data::{LinearTree, TreeSample};
use crate::experiments::linear_tree::{TEST, TEST_SAMPLES, TRAIN};
use crate::harness::{Clock, Core, Experiment, Figures, Progress, RunInfo, Sweep};
use crate::metrics::{median, pearson};
use data::Plan;
use figures::{mismatch_figure, moves_figure};
use ramp::data::Dataset;
use ramp::graph::FactorTree;
use ramp::model::Model;
use ramp::train::Fit;
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::time::Instant;

/// The settings of one run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MisspecifiedTreeRun {
    /// What all experiments share.
    #[serde(flatten)]
    pub core: Core,
    /// The most steps away from the true tree.
    pub most_moves: usize,
    /// Perturbed trees for every number of steps above zero.
    pub trees: usize,
    /// Training samples.
    pub n: usize,
}

impl MisspecifiedTreeRun {
    /// The trees to train on: the true one, then perturbed ones by number of steps.
    fn plans(&self, truth: &FactorTree) -> Result<Vec<Plan>, LabError> {
        let seed = self.core.seed;
        let mut plans = vec![Plan::new(truth, 0, 0, seed)?];
        for moves in 1..=self.most_moves {
            for number in 0..self.trees {
                plans.push(Plan::new(truth, moves, number, seed)?);
            }
        }
        Ok(plans)
    }
}

/// One latent of one model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LatentRecord {
    /// Steps from the true tree.
    pub k: usize,
    /// Which of the trees with as many steps.
    pub seed: usize,
    /// The latent's name in the perturbed tree.
    pub latent: String,
    /// Observations in a wrong branch, against the true latent that it is matched with.
    pub mismatch: usize,
    /// That true latent: the one of least mismatch.
    pub matched: String,
    /// The level of the matched latent, 0 for the root.
    pub depth: usize,
    /// Absolute correlation of posterior means with the matched latent, on fresh samples.
    pub correlation: f64,
}

/// One trained model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TreeRecord {
    /// Steps from the true tree.
    pub k: usize,
    /// Which of the trees with as many steps.
    pub seed: usize,
    /// The perturbed tree.
    pub newick: String,
    /// Its Robinson–Foulds distance from the true one.
    pub robinson_foulds: usize,
    /// The free energy of the last batch, in nats.
    pub free_energy: f64,
    /// Wall time of its training in the session that ended it, in seconds.
    pub seconds: f64,
}

/// Everything a run measured.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct MisspecifiedTreeResults {
    /// One record per model and latent.
    pub latents: Vec<LatentRecord>,
    /// One record per model.
    pub trees: Vec<TreeRecord>,
    /// What all results share.
    #[serde(flatten)]
    pub info: RunInfo<MisspecifiedTreeRun>,
}

/// What is kept of a model that is done.
#[derive(Clone, Serialize, Deserialize)]
struct Finished {
    tree: TreeRecord,
    latents: Vec<LatentRecord>,
}

/// What all models share.
struct Bench<'a> {
    core: &'a Core,
    truth: FactorTree,
    depths: Vec<usize>,
    data: Dataset,
    test: TreeSample,
    test_data: Dataset,
}

impl Experiment for MisspecifiedTreeRun {
    type Results = MisspecifiedTreeResults;

    /// Trains a model on every tree, several at a time.
    fn measure(
        &self,
        folder: &Path,
        clock: &mut Clock<'_, Self>,
    ) -> Result<(MisspecifiedTreeResults, Figures), LabError> {
        let core = &self.core;
        core.train.check()?;
        let generator = LinearTree::default();
        let truth = FactorTree::balanced(generator.depth, generator.arity)?;
        let plans = self.plans(&truth)?;
        let test = generator.sample(TEST_SAMPLES, core.seed, TEST)?;
        let bench = Bench {
            core,
            depths: generator.depth_of_latent()?,
            data: generator.sample(self.n, core.seed, TRAIN)?.dataset()?,
            test_data: test.dataset()?,
            test,
            truth,
        };
        let sweep = Sweep {
            what: format!("{} trees", plans.len()),
            folder,
            names: plans.iter().map(Plan::name).collect(),
            settings: self,
            iterations: core.train.iterations,
            threads: core.threads,
        };
        let work = |index: usize, progress: &Progress<'_>| {
            bench.model(&plans[index], |model| {
                sweep.train(index, model, &bench.data, &core.train, progress)
            })
        };
        let finished: Vec<Finished> = sweep.run(clock, &work)?;
        let (trees, latents): (Vec<_>, Vec<_>) =
            finished.into_iter().map(|f| (f.tree, f.latents)).unzip();
        let results = MisspecifiedTreeResults {
            latents: latents.concat(),
            trees,
            info: RunInfo::new(self, clock),
        };
        let shown = results.shown(&bench.truth)?;
        let figures = vec![
            ("mismatch", mismatch_figure(&results, &bench.depths)),
            ("trees", moves_figure(&shown, &bench.truth, &bench.depths)?),
        ];
        Ok((results, figures))
    }
}

impl Bench<'_> {
    /// Trains one model to its end.
    fn model(
        &self,
        plan: &Plan,
        train: impl FnOnce(&mut Model) -> Result<Fit, LabError>,
    ) -> Result<Finished, LabError> {
        let start = Instant::now();
        let mut model = Model::builder(plan.tree.clone())
            .inputs(self.core.inputs)
            .init(self.core.recipe.init())
            .seed(self.core.seed)
            .build(&self.data)?;
        let fit = train(&mut model)?;
        let distance = plan.tree.robinson_foulds(&self.truth);
        Ok(Finished {
            latents: self.latents(plan, &model)?,
            tree: TreeRecord {
                k: plan.moves,
                seed: plan.number,
                newick: plan.tree.to_newick()?,
                robinson_foulds: distance?,
                free_energy: fit.records.last().map_or(f64::NAN, |r| r.free_energy),
                seconds: start.elapsed().as_secs_f64(),
            },
        })
    }

    fn latents(&self, plan: &Plan, model: &Model) -> Result<Vec<LatentRecord>, LabError> {
        let posterior = model.posterior(&self.test_data)?;
        let matches = plan.tree.matches(&self.truth)?;
        let latents = posterior.latents().iter().zip(matches);
        Ok(latents
            .map(|(latent, matched)| {
                // Latents of the balanced tree come first, in level order.
                let true_latent = matched.latent.index();
                LatentRecord {
                    k: plan.moves,
                    seed: plan.number,
                    latent: latent.name().to_owned(),
                    mismatch: matched.mismatch,
                    matched: self.truth.name(matched.latent).to_owned(),
                    depth: self.depths[true_latent],
                    correlation: pearson(&latent.means(0), &self.test.latents[true_latent]).abs(),
                }
            })
            .collect())
    }
}

impl MisspecifiedTreeResults {
    /// The correlations of the latents that are chosen.
    fn correlations(&self, chosen: impl Fn(&LatentRecord) -> bool) -> Vec<f64> {
        let chosen = self.latents.iter().filter(|l| chosen(l));
        chosen.map(|l| l.correlation).collect()
    }

    /// The median correlation of latents of a depth and mismatch within perturbed trees, and how many there are.
    pub fn perturbed_median(&self, depth: usize, mismatch: usize) -> (f64, usize) {
        let chosen = self.correlations(|l| l.k > 0 && l.depth == depth && l.mismatch == mismatch);
        (median(&chosen), chosen.len())
    }

    /// The median correlation of latents of a depth in the true tree.
    pub fn unperturbed(&self, depth: usize) -> f64 {
        median(&self.correlations(|l| l.k == 0 && l.depth == depth))
    }

    /// The largest mismatch of any latent.
    pub fn largest_mismatch(&self) -> usize {
        self.latents.iter().map(|l| l.mismatch).max().unwrap_or(0)
    }

    /// The tree to draw: two steps away as in the paper, or as many as there are, and of these the one most wrong.
    fn shown(&self, truth: &FactorTree) -> Result<Plan, LabError> {
        let settings = &self.info.settings;
        let (moves, seed) = (settings.most_moves.min(2), settings.core.seed);
        let mut shown = Plan::new(truth, moves, 0, seed)?;
        let mut most = 0;
        for number in 0..settings.trees {
            let plan = Plan::new(truth, moves, number, seed)?;
            let matches = plan.tree.matches(truth)?;
            let wrong: usize = matches.iter().map(|m| m.mismatch).sum();
            if wrong > most {
                (shown, most) = (plan, wrong);
            }
        }
        Ok(shown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness::{Recipe, Scale, StopAfter};
    use ramp::train::TrainSpec;

    fn small() -> MisspecifiedTreeRun {
        let mut run = MisspecifiedTreeRun::new(Scale::Quick, Recipe::Ours, 3);
        (run.most_moves, run.trees, run.n, run.core.threads) = (2, 2, 200, Some(2));
        run.core.train = TrainSpec {
            iterations: 12,
            batch: Some(100),
            ..run.core.train
        };
        run
    }

    #[test]
    fn a_run_in_pieces_measures_what_a_whole_run_measures() {
        let folder = tempfile::tempdir().unwrap();
        let whole = small().run(&folder.path().join("whole"), &mut ()).unwrap();
        let whole = whole.results;
        assert_eq!(whole.trees.len(), 1 + 2 * 2);
        assert_eq!(whole.latents.len(), 7 * whole.trees.len());
        let out = folder.path().join("pieces");
        for steps in [5, 20, 9] {
            let stopped = small().run(&out, &mut StopAfter(steps));
            assert!(matches!(stopped, Err(LabError::Interrupted { .. })));
            assert!(!out.join("results.json").exists());
        }
        let mut one_by_one = small();
        one_by_one.core.threads = Some(1);
        let alone = one_by_one.run(&folder.path().join("one"), &mut ()).unwrap();
        let alone = alone.results.latents;
        assert_eq!(whole.latents, alone, "threads change nothing");
        let pieces = small().run(&out, &mut ()).unwrap().results;
        assert_eq!(whole.latents, pieces.latents);
    }

    #[test]
    fn the_true_tree_has_no_mismatch_and_perturbed_ones_have_their_distance() {
        let truth = FactorTree::balanced(4, 2).unwrap();
        let run = small();
        for plan in run.plans(&truth).unwrap() {
            let distance = plan.tree.robinson_foulds(&truth).unwrap();
            assert!(distance <= 2 * plan.moves);
            assert_eq!(plan.way.len(), plan.moves);
            let mismatches = plan.tree.matches(&truth).unwrap();
            // A root of two branches that moved along an edge is misplaced in a tree with the same divisions.
            let intact = mismatches.iter().all(|m| m.mismatch == 0);
            assert!(
                !intact || distance == 0,
                "{distance} steps away without a mismatch"
            );
            assert!(plan.moves > 0 || intact);
        }
        let mut other = run;
        other.core.seed = 4;
        let newick = |r: &MisspecifiedTreeRun| -> Vec<String> {
            let plans = r.plans(&truth).unwrap();
            plans.iter().map(|p| p.tree.to_newick().unwrap()).collect()
        };
        assert_ne!(newick(&small()), newick(&other));
        assert_eq!(newick(&small()), newick(&small()));
    }
}
