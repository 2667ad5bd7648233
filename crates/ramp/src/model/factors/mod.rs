//! How a tree of Gaussian latents begins (`init = "factors"`): as the linear factor model of its data.
//!
//! A linear Gaussian model of the same tree is fitted by expectation and maximisation (see [`linear`]); its exact messages are what the networks are
//! taught to say (see [`teach`]). Learning then goes on from there, so that a small sample, which cannot tell more than a factor model, ends about where one does, and early
//! stopping has it to fall back on; and no latent begins in a poor optimum.

mod linear;
mod order;
mod teach;
#[cfg(test)]
mod tests;

use super::Model;
use super::dynamics::{along, principal};
use super::linalg::cholesky;
use super::plan::{Source, Terms};
use crate::Result;
use crate::data::{Dataset, Gather};
use crate::family::AnyFamily;
use crate::network::NetworkSpec;
use linear::{LinearTree, Scores};
use order::places;
use rand::SeedableRng;
use rand::{RngExt, seq::index::sample};
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;

/// Rows that the factor model is fitted to, and that networks are taught on, at most.
const ROWS: usize = 3000;
const TAUGHT: usize = 1500;
/// Fewer rows say nothing of factors.
const FEWEST: usize = 20;
/// Coordinates of all latents together, and numbers of all observations, beyond which it would take long.
const MOST_COORDINATES: usize = 150;
const MOST_FEATURES: usize = 4096;
/// Inputs of a last layer beyond which it would take long.
const MOST_UNITS: usize = 3000;
/// The precision that every message says along every direction, so that no network begins where its gradient vanishes.
const LEAST_PRECISION: f64 = 1e-3;
/// The chance that an observation is left out where message networks are taught: they must know less sure beliefs too.
const LEFT_OUT: [f64; 3] = [0.0, 0.15, 0.5];
/// A stream of random numbers apart from those of weights.
const STREAM: u64 = 2 << 32;

/// How an observation's numbers become scores.
struct Projection {
    observation: usize,
    network: usize,
    mean: Vec<f64>,
    directions: Vec<Vec<f64>>,
}

impl Model {
    /// Whether [`init_factors`](Self::init_factors) suits this model: a tree of Gaussian latents with standard normal priors, one network for every message, not too
    /// large.
    pub fn has_factors(&self) -> bool {
        let gaussian = self.nodes.iter().all(|node| {
            let one = matches!(node.belief.parts(), [AnyFamily::Gaussian(_)]);
            one && node.prior == node.belief.prior()
        });
        let coordinates: usize = self.nodes.iter().map(|n| n.belief.freedom()).sum();
        let units = self
            .networks
            .iter()
            .filter_map(|slot| slot.network.layout());
        gaussian
            && self.tree.time_axis().is_none()
            && self.tree.is_pairwise()
            && self.networks.len() == self.plan.target.len()
            && coordinates <= MOST_COORDINATES
            && self.features.iter().sum::<usize>() <= MOST_FEATURES
            && units.map(|l| l.last.inputs()).all(|u| u <= MOST_UNITS)
    }

