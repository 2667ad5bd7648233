//! The monotone network: what it says of a Gaussian latent's mean only rises, or only falls, with the observation.

#[cfg(test)]
mod tests;

use super::{Activation, Block, Mlp, Network, NetworkError, Parameter};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};
use std::ops::Range;

/// How far the mean moves from the lowest to the highest answer to begin with.
const FIRST_RANGE: f32 = 2.0;
/// The first entries on the diagonal of `C`, with the message's precision `C Cᵀ`.
const FIRST_PRECISION: f32 = 0.5;

/// From one number, or from one of several ordered levels, to a message about a Gaussian latent whose **mean is monotone**
/// in it, whichever way; its precision is free.
///
/// The raw outputs are those of [`Gaussian`](crate::family::Gaussian): `h`, then the factor `C` of the precision. With
/// `t` a rising function of the observation, the belief that the message makes of a standard normal prior has the mean
/// `μ = u·t + b`, so `h = (I + C Cᵀ) μ`. The direction `u` is learned, so an item may run either way, but it cannot take extreme
/// answers at both ends for the same thing: a perceptron can, and then a scale of items measures how extremely people answer.
///
/// Of a latent of several dimensions only the first is bound to the order of answers. Means along the others have a free function of the observation added, so that
/// how extremely people answer has a place of its own beside what the items measure.
///
/// ```
/// use ramp::network::{Monotone, Network};
/// // An item with five answers, one of which is one and the others zero.
/// let network = Monotone::levels(5, 1)?;
/// assert_eq!((network.inputs(), network.outputs()), (5, 2));
/// # Ok::<(), ramp::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Monotone {
    dim: usize,
    rise: Rise,
    /// `t`: its weights are functions of the parameters.
    rising: Mlp,
    /// The factor of the precision.
    spread: Mlp,
    /// What is added to the means of all dimensions but the first, where there are more.
    free: Option<Mlp>,
}

/// How the rising function is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rise {
    /// Of levels: sums of steps.
    Steps { levels: usize },
    /// Of a number: a perceptron with positive weights.
    Units { hidden: usize },
}

impl Monotone {
    /// For one of several levels in their order, as a one among zeros, and a latent of some dimensions.
    pub fn levels(levels: usize, dim: usize) -> Result<Self, NetworkError> {
        if levels < 2 {
            return Err(NetworkError::NoInputs);
        }
        Ok(Monotone {
            dim,
            rise: Rise::Steps { levels },
            rising: Mlp::new(levels, &[], 1)?,
            spread: Mlp::new(levels, &[], triangle(dim))?,
            free: match dim {
                0 | 1 => None,
                _ => Some(Mlp::new(levels, &[], dim - 1)?),
            },
        })
    }

    /// For a number and a latent of some dimensions.
    pub fn number(hidden: usize, dim: usize) -> Result<Self, NetworkError> {
        Ok(Monotone {
            dim,
            rise: Rise::Units { hidden },
            rising: Mlp::new(1, &[hidden], 1)?.with_activation(Activation::Tanh),
            spread: Mlp::new(1, &[hidden], triangle(dim))?.with_activation(Activation::Tanh),
            free: match dim {
                0 | 1 => None,
                _ => Some(Mlp::new(1, &[hidden], dim - 1)?.with_activation(Activation::Tanh)),
            },
        })
    }

    /// Where the direction, the offset, the rising function, the precision's factor and the free means lie among the parameters.
    fn spans(&self) -> [Range<usize>; 5] {
        let d = self.dim;
        let rise = match self.rise {
            Rise::Steps { levels } => levels - 1,
            Rise::Units { .. } => count(&self.rising),
        };
        let mut end = 0;
        let free = self.free.as_ref().map_or(0, count);
        [d, d, rise, count(&self.spread), free].map(|len| {
            end += len;
            end - len..end
        })
    }

    /// The weights of the rising function from its parameters.
    fn rising_weights(&self, raw: &[f32], weights: &mut [f32]) {
        match self.rise {
            Rise::Steps { levels } => {
                let mut sum = 0.0;
                weights[0] = 0.0;
                for l in 1..levels {
                    sum += softplus(raw[l - 1]);
                    weights[l] = sum;
                }
                // Around the middle, so that turning the direction moves no mean as a whole.
                weights[..levels].iter_mut().for_each(|w| *w -= 0.5 * sum);
                weights[levels] = 0.0;
            }
            Rise::Units { hidden } => {
                weights.copy_from_slice(raw);
                for w in positive(hidden).into_iter().flatten() {
                    weights[w] = softplus(raw[w]);
                }
                weights[3 * hidden] = 0.0;
            }
        }
    }

