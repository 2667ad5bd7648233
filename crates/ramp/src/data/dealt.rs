//! A data set that is dealt to ranks: each holds some consecutive samples, and those that a step needs travel to the rank that needs them.

use super::dataset::Fingerprint;
use super::observation::{Observation, Values};
use super::{DataError, Dataset};
use crate::collective::{
    Collective, CollectiveError, Single, ends_of, gather_bytes, gather_numbers, span,
};
use std::ops::Range;
use std::sync::{Arc, OnceLock};

type Result<T, E = DataError> = std::result::Result<T, E>;

/// The most bytes of rows that are on their way at once.
const ON_THE_WAY: usize = 1 << 27;

/// Samples to learn from, wherever they are: a [`Dataset`], or one that is [`Dealt`] to ranks.
pub trait Gather: Sync {
    /// How many samples there are, on all ranks together.
    fn rows(&self) -> usize;

    /// The samples that are held here: all of them, unless they are dealt.
    fn here(&self) -> &Dataset;

    /// Some of the samples, in this order. Where they are dealt, all ranks ask for the same together, and all get them.
    fn gather(&self, samples: &[u32]) -> Result<Dataset, CollectiveError>;

    /// [`Dataset::fingerprint`] of all samples.
    fn fingerprint(&self) -> u64;

    /// The ranks that the samples are dealt to.
    fn dealt(&self) -> Option<&Dealt> {
        None
    }
}

impl Gather for Dataset {
    fn rows(&self) -> usize {
        Dataset::rows(self)
    }

    fn here(&self) -> &Dataset {
        self
    }

    fn gather(&self, samples: &[u32]) -> Result<Dataset, CollectiveError> {
        Ok(self.select(samples))
    }

    fn fingerprint(&self) -> u64 {
        Dataset::fingerprint(self)
    }
}

/// A data set of which every rank holds some consecutive samples.
///
/// ```
/// use ramp::collective::{Collective, Threads};
/// use ramp::data::{Dataset, Dealt, Gather};
/// use std::sync::Arc;
///
/// std::thread::scope(|scope| {
///     for rank in Threads::group(2) {
///         scope.spawn(move || {
///             // Rank 0 holds the samples 0 and 1, rank 1 the others.
///             let own = [vec![0.0, 1.0], vec![2.0, 3.0, 4.0]][rank.rank()].clone();
///             let own = Dataset::new().observe("x", 1, own).unwrap();
///             let all = Dealt::new(own, Arc::new(rank)).unwrap();
///             let some = all.gather(&[3, 0]).unwrap();
///             assert_eq!(some.observation("x").unwrap().numbers(0), [3.0]);
///         });
///     }
/// });
/// ```
pub struct Dealt {
    own: Dataset,
    ranks: Arc<dyn Collective>,
    /// Where each rank's samples end.
    ends: Vec<usize>,
    fingerprint: OnceLock<u64>,
}

impl std::fmt::Debug for Dealt {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Dealt")
            .field("own", &self.own)
            .field("ends", &self.ends)
            .finish_non_exhaustive()
    }
}

impl From<Dataset> for Dealt {
    /// All samples in the hands of the one process there is.
    fn from(own: Dataset) -> Self {
        Dealt {
            ends: vec![own.rows()],
            own,
            ranks: Arc::new(Single),
            fingerprint: OnceLock::new(),
        }
    }
}

impl Dealt {
    /// Puts the samples of all ranks, which call this together, one behind the other.
    pub fn new(mut own: Dataset, ranks: Arc<dyn Collective>) -> Result<Self> {
        if ranks.ranks() == 1 {
            return Ok(own.into());
        }
        let mut shape = Fingerprint::of(0);
        shape.lengths(&[u32::from(own.lengths.is_some())]);
        for o in &own.observations {
            shape.begin(o);
            shape.lengths(&[o.values.size() as u32]);
        }
        let said = gather_numbers(&*ranks, &[own.rows as u64, shape.hash])?;
        if let Some(rank) = (0..ranks.ranks()).find(|r| said[2 * r + 1] != said[1]) {
            return Err(DataError::OtherShape { rank });
        }
        let ends = ends_of(said.chunks_exact(2).map(|rows| rows[0] as usize));
        // Where any rank has a gap, all must look for gaps, as one process with all samples does.
        let gaps = own.observations.iter().map(|o| u8::from(!o.is_complete()));
        let gaps = gather_bytes(&*ranks, &gaps.collect::<Vec<u8>>(), None)?;
        let rows = own.rows;
        for (i, o) in own.observations.iter_mut().enumerate() {
            if o.present.is_none() && gaps.iter().any(|of_rank| of_rank[i] > 0) {
                o.present = Some(vec![true; rows * o.steps.unwrap_or(1)]);
            }
        }
        let mut dealt = Dealt {
            own,
            ranks,
            ends,
            fingerprint: OnceLock::new(),
        };
        dealt.fingerprint = OnceLock::from(dealt.find_fingerprint()?);
        Ok(dealt)
    }

