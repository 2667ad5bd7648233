//! Where messages live: plane by plane, one plane per natural parameter and message.

use crate::kernel::real::Element;

/// The natural parameters of all messages for a batch, feature-major: one plane per parameter, one number per sample.
#[derive(Clone, Debug, Default)]
pub struct Messages<E = f32> {
    rows: usize,
    stride: usize,
    /// Where each message's planes start, and the end.
    starts: Vec<usize>,
    data: Vec<E>,
}

impl<E: Element> Messages<E> {
    /// Room for `rows` samples of messages with the given numbers of natural parameters, all zero.
    pub fn zeros(rows: usize, dims: impl IntoIterator<Item = usize>) -> Self {
        let stride = rows.next_multiple_of(16);
        let mut starts = vec![0];
        for dim in dims {
            starts.push(starts[starts.len() - 1] + dim * stride);
        }
        let data = vec![E::default(); starts[starts.len() - 1]];
        Messages {
            rows,
            stride,
            starts,
            data,
        }
    }

    /// The samples of one followed by those of another with the same messages.
    pub fn concat(a: &Self, b: &Self) -> Self {
        let dims = a.starts.windows(2).map(|w| (w[1] - w[0]) / a.stride.max(1));
        let mut both = Self::zeros(a.rows + b.rows, dims.clone());
        let stride = both.stride;
        for (m, dim) in dims.enumerate() {
            let to = both.message_mut(m);
            for d in 0..dim {
                let plane = &mut to[d * stride..];
                plane[..a.rows].copy_from_slice(a.plane(m, d));
                plane[a.rows..a.rows + b.rows].copy_from_slice(b.plane(m, d));
            }
        }
        both
    }

    /// How many samples.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The distance between planes: `rows`, padded to a multiple of 16. Padding holds zeros.
    pub fn stride(&self) -> usize {
        self.stride
    }

    /// How many messages.
    pub fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All planes of a message.
    pub fn message(&self, message: usize) -> &[E] {
        &self.data[self.starts[message]..self.starts[message + 1]]
    }

    /// All planes of a message.
    pub fn message_mut(&mut self, message: usize) -> &mut [E] {
        &mut self.data[self.starts[message]..self.starts[message + 1]]
    }

    /// One natural parameter of a message for every sample.
    pub fn plane(&self, message: usize, parameter: usize) -> &[E] {
        &self.message(message)[parameter * self.stride..][..self.rows]
    }

    /// Writes every message's planes, several at a time.
    pub fn for_each_mut(&mut self, write: impl Fn(usize, &mut [E]) + Sync) {
        let most = self.len().div_ceil(4 * rayon::current_num_threads()).max(1);
        halve(&self.starts, 0, &mut self.data, most, &write);
    }
}

/// Deals messages from `first` on to threads by halves, at most so many to one: nothing is collected on the way.
fn halve<E: Element>(
    starts: &[usize],
    first: usize,
    data: &mut [E],
    most: usize,
    write: &(impl Fn(usize, &mut [E]) + Sync),
) {
    let count = starts.len() - 1;
    if count <= most {
        let mut rest = data;
        for (i, w) in starts.windows(2).enumerate() {
            let (own, others) = rest.split_at_mut(w[1] - w[0]);
            write(first + i, own);
            rest = others;
        }
        return;
    }
    let middle = count / 2;
    let (front, back) = data.split_at_mut(starts[middle] - starts[0]);
    rayon::join(
        || halve(&starts[..=middle], first, front, most, write),
        || halve(&starts[middle..], first + middle, back, most, write),
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_message_is_written_once_and_in_its_place() {
        for count in [0, 1, 2, 7, 300] {
            let mut messages = Messages::<f32>::zeros(3, (0..count).map(|m| m % 3));
            messages.for_each_mut(|m, planes| planes.iter_mut().for_each(|x| *x += m as f32));
            for m in 0..count {
                assert_eq!(messages.message(m).len(), m % 3 * 16);
                assert!(messages.message(m).iter().all(|&x| x == m as f32));
            }
        }
    }
}
