//! How a chain begins (`init = "dynamics"`): observations tell the slow components of what they show, and beliefs are handed on
//! with opposite movements forwards and backwards in time.
//!
//! Nothing here knows the system: the start is the same for numbers, vectors and pictures, and for any family. Both halves are
//! needed: without the components a plane may fold before it is learned; without opposite movements forward and backward messages
//! of a reversible system begin alike, and nothing drives them apart (see [`Transition`]).

mod chart;
mod geodesic;
mod isomap;
pub(crate) mod linalg;
mod observed;
mod planes;
mod rates;
mod readout;
mod slow;
mod states;
mod step_distance;
#[cfg(test)]
mod tests;
mod transition;

pub(crate) use geodesic::Geodesic;
use geodesic::Metric;
pub(crate) use observed::Shown;
pub(super) use readout::set_last_layer;
pub(super) use slow::{along, principal};
pub(crate) use states::{StateEstimate, state_estimates};
pub use transition::{DynamicsInit, Transition};

use super::plan::Source;
use super::{Model, ModelError, PretrainingTargets};
use crate::Result;
use crate::data::Gather;
use crate::family::AnyFamily;
use chart::{Chart, State, identity};
use observed::{Observed, Series};
use rand::SeedableRng;
use rand::seq::index::sample;
use rand_chacha::ChaCha8Rng;
use slow::SlowComponents;
use transition::Movement;

/// Steps of sequences that components are found from, and that observation networks are set on, at most.
const STEPS: usize = 4000;
const SET_ON: usize = 2000;
/// Sequences that components are found from, at least.
const SEQUENCES: usize = 8;
/// Random beliefs that message networks are set on.
const BELIEFS: usize = 4000;
/// Penalty of the regressions, per row: weights stay small, so that learning moves on gently.
const PENALTY: f64 = 1e-3;
/// The variance of an estimated state, where the prior's is one: a twentieth of its spread. What moves little from step to step, such as a slow
/// place, tells its velocity only to messages that are this sharp; at 0.1 the velocity of the slower of two oscillations is lost (R² of 0.33 for 0.68).
const ESTIMATED: f64 = 0.002;
/// A stream of random numbers apart from those of weights.
const STREAM: u64 = 1 << 32;
/// Slow components that are found at least: more than most latents have coordinates, to judge a start by.
const COMPONENTS: usize = 8;

/// What some sequences show, found once for all starts that a chain may have.
pub(crate) struct Found {
    observed: Option<Observed>,
    /// After the sequences were chosen.
    rng: ChaCha8Rng,
}

impl Found {
    /// The slow components, where any two steps are whole.
    pub fn components(&self) -> Option<&SlowComponents> {
        self.observed.as_ref().map(|o| &o.found)
    }

    /// Random numbers for what is sought in what was found.
    pub fn rng(&self) -> ChaCha8Rng {
        self.rng.clone()
    }

    /// Maps to up to so many coordinates of the manifold that steps lie on, by every metric.
    pub fn geodesics(&self, dims: usize) -> Vec<Geodesic> {
        let Some(observed) = &self.observed else {
            return vec![];
        };
        let scores = observed.principal_scores();
        [Metric::AsShown, Metric::InSteps]
            .into_iter()
            .filter_map(|metric| {
                let places = &observed.places;
                Geodesic::of(&scores, places, metric, dims, &mut self.rng.clone())
            })
            .collect()
    }
}

impl Model {
    /// Initialises the networks of a chain from some samples of its data, without knowledge of the system: see
    /// [`DynamicsInit`]. Networks that do not say how they lie ([`Network::layout`](crate::network::Network::layout)) stay random.
    ///
    /// ```
    /// use ramp::{data::Dataset, graph::FactorTree, graph::Tying, model::{DynamicsInit, Model}};
    /// // Ten swings of a spring, seen at 20 moments each.
    /// let swings = (0..200).map(|i| ((i / 20) as f32 + 0.3 * (i % 20) as f32).sin()).collect();
    /// let data = Dataset::new().observe_sequence("x", 20, 1, swings)?;
    /// let tree = FactorTree::sequence(20, &["x"])?;
    /// let mut model = Model::builder(tree).families("gaussian(2)")?.tying(Tying::Role).build(&data)?;
    /// model.init_dynamics(&data, &[0, 1, 2, 3, 4, 5, 6, 7], DynamicsInit::twist())?;
    /// # Ok::<(), ramp::Error>(())
    /// ```
    pub fn init_dynamics(
        &mut self,
        data: &dyn Gather,
        samples: &[u32],
        init: DynamicsInit,
    ) -> Result<()> {
        let found = self.find_dynamics(data, samples)?;
        self.init_from(&found, init);
        Ok(())
    }

