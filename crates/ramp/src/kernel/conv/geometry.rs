//! Where pixels lie, and which of them a window meets.

use super::{GROUP, Tap};

/// Where the pixels of a group lie: at `start + channel·c + row·y + column·x`, [`GROUP`] numbers each.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub start: usize,
    pub channel: usize,
    pub row: usize,
    pub column: usize,
}

impl Place {
    /// Row-major pixels, each `pixel` numbers apart.
    pub fn plain([_, height, width]: [usize; 3], pixel: usize) -> Self {
        Place {
            start: 0,
            channel: height * width * pixel,
            row: width * pixel,
            column: pixel,
        }
    }

    /// One past the last number of a shape that lies here.
    pub fn end(&self, [channels, height, width]: [usize; 3]) -> usize {
        self.start
            + (channels - 1) * self.channel
            + (height - 1) * self.row
            + (width - 1) * self.column
            + GROUP
    }
}

/// Planes with a border of zeros.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bordered {
    pub channels: usize,
    /// Height and width with the border.
    pub size: [usize; 2],
    /// Border above and to the left.
    pub before: [usize; 2],
    /// Height and width without the border.
    pub inner: [usize; 2],
}

impl Bordered {
    pub fn len(&self) -> usize {
        self.channels * self.size[0] * self.size[1] * GROUP
    }

    pub fn place(&self) -> Place {
        let column = GROUP;
        let row = self.size[1] * column;
        Place {
            start: self.before[0] * row + self.before[1] * column,
            channel: self.size[0] * row,
            row,
            column,
        }
    }

    pub fn clear_border(&self, buffer: &mut [f32]) {
        let row_len = self.size[1] * GROUP;
        let left = self.before[1] * GROUP;
        let right = left + self.inner[1] * GROUP;
        for plane in buffer[..self.len()].chunks_exact_mut(self.size[0] * row_len) {
            for (y, row) in plane.chunks_exact_mut(row_len).enumerate() {
                if (self.before[0]..self.before[0] + self.inner[0]).contains(&y) {
                    row[..left].fill(0.0);
                    row[right..].fill(0.0);
                } else {
                    row.fill(0.0);
                }
            }
        }
    }
}

/// The input pixels `first + stride·j` along both sides, which see the same taps of the output's gradient.
#[derive(Clone, Debug)]
pub(super) struct Class {
    pub first: [usize; 2],
    pub count: [usize; 2],
    /// Rows of the window that it meets.
    pub lines: usize,
    pub taps: Vec<Tap>,
}