    /// From the gradient at the weights of the rising function to that at its parameters, which is added.
    fn rising_gradient(&self, raw: &[f32], at_weights: &[f32], to: &mut [f32]) {
        match self.rise {
            Rise::Steps { levels } => {
                let all: f32 = at_weights[..levels].iter().sum();
                let mut above = all;
                for l in 1..levels {
                    above -= at_weights[l - 1];
                    to[l - 1] += (above - 0.5 * all) * sigmoid(raw[l - 1]);
                }
            }
            Rise::Units { hidden } => {
                let [first, last] = positive(hidden);
                for w in first.chain(last) {
                    to[w] += at_weights[w] * sigmoid(raw[w]);
                }
                // The places of the units are free; the last bias is the offset's work.
                for w in hidden..2 * hidden {
                    to[w] += at_weights[w];
                }
            }
        }
    }

    /// The parts of tape: of the rising function, of the precision's factor, `t`, the factor, of the free means, and these.
    fn tape_parts(&self, rows: usize) -> [usize; 6] {
        let free = self.free.as_ref();
        [
            self.rising.tape_len(rows),
            self.spread.tape_len(rows),
            rows,
            triangle(self.dim) * rows,
            free.map_or(0, |free| free.tape_len(rows)),
            self.dim.saturating_sub(1) * rows,
        ]
    }

    fn inner_scratch(&self, rows: usize) -> usize {
        let all = [Some(&self.rising), Some(&self.spread), self.free.as_ref()];
        let each = all.into_iter().flatten().map(|n| n.scratch_len(rows));
        each.max().unwrap_or(0)
    }
}

/// Entries of a lower triangle.
fn triangle(dim: usize) -> usize {
    dim * (dim + 1) / 2
}

/// Where entry `(i, j)`, `j ≤ i`, of a packed lower triangle lies.
fn at(i: usize, j: usize) -> usize {
    triangle(i) + j
}

fn count(network: &Mlp) -> usize {
    network.parameters().iter().map(Parameter::len).sum()
}

/// The weights into and out of the hidden units of a perceptron of one number, which must be positive; between them are the biases.
fn positive(hidden: usize) -> [Range<usize>; 2] {
    [0..hidden, 2 * hidden..3 * hidden]
}

fn softplus(x: f32) -> f32 {
    x.max(0.0) + (-x.abs()).exp().ln_1p()
}

fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + (-x).exp())
}

/// The inverse of [`softplus`].
fn softplus_inverse(y: f32) -> f32 {
    y + (-(-y).exp_m1()).ln()
}

impl Network for Monotone {
    fn inputs(&self) -> usize {
        self.rising.inputs()
    }

    fn outputs(&self) -> usize {
        self.dim + triangle(self.dim)
    }

    fn parameters(&self) -> Vec<Parameter> {
        let mut all = vec![
            Parameter::new("direction", &[self.dim]),
            Parameter::new("offset", &[self.dim]),
        ];
        let named = |prefix: &str, network: &Mlp| -> Vec<Parameter> {
            let mut parameters = network.parameters();
            for p in &mut parameters {
                p.name = format!("{prefix}.{}", p.name);
            }
            parameters
        };
        match self.rise {
            Rise::Steps { levels } => all.push(Parameter::new("steps", &[levels - 1])),
            Rise::Units { .. } => all.extend(named("rising", &self.rising)),
        }
        all.extend(named("precision", &self.spread));
        all.extend(self.free.iter().flat_map(|free| named("free", free)));
        all
    }

    /// A rising straight line, as far as it goes: items begin as parts of a sum.
    fn initialize(&self, rng: &mut ChaCha8Rng, parameters: &mut [f32]) {
        let [direction, offset, rise, spread, free] = self.spans();
        parameters[offset].fill(0.0);
        let direction = &mut parameters[direction];
        if let [one] = direction {
            *one = 1.0;
        } else {
            for u in direction.iter_mut() {
                *u = StandardNormal.sample(rng);
            }
            let norm = direction.iter().map(|u| u * u).sum::<f32>().sqrt();
            direction.iter_mut().for_each(|u| *u /= norm);
        }
        if let Some(network) = &self.free {
            // Something in each dimension, or items would never find what they share there.
            network.initialize(rng, &mut parameters[free.clone()]);
            parameters[free].iter_mut().for_each(|w| *w *= 0.3);
        }
        let rise = &mut parameters[rise];
        match self.rise {
            Rise::Steps { levels } => {
                rise.fill(softplus_inverse(FIRST_RANGE / (levels - 1) as f32))
            }
            Rise::Units { hidden } => {
                rise.fill(0.0);
                let [first, last] = positive(hidden);
                // Units of unit width, spread over where numbers of unit size are.
                rise[first].fill(softplus_inverse(1.0));
                for (i, place) in rise[hidden..2 * hidden].iter_mut().enumerate() {
                    *place = 2.0 - 4.0 * (i as f32 + 0.5) / hidden as f32;
                }
                rise[last].fill(softplus_inverse(0.5 * FIRST_RANGE / hidden as f32));
            }
        }
        let spread = &mut parameters[spread];
        let triangle = triangle(self.dim);
        match self.rise {
            Rise::Steps { levels } => {
                for c in spread.iter_mut() {
                    let normal: f32 = StandardNormal.sample(rng);
                    *c = 0.02 * normal;
                }
                let bias = triangle * levels;
                spread[bias..].fill(0.0);
                for i in 0..self.dim {
                    spread[bias + at(i, i)] = FIRST_PRECISION;
                }
            }
            Rise::Units { .. } => {
                self.spread.initialize(rng, spread);
                let bias = spread.len() - triangle;
                for weight in &mut spread[..bias] {
                    *weight *= 0.1;
                }
                for i in 0..self.dim {
                    spread[bias + at(i, i)] = FIRST_PRECISION;
                }
            }
        }
    }

