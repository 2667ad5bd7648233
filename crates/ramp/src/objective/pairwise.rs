//! The pairwise term of the free energy and its gradient, fused: `log Σ_m` over a mixture, never anything of size N × M.
//!
//! # Contract
//! For the rows `n` of a batch with sums of messages `s_n`, a factor with beliefs `f_m` in its mixture's columns and
//! `f_nn = f_n` each row's own, with `g_nm = Φ(s_n + f_m) − Φ(f_m)` (MATH, "A mixture of fewer or more samples"):
//!
//! ```text
//! L_n = log[ own_n · e^{g_nn} + other_n · Σ_{m ≠ n} e^{g_nm} ]
//! ```
//!
//! and the sums that the gradient needs, with the weights `w` that `L_n` normalises:
//! `Σ_m w_nm μ(s_n + f_m)` for every row, `Σ_n w_nm μ(s_n + f_m)` and `Σ_n w_nm` for every column, own terms apart.
//!
//! # Tiling
//! A register holds one number of `LANES` rows; columns are broadcast, eight at a time. Two passes in the manner of flash
//! attention: the first keeps a running maximum and sum per row, the second recomputes the weights and adds to both sides.
//! Columns are taken in tiles whose accumulators stay in the first-level cache while all rows of a chunk pass.
//!
//! # Numerics
//! Families give `exp Φ` as scale × exponential, so that a Gaussian pair costs one reciprocal square root and one
//! exponential and no logarithm. Beliefs of many parameters go another way (see [`sparse`]). A row's own column is masked out of the sum and its term computed apart, so that its weight
//! can differ. Sums over columns run within tiles first. Padded columns have `Φ(f) = +10³⁰` and so no weight; padded rows
//! have their `L` set to that. Chunks of rows have a fixed size: results do not depend on the number of threads.

use super::columns::Columns;
use super::exchange::Field;
use super::{room, sparse};
use crate::family::{Belief, Family, with_family};
use crate::kernel::real::{Element, Kernel, Operation, Real};
use crate::kernel::scratch::Scratch;

/// Columns that go through a family's formula together; independent chains that hide its latency.
pub(super) const COLUMNS: usize = 8;
/// Stands for infinity where infinity minus infinity would not do.
pub(super) const HUGE: f64 = 1e30;

/// The rows of one chunk, plane by plane with a common stride. Every plane can be read up to the next multiple of 16 rows:
/// padding holds valid beliefs.
pub(super) struct Rows<'a, E> {
    /// The distance between planes.
    pub stride: usize,
    /// Sums of messages `s_n`, `dim` planes.
    pub sum: &'a [E],
    /// The rows' own beliefs `f_n` in this factor, `dim` planes.
    pub own: &'a [E],
    /// `Φ(f_n)`.
    pub own_phi: &'a [E],
    /// The column that holds a row's own belief, or a negative number.
    pub own_column: &'a [E],
    /// `ln own_n − ln other_n`.
    pub own_bonus: &'a [E],
    /// How many rows are real.
    pub len: usize,
}

/// What a chunk of rows leaves behind; planes have the length of the chunk, padded to a multiple of 16.
#[derive(Default)]
pub(super) struct Sums<E> {
    /// `L_n − ln other_n`.
    pub log_sum: Vec<E>,
    /// `Σ_m w_nm μ(s_n + f_m)`, own term included, `dim` planes.
    pub row_mean: Vec<E>,
    /// `w_nn μ(s_n + f_n)`, `dim` planes.
    pub own_mean: Vec<E>,
    /// `w_nn`.
    pub own_weight: Vec<E>,
    /// `Σ_n w_nm μ(s_n + f_m)` without own terms, `dim` planes, then `Σ_n w_nm`.
    pub column_mean: Vec<E>,
    /// Per register of rows, the columns among which they find their own.
    own_ranges: Vec<(usize, usize)>,
    /// Of large beliefs, per register of rows and group of columns: a bit where a pair has a weight.
    pub marks: Vec<u8>,
}

/// Marks of so many rows and columns, both padded, with registers of so many lanes.
fn marks_len(rows: usize, columns: usize, lanes: usize) -> usize {
    rows.div_ceil(lanes) * (columns / COLUMNS)
}

