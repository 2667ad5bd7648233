//! What the network of a message sees: enough to learn that network again without all that lies behind it.

use super::elementwise::{Incoming, NetworkInputs};
use super::evaluate::Workspace;
use super::plan::{Source, Terms};
use super::{Model, ModelError};
use crate::Result;
use crate::data::Dataset;
use crate::graph::MessageId;
use crate::kernel::real::Element;

/// Samples that go through together.
const ROWS: usize = 4096;

impl Model {
    /// What the networks of some messages from latents see of each sample: the belief of the latent that sends, from everything but
    /// where it sends to. `[sample, features]` for each message; `NaN` where nothing lies behind it.
    ///
    /// With these as observations, what lies behind a latent can be left out of a model and stays as it is.
    ///
    /// ```
    /// use ramp::{data::Dataset, graph::FactorTree, model::Model};
    ///
    /// let tree = FactorTree::from_newick("((x1,x2)a,x3,x4)b;")?;
    /// let message = tree.find_message("a>b")?;
    /// let data = (1..=4).try_fold(Dataset::new(), |data, i| data.observe(format!("x{i}"), 1, vec![0.5, f32::NAN]))?;
    /// let model = Model::builder(tree).build(&data)?;
    /// let seen = &model.message_inputs(&data, &[message])?[0];
    /// assert!(seen[0].is_finite() && seen[seen.len() - 1].is_nan());
    /// # Ok::<(), ramp::Error>(())
    /// ```
    pub fn message_inputs(&self, data: &Dataset, messages: &[MessageId]) -> Result<Vec<Vec<f32>>> {
        let bound = self.bind(data)?;
        let mut space = Workspace::default();
        let mut all: Vec<Vec<f32>> = vec![vec![]; messages.len()];
        for first in (0..bound.rows()).step_by(ROWS) {
            let last = (first + ROWS).min(bound.rows());
            let samples: Vec<u32> = (first as u32..last as u32).collect();
            let batch = self.batch(&bound, &samples, None);
            let (planes, presence) = self.messages_of(&batch, &mut space);
            let (rows, stride) = (planes.rows(), planes.stride());
            for (&message, seen) in messages.iter().zip(&mut all) {
                let [Source::Belief { latent, terms }] = &self.plan.sources[message.index()][..]
                else {
                    return Err(ModelError::NotFromALatent {
                        message: self.tree.message_name(message),
                    }
                    .into());
                };
                let node = &self.nodes[*latent];
                let parts: Vec<usize> = match terms {
                    Terms::Sum(parts) => parts.iter().map(|&m| m as usize).collect(),
                    Terms::TotalBut(own) => {
                        let all = node.messages.clone();
                        all.filter(|&m| m != *own as usize).collect()
                    }
                };
                let (which, starts): (Vec<u32>, Vec<usize>) = (0..parts.len())
                    .map(|i| (i as u32, i * node.belief.dim()))
                    .unzip();
                let incoming: Vec<f32> = (parts.iter())
                    .flat_map(|&m| planes.message(m).iter().copied())
                    .collect();
                let width = node.belief.input_dim(self.inputs);
                let mut features = vec![0.0; width * stride];
                f32::dispatch(NetworkInputs {
                    node,
                    inputs: self.inputs,
                    incoming: Incoming::Sum {
                        which: &which,
                        starts: &starts,
                        messages: &incoming,
                    },
                    stride,
                    features: &mut features,
                    features_stride: stride,
                });
                let mut there = vec![false; rows];
                for &m in &parts {
                    match presence.rows(m) {
                        None => there.fill(true),
                        Some(list) => list.iter().for_each(|&r| there[r as usize] = true),
                    }
                }
                seen.reserve(width * rows);
                for (r, &there) in there.iter().enumerate() {
                    let value = |d: usize| match there {
                        true => features[d * stride + r],
                        false => f32::NAN,
                    };
                    seen.extend((0..width).map(value));
                }
            }
        }
        Ok(all)
    }
}
