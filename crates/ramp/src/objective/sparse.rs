//! The pairwise term of beliefs with many natural parameters: the same sums as [`super::pairwise`], leaving out what has no weight.
//!
//! # Contract
//! That of [`super::pairwise`], of which this is the second half: sums are the same but for pairs whose weight is below [`NEGLIGIBLE`] of
//! their row, which leave no trace in means and column sums. The value counts every pair.
//!
//! # Why
//! A pair of beliefs of eight dimensions takes a Cholesky factor for its weight, and three times that for its mean. Of a latent that says
//! anything, most pairs have no weight. So the first pass, which starts from each row's own term and so knows early what is large, marks
//! the columns in which a register of rows has a weight at all, a bit for each; the second takes only these, four side by side ([`Four`]).
//!
//! # Numerics
//! A running sum is never above the final one, so what is negligible beside it is so in the end. Marks depend on the data and the width of registers,
//! not on threads: the same seed gives the same bits on any number of them.

use super::columns::Columns;
use super::pairwise::{COLUMNS, HUGE, Pairwise, Sums};
use crate::family::{Belief, Family, with_family};
use crate::kernel::four::Four;
use crate::kernel::real::{Element, Operation, Real};
use crate::kernel::scratch::Scratch;

/// Natural parameters from which on a part of a belief is dear enough: a Gaussian of three dimensions.
pub(super) const FROM: usize = 9;
/// Whether a belief has a part that is. Products of small parts are cheap, and compiled for their sizes in the other kernel.
pub(super) fn suits(belief: &Belief) -> bool {
    let mut parts = belief.parts().iter();
    parts.any(|part| with_family!(part, f => f.dim() >= FROM))
}

/// Weights that leave no trace, as a part of their row's sum: ten thousand of them are a millionth of it.
const NEGLIGIBLE: f64 = 1e-10;
/// Columns side by side.
const WIDE: usize = 4;

/// Registers' worth of working space.
pub(super) struct Work<R> {
    /// The rows' sums of messages.
    sum: Scratch<R>,
    /// The natural parameters of four pairs, and their mean parameters.
    eta: Scratch<Four<R>>,
    mean: Scratch<Four<R>>,
    /// Row sums within a tile.
    row: Scratch<R>,
    /// Column sums within a tile: `dim` means, then the weight, column by column.
    column: Scratch<R>,
    /// How many columns make a tile.
    tile: usize,
}

impl<R: Real> Work<R> {
    pub fn new(dim: usize) -> Self {
        // About 64 kB of accumulators, in the second-level cache: a row meets few columns of a tile, and what it adds up should
        // be put away as seldom as possible.
        let tile = (2048 / (dim + 1) / COLUMNS * COLUMNS).clamp(COLUMNS, 128);
        Work {
            sum: Scratch::zeros(dim),
            eta: Scratch::zeros(dim),
            mean: Scratch::zeros(dim),
            row: Scratch::zeros(dim),
            column: Scratch::zeros((dim + 1) * tile),
            tile,
        }
    }

    #[inline(always)]
    fn load_rows(&mut self, sum: &[R::Element], stride: usize, at: usize) {
        for (d, s) in self.sum.iter_mut().enumerate() {
            *s = R::load(&sum[d * stride + at..]);
        }
    }

    /// `e^g` for the rows in hand and four columns, their own column left out.
    #[inline(always)]
    fn weigh<const MEAN: bool>(
        &mut self,
        belief: &Belief,
        columns: &Columns<R::Element>,
        which: [usize; WIDE],
        own: R,
    ) -> Group<R> {
        let mut group = Group {
            exponent: Four::zero(),
            scale: Four::one(),
        };
        for (e, m) in group.exponent.0.iter_mut().zip(which) {
            *e = -R::broadcast(columns.phi[m]);
        }
        let mut at = 0;
        for part in belief.parts() {
            let group = &mut group;
            with_family!(part, f => {
                R::enter(f, Weigh::<R, MEAN> { columns, which, at, work: self, group });
                at += f.dim();
            });
        }
        let half = R::splat(0.5);
        for (e, m) in group.exponent.0.iter_mut().zip(which) {
            let distance = (own - R::splat(m as f64)).abs();
            *e = distance.select_lt(half, R::splat(-HUGE), *e);
        }
        group
    }
}

