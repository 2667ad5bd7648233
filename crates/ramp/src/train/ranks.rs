//! What the ranks of a training must agree on: that they train the same, where they go on from, and when to stop.

use super::checkpoint::{Best, State};
use super::error::TrainError;
use super::optimizer::Memory;
use super::problem::Identity;
use super::records::Records;
use super::spec::TrainSpec;
use crate::Result;
use crate::collective::{Collective, broadcast_bytes, gather_numbers};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// What ranks say of their software.
const VERSION: &str = "another version of this software";

/// A number that differs where bytes do.
fn fingerprint(bytes: &[u8]) -> u64 {
    let digest = Sha256::digest(bytes);
    let mut first = [0; 8];
    first.copy_from_slice(&digest[..8]);
    u64::from_le_bytes(first)
}

/// Makes sure that all ranks say the same of some things: each comes with the words for a rank that says something else than rank 0, and the first that
/// differs is the error that all of them get.
///
/// ```
/// use ramp::collective::{Collective, Threads};
/// use ramp::train::same_on_all;
/// std::thread::scope(|scope| {
///     for rank in Threads::group(2) {
///         scope.spawn(move || {
///             let seed = [7, rank.rank() as u8];
///             let said = same_on_all(&rank, &[("another seed", &seed)]);
///             assert!(said.unwrap_err().to_string().starts_with("rank 1 has another seed than rank 0"));
///         });
///     }
/// });
/// ```
pub fn same_on_all(ranks: &dyn Collective, said: &[(&'static str, &[u8])]) -> Result<()> {
    let own: Vec<u64> = said.iter().map(|(_, bytes)| fingerprint(bytes)).collect();
    let all = gather_numbers(ranks, &own)?;
    for (rank, other) in all.chunks_exact(own.len().max(1)).enumerate() {
        if let Some(at) = (0..own.len()).find(|&at| other[at] != all[at]) {
            return Err(TrainError::RanksDiffer {
                rank,
                what: said[at].0,
            }
            .into());
        }
    }
    Ok(())
}

/// Makes sure that all ranks run the same version of some software: what they say to each other is no part of its promises. To be the first that they do.
pub fn same_version(ranks: &dyn Collective, version: &str) -> Result<()> {
    same_on_all(ranks, &[(VERSION, version.as_bytes())])
}

/// Makes sure that all ranks train the same: each says what differs, and all stop together.
pub(super) fn compare(
    ranks: &dyn Collective,
    identity: &Identity,
    (spec, ends_at, measure_start): (&TrainSpec, Option<usize>, bool),
    parameters: &[f32],
) -> Result<()> {
    let text = |value: serde_json::Result<String>| value.map_err(TrainError::Description);
    let settings = text(serde_json::to_string(&(spec, ends_at, measure_start)))?;
    let model = text(serde_json::to_string(&identity.model))?;
    let model = [model.as_bytes(), bytemuck::cast_slice(parameters)].concat();
    let data = [identity.samples as u64, identity.data];
    same_version(ranks, env!("CARGO_PKG_VERSION"))?;
    same_on_all(
        ranks,
        &[
            ("other training settings", settings.as_bytes()),
            // Data decide what models begin as.
            ("other data", bytemuck::cast_slice(&data)),
            ("another model", &model),
        ],
    )
}

/// Makes sure that all ranks still have the same weights: processors that round in other ways would drift apart.
pub(super) fn compare_weights(ranks: &dyn Collective, parameters: &[f32]) -> Result<()> {
    if ranks.ranks() == 1 {
        return Ok(());
    }
    let own = fingerprint(bytemuck::cast_slice(parameters));
    let (most, least) = (ranks.maximum(own)?, !ranks.maximum(!own)?);
    match most == least {
        true => Ok(()),
        false => Err(TrainError::WeightsDiffer.into()),
    }
}

/// Where a training goes on from.
pub(super) struct Beginning {
    /// The weights, where they are not those of the model as it was built.
    pub parameters: Option<Vec<f32>>,
    pub state: State,
    pub records: Records,
}

#[derive(Serialize, Deserialize)]
struct Header {
    iteration: usize,
    since_best: usize,
    best: Option<(f64, usize)>,
    records: Records,
    resumed: bool,
}

impl Beginning {
    /// What rank 0 found, to all. If it could not go on, the others only learn that.
    pub fn share(self, ranks: &dyn Collective) -> Result<Self> {
        let count = self.state.memory.first.len();
        let mut text = vec![];
        let mut numbers: Vec<f32> = vec![];
        if ranks.rank() == 0 {
            let header = Header {
                iteration: self.state.iteration,
                since_best: self.state.since_best,
                best: (self.state.best.as_ref()).map(|b| (b.held_out, b.iteration)),
                resumed: self.parameters.is_some(),
                records: self.records,
            };
            text = serde_json::to_vec(&header).map_err(TrainError::Description)?;
            numbers.extend(self.parameters.iter().flatten());
            numbers.extend(&self.state.memory.first);
            numbers.extend(&self.state.memory.second);
            numbers.extend(self.state.best.iter().flat_map(|b| &b.parameters));
        }
        broadcast_bytes(ranks, &mut text)?;
        let header: Header = serde_json::from_slice(&text).map_err(TrainError::Description)?;
        let arrays = 2 + usize::from(header.resumed) + usize::from(header.best.is_some());
        numbers.resize(arrays * count, 0.0);
        ranks.broadcast(bytemuck::cast_slice_mut(&mut numbers))?;
        let mut arrays = numbers.chunks_exact(count.max(1)).map(<[f32]>::to_vec);
        let mut next = || arrays.next().unwrap_or_default();
        Ok(Beginning {
            parameters: header.resumed.then(&mut next),
            state: State {
                memory: Memory {
                    first: next(),
                    second: next(),
                },
                best: header.best.map(|(held_out, iteration)| Best {
                    parameters: next(),
                    held_out,
                    iteration,
                }),
                iteration: header.iteration,
                since_best: header.since_best,
            },
            records: header.records,
        })
    }
}

/// The outcome of what rank 0 alone has done: its own, or that it failed there. All ranks go on or none.
pub(super) fn together<T>(ranks: &dyn Collective, outcome: Result<T>) -> Result<T> {
    let failed = ranks.maximum(u64::from(outcome.is_err()))?;
    match outcome {
        Ok(_) if failed > 0 => Err(TrainError::RankFailed.into()),
        outcome => outcome,
    }
}
