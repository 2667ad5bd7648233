//! Misspecified trees: RAMP on randomly perturbed trees over data from the balanced one (paper, "Structural Misspecification").

use super::clock::Clock;
use super::linear_tree::LinearTreeRun;
use super::many::{Board, Many};
use super::misspecified_tree_figures::{mismatch_figure, moves_figure};
use super::run::{Outcome, Recipe, Scale, Watch, peak_rss_mb, write_json};
use crate::error::LabError;
use crate::metrics::pearson;
use crate::tree_data::{LinearTree, TreeSample};
use ramp::data::Dataset;
use ramp::family::Inputs;
use ramp::graph::{FactorTree, Interchange};
use ramp::model::Model;
use ramp::train::{Fit, TrainSpec};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Fresh samples on which everything is measured.
const TEST_SAMPLES: usize = 10_000;
/// The random streams of training data and test data.
const TRAIN: u64 = 0;
const TEST: u64 = 1;

/// The settings of one run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MisspecifiedTreeRun {
    /// How large.
    pub scale: Scale,
    /// How trained.
    pub recipe: Recipe,
    /// The most steps away from the true tree.
    pub most_moves: usize,
    /// Perturbed trees for every number of steps above zero.
    pub trees: usize,
    /// Training samples.
    pub n: usize,
    /// What networks see of beliefs.
    pub inputs: Inputs,
    /// The training settings of every model.
    pub train: TrainSpec,
    /// The seed of data, trees, weights and batches.
    pub seed: u64,
    /// Models that train at the same time; one per processor by default.
    pub threads: Option<usize>,
}

impl MisspecifiedTreeRun {
    /// The settings of a scale and a recipe: those of the linear tree, on fewer trees when there is little time.
    pub fn new(scale: Scale, recipe: Recipe, seed: u64) -> Self {
        let linear = LinearTreeRun::new(scale, recipe, seed);
        let (trees, train) = match scale {
            Scale::Paper => (10, linear.train),
            Scale::Quick => {
                let shorter = TrainSpec {
                    iterations: 400,
                    warmup: linear.train.warmup * 400 / linear.train.iterations,
                    ..linear.train
                };
                (3, shorter)
            }
        };
        MisspecifiedTreeRun {
            scale,
            recipe,
            most_moves: 4,
            trees,
            n: linear.n,
            inputs: linear.inputs,
            train,
            seed,
            threads: None,
        }
    }

    /// The trees to train on: the true one, then perturbed ones by number of steps.
    fn plans(&self, truth: &FactorTree) -> Result<Vec<Plan>, LabError> {
        let mut plans = vec![Plan::new(truth, 0, 0, self.seed)?];
        for moves in 1..=self.most_moves {
            for number in 0..self.trees {
                plans.push(Plan::new(truth, moves, number, self.seed)?);
            }
        }
        Ok(plans)
    }
}

/// A perturbed tree and how it came about.
pub(super) struct Plan {
    pub moves: usize,
    pub number: usize,
    pub tree: FactorTree,
    /// The trees on the way, the true one first, each with the step that leads on.
    pub way: Vec<(FactorTree, Interchange)>,
}

impl Plan {
    /// Random steps from a tree: at each, an edge between latents, then one of the interchanges across it, all as likely.
    ///
    /// A step may undo the one before; the Robinson–Foulds distance tells.
    pub fn new(
        truth: &FactorTree,
        moves: usize,
        number: usize,
        seed: u64,
    ) -> Result<Self, LabError> {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        random.set_stream((1 << 32) + ((moves as u64) << 16) + number as u64);
        let mut tree = truth.clone();
        let mut way = vec![];
        for _ in 0..moves {
            let steps = tree.interchanges();
            let edges: Vec<&[Interchange]> = steps.chunk_by(|a, b| a.across == b.across).collect();
            if edges.is_empty() {
                return Err(LabError::Invalid(
                    "a tree of one latent has no neighbours to step to".into(),
                ));
            }
            let across = edges[random.random_range(0..edges.len())];
            let step = across[random.random_range(0..across.len())];
            let next = tree.interchanged(step).map_err(ramp::Error::from)?;
            way.push((tree, step));
            tree = next;
        }
        Ok(Plan {
            moves,
            number,
            tree,
            way,
        })
    }