/// `e^g` of four columns, as exponents and scales.
struct Group<R> {
    exponent: Four<R>,
    scale: Four<R>,
}

/// One part's share of four columns.
struct Weigh<'a, R: Real, const MEAN: bool> {
    columns: &'a Columns<R::Element>,
    which: [usize; WIDE],
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
            which,
            at,
            work,
            group,
        } = self;
        let end = at + f.dim();
        let (eta, mean) = (&mut work.eta[at..end], &mut work.mean[at..end]);
        for (d, (e, &s)) in eta.iter_mut().zip(&work.sum[at..end]).enumerate() {
            let plane = &columns.eta[(at + d) * columns.stride..][..columns.stride];
            for (e, m) in e.0.iter_mut().zip(which) {
                *e = s + R::broadcast(plane[m]);
            }
        }
        if F::CHAINED {
            let weight = match MEAN {
                true => f.weight_and_mean(eta, mean),
                false => f.weight(eta),
            };
            group.exponent = group.exponent + weight.exponent;
            group.scale = group.scale * weight.scale;
        } else {
            each_alone::<R, F, MEAN>(f, eta, mean, group);
        }
    }
}

/// The same one by one: formulas that do not wait for themselves need no neighbours, and are not compiled a second time.
#[inline(always)]
fn each_alone<R: Real, F: Family, const MEAN: bool>(
    f: &F,
    eta: &[Four<R>],
    mean: &mut [Four<R>],
    group: &mut Group<R>,
) {
    let dim = eta.len();
    let mut pair = Scratch::<R>::zeros(2 * dim);
    let (one, mu) = pair.split_at_mut(dim);
    for u in 0..WIDE {
        for (to, from) in one.iter_mut().zip(eta) {
            *to = from.0[u];
        }
        let weight = match MEAN {
            true => f.weight_and_mean(one, mu),
            false => f.weight(one),
        };
        if MEAN {
            for (to, &m) in mean.iter_mut().zip(&*mu) {
                to.0[u] = m;
            }
        }
        group.exponent.0[u] = group.exponent.0[u] + weight.exponent;
        group.scale.0[u] = group.scale.0[u] * weight.scale;
    }
}