impl<E: Element> Sums<E> {
    /// Makes room for chunks of so many rows and columns: how many there are changes from step to step.
    pub fn reserve(&mut self, dim: usize, rows: usize, columns: usize, value_only: bool) {
        let grow = |buffer: &mut Vec<E>, len: usize| {
            buffer.reserve(len.saturating_sub(buffer.len()));
        };
        let (rows, columns) = (rows.next_multiple_of(16), columns.next_multiple_of(16));
        grow(&mut self.log_sum, rows);
        if !value_only {
            grow(&mut self.row_mean, dim * rows);
            grow(&mut self.own_mean, dim * rows);
            grow(&mut self.own_weight, rows);
            grow(&mut self.column_mean, (dim + 1) * columns);
            self.own_ranges.clear();
            self.own_ranges.reserve(rows);
            if dim >= sparse::FROM {
                // No registers of this type are narrower than four numbers, but for those of the tests.
                let len = marks_len(rows, columns, 4);
                (self.marks).reserve(len.saturating_sub(self.marks.len()));
            }
        }
    }

    /// The sizes of what a chunk leaves behind, whose planes are so far apart.
    pub fn make_room(
        &mut self,
        dim: usize,
        row_stride: usize,
        column_stride: usize,
        value_only: bool,
    ) {
        room(&mut self.log_sum, row_stride);
        if !value_only {
            room(&mut self.row_mean, dim * row_stride);
            room(&mut self.own_mean, dim * row_stride);
            room(&mut self.own_weight, row_stride);
            room(&mut self.column_mean, (dim + 1) * column_stride);
        }
    }

    /// One of the buffers that travel between ranks.
    pub fn field(&self, field: Field) -> &[E] {
        match field {
            Field::LogSum => &self.log_sum,
            Field::RowMean => &self.row_mean,
            Field::OwnMean => &self.own_mean,
            Field::OwnWeight => &self.own_weight,
            Field::ColumnMean => &self.column_mean,
        }
    }

    /// The same, to be written.
    pub fn field_mut(&mut self, field: Field) -> &mut [E] {
        match field {
            Field::LogSum => &mut self.log_sum,
            Field::RowMean => &mut self.row_mean,
            Field::OwnMean => &mut self.own_mean,
            Field::OwnWeight => &mut self.own_weight,
            Field::ColumnMean => &mut self.column_mean,
        }
    }
}

/// The pairwise term of one chunk of rows against all columns.
pub(super) struct Pairwise<'a, E> {
    pub belief: &'a Belief,
    pub rows: Rows<'a, E>,
    pub columns: &'a Columns<E>,
    /// Whether only the value is wanted.
    pub value_only: bool,
}

/// Evaluates a pairwise term into sums that are there already.
pub(super) struct Evaluate<'a, E> {
    pub pairwise: Pairwise<'a, E>,
    pub sums: &'a mut Sums<E>,
}

impl<E: Element> Kernel<E> for Evaluate<'_, E> {
    type Output = ();

    #[inline(always)]
    fn run<R: Real<Element = E>>(self) {
        let Evaluate { pairwise, sums } = self;
        let dim = pairwise.belief.dim();
        let stride = pairwise.rows.len.next_multiple_of(16);
        sums.make_room(dim, stride, pairwise.columns.stride, pairwise.value_only);
        if sparse::suits(pairwise.belief) {
            let mut work = sparse::Work::<R>::new(dim);
            let marks = match pairwise.value_only {
                true => 0,
                false => marks_len(stride, pairwise.columns.stride, R::LANES),
            };
            sums.marks.resize(marks, 0);
            pairwise.log_sums_and_marks(&mut work, &mut sums.log_sum, &mut sums.marks);
            if !pairwise.value_only {
                pairwise.own_terms::<R>(sums);
                pairwise.both_sides_of_marks(&mut work, sums);
            }
            return;
        }
        let mut work = Work::<R>::new(dim);
        pairwise.log_sums(&mut work, &mut sums.log_sum);
        if !pairwise.value_only {
            pairwise.own_terms::<R>(sums);
            pairwise.both_sides(&mut work, sums);
        }
    }
}

/// Registers' worth of working space.
struct Work<R> {
    /// The rows' sums of messages.
    sum: Scratch<R>,
    /// Mean parameters of a group of columns, `dim` × `COLUMNS`.
    mean: Scratch<R>,
    /// Row sums within a tile.
    row: Scratch<R>,
    /// Column sums within a tile, `dim + 1` × tile.
    column: Scratch<R>,
    /// A pair's natural and mean parameters, where their number is not known when compiling.
    pair: Scratch<R>,
    /// How many columns make a tile.
    tile: usize,
}

