//! A few latents of a tree, fitted again while everything around them stays as it is.

use crate::Result;
use ramp::data::Dataset;
use ramp::family::Belief;
use ramp::graph::{Change, FactorTree, MessageId, VariableId};
use ramp::infer::SupportSet;
use ramp::model::{Model, ModelError};
use ramp::train::{Control, Decay, Event, TrainError, TrainSpec, Trainer};
use std::collections::{BTreeSet, HashMap};
use std::ops::Range;

/// Rows that a factor model is fitted to from which training goes on, at most.
const FACTOR_ROWS: usize = 1000;

/// How much work a fit of a region is.
#[derive(Clone, Debug)]
pub struct Effort {
    /// How many steps from the latents of a change others are fitted again with them: where a change gives a latent another meaning, its neighbours have to follow.
    pub around: usize,
    /// Whether each fit begins a second time, as the linear factor model of its region, and validation rows choose: from the weights that were there training does not find its way where a change
    /// gives latents other meanings.
    pub anew: bool,
    /// Steps of each fit.
    pub iterations: usize,
    /// Rows that are learned from, at most.
    pub learned: usize,
    /// Rows of a step.
    pub batch: usize,
    /// Rows of a step's mixture.
    pub mixture: usize,
    /// The highest rate.
    pub learning_rate: f64,
    /// Training rows that stand for the mixture when unseen rows are scored.
    pub support: usize,
}

impl Default for Effort {
    fn default() -> Self {
        Effort {
            around: 1,
            anew: true,
            iterations: 100,
            learned: 4000,
            batch: 500,
            mixture: 200,
            learning_rate: 0.03,
            support: 3000,
        }
    }
}

/// A trained model and the rows that changes of its tree are tried on.
pub struct Surroundings<'a> {
    model: &'a Model,
    /// Those learned from, those that choose weights, those that judge, in this order.
    data: Dataset,
    learned: usize,
    chosen: usize,
    judged: usize,
    /// What the message of a latent to another sees, row by row.
    beyond: HashMap<MessageId, Vec<f32>>,
    /// Posterior means of the latents' first coordinates, learned rows only.
    means: Vec<Vec<f64>>,
    /// The masking of training.
    mask: f64,
    effort: Effort,
    seed: u64,
    /// Whether the model is the linear factor model of its tree, so that regions are too.
    linear: bool,
}

/// Whether to go on: asked at every step of every fit.
pub(crate) type Asked<'a> = &'a (dyn Fn() -> bool + Sync);

impl<'a> Surroundings<'a> {
    /// Rows to learn from, rows to choose weights by and rows to judge by, none of them twice.
    pub fn new(
        model: &'a Model,
        data: &Dataset,
        [learned, chosen, judged]: [&[u32]; 3],
        train: &TrainSpec,
        effort: Effort,
    ) -> Result<Self> {
        let learned = crate::total::some(learned, effort.learned);
        let rows: Vec<u32> = [&learned[..], chosen, judged].concat();
        let data = data.select(&rows);
        let tree = model.tree();
        let between: Vec<MessageId> = tree
            .messages()
            .filter(|&m| {
                let mut sources = tree.sources(m);
                sources.next().is_some_and(|v| tree.is_latent(v)) && sources.next().is_none()
            })
            .collect();
        let inputs = model.message_inputs(&data, &between)?;
        let few: Vec<u32> = (0..learned.len() as u32).collect();
        let posterior = model.posterior(&data.select(&few))?;
        let means = posterior
            .latents()
            .iter()
            .map(|latent| latent.means(0))
            .collect();
        Ok(Surroundings {
            model,
            data,
            learned: learned.len(),
            chosen: chosen.len(),
            judged: judged.len(),
            beyond: between.into_iter().zip(inputs).collect(),
            means,
            mask: train.mask,
            effort,
            seed: train.seed,
            linear: false,
        })
    }

    /// For a model that is the linear factor model of its tree: regions are fitted as such too, which takes no training and has none of its noise.
    pub fn linear(mut self, linear: bool) -> Self {
        self.linear = linear;
        self
    }

    pub(super) fn model(&self) -> &Model {
        self.model
    }

    /// The posterior means of a latent's first coordinate over the rows learned from.
    pub(super) fn means_of(&self, latent: VariableId) -> &[f64] {
        let place = self
            .model
            .tree()
            .latents()
            .iter()
            .position(|&l| l == latent);
        &self.means[place.unwrap_or(0)]
    }