    /// Finds what [`init_dynamics`](Self::init_dynamics) starts from.
    pub(crate) fn find_dynamics(&self, data: &dyn Gather, samples: &[u32]) -> Result<Found> {
        if !self.tree().is_chain() {
            return Err(ModelError::NoDynamics.into());
        }
        let mut rng = ChaCha8Rng::seed_from_u64(self.spec.seed);
        rng.set_stream(STREAM);
        let Some(node) = self.nodes.first() else {
            return Ok(Found {
                observed: None,
                rng,
            });
        };
        let chart = Chart::new(&node.belief, &node.prior);
        let count = STEPS.div_ceil(self.nodes.len()).max(SEQUENCES);
        let chosen = sample(&mut rng, samples.len(), samples.len().min(count));
        let chosen: Vec<u32> = chosen.iter().map(|i| samples[i]).collect();
        let few = data.gather(&chosen)?;
        let chosen: Vec<u32> = (0..chosen.len() as u32).collect();
        let observed = self.observed(&few, &chosen, chart.components().max(COMPONENTS))?;
        Ok(Found { observed, rng })
    }

    /// Initialises the networks by one start from what was found.
    pub(crate) fn init_from(&mut self, found: &Found, init: DynamicsInit) {
        let Some(node) = self.nodes.first().cloned() else {
            return;
        };
        let mut rng = found.rng.clone();
        let chart = Chart::new(&node.belief, &node.prior);
        let lagged = found.components().map_or(&[][..], |c| &c.lagged);
        let movement = Movement::new(chart.coordinates().0, init, lagged, &mut rng);
        if let Some(observed) = &found.observed {
            let component = |series: &Series, i: usize| observed.part(series, i);
            self.tell(observed, &chart, movement.told, component, &mut rng);
        }
        self.hand_on_all(&chart, &movement, &mut rng);
    }

    /// Initialises the networks from an estimate whose planes were told apart: each ring is twisted in a plane of its own, places drift by their rates,
    /// and observations tell places on circles and lines, broadly. Pretraining then has no plane to turn over.
    pub(crate) fn init_from_estimate(
        &mut self,
        found: &Found,
        geodesic: &Geodesic,
        estimate: &StateEstimate,
    ) {
        let Some(node) = self.nodes.first().cloned() else {
            return;
        };
        let mut rng = found.rng();
        let chart = Chart::new(&node.belief, &node.prior);
        let dims = chart.coordinates().0;
        let movement = Movement::of_layout(dims, estimate.layout, &estimate.paces);
        if let Some(observed) = &found.observed {
            let share = 1.0 / observed.series.len() as f64;
            let scores = observed.principal_scores();
            let place = |_: &Series, i: usize| {
                let shown = estimate.shown_at(&geodesic.at(&scores[i]));
                shown.iter().map(|x| share * x).collect()
            };
            self.tell(observed, &chart, movement.told, place, &mut rng);
        }
        self.hand_on_all(&chart, &movement, &mut rng);
    }

    /// How many coordinates a latent's states can be estimated in: all of it lies on lines, of which there are enough for a place and its rate of change.
    pub(crate) fn state_dims(&self) -> Option<usize> {
        let node = self.nodes.first()?;
        let straight = |part: &AnyFamily| {
            matches!(
                part,
                AnyFamily::Gaussian(_)
                    | AnyFamily::Diagonal(_)
                    | AnyFamily::Beta(_)
                    | AnyFamily::Gamma(_)
            )
        };
        let (lines, _) = Chart::new(&node.belief, &node.prior).coordinates();
        (lines > 1 && node.belief.parts().iter().all(straight)).then_some(lines)
    }

    /// Whether a latent's beliefs can turn in a plane: products of one-dimensional families cannot say what lies askew.
    pub(crate) fn turns(&self) -> bool {
        let parts = self.nodes.first().map(|node| node.belief.parts());
        matches!(parts, Some([AnyFamily::Gaussian(_)]))
    }