impl<R: Real> Work<R> {
    fn new(dim: usize) -> Self {
        // About 24 kB of accumulators: half of a first-level cache.
        let tile = (384 / (dim + 1) / COLUMNS * COLUMNS).clamp(COLUMNS, 128);
        Work {
            sum: Scratch::zeros(dim),
            mean: Scratch::zeros(dim * COLUMNS),
            row: Scratch::zeros(dim),
            column: Scratch::zeros((dim + 1) * tile),
            pair: Scratch::zeros(2 * dim),
            tile,
        }
    }

    #[inline(always)]
    fn load_rows(&mut self, sum: &[R::Element], stride: usize, at: usize) {
        for (d, s) in self.sum.iter_mut().enumerate() {
            *s = R::load(&sum[d * stride + at..]);
        }
    }

    /// `e^g` for the rows in hand and the group of columns at `column`.
    #[inline(always)]
    fn weigh<const MEAN: bool>(
        &mut self,
        belief: &Belief,
        columns: &Columns<R::Element>,
        column: usize,
    ) -> Group<R> {
        let phi = &columns.phi[column..column + COLUMNS];
        let mut group = Group {
            exponent: [R::zero(); COLUMNS],
            scale: [R::one(); COLUMNS],
        };
        for (e, &phi) in group.exponent.iter_mut().zip(phi) {
            *e = -R::broadcast(phi);
        }
        let mut at = 0;
        for part in belief.parts() {
            let group = &mut group;
            with_family!(part, f => {
                if hot(f, 2) {
                    weigh_fixed::<R, _, 2, MEAN>(f, columns, column, at, self, group);
                } else if hot(f, 5) {
                    weigh_fixed::<R, _, 5, MEAN>(f, columns, column, at, self, group);
                } else {
                    R::enter(f, Weigh::<R, MEAN> { columns, column, at, work: self, group });
                }
                at += f.dim();
            });
        }
        group
    }
}

/// `e^g` of a group of columns, as exponents and scales.
struct Group<R> {
    exponent: [R; COLUMNS],
    scale: [R; COLUMNS],
}

impl<R: Real> Group<R> {
    /// Takes the rows' own columns out of the group.
    #[inline(always)]
    fn mask(&mut self, own: R, column: usize) {
        let half = R::splat(0.5);
        for u in 0..COLUMNS {
            let distance = (own - R::splat((column + u) as f64)).abs();
            self.exponent[u] = distance.select_lt(half, R::splat(-HUGE), self.exponent[u]);
        }
    }
}

/// One part's share of a group of columns.
struct Weigh<'a, R: Real, const MEAN: bool> {
    columns: &'a Columns<R::Element>,
    column: usize,
    /// Where the part's natural parameters start.
    at: usize,
    work: &'a mut Work<R>,
    group: &'a mut Group<R>,
}

impl<R: Real, F: Family, const MEAN: bool> Operation<R, F> for Weigh<'_, R, MEAN> {
    type Output = ();

    #[inline(always)]
    fn apply(self, f: &F) {
        let Weigh {
            columns,
            column,
            at,
            work,
            group,
        } = self;
        // Constant lengths let the sizes in common use unroll completely; others would only make the binary larger.
        let dim = f.dim();
        if dim == 2 && fixed(f, 2) {
            weigh_fixed::<R, _, 2, MEAN>(f, columns, column, at, work, group);
        } else if dim == 3 && fixed(f, 3) {
            weigh_fixed::<R, _, 3, MEAN>(f, columns, column, at, work, group);
        } else if dim == 4 && fixed(f, 4) {
            weigh_fixed::<R, _, 4, MEAN>(f, columns, column, at, work, group);
        } else if dim == 5 && fixed(f, 5) {
            weigh_fixed::<R, _, 5, MEAN>(f, columns, column, at, work, group);
        } else {
            weigh_any::<R, _, MEAN>(f, columns, column, at, work, group);
        }
    }
}

/// Whether a family is to be inlined at this size.
#[inline(always)]
fn hot<F: Family>(family: &F, dim: usize) -> bool {
    F::HOT && family.dim() == dim
}

/// Whether a family wants a kernel of its own for a number of natural parameters: known when compiling.
#[inline(always)]
fn fixed<F: Family>(_: &F, dim: usize) -> bool {
    let mut i = 0;
    while i < F::FIXED_DIMS.len() {
        if F::FIXED_DIMS[i] == dim {
            return true;
        }
        i += 1;
    }
    false
}