    /// The ranks that hold the samples.
    pub fn ranks(&self) -> &Arc<dyn Collective> {
        &self.ranks
    }

    /// Which of all samples are held here.
    pub fn own_rows(&self) -> Range<usize> {
        span(&self.ends, self.ranks.rank())
    }

    /// One variable of all samples. All ranks ask for it together.
    pub fn gather_observation(&self, name: &str) -> Result<Dataset> {
        let at = self.own.by_name.get(name).copied();
        let Some(at) = at else {
            self.own.observation(name)?;
            return Ok(Dataset::new());
        };
        if self.ends.len() == 1 {
            return Ok(Dataset {
                rows: self.own.rows,
                lengths: self.own.lengths.clone(),
                observations: vec![self.own.observations[at].clone()],
                by_name: [(name.to_string(), 0)].into(),
            });
        }
        let all: Vec<u32> = (0..Gather::rows(self) as u32).collect();
        Ok(self.gather_some(&all, &[at])?)
    }

    /// The rank that holds a sample.
    fn owner(&self, sample: u32) -> usize {
        self.ends.partition_point(|&end| end <= sample as usize)
    }

    /// What one process with all samples would say, from their numbers as they pass by rank 0 one variable after the other.
    fn find_fingerprint(&self) -> Result<u64, CollectiveError> {
        let ranks = &*self.ranks;
        let own = self.own_rows();
        let all = self.ends[ranks.ranks() - 1];
        // Sends what rows have of something, and lets rank 0 look at it in the order of samples.
        let pass = |bytes: &[u8], each: usize, look: &mut dyn FnMut(&[u8])| {
            let at_once = (ON_THE_WAY / each.max(1)).max(1);
            for start in (0..all).step_by(at_once) {
                let end = (start + at_once).min(all).min(own.end).max(own.start);
                let from = start.clamp(own.start, own.end);
                let part = &bytes[(from - own.start) * each..(end.max(from) - own.start) * each];
                let parts = gather_bytes(ranks, part, Some(0))?;
                parts.iter().for_each(|part| look(part));
            }
            Ok(())
        };
        let mut print = Fingerprint::of(all);
        if let Some(lengths) = &self.own.lengths {
            pass(bytemuck::cast_slice(lengths), 4, &mut |bytes| {
                print.lengths(&words(bytes, u32::from_ne_bytes));
            })?;
        }
        for o in &self.own.observations {
            print.begin(o);
            let each = o.width() * o.values.size();
            pass(o.values.bytes(), each, &mut |bytes| {
                print.values(&match o.values {
                    Values::Numbers(_) => Values::Numbers(words(bytes, f32::from_ne_bytes)),
                    Values::Bytes(_) => Values::Bytes(bytes.to_vec()),
                });
            })?;
            if let Some(present) = &o.present {
                pass(
                    bytemuck::cast_slice(present),
                    o.steps.unwrap_or(1),
                    &mut |bytes| print.present(&bytes.iter().map(|&b| b > 0).collect::<Vec<_>>()),
                )?;
            }
        }
        ranks.maximum(if ranks.rank() == 0 { print.hash } else { 0 })
    }

