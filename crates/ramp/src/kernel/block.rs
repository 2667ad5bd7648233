//! A block of network inputs: where its numbers lie, checked once so that kernels may trust it.

/// Blocks of rows come in multiples of this: the widest register of `f32`.
pub const ROW_UNIT: usize = 16;

/// A block of network inputs and where its numbers lie.
///
/// Beliefs come feature-major (rows side by side); wide observations such as images come row by row. A block that exists
/// lies within its data and has a multiple of [`ROW_UNIT`] rows: kernels read it without further checks.
///
/// ```
/// use ramp::network::Block;
/// let data: Vec<f32> = (0..48).map(|i| i as f32).collect();
/// let block = Block::feature_major(&data, 3, 16);
/// assert_eq!(block.get(2, 5), 37.0);
/// // The same numbers, every other feature left out.
/// let sparse = Block::strided(&data, 2, 16, 32, 1)?;
/// assert_eq!(sparse.get(1, 5), 37.0);
/// assert!(Block::strided(&data, 3, 16, 32, 1).is_err());
/// # Ok::<(), ramp::network::BlockError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Block<'a> {
    data: &'a [f32],
    features: usize,
    rows: usize,
    feature_stride: usize,
    row_stride: usize,
}

/// What is wrong with the shape of a [`Block`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BlockError {
    /// Registers hold whole groups of rows.
    #[error("a block has {rows} rows; pad them to a multiple of {ROW_UNIT}")]
    Rows {
        /// Rows asked for.
        rows: usize,
    },
    /// Every number of a block must have a place of its own.
    #[error("a block's strides are {feature_stride} and {row_stride}; both must be 1 or more")]
    Stride {
        /// Distance between features.
        feature_stride: usize,
        /// Distance between rows.
        row_stride: usize,
    },
    /// The last number of the block would lie beyond its data.
    #[error(
        "a block of {features} features and {rows} rows with strides {feature_stride} and {row_stride} does not fit into {len} numbers"
    )]
    TooShort {
        /// Features per row.
        features: usize,
        /// Rows.
        rows: usize,
        /// Distance between features.
        feature_stride: usize,
        /// Distance between rows.
        row_stride: usize,
        /// Numbers there are.
        len: usize,
    },
}

impl<'a> Block<'a> {
    /// A block whose features and rows lie at the given distances, or why there can be none.
    pub fn strided(
        data: &'a [f32],
        features: usize,
        rows: usize,
        feature_stride: usize,
        row_stride: usize,
    ) -> Result<Self, BlockError> {
        if !rows.is_multiple_of(ROW_UNIT) {
            return Err(BlockError::Rows { rows });
        }
        let block = Block {
            data,
            features,
            rows,
            feature_stride,
            row_stride,
        };
        if features == 0 || rows == 0 {
            return Ok(block);
        }
        if feature_stride == 0 || row_stride == 0 {
            return Err(BlockError::Stride {
                feature_stride,
                row_stride,
            });
        }
        // A single feature or row is never stepped over, but its stride reaches pointer arithmetic: it must not wrap there.
        let last = (features - 1)
            .checked_mul(feature_stride)
            .zip((rows - 1).checked_mul(row_stride))
            .and_then(|(feature, row)| feature.checked_add(row));
        if last.is_some_and(|last| last < data.len())
            && feature_stride.max(row_stride) <= data.len()
        {
            Ok(block)
        } else {
            Err(BlockError::TooShort {
                features,
                rows,
                feature_stride,
                row_stride,
                len: data.len(),
            })
        }
    }

    /// A feature-major block: the rows of a feature side by side.
    ///
    /// # Panics
    /// Where the data is too short or the rows are no multiple of [`ROW_UNIT`]; [`Block::strided`] returns an error instead.
    pub fn feature_major(data: &'a [f32], features: usize, rows: usize) -> Self {
        Self::strided(data, features, rows, rows, 1).unwrap_or_else(|e| panic!("{e}"))
    }

    /// A row-major block: the features of a row side by side.
    ///
    /// # Panics
    /// Where the data is too short or the rows are no multiple of [`ROW_UNIT`]; [`Block::strided`] returns an error instead.
    pub fn row_major(data: &'a [f32], features: usize, rows: usize) -> Self {
        Self::strided(data, features, rows, 1, features).unwrap_or_else(|e| panic!("{e}"))
    }