#[inline(always)]
fn weigh_fixed<R: Real, F: Family, const D: usize, const MEAN: bool>(
    family: &F,
    columns: &Columns<R::Element>,
    column: usize,
    at: usize,
    work: &mut Work<R>,
    group: &mut Group<R>,
) {
    let mut sum = [R::zero(); D];
    sum.copy_from_slice(&work.sum[at..at + D]);
    let planes: [&[R::Element]; D] = std::array::from_fn(|d| {
        let start = (at + d) * columns.stride + column;
        &columns.eta[start..start + COLUMNS]
    });
    let mean = &mut work.mean[at * COLUMNS..(at + D) * COLUMNS];
    for u in 0..COLUMNS {
        let mut eta = sum;
        for d in 0..D {
            eta[d] = eta[d] + R::broadcast(planes[d][u]);
        }
        let weight = if MEAN {
            let mut mu = [R::zero(); D];
            let weight = family.weight_and_mean(&eta, &mut mu);
            for d in 0..D {
                mean[d * COLUMNS + u] = mu[d];
            }
            weight
        } else {
            family.weight(&eta)
        };
        group.exponent[u] = group.exponent[u] + weight.exponent;
        group.scale[u] = group.scale[u] * weight.scale;
    }
}

/// The same for any number of natural parameters.
#[inline(always)]
fn weigh_any<R: Real, F: Family, const MEAN: bool>(
    family: &F,
    columns: &Columns<R::Element>,
    column: usize,
    at: usize,
    work: &mut Work<R>,
    group: &mut Group<R>,
) {
    let dim = family.dim();
    let Work {
        sum, mean, pair, ..
    } = work;
    let (eta, mu) = pair[..2 * dim].split_at_mut(dim);
    for u in 0..COLUMNS {
        for (d, e) in eta.iter_mut().enumerate() {
            let f = columns.eta[(at + d) * columns.stride + column + u];
            *e = sum[at + d] + R::broadcast(f);
        }
        let weight = if MEAN {
            let weight = family.weight_and_mean(eta, mu);
            for (d, &m) in mu.iter().enumerate() {
                mean[(at + d) * COLUMNS + u] = m;
            }
            weight
        } else {
            family.weight(eta)
        };
        group.exponent[u] = group.exponent[u] + weight.exponent;
        group.scale[u] = group.scale[u] * weight.scale;
    }
}