impl<E: Element> Pairwise<'_, E> {
    /// Pass 1: `log_sum`, and for every register of rows a bit for every column in which one of them has a weight.
    #[inline(always)]
    pub(super) fn log_sums_and_marks<R: Real<Element = E>>(
        &self,
        work: &mut Work<R>,
        log_sum: &mut [E],
        marks: &mut [u8],
    ) {
        let (rows, columns) = (&self.rows, self.columns);
        let groups = columns.stride / COLUMNS;
        let mut eta = Scratch::<R>::zeros(self.belief.dim());
        for row in (0..rows.len.next_multiple_of(R::LANES)).step_by(R::LANES) {
            work.load_rows(rows.sum, rows.stride, row);
            let own = R::load(&rows.own_column[row..]);
            for (d, e) in eta.iter_mut().enumerate() {
                *e = work.sum[d] + R::load(&rows.own[d * rows.stride + row..]);
            }
            // The row's own term, which is large where the latent says anything, comes first.
            let mut top = self.belief.log_normalizer(&eta) - R::load(&rows.own_phi[row..])
                + R::load(&rows.own_bonus[row..]);
            let mut total = R::one();
            for tile in (0..columns.stride).step_by(work.tile) {
                let end = (tile + work.tile).min(columns.stride);
                let mut within = R::zero();
                for column in (tile..end).step_by(COLUMNS) {
                    let mut mark = 0;
                    for half in 0..COLUMNS / WIDE {
                        let first = column + half * WIDE;
                        let which = std::array::from_fn(|u| first + u);
                        let group = work.weigh::<false>(self.belief, columns, which, own);
                        let mut raised = top;
                        for e in group.exponent.0 {
                            raised = raised.max(e);
                        }
                        let factor = (top - raised).exp_weight();
                        (within, total) = (within * factor, total * factor);
                        top = raised;
                        let weight = (group.exponent - Four([top; WIDE])).exp_weight();
                        let weight = weight * group.scale;
                        let bound = (total + within) * R::splat(NEGLIGIBLE);
                        for (u, w) in weight.0.into_iter().enumerate() {
                            mark |= u8::from(bound.any_lt(w)) << (half * WIDE + u);
                            within = within + w;
                        }
                    }
                    if let Some(to) = marks.get_mut(row / R::LANES * groups + column / COLUMNS) {
                        *to = mark;
                    }
                }
                total = total + within;
            }
            (top + total.ln()).store(&mut log_sum[row..]);
        }
        // Rows that are only padding take no weight in the second pass.
        log_sum[rows.len..].fill(E::from_f64(HUGE));
    }

    /// Pass 2: the weights of marked columns again, added to both sides.
    #[inline(always)]
    pub(super) fn both_sides_of_marks<R: Real<Element = E>>(
        &self,
        work: &mut Work<R>,
        sums: &mut Sums<E>,
    ) {
        let (rows, columns) = (&self.rows, self.columns);
        let dim = self.belief.dim();
        let (tile, groups) = (work.tile, columns.stride / COLUMNS);
        for start in (0..columns.stride).step_by(tile) {
            let end = (start + tile).min(columns.stride);
            work.column.fill(R::zero());
            for row in (0..rows.len.next_multiple_of(R::LANES)).step_by(R::LANES) {
                let marks = &sums.marks[row / R::LANES * groups..][start / COLUMNS..end / COLUMNS];
                if marks.iter().all(|&mark| mark == 0) {
                    continue;
                }
                work.load_rows(rows.sum, rows.stride, row);
                work.row.fill(R::zero());
                let own = R::load(&rows.own_column[row..]);
                let log_sum = R::load(&sums.log_sum[row..]);
                let mut which = [0; WIDE];
                let mut count = 0;
                for (group, &mark) in marks.iter().enumerate() {
                    let mut mark = mark;
                    while mark != 0 {
                        which[count] = start + group * COLUMNS + mark.trailing_zeros() as usize;
                        mark &= mark - 1;
                        count += 1;
                        if count == WIDE {
                            self.add_four(work, which, count, start, own, log_sum);
                            count = 0;
                        }
                    }
                }
                if count > 0 {
                    // The last ones stand beside copies of one of them, which count for nothing.
                    let first = which[0];
                    which[count..].fill(first);
                    self.add_four(work, which, count, start, own, log_sum);
                }
                let stride = sums.log_sum.len();
                for (d, &share) in work.row.iter().enumerate() {
                    let to = &mut sums.row_mean[d * stride + row..];
                    (R::load(to) + share).store(to);
                }
            }
            for d in 0..=dim {
                for column in start..end {
                    sums.column_mean[d * columns.stride + column] =
                        work.column[(column - start) * (dim + 1) + d].sum();
                }
            }
        }
    }

    /// Adds the first `count` of four columns to the sums of rows and columns within a tile.
    #[inline(always)]
    fn add_four<R: Real<Element = E>>(
        &self,
        work: &mut Work<R>,
        which: [usize; WIDE],
        count: usize,
        start: usize,
        own: R,
        log_sum: R,
    ) {
        let group = work.weigh::<true>(self.belief, self.columns, which, own);
        let mut weight = (group.exponent - Four([log_sum; WIDE])).exp_weight() * group.scale;
        weight.0[count..].fill(R::zero());
        let dim = self.belief.dim();
        let Work {
            row, column, mean, ..
        } = work;
        for (row, mean) in row.iter_mut().zip(&**mean) {
            let [a, b, c, d] = (weight * *mean).0;
            *row = *row + ((a + b) + (c + d));
        }
        for (u, &m) in which[..count].iter().enumerate() {
            let (weight, sums) = (
                weight.0[u],
                &mut column[(m - start) * (dim + 1)..][..dim + 1],
            );
            let (last, sums) = sums.split_last_mut().expect("means and a weight");
            for (sum, mean) in sums.iter_mut().zip(&**mean) {
                *sum = weight.mul_add(mean.0[u], *sum);
            }
            *last = *last + weight;
        }
    }
}
