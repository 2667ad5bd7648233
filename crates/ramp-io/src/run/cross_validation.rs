//! A small sample judges itself: it is divided into parts, and each part judges a fit to the others. That chooses for how long to train, and whether to leave the
//! linear factor model that a tree begins as, and says how much is explained of rows that were not learned from.

use super::{BeyondLinear, Project};
use crate::Result;
use crate::compare::paired;
use crate::total::totals;
use ramp::infer::SupportSet;
use ramp::model::Model;
use ramp::train::{Control, Event, Observer, Trainer};
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

/// Parts that a small sample is divided into.
const FOLDS: usize = 5;
/// From so many rows on, one part of them chooses as well as all in turn; with fewer than so many, nothing can be told.
const MOST_ROWS: usize = 1000;
const FEWEST_ROWS: usize = 60;
/// Weights of larger models are not kept along the way.
const MOST_WEIGHTS: usize = 300_000;
/// A stream of random numbers apart from those that deal out held-out rows.
const STREAM: u64 = 3 << 60;

/// What the fits to parts of a small sample said.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CrossValidation {
    /// How many fits.
    pub folds: usize,
    /// The rows that they judged, each once.
    pub rows: usize,
    /// The iteration after which training ends; 0 keeps the linear factor model that it begins with.
    pub iteration: usize,
    /// The mean free energy of judged rows by iteration, over all latents, in nats.
    pub curve: Vec<(usize, f64)>,
    /// The same latent by latent, at an iteration that was chosen without the rows.
    pub latents: Vec<f64>,
    /// Nats a row more than independent columns, there, and the standard error.
    pub total: (f64, f64),
    /// What each latent adds to that, as seen from the tree's root.
    pub adds: Vec<f64>,
}

/// One fit along its way.
struct Fold {
    project: Project,
    /// Whether it begins as a linear factor model.
    linear: bool,
    /// Every iteration that was looked at, its value on the rows that judge, and its weights.
    seen: Vec<(usize, f64, Vec<f32>)>,
}

impl Project {
    /// Into how many parts the rows that are learned from and choose the weights are divided, for each to judge a fit to the others; 0 where one part chooses.
    pub fn folds(&self) -> usize {
        let rows = self.training.len() + self.validation.len();
        let small = (FEWEST_ROWS..=MOST_ROWS).contains(&rows);
        let tree = self.file.chain().is_none() && !self.validation.is_empty();
        let light = self.model.parameters().len() <= MOST_WEIGHTS && !self.has_images();
        match self.file.data.folds {
            Some(folds) if tree && rows >= 2 * folds => folds,
            None if tree && small && light => FOLDS,
            _ => 0,
        }
    }

    /// Fits parts of a small sample and lets the rest judge: how long to train, and how much is explained. Nothing where the sample is not small
    /// ([`folds`](Self::folds)). To be called before training, also before training goes on; the observer watches all fits. Ranks call it together: each gets all
    /// samples for it and does the same with them.
    pub fn cross_validate(
        &mut self,
        threads: Option<usize>,
        observer: &mut dyn Observer,
    ) -> Result<()> {
        let count = self.folds();
        if count == 0 {
            return Ok(());
        }
        let mut rows = [&self.training[..], &self.validation].concat();
        let mut rng = ChaCha8Rng::seed_from_u64(self.train.dealt_by());
        rng.set_stream(STREAM);
        rows.shuffle(&mut rng);
        // Once, before any rank may be stopped alone: what follows each of them does by itself, and alike.
        let all = self.all_samples()?;
        let mut folds = vec![];
        for k in 0..count {
            let part = |own: bool| {
                let mut part: Vec<u32> = (rows.iter().enumerate())
                    .filter(|(i, _)| (i % count == k) == own)
                    .map(|(_, &n)| n)
                    .collect();
                part.sort_unstable();
                part
            };
            folds.push(Fold::fit(
                self.fold(&all, &part(false), &part(true))?,
                threads,
                observer,
            )?);
        }
        drop(all);
        let (found, gain) = CrossValidation::of(folds)?;
        (self.cross_validation, self.beyond_linear) = (Some(found), gain);
        Ok(())
    }
}

