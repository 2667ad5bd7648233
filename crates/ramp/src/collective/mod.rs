//! How the ranks of one training talk: a few collective calls on bytes, for whatever carries them.
//!
//! A rank is one of several processes that take the same step together, each a part of it. Everything that they must agree on goes
//! through a [`Collective`]: [`Single`] is the process that is alone, [`Threads`] are ranks within one process, and the command
//! `ramp` has one over MPI. What is exchanged is bits, and sums are taken in an order that does not depend on the number
//! of ranks: any number of them gives the bits of one.

mod threads;

pub use threads::Threads;

use bytemuck::Pod;

/// What can go wrong between ranks.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CollectiveError {
    /// A rank ended while others still waited for it.
    #[error(
        "rank {rank} is gone, so the others stopped too; what the last checkpoint holds is whole, and --resume goes on from there"
    )]
    Lost {
        /// The rank that could not be reached.
        rank: usize,
    },
    /// The carrier of messages gave up.
    #[error("the ranks can no longer reach each other: {reason}")]
    Carrier {
        /// What it said.
        reason: String,
    },
}

type Result<T> = std::result::Result<T, CollectiveError>;

/// The calls that all ranks of a training make together, in the same order.
///
/// Buffers are bytes; [`all_gather`] and [`all_to_all`] take numbers, [`broadcast_bytes`] as many bytes as there are. A buffer has one part for each rank, and `ends` says
/// where each part ends, in bytes. Every rank knows the sizes of what it receives.
pub trait Collective: Send + Sync {
    /// Which of the ranks this is, from 0.
    fn rank(&self) -> usize;

    /// How many ranks there are.
    fn ranks(&self) -> usize;

    /// Every rank's part of a buffer: each comes with its own part filled and leaves with all of them.
    fn all_gather(&self, buffer: &mut [u8], ends: &[usize]) -> Result<()>;

    /// Part `r` of what is sent goes to rank `r`; part `r` of what is received comes from rank `r`.
    fn all_to_all(
        &self,
        send: &[u8],
        send_ends: &[usize],
        receive: &mut [u8],
        receive_ends: &[usize],
    ) -> Result<()>;

    /// What rank 0 has, to all.
    fn broadcast(&self, buffer: &mut [u8]) -> Result<()>;

    /// The largest of what the ranks say: how they agree to stop.
    fn maximum(&self, value: u64) -> Result<u64>;

    /// Waits until all ranks are here.
    fn barrier(&self) -> Result<()> {
        self.maximum(0).map(|_| ())
    }
}

/// The one rank of a process that trains alone: nobody to wait for, nothing to send.
///
/// ```
/// use ramp::collective::{Collective, Single};
/// let mut numbers = [1.0_f32, 2.0];
/// ramp::collective::all_gather(&Single, &mut numbers, &[2])?;
/// assert_eq!((Single.rank(), Single.ranks(), numbers), (0, 1, [1.0, 2.0]));
/// # Ok::<(), ramp::collective::CollectiveError>(())
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Single;

impl Collective for Single {
    fn rank(&self) -> usize {
        0
    }

    fn ranks(&self) -> usize {
        1
    }

    fn all_gather(&self, _: &mut [u8], _: &[usize]) -> Result<()> {
        Ok(())
    }

    fn all_to_all(&self, send: &[u8], _: &[usize], receive: &mut [u8], _: &[usize]) -> Result<()> {
        receive.copy_from_slice(send);
        Ok(())
    }

    fn broadcast(&self, _: &mut [u8]) -> Result<()> {
        Ok(())
    }

    fn maximum(&self, value: u64) -> Result<u64> {
        Ok(value)
    }
}

/// Ends of parts in bytes, from those in numbers.
fn in_bytes<T>(ends: &[usize]) -> Vec<usize> {
    ends.iter().map(|end| end * size_of::<T>()).collect()
}

/// [`Collective::all_gather`] of numbers, with ends counted in them.
pub fn all_gather<T: Pod>(ranks: &dyn Collective, buffer: &mut [T], ends: &[usize]) -> Result<()> {
    match ranks.ranks() {
        1 => Ok(()),
        _ => ranks.all_gather(bytemuck::cast_slice_mut(buffer), &in_bytes::<T>(ends)),
    }
}