    fn name(&self) -> String {
        format!("k{}-{}", self.moves, self.number)
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
    /// Wall time over all sessions, in seconds.
    pub seconds: f64,
    /// The most memory held, in MB.
    pub peak_rss_mb: Option<f64>,
    /// The settings.
    pub settings: MisspecifiedTreeRun,
    /// The version of this software.
    pub version: String,
}

/// What is kept of a model that is done.
#[derive(Clone, Serialize, Deserialize)]
struct Finished {
    tree: TreeRecord,
    latents: Vec<LatentRecord>,
}

/// What all models share.
struct Bench<'a> {
    run: &'a MisspecifiedTreeRun,
    truth: FactorTree,
    depths: Vec<usize>,
    data: Dataset,
    test: TreeSample,
    test_data: Dataset,
}

impl MisspecifiedTreeRun {
    /// Trains a model on every tree, several at a time, and writes `results.json` and figures; goes on from what is there.
    pub fn run(
        &self,
        out: &Path,
        watch: &mut dyn Watch,
    ) -> Result<Outcome<MisspecifiedTreeResults>, LabError> {
        let folder = out.join("checkpoint");
        let mut clock = Clock::new(watch, &folder, self);
        self.train.check()?;
        let generator = LinearTree::default();
        let truth =
            FactorTree::balanced(generator.depth, generator.arity).map_err(ramp::Error::from)?;
        let plans = self.plans(&truth)?;
        let test = generator.sample(TEST_SAMPLES, self.seed, TEST)?;
        let bench = Bench {
            run: self,
            depths: generator.depth_of_latent()?,
            data: generator.sample(self.n, self.seed, TRAIN)?.dataset()?,
            test_data: test.dataset()?,
            test,
            truth,
        };
        let many = Many {
            what: format!("{} trees", plans.len()),
            folder: &folder,
            names: plans.iter().map(Plan::name).collect(),
            settings: self,
            iterations: self.train.iterations,
            threads: self.threads,
        };
        let work = |index: usize, board: &Board<'_>| {
            bench.model(&plans[index], |model| {
                many.train(index, model, &bench.data, &self.train, board)
            })
        };
        let finished: Vec<Finished> = match many.run(&mut clock, &work)? {
            Ok(finished) => finished,
            Err(at) => return Ok(Outcome::Interrupted(at)),
        };
        let (trees, latents): (Vec<_>, Vec<_>) =
            finished.into_iter().map(|f| (f.tree, f.latents)).unzip();
        let results = MisspecifiedTreeResults {
            latents: latents.concat(),
            trees,
            seconds: clock.seconds(),
            peak_rss_mb: peak_rss_mb(),
            settings: self.clone(),
            version: env!("CARGO_PKG_VERSION").into(),
        };
        let files = results.write(out, &bench.truth, &bench.depths)?;
        Ok(Outcome::Done {
            results: Box::new(results),
            files,
        })
    }
}