    /// Initialises the networks from some samples of the data, so that all messages are about those of a linear factor model of the same tree. Returns whether that
    /// was possible: it is not where latents are not Gaussian ([`has_factors`](Self::has_factors)), or samples are too few; nothing is changed then.
    ///
    /// ```
    /// use ramp::{data::Dataset, graph::FactorTree, model::Model};
    /// // Three items that go along with one another.
    /// let item = |k: u32| (0..90).map(|i| (i as f32 * 0.37).sin() + 0.3 * ((i * (3 * k + 1)) as f32).cos()).collect();
    /// let data = (1..=3).try_fold(Dataset::new(), |data, k| data.observe(format!("x{k}"), 1, item(k)))?;
    /// let mut model = Model::builder(FactorTree::star(3)?).build(&data)?;
    /// assert!(model.init_factors(&data, &(0..90).collect::<Vec<u32>>())?);
    /// # Ok::<(), ramp::Error>(())
    /// ```
    pub fn init_factors(&mut self, data: &dyn Gather, samples: &[u32]) -> Result<bool> {
        if !self.has_factors() || samples.len() < FEWEST {
            return Ok(false);
        }
        let mut rng = ChaCha8Rng::seed_from_u64(self.spec.seed);
        rng.set_stream(STREAM);
        let mut chosen = sample(&mut rng, samples.len(), samples.len().min(ROWS)).into_vec();
        chosen.sort_unstable();
        let chosen: Vec<u32> = chosen.into_iter().map(|i| samples[i]).collect();
        let few = data.gather(&chosen)?;
        let chosen: Vec<u32> = (0..chosen.len() as u32).collect();
        let (projections, scores) = self.scores(&few, &chosen)?;
        let dims: Vec<usize> = self.nodes.iter().map(|n| n.belief.freedom()).collect();
        if scores.len() != self.features.len() {
            return Ok(false);
        }
        let Some(mut tree) = LinearTree::fit(&dims, &self.links(), &scores) else {
            return Ok(false);
        };
        tree.put_order_first(&scores);
        self.teach_observations(&few, &chosen, &tree, &projections);
        self.teach_messages(&tree, &scores, &mut rng);
        Ok(true)
    }

    /// Pairs of neighbouring latents, each after the one that leads to it.
    fn links(&self) -> Vec<(usize, usize)> {
        let mut near: Vec<Vec<usize>> = vec![vec![]; self.nodes.len()];
        for (m, sources) in self.plan.sources.iter().enumerate() {
            if let [Source::Belief { latent, .. }] = &sources[..] {
                near[*latent].push(self.plan.target[m]);
            }
        }
        let mut seen = vec![false; near.len()];
        let (mut links, mut open) = (vec![], vec![0]);
        seen[0] = true;
        while let Some(k) = open.pop() {
            for &j in &near[k] {
                if !std::mem::replace(&mut seen[j], true) {
                    links.push((k, j));
                    open.push(j);
                }
            }
        }
        links
    }

    /// The scores of all observations in some samples: numbers as they are, ordered levels by their place, and principal components of what is wider.
    fn scores(&self, data: &Dataset, samples: &[u32]) -> Result<(Vec<Projection>, Vec<Scores>)> {
        let bound = self.bind(data)?;
        let (mut projections, mut all) = (vec![], vec![]);
        for (m, sources) in self.plan.sources.iter().enumerate() {
            let [
                Source::Observation {
                    index, features, ..
                },
            ] = &sources[..]
            else {
                continue;
            };
            let Some(stage) = self
                .plan
                .stages
                .iter()
                .find(|s| s.messages.contains(&(m as u32)))
            else {
                continue;
            };
            let (observation, width) = (bound.observation(*index), *features);
            let mut rows = vec![0.0; samples.len() * width];
            let present: Vec<bool> = samples
                .iter()
                .map(|&n| observation.is_present(n as usize))
                .collect();
            for (row, &n) in rows.chunks_exact_mut(width).zip(samples) {
                observation.write(n as usize, row, 1);
            }
            let known: Vec<f32> = (rows.chunks_exact(width).zip(&present))
                .filter(|(_, present)| **present)
                .flat_map(|(row, _)| row.iter().copied())
                .collect();
            let count = known.len() / width;
            if count < FEWEST.min(samples.len()) / 2 {
                continue;
            }
            let mut mean = vec![0.0; width];
            for row in known.chunks_exact(width) {
                (mean.iter_mut().zip(row)).for_each(|(m, &x)| *m += f64::from(x) / count as f64);
            }
            let key = &self.networks[stage.network].key;
            let ordered = matches!(self.spec.networks.get(key), Some(NetworkSpec::Monotone(_)));
            let target = self.plan.target[m];
            let directions = match width {
                1 => vec![vec![1.0]],
                _ if ordered => places(&known, width, self.nodes[target].belief.freedom()),
                _ => principal(&known, width, &mean, self.spec.seed),
            };
            let spread = |d: &Vec<f64>| {
                let squares = known
                    .chunks_exact(width)
                    .map(|row| along(row, &mean, d).powi(2));
                (squares.sum::<f64>() / count as f64).sqrt()
            };
            let directions: Vec<Vec<f64>> = directions
                .into_iter()
                .filter_map(|mut d| {
                    let sd = spread(&d);
                    d.iter_mut().for_each(|x| *x /= sd);
                    (sd > 1e-9 && sd.is_finite()).then_some(d)
                })
                .collect();
            if directions.is_empty() {
                continue;
            }
            // A direction of unit variance is the longer, the less there is of it.
            let sizes: Vec<f64> = directions
                .iter()
                .map(|d| 1.0 / d.iter().map(|x| x * x).sum::<f64>())
                .collect();
            let whole: f64 = sizes.iter().sum();
            let values = rows
                .par_chunks_exact(width)
                .flat_map_iter(|row| {
                    directions
                        .iter()
                        .map(|d| along(row, &mean, d))
                        .collect::<Vec<_>>()
                })
                .collect();
            all.push(Scores {
                latent: target,
                ordered,
                width: directions.len(),
                sizes: sizes.iter().map(|s| s / whole).collect(),
                values,
                present,
            });
            projections.push(Projection {
                observation: *index,
                network: stage.network,
                mean,
                directions,
            });
        }
        Ok((projections, all))
    }