    /// Beliefs around estimated states of some samples, for messages to be pretrained on.
    pub(crate) fn pretraining_targets(
        &self,
        shown: &Shown,
        estimate: &StateEstimate,
        samples: usize,
    ) -> PretrainingTargets {
        let node = &self.nodes[0];
        let chart = Chart::new(&node.belief, &node.prior);
        let mut targets = PretrainingTargets::none(self.nodes.len(), node.prior.len(), samples);
        let mut mean = vec![0.0; node.prior.len()];
        for (&(sample, step), point) in shown.places.iter().zip(&estimate.points) {
            let Some(point) = point else { continue };
            let unit = identity(point.len());
            let (sum, _) = chart.message(&State {
                lines: point.clone(),
                covariance: unit.iter().map(|x| ESTIMATED * x).collect(),
                circles: vec![],
                simplices: vec![],
            });
            let eta: Vec<f64> = sum.iter().zip(&node.prior).map(|(a, b)| a + b).collect();
            node.belief.mean(&eta, &mut mean);
            targets.set(step, sample, &mean);
        }
        targets
    }

    /// Whether a network's messages go forwards in time, if they go from belief to belief.
    fn direction(&self, network: usize) -> Option<bool> {
        let stage = self.plan.stages.iter().find(|s| s.network == network)?;
        let message = *stage.messages.first()? as usize;
        match self.plan.sources[message][..] {
            [Source::Belief { latent, .. }] => Some(self.plan.target[message] > latent),
            _ => None,
        }
    }

    /// The message networks begin by handing beliefs on with a movement.
    fn hand_on_all(&mut self, chart: &Chart<'_>, movement: &Movement, rng: &mut ChaCha8Rng) {
        for network in 0..self.networks.len() {
            if let Some(forward) = self.direction(network) {
                self.hand_on(network, forward, chart, movement, rng);
            }
        }
    }

    /// A message network begins by moving random beliefs.
    fn hand_on(
        &mut self,
        network: usize,
        forward: bool,
        chart: &Chart<'_>,
        movement: &Movement,
        rng: &mut ChaCha8Rng,
    ) {
        let node = &self.nodes[0];
        let width = node.belief.input_dim(self.inputs);
        let mut space = vec![0.0; node.prior.len()];
        let (mut inputs, mut targets) = (vec![], vec![]);
        for _ in 0..BELIEFS {
            let state = chart.draw(rng);
            let (sum, _) = chart.message(&state);
            let mut input = vec![0.0; width];
            node.belief
                .inputs(self.inputs, &node.prior, &sum, &mut space, &mut input);
            inputs.extend(input.iter().map(|&x: &f64| x as f32));
            targets.push(chart.message(&movement.moved(&state, forward)).1);
        }
        let write = |i: usize, row: &mut [f32]| row.copy_from_slice(&inputs[i * width..][..width]);
        self.set(network, &write, &targets);
    }

    /// The observation networks begin by telling their part of the first numbers of what a step shows.
    fn tell(
        &mut self,
        observed: &Observed,
        chart: &Chart<'_>,
        told: usize,
        part: impl Fn(&Series, usize) -> Vec<f64>,
        rng: &mut ChaCha8Rng,
    ) {
        let share = 1.0 / observed.series.len() as f64;
        let count = observed.len();
        let kept = sample(rng, count, count.min(SET_ON)).into_vec();
        for series in &observed.series {
            let target = |&i: &usize| chart.shown(&part(series, i), told, share);
            let targets: Vec<Vec<f64>> = kept.iter().map(target).collect();
            let write =
                |i: usize, row: &mut [f32]| row.copy_from_slice(observed.row(series, kept[i]));
            self.set(series.network, &write, &targets);
        }
    }

    /// Sets the last layer of a network, where it says how it lies.
    fn set(
        &mut self,
        network: usize,
        write: &(dyn Fn(usize, &mut [f32]) + Sync),
        targets: &[Vec<f64>],
    ) {
        let slot = &self.networks[network];
        let parameters = &mut self.parameters[slot.span.clone()];
        set_last_layer(&*slot.network, parameters, write, targets, PENALTY);
    }
}