    /// What a neighbour of a latent has to say, as numbers of the rows learned from: an observation's, or what a latent believes
    /// from beyond. `NaN` where it is missing.
    pub(super) fn branch(
        &self,
        latent: VariableId,
        neighbour: VariableId,
    ) -> Result<(usize, Vec<f32>)> {
        let (features, mut values) = self.values(self.model.tree(), &[latent], neighbour)?;
        values.truncate(features * self.learned);
        Ok((features, values))
    }

    /// The latents that are fitted again for a change: those that it is between, and those around them.
    pub fn region(&self, change: &Change) -> BTreeSet<VariableId> {
        let tree = self.model.tree();
        let mut region = BTreeSet::from_iter(change.region(tree));
        for _ in 0..self.effort.around {
            let beside = region.iter().flat_map(|&latent| tree.neighbours(latent));
            let latents: Vec<VariableId> = beside.filter(|&v| tree.is_latent(v)).collect();
            region.extend(latents);
        }
        region
    }

    /// How many rows judge.
    pub fn judged(&self) -> usize {
        self.judged
    }

    /// What latents of a region explain of every judging row, in nats: after fitting them again in `tree`, which may be the model's own or
    /// another that differs around them. `latents` are those of `tree` that it has in the region; `None` where the wish to stop
    /// came first.
    pub fn explained(
        &self,
        tree: &FactorTree,
        latents: &[VariableId],
        stopped: Asked<'_>,
    ) -> Result<Option<Vec<f64>>> {
        let (data, mut model) = self.part(tree, latents)?;
        let learned: Vec<u32> = (0..self.learned as u32).collect();
        let mut factors = model.clone();
        // Where it is but a start, few rows do.
        let most = match self.linear {
            true => self.learned,
            false => FACTOR_ROWS,
        };
        let has_factors = (self.linear || self.effort.anew)
            && factors.init_factors(&data, &crate::total::some(&learned, most))?;
        if self.linear && has_factors {
            return self.nats(&factors, &data, self.judging()).map(Some);
        }
        if !self.train(&mut model, &data, stopped)? {
            return Ok(None);
        }
        if has_factors && self.chosen > 0 {
            if !self.train(&mut factors, &data, stopped)? {
                return Ok(None);
            }
            let worth = |model: &Model| -> Result<f64> {
                Ok(self.nats(model, &data, self.choosing())?.iter().sum())
            };
            if worth(&factors)? > worth(&model)? {
                model = factors;
            }
        }
        self.nats(&model, &data, self.judging()).map(Some)
    }

    /// The rows that choose weights.
    fn choosing(&self) -> Range<u32> {
        self.learned as u32..(self.learned + self.chosen) as u32
    }

    /// The rows that judge.
    fn judging(&self) -> Range<u32> {
        let known = (self.learned + self.chosen) as u32;
        known..known + self.judged as u32
    }

    /// What a region explains of some rows, the mean over its roots: what is left of the root's choice is noise of the fit.
    fn nats(&self, model: &Model, data: &Dataset, rows: Range<u32>) -> Result<Vec<f64>> {
        let learned: Vec<u32> = (0..self.learned as u32).collect();
        let support = crate::total::some(&learned, self.effort.support);
        let support = SupportSet::new(model, &data.select(&support), self.learned)?;
        let mut mean = vec![0.0; rows.len()];
        let rows: Vec<u32> = rows.collect();
        let totals = model.totals(&support, &data.select(&rows), model.tree().latents())?;
        for total in &totals {
            let part = 1.0 / totals.len() as f64;
            mean.iter_mut()
                .zip(total.samples())
                .for_each(|(m, t)| *m += part * t);
        }
        Ok(mean)
    }