    /// Observation networks begin by saying what the factor model's do.
    fn teach_observations(
        &mut self,
        data: &Dataset,
        samples: &[u32],
        tree: &LinearTree,
        projections: &[Projection],
    ) {
        let Ok(bound) = self.bind(data) else { return };
        let taught: Vec<(usize, Vec<f32>)> = projections
            .par_iter()
            .zip(&tree.lines)
            .map(|(projection, line)| {
                let observation = bound.observation(projection.observation);
                let width = projection.mean.len();
                let rows = samples
                    .iter()
                    .filter(|&&n| observation.is_present(n as usize))
                    .take(TAUGHT);
                let (by_noise, precision) = tree.message(line);
                let d = tree.dims[line.latent];
                let (mut inputs, mut targets) = (vec![], vec![]);
                for &n in rows {
                    let mut row = vec![0.0; width];
                    observation.write(n as usize, &mut row, 1);
                    let mut h = vec![0.0; d];
                    for (direction, w) in projection.directions.iter().zip(by_noise.chunks_exact(d))
                    {
                        let y = along(&row, &projection.mean, direction);
                        h.iter_mut().zip(w).for_each(|(h, w)| *h += w * y);
                    }
                    inputs.extend(row);
                    targets.push(raw(&h, &precision));
                }
                let slot = &self.networks[projection.network];
                let mut parameters = self.parameters[slot.span.clone()].to_vec();
                teach::teach(&*slot.network, &mut parameters, &inputs, &targets);
                (projection.network, parameters)
            })
            .collect();
        self.put(taught);
    }