    fn negating_output(&self, output: usize) -> Option<Vec<usize>> {
        // In more dimensions the precision would have to change too.
        let [direction, offset, ..] = self.spans();
        (self.dim == 1 && output == 0).then(|| direction.chain(offset).collect())
    }

    fn negating_inputs(&self) -> Option<Vec<usize>> {
        let [direction, ..] = self.spans();
        Some(direction.collect())
    }

    fn tape_len(&self, rows: usize) -> usize {
        self.tape_parts(rows).iter().sum()
    }

    fn scratch_len(&self, rows: usize) -> usize {
        // The weights of the rising function and their gradient; a gradient at `t`, at the factor and at free means; a gradient at inputs.
        let each = self.dim + triangle(self.dim) + self.inputs();
        let own = 2 * count(&self.rising) + each * rows;
        own + RowSpace::len(self.dim) + self.inner_scratch(rows)
    }

    fn forward(
        &self,
        parameters: &[f32],
        input: Block<'_>,
        output: &mut [f32],
        tape: &mut [f32],
        scratch: &mut [f32],
    ) {
        let rows = input.rows();
        let d = self.dim;
        let [direction, offset, rise, spread, free] = self.spans();
        let [a, b, c, e, f, g] = self.tape_parts(rows);
        let (rising_tape, rest) = tape.split_at_mut(a);
        let (spread_tape, rest) = rest.split_at_mut(b);
        let (t, rest) = rest.split_at_mut(c);
        let (factor, rest) = rest.split_at_mut(e);
        let (free_tape, rest) = rest.split_at_mut(f);
        let added = &mut rest[..g];
        let (weights, scratch) = scratch.split_at_mut(count(&self.rising));
        let (row_space, scratch) = scratch.split_at_mut(RowSpace::len(d));
        self.rising_weights(&parameters[rise], weights);
        self.rising.forward(weights, input, t, rising_tape, scratch);
        self.spread
            .forward(&parameters[spread], input, factor, spread_tape, scratch);
        if let Some(network) = &self.free {
            network.forward(&parameters[free], input, added, free_tape, scratch);
        }
        let (u, b) = (&parameters[direction], &parameters[offset]);
        let (h, raw) = output.split_at_mut(d * rows);
        raw[..e].copy_from_slice(factor);
        let mut row_space = RowSpace::new(d, row_space);
        for r in 0..rows {
            let space = row_space.load(factor, rows, r);
            for i in 0..d {
                space.mean[i] = u[i] * t[r] + b[i] + free_mean(added, rows, i, r);
            }
            space.transposed_times_mean();
            for i in 0..d {
                h[i * rows + r] = space.mean[i] + space.row_times(i, space.whitened);
            }
        }
    }