    /// The numbers that the block lies in.
    #[inline(always)]
    pub fn data(&self) -> &'a [f32] {
        self.data
    }

    /// Features per row.
    #[inline(always)]
    pub fn features(&self) -> usize {
        self.features
    }

    /// Rows, a multiple of [`ROW_UNIT`].
    #[inline(always)]
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Distance between a row's features.
    #[inline(always)]
    pub fn feature_stride(&self) -> usize {
        self.feature_stride
    }

    /// Distance between rows.
    #[inline(always)]
    pub fn row_stride(&self) -> usize {
        self.row_stride
    }

    /// Feature `feature` of row `row`.
    ///
    /// # Panics
    /// Where the block has no such feature or row.
    #[inline]
    pub fn get(&self, feature: usize, row: usize) -> f32 {
        assert!(
            feature < self.features && row < self.rows,
            "feature {feature} of row {row} in a block of {} features and {} rows",
            self.features,
            self.rows
        );
        self.data[feature * self.feature_stride + row * self.row_stride]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn shapes_whose_products_wrap_are_refused() {
        let data = vec![0.0; 64];
        let half = 1_usize << (usize::BITS - 4);
        for (features, rows, feature_stride, row_stride) in [
            // (features − 1) · feature_stride is 2⁶⁴: zero after wrapping.
            (half + 1, 16, 16, 1),
            (usize::MAX, 16, usize::MAX, 1),
            (2, 16, usize::MAX, 1),
            (2, 16, usize::MAX - 14, 1),
            (1, 16, usize::MAX, 1),
            (1, usize::MAX - 15, 1, 1),
            (1, half, 1, 1 << 5),
            (4, usize::MAX - 15, 1, 4),
            (usize::MAX, usize::MAX - 15, 1, 1),
        ] {
            let found = Block::strided(&data, features, rows, feature_stride, row_stride);
            assert!(
                matches!(found, Err(BlockError::TooShort { len: 64, .. })),
                "{features} {rows} {feature_stride} {row_stride}: {found:?}"
            );
        }
    }

    #[test]
    fn odd_rows_and_strides_of_zero_are_refused() {
        let data = vec![0.0; 64];
        let rows = Block::strided(&data, 1, 17, 17, 1);
        assert_eq!(rows.unwrap_err(), BlockError::Rows { rows: 17 });
        for strides in [(0, 1), (1, 0)] {
            let found = Block::strided(&data, 2, 16, strides.0, strides.1);
            assert!(matches!(found, Err(BlockError::Stride { .. })), "{found:?}");
        }
        assert!(Block::strided(&[], 0, 16, 0, 0).is_ok());
        assert!(Block::strided(&[], 3, 0, 0, 0).is_ok());
    }

    #[test]
    #[should_panic(expected = "does not fit into 31 numbers")]
    fn data_that_is_one_short_is_refused() {
        Block::feature_major(&[0.0; 31], 2, 16);
    }

    #[test]
    #[should_panic(expected = "feature 2 of row 0")]
    fn a_feature_beyond_the_block_is_refused_though_the_data_has_it() {
        Block::strided(&[0.0; 64], 2, 16, 16, 1).unwrap().get(2, 0);
    }

    proptest! {
        /// Whatever the shape: a block that exists has all of its numbers within its data.
        #[test]
        fn a_block_that_exists_lies_within_its_data(
            features in prop_oneof![0..9_usize, any::<usize>()],
            groups in prop_oneof![0..4_usize, any::<usize>()],
            feature_stride in prop_oneof![0..70_usize, any::<usize>()],
            row_stride in prop_oneof![0..9_usize, any::<usize>()],
            len in 0..300_usize,
        ) {
            let data = vec![1.0; len];
            let rows = groups.wrapping_mul(ROW_UNIT);
            if let Ok(block) = Block::strided(&data, features, rows, feature_stride, row_stride)
                && features > 0 && rows > 0
            {
                let wide = |n: usize| n as u128;
                let last = wide(features - 1) * wide(feature_stride) + wide(rows - 1) * wide(row_stride);
                prop_assert!(last < wide(len));
                prop_assert_eq!(block.get(features - 1, rows - 1), 1.0);
            }
        }
    }
}
