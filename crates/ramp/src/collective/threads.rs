//! Ranks within one process, each on a thread of its own: for tests, and to see what many ranks do without a cluster.

use super::{Collective, CollectiveError, Result, span};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, PoisonError};

/// One of several ranks within a process. When one is dropped, the others learn of it at their next call.
///
/// ```
/// use ramp::collective::{Collective, Threads};
/// std::thread::scope(|scope| {
///     for rank in Threads::group(3) {
///         scope.spawn(move || assert_eq!(rank.maximum(rank.rank() as u64), Ok(2)));
///     }
/// });
/// ```
pub struct Threads {
    rank: usize,
    to: Vec<Sender<Vec<u8>>>,
    // A receiver is not `Sync`; only one thread at a time makes a rank's calls.
    from: Vec<Mutex<Receiver<Vec<u8>>>>,
}

impl Threads {
    /// So many ranks that know each other.
    pub fn group(ranks: usize) -> Vec<Threads> {
        let mut to: Vec<Vec<_>> = (0..ranks).map(|_| vec![]).collect();
        let mut from: Vec<Vec<_>> = (0..ranks).map(|_| vec![]).collect();
        for sender in &mut to {
            for receivers in &mut from {
                let (send, receive) = channel();
                sender.push(send);
                receivers.push(Mutex::new(receive));
            }
        }
        let both = to.into_iter().zip(from).enumerate();
        both.map(|(rank, (to, from))| Threads { rank, to, from })
            .collect()
    }

    fn send(&self, to: usize, bytes: &[u8]) -> Result<()> {
        self.to[to]
            .send(bytes.to_vec())
            .map_err(|_| CollectiveError::Lost { rank: to })
    }

    fn receive(&self, from: usize) -> Result<Vec<u8>> {
        let receiver = self.from[from]
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        receiver
            .recv()
            .map_err(|_| CollectiveError::Lost { rank: from })
    }

    fn others(&self) -> impl Iterator<Item = usize> + use<> {
        let own = self.rank;
        (0..self.to.len()).filter(move |&rank| rank != own)
    }
}

impl Collective for Threads {
    fn rank(&self) -> usize {
        self.rank
    }

    fn ranks(&self) -> usize {
        self.to.len()
    }

    fn all_gather(&self, buffer: &mut [u8], ends: &[usize]) -> Result<()> {
        for rank in self.others() {
            self.send(rank, &buffer[span(ends, self.rank)])?;
        }
        for rank in self.others() {
            buffer[span(ends, rank)].copy_from_slice(&self.receive(rank)?);
        }
        Ok(())
    }

    fn all_to_all(
        &self,
        send: &[u8],
        send_ends: &[usize],
        receive: &mut [u8],
        receive_ends: &[usize],
    ) -> Result<()> {
        for rank in self.others() {
            self.send(rank, &send[span(send_ends, rank)])?;
        }
        let own = &send[span(send_ends, self.rank)];
        receive[span(receive_ends, self.rank)].copy_from_slice(own);
        for rank in self.others() {
            receive[span(receive_ends, rank)].copy_from_slice(&self.receive(rank)?);
        }
        Ok(())
    }

    fn broadcast(&self, buffer: &mut [u8]) -> Result<()> {
        if self.rank > 0 {
            buffer.copy_from_slice(&self.receive(0)?);
            return Ok(());
        }
        self.others().try_for_each(|rank| self.send(rank, buffer))
    }

    fn maximum(&self, value: u64) -> Result<u64> {
        let bytes = value.to_le_bytes();
        self.others().try_for_each(|rank| self.send(rank, &bytes))?;
        let mut most = value;
        for rank in self.others() {
            let mut bytes = [0; 8];
            bytes.copy_from_slice(&self.receive(rank)?);
            most = most.max(u64::from_le_bytes(bytes));
        }
        Ok(most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collective::{
        all_gather, all_to_all, broadcast_bytes, gather_bytes, gather_numbers, part,
    };

    /// Runs every rank of a group on a thread of its own.
    fn together(ranks: usize, work: impl Fn(Threads) + Sync) {
        std::thread::scope(|scope| {
            for rank in Threads::group(ranks) {
                scope.spawn(|| work(rank));
            }
        });
    }

    #[test]
    fn every_number_arrives_where_it_belongs() {
        for ranks in 1..5 {
            together(ranks, |own| {
                let me = own.rank();
                // Rank r has r + 1 numbers.
                let ends: Vec<usize> = (0..ranks).map(|r| (r + 1) * (r + 2) / 2).collect();
                let mut all = vec![0.0_f32; ends[ranks - 1]];
                all[span(&ends, me)].fill(me as f32);
                all_gather(&own, &mut all, &ends).unwrap();
                for r in 0..ranks {
                    assert!(all[span(&ends, r)].iter().all(|&x| x == r as f32));
                }
                // Rank s sends rank r the number 10 s + r, s + 1 times.
                let send: Vec<u64> = (0..ranks)
                    .flat_map(|r| vec![(10 * me + r) as u64; me + 1])
                    .collect();
                let send_ends: Vec<usize> = (1..=ranks).map(|r| r * (me + 1)).collect();
                let mut got = vec![0; ends[ranks - 1]];
                all_to_all(&own, (&send, &send_ends), (&mut got, &ends)).unwrap();
                for s in 0..ranks {
                    let from = &got[span(&ends, s)];
                    assert!(from.len() == s + 1 && from.iter().all(|&x| x == (10 * s + me) as u64));
                }
                let mut text = if me == 0 { b"from 0".to_vec() } else { vec![] };
                broadcast_bytes(&own, &mut text).unwrap();
                assert_eq!(text, b"from 0");
                assert_eq!(own.maximum(me as u64), Ok(ranks as u64 - 1));
                // Rank r has r bytes; all get them, or rank 1 alone.
                for to in [None, Some(1 % ranks)] {
                    let got = gather_bytes(&own, &vec![me as u8; me], to).unwrap();
                    for (r, bytes) in got.iter().enumerate() {
                        let there = to.is_none_or(|to| to == me);
                        assert_eq!(bytes, &vec![r as u8; if there { r } else { 0 }]);
                    }
                }
                let pairs = gather_numbers(&own, &[me as u64, 7]).unwrap();
                let wanted: Vec<u64> = (0..ranks as u64).flat_map(|r| [r, 7]).collect();
                assert_eq!(pairs, wanted);
                own.barrier().unwrap();
            });
        }
    }

    #[test]
    fn a_rank_that_ends_is_missed_by_all_others() {
        together(3, |own| {
            if own.rank() == 1 {
                return;
            }
            // Whoever notices first is missed in turn.
            assert!(matches!(own.maximum(0), Err(CollectiveError::Lost { .. })));
        });
    }

    #[test]
    fn parts_are_all_there_is_and_as_large_as_each_other() {
        for (things, ranks) in [(16, 1), (16, 3), (14, 4), (2, 5), (0, 2)] {
            let parts: Vec<_> = (0..ranks).map(|r| part(things, r, ranks)).collect();
            let listed: Vec<usize> = parts.iter().cloned().flatten().collect();
            assert_eq!(listed, (0..things).collect::<Vec<_>>());
            let sizes = parts.iter().map(|p| p.len());
            assert!(sizes.clone().max().unwrap() - sizes.min().unwrap() <= 1);
        }
    }
}