    /// The latents of a region in `tree` with everything around them as it is, and the model of them with the weights that they have.
    fn part(&self, tree: &FactorTree, latents: &[VariableId]) -> Result<(Dataset, Model)> {
        let own = self.model.tree();
        // The region in the model's own tree: where its latents are by these names, and one that went into another.
        let gone = |&l: &VariableId| tree.find(own.name(l)).is_err();
        let before: Vec<VariableId> = latents
            .iter()
            .filter_map(|&l| own.find(tree.name(l)).ok())
            .chain(own.latents().iter().copied().filter(gone))
            .collect();
        let mut builder = FactorTree::builder();
        for &latent in latents {
            builder = builder.latent(tree.name(latent));
        }
        let mut around: Vec<VariableId> = vec![];
        for &latent in latents {
            for neighbour in tree.neighbours(latent) {
                let inside = latents.contains(&neighbour);
                if !inside {
                    around.push(neighbour);
                    builder = builder.observed(tree.name(neighbour));
                }
                if !inside || latent < neighbour {
                    builder = builder.factor([tree.name(latent), tree.name(neighbour)]);
                }
            }
        }
        let small = builder.build()?;
        let mut data = Dataset::new();
        for &neighbour in &around {
            let name = tree.name(neighbour);
            let (features, values) = self.values(own, &before, own.find(name)?)?;
            data = data.observe(name, features, values)?;
        }
        let mut model = self.build(&small, tree, &data)?;
        self.warm_start(&mut model, &before)?;
        Ok((data, model))
    }

