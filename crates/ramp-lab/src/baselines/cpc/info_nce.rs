//! The contrastive objective: each anchor is to pick its own candidate out of those of the whole batch.
//!
//! Contract: with scores `s_ij = Σ_f anchor[i][f] · candidate[f][j]` the value is `Σ_i ln softmax_j(s_i)[i]`; its gradient with
//! respect to anchors is written, that with respect to candidates is added. Candidates lie feature by feature, padded to a
//! multiple of every lane width; scores of padding are far below all others.

use ramp::kernel::real::{Element, Kernel, Real};

/// Candidates come in multiples of this: the widest lanes there are.
const WIDEST: usize = 16;
/// Below every score after the largest is subtracted; its exponential is nothing beside one.
const NEVER: f64 = -80.0;

/// So many candidates with their padding.
pub(super) fn padded(count: usize) -> usize {
    count.next_multiple_of(WIDEST)
}

/// Anchors against candidates, as many of each.
pub(super) struct Contrast<'a, E> {
    /// Numbers per anchor.
    pub features: usize,
    /// Anchor after anchor.
    pub anchors: &'a [E],
    /// Feature after feature.
    pub candidates: &'a [E],
    /// The gradient with respect to anchors.
    pub to_anchors: &'a mut [E],
    /// The gradient with respect to candidates.
    pub to_candidates: &'a mut [E],
}

impl<E: Element> Contrast<'_, E> {
    /// Computes value and gradients on the widest lanes of the machine.
    pub fn value(self) -> f64 {
        E::dispatch(self)
    }
}

impl<E: Element> Kernel<E> for Contrast<'_, E> {
    type Output = f64;

    #[inline(always)]
    fn run<R: Real<Element = E>>(self) -> f64 {
        let count = self.anchors.len() / self.features;
        let width = padded(count);
        let mut scores = vec![E::default(); width];
        let mut total = 0.0;
        let anchors = self.anchors.chunks_exact(self.features);
        let slopes = self.to_anchors.chunks_exact_mut(self.features);
        for (i, (anchor, slope)) in anchors.zip(slopes).enumerate() {
            for at in (0..width).step_by(R::LANES) {
                let mut score = R::zero();
                for (&a, candidates) in anchor.iter().zip(self.candidates.chunks_exact(width)) {
                    score = R::broadcast(a).mul_add(R::load(&candidates[at..]), score);
                }
                score.store(&mut scores[at..]);
            }
            let largest = scores[..count]
                .iter()
                .fold(scores[0], |m, &s| if s > m { s } else { m });
            let own: f64 = scores[i].into();
            // Far below the largest, whatever that is.
            let never = E::from_f64(largest.into() + NEVER);
            scores[count..].fill(never);
            let mut sum = R::zero();
            for at in (0..width).step_by(R::LANES) {
                let below = R::load(&scores[at..]) - R::broadcast(largest);
                let weight = below.max(R::splat(NEVER)).exp();
                sum = sum + weight;
                weight.store(&mut scores[at..]);
            }
            let sum: f64 = sum.sum().into();
            total += own - largest.into() - sum.ln();

            let share = R::splat(1.0 / sum);
            let mine = |x: E| x.into();
            for (f, to) in slope.iter_mut().enumerate() {
                let candidates = &self.candidates[f * width..][..width];
                let pulls = &mut self.to_candidates[f * width..][..width];
                let anchor = R::broadcast(anchor[f]);
                let mut expected = R::zero();
                for at in (0..width).step_by(R::LANES) {
                    let chance = R::load(&scores[at..]) * share;
                    expected = chance.mul_add(R::load(&candidates[at..]), expected);
                    (R::load(&pulls[at..]) - chance * anchor).store(&mut pulls[at..]);
                }
                *to = E::from_f64(mine(candidates[i]) - mine(expected.sum()));
                pulls[i] = E::from_f64(mine(pulls[i]) + mine(self.anchors[i * self.features + f]));
            }
        }
        total
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wave(len: usize, by: f64) -> Vec<f64> {
        (0..len)
            .map(|i| 1.3 * (by * i as f64 + 0.4).sin())
            .collect()
    }

    fn run<E: Element>(
        features: usize,
        anchors: &[f64],
        candidates: &[f64],
    ) -> (f64, Vec<f64>, Vec<f64>) {
        let count = anchors.len() / features;
        let stored = |of: &[f64]| of.iter().map(|&x| E::from_f64(x)).collect::<Vec<E>>();
        let mut laid = vec![E::default(); features * padded(count)];
        for f in 0..features {
            for j in 0..count {
                laid[f * padded(count) + j] = E::from_f64(candidates[j * features + f]);
            }
        }
        let mut to_anchors = vec![E::default(); anchors.len()];
        let mut to_candidates = vec![E::default(); laid.len()];
        let value = Contrast {
            features,
            anchors: &stored(anchors),
            candidates: &laid,
            to_anchors: &mut to_anchors,
            to_candidates: &mut to_candidates,
        }
        .value();
        let back = (0..count)
            .flat_map(|j| (0..features).map(move |f| f * padded(count) + j))
            .map(|at| to_candidates[at].into());
        (
            value,
            to_anchors.iter().map(|&x| x.into()).collect(),
            back.collect(),
        )
    }

    #[test]
    fn value_and_gradients_are_those_of_the_naive_formula_and_of_differences() {
        for (features, count) in [(2, 3), (5, 16), (5, 21)] {
            let (anchors, candidates) = (wave(features * count, 1.7), wave(features * count, 2.3));
            let naive = |anchors: &[f64], candidates: &[f64]| -> f64 {
                let score = |i: usize, j: usize| -> f64 {
                    (0..features)
                        .map(|f| anchors[i * features + f] * candidates[j * features + f])
                        .sum()
                };
                (0..count)
                    .map(|i| {
                        let all: f64 = (0..count).map(|j| score(i, j).exp()).sum();
                        score(i, i) - all.ln()
                    })
                    .sum()
            };
            let (value, to_anchors, to_candidates) = run::<f64>(features, &anchors, &candidates);
            assert!((value - naive(&anchors, &candidates)).abs() < 1e-10);
            let step = 1e-5;
            for i in 0..anchors.len() {
                let slope = |which: usize| {
                    let [high, low] = [step, -step].map(|by| {
                        let mut moved = [anchors.clone(), candidates.clone()];
                        moved[which][i] += by;
                        naive(&moved[0], &moved[1])
                    });
                    (high - low) / (2.0 * step)
                };
                assert!((to_anchors[i] - slope(0)).abs() < 1e-7);
                assert!((to_candidates[i] - slope(1)).abs() < 1e-7);
            }
            // The lanes at work compute the same.
            let (rough, rough_anchors, rough_candidates) =
                run::<f32>(features, &anchors, &candidates);
            assert!((rough - value).abs() < 1e-4);
            for (a, b) in [
                (rough_anchors, to_anchors),
                (rough_candidates, to_candidates),
            ] {
                assert!(a.iter().zip(&b).all(|(a, b)| (a - b).abs() < 1e-4));
            }
        }
    }

    #[test]
    fn large_scores_overflow_nothing() {
        let (anchors, candidates) = (wave(40, 1.7), wave(40, 2.3));
        let large: Vec<f64> = anchors.iter().map(|x| 1e4 * x).collect();
        let (value, a, b) = run::<f32>(2, &large, &candidates);
        assert!(value.is_finite() && a.iter().chain(&b).all(|x| x.is_finite()));
    }
}