    /// The samples of a batch, of which each rank gets the numbers of some consecutive ones, whose ends are given, and of all others only what
    /// they lack. All ranks ask for the same together.
    pub(crate) fn deal(
        &self,
        samples: &[u32],
        row_ends: &[usize],
    ) -> Result<Dataset, CollectiveError> {
        let ranks = &*self.ranks;
        let (count, me) = (ranks.ranks(), ranks.rank());
        let all: Vec<usize> = (0..self.own.observations.len()).collect();
        let form = Form::of(&self.own, &all);
        let held = span(row_ends, me);
        let mut batch = form.blank(samples.len(), held.clone());
        let first = self.own_rows().start;
        let at_once = (ON_THE_WAY / (form.marks + form.values).max(1)).max(1);
        for start in (0..samples.len()).step_by(at_once) {
            let rows = start..(start + at_once).min(samples.len());
            self.share_rows(samples, rows.clone(), form.marks, |row, to| match to {
                Part::Mine(local, to) => form.write_marks(local, to),
                Part::Got(from) => form.read_marks(from, row, &mut batch),
            })?;
            // The numbers, each to the rank that computes with them.
            let mut send = vec![];
            let mut send_ends = vec![0; count];
            let mut receive_counts = vec![0; count];
            for row in rows.clone() {
                let owner = self.owner(samples[row]);
                if owner == me {
                    let to = row_ends.partition_point(|&end| end <= row);
                    form.push_values(samples[row] as usize - first, &mut send);
                    send_ends[to] = send.len();
                }
                if held.contains(&row) {
                    receive_counts[owner] += form.values;
                }
            }
            let mut last = 0;
            for end in &mut send_ends {
                last = last.max(*end);
                *end = last;
            }
            let receive_ends = ends_of(receive_counts);
            let mut receive = vec![0; receive_ends[count - 1]];
            ranks.all_to_all(&send, &send_ends, &mut receive, &receive_ends)?;
            let mut next: Vec<usize> = (0..count).map(|r| span(&receive_ends, r).start).collect();
            for row in rows.filter(|row| held.contains(row)) {
                let at = &mut next[self.owner(samples[row])];
                form.read_values(&receive[*at..*at + form.values], row, &mut batch);
                *at += form.values;
            }
        }
        Ok(batch)
    }

    /// Some variables of some samples, to all ranks.
    fn gather_some(&self, samples: &[u32], which: &[usize]) -> Result<Dataset, CollectiveError> {
        let form = Form::of(&self.own, which);
        let mut some = form.blank(samples.len(), 0..samples.len());
        let each = form.marks + form.values;
        let at_once = (ON_THE_WAY / each.max(1)).max(1);
        for start in (0..samples.len()).step_by(at_once) {
            let rows = start..(start + at_once).min(samples.len());
            self.share_rows(samples, rows, each, |row, to| match to {
                Part::Mine(local, to) => {
                    form.write_marks(local, &mut to[..form.marks]);
                    let mut values = Vec::with_capacity(form.values);
                    form.push_values(local, &mut values);
                    to[form.marks..].copy_from_slice(&values);
                }
                Part::Got(from) => {
                    form.read_marks(&from[..form.marks], row, &mut some);
                    form.read_values(&from[form.marks..], row, &mut some);
                }
            })?;
        }
        Ok(some)
    }

    /// So many bytes of each of some rows of a batch, from the rank that holds its sample to all: `each` writes its own and reads all.
    fn share_rows(
        &self,
        samples: &[u32],
        rows: Range<usize>,
        bytes: usize,
        mut each: impl FnMut(usize, Part<'_>),
    ) -> Result<(), CollectiveError> {
        if bytes == 0 {
            return Ok(());
        }
        let me = self.ranks.rank();
        let first = self.own_rows().start;
        let mut counts = vec![0; self.ends.len()];
        for row in rows.clone() {
            counts[self.owner(samples[row])] += bytes;
        }
        let ends = ends_of(counts);
        let mut buffer = vec![0; ends[ends.len() - 1]];
        let mut at = span(&ends, me).start;
        for row in rows.clone().filter(|&row| self.owner(samples[row]) == me) {
            let local = samples[row] as usize - first;
            each(row, Part::Mine(local, &mut buffer[at..at + bytes]));
            at += bytes;
        }
        self.ranks.all_gather(&mut buffer, &ends)?;
        let mut next: Vec<usize> = (0..ends.len()).map(|r| span(&ends, r).start).collect();
        for row in rows {
            let at = &mut next[self.owner(samples[row])];
            each(row, Part::Got(&buffer[*at..*at + bytes]));
            *at += bytes;
        }
        Ok(())
    }
}

impl Gather for Dealt {
    fn rows(&self) -> usize {
        self.ends.last().copied().unwrap_or(0)
    }

    fn here(&self) -> &Dataset {
        &self.own
    }

    fn gather(&self, samples: &[u32]) -> Result<Dataset, CollectiveError> {
        if self.ends.len() == 1 {
            return Ok(self.own.select(samples));
        }
        let all: Vec<usize> = (0..self.own.observations.len()).collect();
        self.gather_some(samples, &all)
    }