impl<E: Element> Pairwise<'_, E> {
    /// The columns among which a register of rows finds its own, as a range (empty where there are none).
    fn own_range(&self, row: usize, lanes: usize) -> (usize, usize) {
        let own = self.rows.own_column[row..row + lanes]
            .iter()
            .map(|&c| -> f64 { c.into() });
        own.filter(|&c| c >= 0.0)
            .fold((usize::MAX, 0), |(low, high), c| {
                (low.min(c as usize), high.max(c as usize + 1))
            })
    }

    /// Pass 1: `log_sum`.
    #[inline(always)]
    fn log_sums<R: Real<Element = E>>(&self, work: &mut Work<R>, log_sum: &mut [E]) {
        let rows = &self.rows;
        let dim = self.belief.dim();
        let mut eta = Scratch::<R>::zeros(dim);
        for row in (0..rows.len.next_multiple_of(R::LANES)).step_by(R::LANES) {
            work.load_rows(rows.sum, rows.stride, row);
            let own = R::load(&rows.own_column[row..]);
            let (low, high) = self.own_range(row, R::LANES);
            let (mut top, mut total) = (R::splat(-HUGE), R::zero());
            for tile in (0..self.columns.stride).step_by(work.tile) {
                let end = (tile + work.tile).min(self.columns.stride);
                let before = top;
                let mut within = R::zero();
                for column in (tile..end).step_by(COLUMNS) {
                    let mut group = work.weigh::<false>(self.belief, self.columns, column);
                    if column < high && column + COLUMNS > low {
                        group.mask(own, column);
                    }
                    let mut raised = top;
                    for e in group.exponent {
                        raised = raised.max(e);
                    }
                    within = within * (top - raised).exp_weight();
                    top = raised;
                    for u in 0..COLUMNS {
                        within = (group.exponent[u] - top)
                            .exp_weight()
                            .mul_add(group.scale[u], within);
                    }
                }
                total = total * (before - top).exp_weight() + within;
            }
            for (d, e) in eta.iter_mut().enumerate() {
                *e = work.sum[d] + R::load(&rows.own[d * rows.stride + row..]);
            }
            let g = self.belief.log_normalizer(&eta) - R::load(&rows.own_phi[row..])
                + R::load(&rows.own_bonus[row..]);
            let raised = top.max(g);
            let total = total * (top - raised).exp_weight() + (g - raised).exp_weight();
            (raised + total.ln()).store(&mut log_sum[row..]);
        }
        // Rows that are only padding take no weight in the second pass.
        log_sum[rows.len..].fill(E::from_f64(HUGE));
    }

    /// The rows' own weights and means.
    #[inline(always)]
    fn own_terms<R: Real<Element = E>>(&self, sums: &mut Sums<E>) {
        let rows = &self.rows;
        let dim = self.belief.dim();
        let (mut eta, mut mu) = (Scratch::<R>::zeros(dim), Scratch::<R>::zeros(dim));
        for row in (0..rows.len.next_multiple_of(R::LANES)).step_by(R::LANES) {
            for (d, e) in eta.iter_mut().enumerate() {
                let plane = d * rows.stride + row;
                *e = R::load(&rows.sum[plane..]) + R::load(&rows.own[plane..]);
            }
            let g = self.belief.mean(&eta, &mut mu) - R::load(&rows.own_phi[row..])
                + R::load(&rows.own_bonus[row..]);
            let stride = sums.log_sum.len();
            let weight = (g - R::load(&sums.log_sum[row..])).exp_weight();
            weight.store(&mut sums.own_weight[row..]);
            for (d, &m) in mu.iter().enumerate() {
                let m = m * weight;
                m.store(&mut sums.own_mean[d * stride + row..]);
                m.store(&mut sums.row_mean[d * stride + row..]);
            }
        }
    }

    /// Pass 2: the weights again, added to both sides.
    #[inline(always)]
    fn both_sides<R: Real<Element = E>>(&self, work: &mut Work<R>, sums: &mut Sums<E>) {
        let rows = &self.rows;
        let dim = self.belief.dim();
        let tile = work.tile;
        let real = rows.len.next_multiple_of(R::LANES);
        let own_ranges = (0..real).step_by(R::LANES);
        let own_ranges = own_ranges.map(|row| self.own_range(row, R::LANES));
        sums.own_ranges.clear();
        sums.own_ranges.extend(own_ranges);
        for start in (0..self.columns.stride).step_by(tile) {
            let end = (start + tile).min(self.columns.stride);
            work.column.fill(R::zero());
            for row in (0..rows.len.next_multiple_of(R::LANES)).step_by(R::LANES) {
                work.load_rows(rows.sum, rows.stride, row);
                work.row.fill(R::zero());
                let own = R::load(&rows.own_column[row..]);
                let log_sum = R::load(&sums.log_sum[row..]);
                let (low, high) = sums.own_ranges[row / R::LANES];
                for column in (start..end).step_by(COLUMNS) {
                    let mut group = work.weigh::<true>(self.belief, self.columns, column);
                    if column < high && column + COLUMNS > low {
                        group.mask(own, column);
                    }
                    let within = column - start;
                    let mut weight = [R::zero(); COLUMNS];
                    let sum = &mut work.column[dim * tile + within..dim * tile + within + COLUMNS];
                    for u in 0..COLUMNS {
                        weight[u] = (group.exponent[u] - log_sum).exp_weight() * group.scale[u];
                        sum[u] = sum[u] + weight[u];
                    }
                    for d in 0..dim {
                        let mean = &work.mean[d * COLUMNS..(d + 1) * COLUMNS];
                        let sum = &mut work.column[d * tile + within..d * tile + within + COLUMNS];
                        let mut row = work.row[d];
                        for u in 0..COLUMNS {
                            let share = weight[u] * mean[u];
                            row = row + share;
                            sum[u] = sum[u] + share;
                        }
                        work.row[d] = row;
                    }
                }
                for (d, &share) in work.row.iter().enumerate() {
                    let to = &mut sums.row_mean[d * sums.log_sum.len() + row..];
                    (R::load(to) + share).store(to);
                }
            }
            for d in 0..=dim {
                for column in start..end {
                    sums.column_mean[d * self.columns.stride + column] =
                        work.column[d * tile + column - start].sum();
                }
            }
        }
    }
}