    fn backward(
        &self,
        parameters: &[f32],
        input: Block<'_>,
        tape: &[f32],
        grad_output: &[f32],
        grad_input: Option<&mut [f32]>,
        grad_parameters: &mut [f32],
        scratch: &mut [f32],
    ) {
        let rows = input.rows();
        let d = self.dim;
        let [direction, offset, rise, spread, free] = self.spans();
        let [a, b, c, e, f, g] = self.tape_parts(rows);
        let (rising_tape, rest) = tape.split_at(a);
        let (spread_tape, rest) = rest.split_at(b);
        let (t, rest) = rest.split_at(c);
        let (factor, rest) = rest.split_at(e);
        let (free_tape, rest) = rest.split_at(f);
        let added = &rest[..g];
        let many = count(&self.rising);
        let (weights, scratch) = scratch.split_at_mut(many);
        let (at_weights, scratch) = scratch.split_at_mut(many);
        let (at_t, scratch) = scratch.split_at_mut(rows);
        let (at_factor, scratch) = scratch.split_at_mut(e);
        let (at_added, scratch) = scratch.split_at_mut(g);
        let (at_input, scratch) = scratch.split_at_mut(self.inputs() * rows);
        let (row_space, scratch) = scratch.split_at_mut(RowSpace::len(d));
        let (u, b) = (&parameters[direction.clone()], &parameters[offset.clone()]);
        let (at_h, at_raw) = grad_output.split_at(d * rows);
        at_factor.copy_from_slice(&at_raw[..e]);
        let mut row_space = RowSpace::new(d, row_space);
        for r in 0..rows {
            let space = row_space.load(factor, rows, r);
            for i in 0..d {
                space.mean[i] = u[i] * t[r] + b[i] + free_mean(added, rows, i, r);
                space.at_h[i] = at_h[i * rows + r];
            }
            space.transposed_times_mean();
            space.transposed_times_gradient();
            at_t[r] = 0.0;
            for i in 0..d {
                let at_mean = space.at_h[i] + space.row_times(i, space.whitened_gradient);
                at_t[r] += u[i] * at_mean;
                grad_parameters[direction.start + i] += t[r] * at_mean;
                grad_parameters[offset.start + i] += at_mean;
                if i > 0 {
                    at_added[(i - 1) * rows + r] = at_mean;
                }
                for j in 0..=i {
                    at_factor[at(i, j) * rows + r] += space.at_h[i] * space.whitened[j]
                        + space.mean[i] * space.whitened_gradient[j];
                }
            }
        }
        self.rising_weights(&parameters[rise.clone()], weights);
        at_weights.fill(0.0);
        let mut grad_input = grad_input;
        self.rising.backward(
            weights,
            input,
            rising_tape,
            at_t,
            grad_input.as_deref_mut(),
            at_weights,
            scratch,
        );
        self.rising_gradient(
            &parameters[rise.clone()],
            at_weights,
            &mut grad_parameters[rise],
        );
        let wanted = grad_input.is_some();
        self.spread.backward(
            &parameters[spread.clone()],
            input,
            spread_tape,
            at_factor,
            wanted.then_some(&mut *at_input),
            &mut grad_parameters[spread],
            scratch,
        );
        if let Some(to) = grad_input.as_deref_mut() {
            add(at_input, to);
        }
        if let Some(network) = &self.free {
            network.backward(
                &parameters[free.clone()],
                input,
                free_tape,
                at_added,
                wanted.then_some(&mut *at_input),
                &mut grad_parameters[free],
                scratch,
            );
            if let Some(to) = grad_input {
                add(at_input, to);
            }
        }
    }
}

/// What is added to the mean of a dimension in a row: nothing to the first.
fn free_mean(added: &[f32], rows: usize, dimension: usize, row: usize) -> f32 {
    match dimension {
        0 => 0.0,
        _ => added[(dimension - 1) * rows + row],
    }
}

fn add(more: &[f32], to: &mut [f32]) {
    to.iter_mut().zip(more).for_each(|(to, more)| *to += more);
}

/// What one row needs, reused from row to row.
struct RowSpace<'a> {
    dim: usize,
    /// `C`, packed.
    factor: &'a mut [f32],
    mean: &'a mut [f32],
    at_h: &'a mut [f32],
    /// `Cᵀ μ` and `Cᵀ ∂h`.
    whitened: &'a mut [f32],
    whitened_gradient: &'a mut [f32],
}

impl<'a> RowSpace<'a> {
    /// How many numbers it needs.
    fn len(dim: usize) -> usize {
        triangle(dim) + 4 * dim
    }

    fn new(dim: usize, space: &'a mut [f32]) -> Self {
        let (factor, rest) = space.split_at_mut(triangle(dim));
        let (mean, rest) = rest.split_at_mut(dim);
        let (at_h, rest) = rest.split_at_mut(dim);
        let (whitened, whitened_gradient) = rest.split_at_mut(dim);
        RowSpace {
            dim,
            factor,
            mean,
            at_h,
            whitened,
            whitened_gradient,
        }
    }

    fn load(&mut self, factor: &[f32], rows: usize, row: usize) -> &mut Self {
        for (entry, plane) in self.factor.iter_mut().zip(factor.chunks_exact(rows)) {
            *entry = plane[row];
        }
        self
    }

    fn transposed_times_mean(&mut self) {
        transposed_times(self.dim, self.factor, self.mean, self.whitened);
    }

    fn transposed_times_gradient(&mut self) {
        transposed_times(self.dim, self.factor, self.at_h, self.whitened_gradient);
    }

    /// Row `i` of `C` times a vector.
    fn row_times(&self, i: usize, vector: &[f32]) -> f32 {
        (0..=i).map(|j| self.factor[at(i, j)] * vector[j]).sum()
    }
}

/// `Cᵀ v`.
fn transposed_times(dim: usize, factor: &[f32], vector: &[f32], to: &mut [f32]) {
    for j in 0..dim {
        to[j] = (j..dim).map(|i| factor[at(i, j)] * vector[i]).sum();
    }
}