impl Fold {
    fn fit(
        mut project: Project,
        threads: Option<usize>,
        observer: &mut dyn Observer,
    ) -> Result<Self> {
        let linear = project.init_factors()?;
        let begun = project.model.parameters().to_vec();
        let mut seen = vec![];
        let watch = |event: &Event<'_, Model>| -> Control {
            if let Event::Step { record, model } = event
                && let Some(value) = record.held_out
            {
                seen.push((record.iteration, value, model.parameters().to_vec()));
            }
            observer.observe(event)
        };
        let mut trainer = Trainer::new(project.train.clone())?
            .measure_start()
            .observer(watch);
        if let Some(threads) = threads {
            trainer = trainer.threads(threads);
        }
        let fit = trainer.fit(&mut project.model, &project.data)?;
        drop(trainer);
        if let Some(value) = fit.start {
            seen.insert(0, (0, value, begun));
        }
        Ok(Fold {
            project,
            linear,
            seen,
        })
    }

    /// What the weights of a look explain of the rows that judge: latent by latent, and in all.
    fn explains(&mut self, look: usize) -> Result<Judged> {
        let weights = self.project.model.parameters_mut();
        weights.copy_from_slice(&self.seen[look].2);
        let project = &self.project;
        let (model, training) = (&project.model, &project.training);
        let support = SupportSet::new(model, &project.observed(training)?, training.len())?;
        let scores = support.scores(model, &project.observed(&project.validation)?)?;
        let latents = 0..model.tree().latents().len();
        let root = model.tree().root();
        let total = totals(project, &project.validation, &[root])?.remove(0);
        Ok(Judged {
            latents: latents.clone().map(|k| scores.latent(k).to_vec()).collect(),
            adds: latents.map(|k| total.latent(k).to_vec()).collect(),
            total: total.samples(),
        })
    }
}

impl CrossValidation {
    fn of(mut folds: Vec<Fold>) -> Result<(Self, Option<BeyondLinear>)> {
        // As far as all fits went.
        let looks = folds.iter().map(|f| f.seen.len()).min().unwrap_or(0);
        let mean = |look: usize, but: Option<usize>| {
            let others = folds.iter().enumerate().filter(|(k, _)| Some(*k) != but);
            let (sum, rows) = others.fold((0.0, 0.0), |(sum, rows), (_, fold)| {
                let own = fold.project.validation.len() as f64;
                (sum + own * fold.seen[look].1, rows + own)
            });
            sum / rows
        };
        let linear = folds.iter().all(|f| f.linear);
        // Weights that were drawn are no choice.
        let first = usize::from(!linear).min(looks.saturating_sub(1));
        let best = |but: Option<usize>| {
            let all = (first..looks).map(|look| (look, mean(look, but)));
            all.max_by(|a, b| a.1.total_cmp(&b.1))
                .map_or(0, |(look, _)| look)
        };
        let curve: Vec<(usize, f64)> = (0..looks)
            .map(|look| (folds[0].seen[look].0, mean(look, None)))
            .collect();
        let mut chosen = best(None);
        let of_fold: Vec<usize> = (0..folds.len()).map(|k| best(Some(k))).collect();
        let (mut trained, mut start) = (Judged::default(), Judged::default());
        for (fold, &look) in folds.iter_mut().zip(&of_fold) {
            trained.add(fold.explains(look)?);
            start.add(fold.explains(0)?);
        }
        let gain = BeyondLinear::of(&trained.total, &start.total);
        if linear && !gain.is_clear() {
            (chosen, trained) = (0, start);
        }
        let zeros = vec![0.0; trained.total.len()];
        let found = CrossValidation {
            folds: folds.len(),
            rows: trained.total.len(),
            iteration: curve.get(chosen).map_or(0, |c| c.0),
            curve,
            latents: means(&trained.latents),
            adds: means(&trained.adds),
            total: paired(&trained.total, &zeros),
        };
        Ok((found, linear.then_some(gain)))
    }
}

/// What was explained of rows: latent by latent, what each adds to the whole, and that.
#[derive(Default)]
struct Judged {
    latents: Vec<Vec<f64>>,
    adds: Vec<Vec<f64>>,
    total: Vec<f64>,
}

impl Judged {
    fn add(&mut self, more: Judged) {
        for (all, own) in [
            (&mut self.latents, more.latents),
            (&mut self.adds, more.adds),
        ] {
            all.resize(own.len(), vec![]);
            (all.iter_mut().zip(own)).for_each(|(all, own)| all.extend(own));
        }
        self.total.extend(more.total);
    }
}

fn means(values: &[Vec<f64>]) -> Vec<f64> {
    let mean = |values: &Vec<f64>| values.iter().sum::<f64>() / values.len().max(1) as f64;
    values.iter().map(mean).collect()
}
