//! How a chain begins (`init = "dynamics"`): observations tell the slow components of what they show, and beliefs are handed on
//! with opposite twists forwards and backwards in time.
//!
//! Nothing here knows the system: the start is the same for numbers, vectors and pictures, and for any family. Both halves are
//! needed: without the components a plane may fold before it is learned, without the twists forward and backward messages of a
//! reversible system begin alike, and nothing drives them apart (see [`twist`]).

mod linalg;
mod readout;
mod slow;
mod twist;

pub use twist::TwistSpec;

use super::plan::Source;
use super::{Bound, Model};
use crate::data::Dataset;
use crate::{Error, Result};
use rand::SeedableRng;
use rand::seq::index::sample;
use rand_chacha::ChaCha8Rng;
use readout::set_last_layer;
use slow::{SlowComponents, along};
use twist::Twist;

/// Steps of sequences that components are found from, and that observation networks are set on, at most.
const ROWS: usize = 4000;
const SET_ON: usize = 2000;
/// Random beliefs that message networks are set on.
const BELIEFS: usize = 4000;
/// Penalty of the regressions, per row: weights stay small, so that learning moves on gently.
const PENALTY: f64 = 1e-3;

impl Model {
    /// Initialises the networks of a chain from some samples of its data: the `dynamics` start.
    pub fn init_dynamics(
        &mut self,
        data: &Dataset,
        samples: &[u32],
        spec: TwistSpec,
    ) -> Result<()> {
        if !self.tree().is_chain() {
            return Err(Error::Invalid(
                "the `dynamics` initialisation is for chains; this tree is none".into(),
            ));
        }
        let bound = self.bind(data)?;
        let mut rng = ChaCha8Rng::seed_from_u64(self.spec.seed);
        rng.set_stream(1 << 32);
        let nodes = self.nodes.clone();
        let Some(node) = nodes.first() else {
            return Ok(());
        };
        let mut twist = Twist::new(&node.belief, &node.prior, spec, &mut rng);
        self.show_components(&bound, samples, &mut twist, &mut rng);
        for network in 0..self.networks.len() {
            if let Some(forward) = self.direction(network) {
                self.hand_on(network, forward, &twist, &mut rng);
            }
        }
        Ok(())
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

    /// A message network begins as a twist of random beliefs.
    fn hand_on(&mut self, network: usize, forward: bool, twist: &Twist<'_>, rng: &mut ChaCha8Rng) {
        let node = self.nodes[0].clone();
        let width = node.belief.input_dim(self.inputs);
        let mut space = vec![0.0; node.prior.len()];
        let (mut inputs, mut targets) = (vec![], vec![]);
        for _ in 0..BELIEFS {
            let state = twist.draw(rng);
            let (sum, _) = twist.message(&state);
            let mut input = vec![0.0; width];
            node.belief
                .inputs(self.inputs, &node.prior, &sum, &mut space, &mut input);
            inputs.extend(input.iter().map(|&x| x as f32));
            targets.push(twist.message(&twist.moved(&state, forward)).1);
        }
        let write = |i: usize, row: &mut [f32]| row.copy_from_slice(&inputs[i * width..][..width]);
        let span = self.networks[network].span.clone();
        let parameters = &mut self.parameters[span];
        set_last_layer(
            &*self.networks[network].network,
            parameters,
            &write,
            &targets,
            PENALTY,
        );
    }

    /// The observation networks begin by telling slow components of all that a step shows.
    fn show_components(
        &mut self,
        bound: &Bound<'_>,
        samples: &[u32],
        twist: &mut Twist<'_>,
        rng: &mut ChaCha8Rng,
    ) {
        // Which observations each network recognises, and at which step.
        let mut seen: Vec<(usize, Vec<(usize, usize)>)> = vec![];
        for stage in &self.plan.stages {
            for &m in &stage.messages {
                let [Source::Observation { index, .. }] = self.plan.sources[m as usize][..] else {
                    continue;
                };
                let at = (self.plan.target[m as usize], index);
                match seen
                    .iter_mut()
                    .find(|(network, _)| *network == stage.network)
                {
                    Some((_, places)) => places.push(at),
                    None => seen.push((stage.network, vec![at])),
                }
            }
        }
        let steps = self.nodes.len();
        // Where each network's observation of a step is; chains have each series once a step.
        let series: Vec<(usize, Vec<Option<usize>>)> = seen
            .iter()
            .map(|(network, places)| {
                let mut of_step = vec![None; steps];
                places
                    .iter()
                    .for_each(|&(step, index)| of_step[step] = Some(index));
                (*network, of_step)
            })
            .collect();
        let widths: Vec<usize> = series
            .iter()
            .map(|(network, _)| self.networks[*network].network.inputs())
            .collect();
        let width: usize = widths.iter().sum();
        if width == 0 {
            return;
        }
        let chosen = sample(
            rng,
            samples.len(),
            samples.len().min(ROWS.div_ceil(steps).max(8)),
        );
        let complete = |row: u32, step: usize| {
            let length = bound.lengths.map_or(steps, |l| l[row as usize] as usize);
            step < length
                && series.iter().all(|(_, of)| {
                    of[step].is_some_and(|i| bound.observations[i].is_present(row as usize))
                })
        };
        let (mut rows, mut next) = (vec![], vec![]);
        for at in chosen.iter() {
            let row = samples[at];
            let mut before: Option<usize> = None;
            for step in 0..steps {
                if !complete(row, step) {
                    before = None;
                    continue;
                }
                let here = next.len();
                if let Some(before) = before {
                    next[before] = Some(here as u32);
                }
                next.push(None);
                before = Some(here);
                let start = rows.len();
                rows.resize(start + width, 0.0);
                let mut to = start;
                for ((_, of), w) in series.iter().zip(&widths) {
                    if let Some(index) = of[step] {
                        bound.observations[index].write(row as usize, &mut rows[to..to + w], 1);
                    }
                    to += w;
                }
            }
        }
        if next.len() < 2 {
            return;
        }
        let found = SlowComponents::of(&rows, width, &next, twist.components(), self.spec.seed);
        if let Ok(told) = std::env::var("TOLD") {
            let scale: f64 = std::env::var("DRIFT").map_or(1.0, |d| d.parse().unwrap());
            let speeds: Vec<f64> = found
                .lagged
                .iter()
                .map(|r| scale * (2.0 * (1.0 - r)).max(0.0).sqrt())
                .collect();
            eprintln!("speeds {speeds:?}");
            twist.drift(told.parse().unwrap(), &speeds);
        }
        let share = 1.0 / series.len() as f64;
        let kept = sample(rng, next.len(), next.len().min(SET_ON)).into_vec();
        let mut start = 0;
        for ((network, _), &w) in series.iter().zip(&widths) {
            let own = start..start + w;
            start += w;
            let part = |i: usize| &rows[i * width + own.start..i * width + own.end];
            let targets: Vec<Vec<f64>> = kept
                .iter()
                .map(|&i| {
                    let tell =
                        |c: &Vec<f64>| along(part(i), &found.mean[own.clone()], &c[own.clone()]);
                    let components: Vec<f64> = found.weights.iter().map(tell).collect();
                    twist.shown(&components, share)
                })
                .collect();
            let write = |i: usize, row: &mut [f32]| row.copy_from_slice(part(kept[i]));
            let span = self.networks[*network].span.clone();
            let parameters = &mut self.parameters[span];
            set_last_layer(
                &*self.networks[*network].network,
                parameters,
                &write,
                &targets,
                PENALTY,
            );
        }
    }
}