    /// Message networks begin by handing on beliefs as the factor model does.
    fn teach_messages(&mut self, tree: &LinearTree, scores: &[Scores], rng: &mut ChaCha8Rng) {
        let told: Vec<(Vec<f64>, Vec<f64>)> = tree.lines.iter().map(|l| tree.message(l)).collect();
        // Which scores an observation's message is made of.
        let mut order = 0;
        let line_of: Vec<Option<usize>> = (self.plan.sources.iter())
            .map(|sources| {
                let [Source::Observation { .. }] = sources[..] else {
                    return None;
                };
                order += 1;
                Some(order - 1)
            })
            .collect();
        let messages = self.plan.sources.len();
        let mut seen: Vec<(Vec<f32>, Vec<Vec<f64>>)> = vec![(vec![], vec![]); messages];
        let rows = scores.first().map_or(0, |s| s.present.len());
        let times = TAUGHT.div_ceil(rows.max(1)).max(1);
        for draw in 0..(times * rows).min(TAUGHT) {
            let n = draw % rows;
            let left_out = LEFT_OUT[draw % LEFT_OUT.len()];
            let mut said: Vec<Option<(Vec<f64>, Vec<f64>)>> = vec![None; messages];
            for stage in &self.plan.stages {
                for &m in &stage.messages {
                    let m = m as usize;
                    said[m] = match (&self.plan.sources[m][..], line_of[m]) {
                        (_, Some(line)) => {
                            let there = scores[line].present[n] && rng.random::<f64>() >= left_out;
                            there.then(|| {
                                let d = tree.dims[tree.lines[line].latent];
                                let mut h = vec![0.0; d];
                                let own = &scores[line].values[n * scores[line].width..];
                                for (w, y) in told[line].0.chunks_exact(d).zip(own) {
                                    h.iter_mut().zip(w).for_each(|(h, w)| *h += w * y);
                                }
                                (h, told[line].1.clone())
                            })
                        }
                        ([Source::Belief { latent, terms }], None) => {
                            let node = &self.nodes[*latent];
                            let parts: Vec<usize> = match terms {
                                Terms::Sum(parts) => parts.iter().map(|&m| m as usize).collect(),
                                Terms::TotalBut(own) => {
                                    let all = node.messages.clone();
                                    all.filter(|&m| m != *own as usize).collect()
                                }
                            };
                            let d = tree.dims[*latent];
                            let (mut h, mut p, mut any) = (vec![0.0; d], vec![0.0; d * d], false);
                            for (own_h, own_p) in parts.iter().filter_map(|&i| said[i].as_ref()) {
                                any = true;
                                h.iter_mut().zip(own_h).for_each(|(a, b)| *a += b);
                                p.iter_mut().zip(own_p).for_each(|(a, b)| *a += b);
                            }
                            let target = self.plan.target[m];
                            let handed = tree.hand_on(*latent, target, &h, &p).filter(|_| any);
                            if let Some((h_on, p_on)) = &handed {
                                let mut sum = h.clone();
                                sum.extend(packed(d, &p));
                                let mut space = vec![0.0; node.prior.len()];
                                let mut input = vec![0.0; node.belief.input_dim(self.inputs)];
                                node.belief.inputs(
                                    self.inputs,
                                    &node.prior,
                                    &sum,
                                    &mut space,
                                    &mut input,
                                );
                                seen[m].0.extend(input.iter().map(|&x: &f64| x as f32));
                                seen[m].1.push(raw(h_on, p_on));
                            }
                            handed
                        }
                        _ => None,
                    };
                }
            }
        }
        let network_of = |m: usize| {
            let own = |s: &&super::plan::Stage| s.messages.contains(&(m as u32));
            self.plan.stages.iter().find(own).map(|s| s.network)
        };
        let taught: Vec<(usize, Vec<f32>)> = seen
            .par_iter()
            .enumerate()
            .filter(|(_, (_, targets))| targets.len() >= FEWEST)
            .filter_map(|(m, (inputs, targets))| {
                let network = network_of(m)?;
                let slot = &self.networks[network];
                let mut parameters = self.parameters[slot.span.clone()].to_vec();
                teach::teach(&*slot.network, &mut parameters, inputs, targets);
                Some((network, parameters))
            })
            .collect();
        self.put(taught);
    }

    fn put(&mut self, taught: Vec<(usize, Vec<f32>)>) {
        for (network, parameters) in taught {
            self.parameters[self.networks[network].span.clone()].copy_from_slice(&parameters);
        }
    }
}

/// The lower triangle of a symmetric matrix, row by row.
fn packed(d: usize, p: &[f64]) -> Vec<f64> {
    (0..d)
        .flat_map(|i| (0..=i).map(move |j| p[i * d + j]))
        .collect()
}

/// The raw outputs that make this message: `h`, then the factor of the precision.
fn raw(h: &[f64], p: &[f64]) -> Vec<f64> {
    let d = h.len();
    let mut more = p.to_vec();
    (0..d).for_each(|i| more[i * d + i] += LEAST_PRECISION);
    let factor = cholesky(d, &more).unwrap_or_else(|| {
        // Rounding made it indefinite; its diagonal will do.
        let root = |k: usize| more[k].max(LEAST_PRECISION).sqrt();
        (0..d * d)
            .map(|k| if k % (d + 1) == 0 { root(k) } else { 0.0 })
            .collect()
    });
    let mut raw = h.to_vec();
    raw.extend(packed(d, &factor));
    raw
}