impl Bench<'_> {
    /// Trains one model to its end; `None` if someone stopped it.
    fn model(
        &self,
        plan: &Plan,
        train: impl FnOnce(&mut Model) -> Result<Option<Fit>, LabError>,
    ) -> Result<Option<Finished>, LabError> {
        let start = Instant::now();
        let mut model = Model::builder(plan.tree.clone())
            .inputs(self.run.inputs)
            .init(self.run.recipe.init())
            .seed(self.run.seed)
            .build(&self.data)?;
        let Some(fit) = train(&mut model)? else {
            return Ok(None);
        };
        Ok(Some(Finished {
            latents: self.latents(plan, &model)?,
            tree: TreeRecord {
                k: plan.moves,
                seed: plan.number,
                newick: plan.tree.to_newick().map_err(ramp::Error::from)?,
                robinson_foulds: plan
                    .tree
                    .robinson_foulds(&self.truth)
                    .map_err(ramp::Error::from)?,
                free_energy: fit.records.last().map_or(f64::NAN, |r| r.free_energy),
                seconds: start.elapsed().as_secs_f64(),
            },
        }))
    }

    fn latents(&self, plan: &Plan, model: &Model) -> Result<Vec<LatentRecord>, LabError> {
        let posterior = model.posterior(&self.test_data)?;
        let matches = plan.tree.matches(&self.truth).map_err(ramp::Error::from)?;
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
    /// The median correlation of latents of a depth and mismatch within perturbed trees, and how many there are.
    pub fn perturbed_median(&self, depth: usize, mismatch: usize) -> (f64, usize) {
        let chosen: Vec<f64> = self
            .latents
            .iter()
            .filter(|l| l.k > 0 && l.depth == depth && l.mismatch == mismatch)
            .map(|l| l.correlation)
            .collect();
        (crate::metrics::median(&chosen), chosen.len())
    }

    /// The median correlation of latents of a depth in the true tree.
    pub fn unperturbed(&self, depth: usize) -> f64 {
        let chosen: Vec<f64> = self
            .latents
            .iter()
            .filter(|l| l.k == 0 && l.depth == depth)
            .map(|l| l.correlation)
            .collect();
        crate::metrics::median(&chosen)
    }

    /// The largest mismatch of any latent.
    pub fn largest_mismatch(&self) -> usize {
        self.latents.iter().map(|l| l.mismatch).max().unwrap_or(0)
    }

    /// The tree to draw: two steps away as in the paper, or as many as there are, and of these the one most wrong.
    fn shown(&self, truth: &FactorTree) -> Result<Plan, LabError> {
        let (moves, seed) = (self.settings.most_moves.min(2), self.settings.seed);
        let mut shown = Plan::new(truth, moves, 0, seed)?;
        let mut most = 0;
        for number in 0..self.settings.trees {
            let plan = Plan::new(truth, moves, number, seed)?;
            let matches = plan.tree.matches(truth).map_err(ramp::Error::from)?;
            let wrong: usize = matches.iter().map(|m| m.mismatch).sum();
            if wrong > most {
                (shown, most) = (plan, wrong);
            }
        }
        Ok(shown)
    }

    fn write(
        &self,
        out: &Path,
        truth: &FactorTree,
        depths: &[usize],
    ) -> Result<Vec<PathBuf>, LabError> {
        let mut files = vec![out.join("results.json")];
        let shown = self.shown(truth)?;
        for (figure, name) in [
            (mismatch_figure(self, depths), "mismatch"),
            (moves_figure(&shown, truth, depths)?, "trees"),
        ] {
            let written = figure.write(out, name)?;
            files.extend([written.svg, written.png]);
        }
        write_json(&files[0], self)?;
        Ok(files)
    }
}

#[cfg(test)]
mod tests {
    use super::super::run::tests::{StopAfter, done};
    use super::*;

    fn small() -> MisspecifiedTreeRun {
        let mut run = MisspecifiedTreeRun::new(Scale::Quick, Recipe::Ours, 3);
        (run.most_moves, run.trees, run.n, run.threads) = (2, 2, 200, Some(2));
        run.train = TrainSpec {
            iterations: 12,
            batch: Some(100),
            ..run.train
        };
        run
    }

    #[test]
    fn a_run_in_pieces_measures_what_a_whole_run_measures() {
        let folder = tempfile::tempdir().unwrap();
        let whole = done(small().run(&folder.path().join("whole"), &mut ()).unwrap());
        assert_eq!(whole.trees.len(), 1 + 2 * 2);
        assert_eq!(whole.latents.len(), 7 * whole.trees.len());
        let out = folder.path().join("pieces");
        for steps in [5, 20, 9] {
            let stopped = small().run(&out, &mut StopAfter(steps)).unwrap();
            assert!(matches!(stopped, Outcome::Interrupted(_)), "{steps}");
            assert!(!out.join("results.json").exists());
        }
        let mut one_by_one = small();
        one_by_one.threads = Some(1);
        let refused = one_by_one.run(&folder.path().join("one"), &mut ()).unwrap();
        assert_eq!(
            whole.latents,
            done(refused).latents,
            "threads change nothing"
        );
        let pieces = done(small().run(&out, &mut ()).unwrap());
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
        let other = MisspecifiedTreeRun { seed: 4, ..run };
        let newick = |r: &MisspecifiedTreeRun| -> Vec<String> {
            let plans = r.plans(&truth).unwrap();
            plans.iter().map(|p| p.tree.to_newick().unwrap()).collect()
        };
        assert_ne!(newick(&small()), newick(&other));
        assert_eq!(newick(&small()), newick(&small()));
    }
}