    fn fingerprint(&self) -> u64 {
        // Of several ranks it was found when they met.
        *self.fingerprint.get_or_init(|| self.own.fingerprint())
    }

    fn dealt(&self) -> Option<&Dealt> {
        (self.ends.len() > 1).then_some(self)
    }
}

/// A row that is shared: one's own, to be written, or any, to be read.
enum Part<'a> {
    Mine(usize, &'a mut [u8]),
    Got(&'a [u8]),
}

/// Bytes that came from elsewhere as numbers of four of them.
fn words<T>(bytes: &[u8], number: impl Fn([u8; 4]) -> T) -> Vec<T> {
    let each = bytes.chunks_exact(4);
    each.map(|b| number([b[0], b[1], b[2], b[3]])).collect()
}

/// How a sample travels: what it has and how long it is as marks, and its numbers.
struct Form<'a> {
    own: &'a Dataset,
    which: &'a [usize],
    /// Bytes of a sample's marks and of its numbers.
    marks: usize,
    values: usize,
}

impl<'a> Form<'a> {
    fn of(own: &'a Dataset, which: &'a [usize]) -> Self {
        let mut form = Form {
            own,
            which,
            marks: 0,
            values: 0,
        };
        let (mut bits, mut values) = (0, 0);
        for o in form.observations() {
            bits += o.present.as_ref().map_or(0, |_| o.steps.unwrap_or(1));
            values += o.width() * o.values.size();
        }
        let lengths = own.lengths.as_ref().map_or(0, |_| size_of::<u32>());
        (form.marks, form.values) = (lengths + bits.div_ceil(8), values);
        form
    }

    fn observations(&self) -> impl Iterator<Item = &'a Observation> {
        let all = &self.own.observations;
        self.which.iter().map(move |&i| &all[i])
    }

    /// As many samples of the same kind, with nothing in them; numbers are held of some.
    fn blank(&self, rows: usize, held: Range<usize>) -> Dataset {
        let observations: Vec<Observation> = self
            .observations()
            .map(|o| Observation {
                name: o.name.clone(),
                features: o.features,
                steps: o.steps,
                values: o.values.zeros_like(held.len() * o.width()),
                present: (o.present.as_ref()).map(|_| vec![false; rows * o.steps.unwrap_or(1)]),
                first: held.start,
            })
            .collect();
        let names = observations.iter().enumerate();
        Dataset {
            rows,
            lengths: self.own.lengths.as_ref().map(|_| vec![0; rows]),
            by_name: names.map(|(i, o)| (o.name.clone(), i)).collect(),
            observations,
        }
    }

    fn write_marks(&self, row: usize, to: &mut [u8]) {
        let mut start = 0;
        if let Some(lengths) = &self.own.lengths {
            to[..4].copy_from_slice(&lengths[row].to_le_bytes());
            start = 4;
        }
        let mut bit = 0;
        for o in self.observations() {
            let steps = o.steps.unwrap_or(1);
            let Some(present) = &o.present else { continue };
            for &there in &present[row * steps..][..steps] {
                to[start + bit / 8] |= u8::from(there) << (bit % 8);
                bit += 1;
            }
        }
    }

    fn read_marks(&self, from: &[u8], row: usize, to: &mut Dataset) {
        let mut marks = from;
        if let Some(lengths) = &mut to.lengths {
            let (length, rest) = from.split_at(4);
            lengths[row] = u32::from_le_bytes([length[0], length[1], length[2], length[3]]);
            marks = rest;
        }
        let mut bit = 0;
        for o in &mut to.observations {
            let steps = o.steps.unwrap_or(1);
            let Some(present) = &mut o.present else {
                continue;
            };
            for there in &mut present[row * steps..][..steps] {
                *there = marks[bit / 8] >> (bit % 8) & 1 == 1;
                bit += 1;
            }
        }
    }

    fn push_values(&self, row: usize, to: &mut Vec<u8>) {
        for o in self.observations() {
            let each = o.width() * o.values.size();
            to.extend_from_slice(&o.values.bytes()[row * each..][..each]);
        }
    }

    fn read_values(&self, mut from: &[u8], row: usize, to: &mut Dataset) {
        for o in &mut to.observations {
            let each = o.width() * o.values.size();
            let (own, rest) = from.split_at(each);
            o.values.bytes_mut()[(row - o.first) * each..][..each].copy_from_slice(own);
            from = rest;
        }
    }
}