/// [`Collective::all_to_all`] of numbers, with ends counted in them.
pub fn all_to_all<T: Pod>(
    ranks: &dyn Collective,
    (send, send_ends): (&[T], &[usize]),
    (receive, receive_ends): (&mut [T], &[usize]),
) -> Result<()> {
    ranks.all_to_all(
        bytemuck::cast_slice(send),
        &in_bytes::<T>(send_ends),
        bytemuck::cast_slice_mut(receive),
        &in_bytes::<T>(receive_ends),
    )
}

/// What rank 0 has of bytes, to all, however many there are.
pub fn broadcast_bytes(ranks: &dyn Collective, bytes: &mut Vec<u8>) -> Result<()> {
    if ranks.ranks() == 1 {
        return Ok(());
    }
    let length = match ranks.rank() {
        0 => bytes.len() as u64,
        _ => 0,
    };
    bytes.resize(ranks.maximum(length)? as usize, 0);
    ranks.broadcast(bytes)
}

/// The most bytes that one call carries: carriers count them in 31 bits, and what is on its way takes memory.
const CARRIED: usize = 1 << 28;

/// Bytes of every rank, however many each has: to all of them, or only to one, and then the others get nothing. In the order of ranks.
pub fn gather_bytes(ranks: &dyn Collective, own: &[u8], to: Option<usize>) -> Result<Vec<Vec<u8>>> {
    let (count, me) = (ranks.ranks(), ranks.rank());
    if count == 1 {
        return Ok(vec![own.to_vec()]);
    }
    let ends: Vec<usize> = (1..=count).collect();
    let mut lengths = vec![0_u64; count];
    lengths[me] = own.len() as u64;
    all_gather(ranks, &mut lengths, &ends)?;
    let takes = to.is_none_or(|to| to == me);
    let room = |&length: &u64| Vec::with_capacity(if takes { length as usize } else { 0 });
    let mut all: Vec<Vec<u8>> = lengths.iter().map(room).collect();
    let piece = CARRIED / count;
    let longest = lengths.iter().copied().max().unwrap_or(0) as usize;
    for start in (0..longest).step_by(piece) {
        let of = |length: u64| (length as usize).saturating_sub(start).min(piece);
        let ends = ends_of(lengths.iter().map(|&length| of(length)));
        let sent = match of(own.len() as u64) {
            0 => &[][..],
            length => &own[start..start + length],
        };
        let mut buffer = vec![0; if takes { ends[count - 1] } else { 0 }];
        match to {
            None => {
                buffer[span(&ends, me)].copy_from_slice(sent);
                ranks.all_gather(&mut buffer, &ends)?;
            }
            Some(to) => {
                let send_ends: Vec<usize> = (0..count)
                    .map(|rank| if rank < to { 0 } else { sent.len() })
                    .collect();
                let ends = if takes { ends.clone() } else { vec![0; count] };
                ranks.all_to_all(sent, &send_ends, &mut buffer, &ends)?;
            }
        }
        if takes {
            for (rank, all) in all.iter_mut().enumerate() {
                all.extend_from_slice(&buffer[span(&ends, rank)]);
            }
        }
    }
    Ok(all)
}

/// A few numbers of every rank, the same many each, to all: rank after rank.
pub fn gather_numbers(ranks: &dyn Collective, own: &[u64]) -> Result<Vec<u64>> {
    let mut all = vec![0; own.len() * ranks.ranks()];
    all[ranks.rank() * own.len()..][..own.len()].copy_from_slice(own);
    let ends: Vec<usize> = (1..=ranks.ranks()).map(|r| r * own.len()).collect();
    all_gather(ranks, &mut all, &ends)?;
    Ok(all)
}

/// The part of some things in a row that a rank takes: as many as any other, or one more.
pub fn part(things: usize, rank: usize, ranks: usize) -> std::ops::Range<usize> {
    things * rank / ranks..things * (rank + 1) / ranks
}

/// Where parts of such sizes end, one behind the other.
pub fn ends_of(sizes: impl IntoIterator<Item = usize>) -> Vec<usize> {
    let mut end = 0;
    let each = sizes.into_iter().map(|size| {
        end += size;
        end
    });
    each.collect()
}

/// Where part `which` lies.
pub fn span(ends: &[usize], which: usize) -> std::ops::Range<usize> {
    let start = which.checked_sub(1).map_or(0, |before| ends[before]);
    start..ends[which]
}
