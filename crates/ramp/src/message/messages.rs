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

    /// Every message's planes, to be written apart.
    pub fn split_mut(&mut self) -> Vec<&mut [E]> {
        let mut rest = &mut self.data[..];
        self.starts
            .windows(2)
            .map(|w| {
                let (own, others) = std::mem::take(&mut rest).split_at_mut(w[1] - w[0]);
                rest = others;
                own
            })
            .collect()
    }
}