    /// Trains the model of a region on all rows but those that judge; whether it came to an end.
    fn train(&self, model: &mut Model, data: &Dataset, stopped: Asked<'_>) -> Result<bool> {
        let known = self.learned + self.chosen;
        let rows: Vec<u32> = (0..known as u32).collect();
        let spec = TrainSpec {
            iterations: self.effort.iterations,
            batch: Some(self.effort.batch).filter(|&b| b < self.learned),
            mixture: Some(self.effort.mixture).filter(|&m| m < self.learned),
            learning_rate: self.effort.learning_rate,
            warmup: self.effort.iterations / 10,
            decay: Decay::Cosine { to: 0.0 },
            clip: Some(10.0),
            mask: self.mask,
            validation: self.chosen as f64 / known as f64,
            // The last rows are those that choose.
            holdout_last: true,
            evaluate_every: 25,
            seed: self.seed,
            ..TrainSpec::default()
        };
        let fitted = Trainer::new(spec)?
            .observer(|_: &Event<'_>| match stopped() {
                true => Control::Stop,
                false => Control::Continue,
            })
            .fit(model, &data.select(&rows));
        match fitted {
            Ok(_) => Ok(true),
            Err(ramp::Error::Train(TrainError::Interrupted { .. })) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// The numbers of a variable beside a region of the model's tree.
    fn values(
        &self,
        own: &FactorTree,
        region: &[VariableId],
        neighbour: VariableId,
    ) -> Result<(usize, Vec<f32>)> {
        let rows = self.data.rows();
        if own.is_latent(neighbour) {
            let towards = (own.messages())
                .filter(|m| self.beyond.contains_key(m))
                .find(|&m| {
                    region.contains(&own.message_target(m))
                        && own.sources(m).any(|v| v == neighbour)
                });
            // A neighbour of the region in the changed tree was one before: branches move within it.
            let values = towards.map(|m| self.beyond[&m].clone()).unwrap_or_default();
            return Ok((values.len() / rows.max(1), values));
        }
        let observation = self.data.observation(own.name(neighbour))?;
        let features = observation.features();
        let mut values = Vec::with_capacity(features * rows);
        for row in 0..rows {
            match observation.is_present(row) {
                true => values.extend(observation.numbers(row)),
                false => values.extend(std::iter::repeat_n(f32::NAN, features)),
            }
        }
        Ok((features, values))
    }

    /// The model of a region: families and networks are those of the whole.
    fn build(&self, small: &FactorTree, tree: &FactorTree, data: &Dataset) -> Result<Model> {
        let spec = self.model.spec();
        let own = self.model.tree();
        let beliefs: Vec<&Belief> = self.model.beliefs().collect();
        let mut builder = Model::builder(small.clone())
            .inputs(spec.inputs)
            .message_network(spec.message.clone())
            .observation_network(spec.observation.clone())
            .seed(spec.seed);
        for &latent in small.latents() {
            let name = small.name(latent);
            // A new latent is like the one that it was split from: its neighbour in the region.
            let like = own.find(name).or_else(|_| {
                let new = tree.find(name)?;
                let beside = tree.neighbours(new).filter(|&v| tree.is_latent(v));
                let known = beside.filter_map(|v| own.find(tree.name(v)).ok()).next();
                known.map_or_else(|| own.find(name), Ok)
            })?;
            let place = own.latents().iter().position(|&l| l == like).unwrap_or(0);
            builder = builder.belief(name, beliefs[place].clone())?;
            if let Some(prior) = spec.priors.get(own.name(like)) {
                builder = builder.prior(name, prior.clone())?;
            }
        }
        for message in small.messages() {
            let Some((source, key)) = self.origin(small, message) else {
                continue;
            };
            let network = match spec.networks.get(&key) {
                Some(network) => network.clone(),
                None if own.is_latent(source) => spec.message.clone(),
                None => spec.observation.clone(),
            };
            builder = builder.network(small.message_name(message), network);
        }
        Ok(builder.build(data)?)
    }

    /// Of a message from beyond the region: who sends it in the model's own tree, and the key of the network there.
    fn origin(&self, small: &FactorTree, message: MessageId) -> Option<(VariableId, String)> {
        let source = small.sources(message).next()?;
        if small.is_latent(source) {
            return None;
        }
        let own = self.model.tree();
        let sender = own.find(small.name(source)).ok()?;
        let from = self.from(sender, small.name(small.message_target(message)))?;
        Some((sender, self.key(from)))
    }

    /// The message that a variable sends in the model's own tree: to the latent of this name, or to another.
    fn from(&self, sender: VariableId, target: &str) -> Option<MessageId> {
        let own = self.model.tree();
        let sent = || {
            own.messages()
                .filter(|&m| own.sources(m).any(|v| v == sender))
        };
        sent()
            .find(|&m| own.name(own.message_target(m)) == target)
            .or_else(|| sent().next())
    }

    fn key(&self, message: MessageId) -> String {
        let networks = self.model.spec().tying.assign(self.model.tree());
        networks.keys[networks.of_message[message.index()]].clone()
    }

    /// Lets every network begin as it is now, where there is one: those of branches that hang elsewhere too, turned around where their new
    /// latent runs the other way.
    fn warm_start(&self, model: &mut Model, region: &[VariableId]) -> Result<()> {
        let own = self.model.tree();
        let small = model.tree().clone();
        for message in small.messages() {
            let Some(source) = small.sources(message).next() else {
                continue;
            };
            let target = small.name(small.message_target(message));
            let Ok(sender) = own.find(small.name(source)) else {
                continue;
            };
            let sent = |to: &dyn Fn(VariableId) -> bool| {
                own.messages().find(|&m| {
                    let there = own.message_target(m);
                    region.contains(&there) && to(there) && own.sources(m).any(|v| v == sender)
                })
            };
            // A neighbour that it has no more.
            let left = |there: VariableId| {
                let there = small.find(own.name(there));
                !there.is_ok_and(|there| small.neighbours(source).any(|v| v == there))
            };
            let same = |there: VariableId| own.name(there) == target;
            let Some(old) = sent(&same).or_else(|| sent(&left)) else {
                continue;
            };
            let name = small.message_name(message);
            let from = self.model.span(&self.key(old))?;
            let to = model.span(&name)?;
            if from.len() != to.len() {
                continue;
            }
            model.parameters_mut()[to].copy_from_slice(&self.model.parameters()[from]);
            let before = own.message_target(old);
            if let Ok(after) = own.find(target)
                && before != after
                && correlation(self.means_of(before), self.means_of(after)) < 0.0
            {
                turn(model, small.message_target(message), &name)?;
            }
        }
        Ok(())
    }
}

/// Turns messages to a latent around: to a one-dimensional Gaussian, whose sign means nothing.
fn turn(model: &mut Model, target: VariableId, network: &str) -> Result<()> {
    let latents = model.tree().latents().iter();
    let belief = latents
        .zip(model.beliefs())
        .find(|&(&latent, _)| latent == target);
    if belief.is_none_or(|(_, belief)| belief.to_string() != "gaussian(1)") {
        return Ok(());
    }
    match model.flip_output_sign(network) {
        // A network that does not say how it lies begins as it is.
        Ok(()) | Err(ModelError::NoLayout { .. }) => Ok(()),
        Err(error) => Err(ramp::Error::from(error).into()),
    }
}

/// The correlation of two series.
pub(super) fn correlation(a: &[f64], b: &[f64]) -> f64 {
    let n = a.len().max(1) as f64;
    let mean = |v: &[f64]| v.iter().sum::<f64>() / n;
    let (ma, mb) = (mean(a), mean(b));
    let dot = |x: &[f64], mx: f64, y: &[f64], my: f64| -> f64 {
        x.iter().zip(y).map(|(x, y)| (x - mx) * (y - my)).sum()
    };
    dot(a, ma, b, mb) / (dot(a, ma, a, ma) * dot(b, mb, b, mb)).sqrt().max(1e-30)
}

#[cfg(test)]
mod tests;
