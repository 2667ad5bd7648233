//! The kernel of large beliefs against the naive formula where it matters: most pairs have no weight.

use super::*;
use crate::family::Belief;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// A node with two messages, sharp ones, that say about the same of every row.
fn sharp(belief: &Belief, rows: usize) -> (Node, Messages<f64>) {
    let mut rng = ChaCha8Rng::seed_from_u64(9);
    let dim = belief.dim();
    let coordinates = belief.freedom();
    let mut messages = Messages::zeros(rows, [dim; 2]);
    let stride = messages.stride();
    for n in 0..rows {
        let truth: Vec<f64> = (0..coordinates)
            .map(|_| rng.random_range(-1.5..1.5))
            .collect();
        for m in 0..2 {
            let mut raw = vec![0.0; dim];
            let mut message = vec![0.0; dim];
            // Off the diagonal of the precision's factor a little, on it much.
            raw.iter_mut()
                .for_each(|x| *x = rng.random_range(-0.3..0.3));
            for i in 0..coordinates {
                raw[coordinates + i * (i + 3) / 2] = rng.random_range(2.0..5.0);
            }
            belief.constrain(&raw, &mut message);
            // h = P · truth, about.
            for i in 0..coordinates {
                let precision = message[coordinates + i * (i + 3) / 2];
                message[i] = precision * (truth[i] + rng.random_range(-0.2..0.2));
            }
            for d in 0..dim {
                messages.message_mut(m)[d * stride + n] = f64::from(message[d] as f32);
            }
        }
    }
    let node = Node {
        belief: belief.clone(),
        prior: belief.prior(),
        messages: 0..2,
    };
    (node, messages)
}

/// MATH's gradient of the mean free energy with every pair written out, and the share of pairs whose weight is below 10⁻¹⁰.
fn naive_gradient(node: &Node, messages: &Messages<f64>) -> (Messages<f64>, f64) {
    let (rows, dim) = (messages.rows(), node.belief.dim());
    let belief = &node.belief;
    let message =
        |m: usize, n: usize| -> Vec<f64> { (0..dim).map(|d| messages.plane(m, d)[n]).collect() };
    let add = |a: &[f64], b: &[f64]| -> Vec<f64> { a.iter().zip(b).map(|(a, b)| a + b).collect() };
    let mean = |eta: &[f64]| {
        let mut mu = vec![0.0; dim];
        belief.mean(eta, &mut mu);
        mu
    };
    let mut gradient = messages.clone();
    (0..2).for_each(|m| gradient.message_mut(m).fill(0.0));
    let stride = gradient.stride();
    let mut small = 0;
    for n in 0..rows {
        let s = add(&message(0, n), &message(1, n));
        let mut at_sum = mean(&add(&node.prior, &s));
        at_sum.iter_mut().for_each(|x| *x *= 3.0);
        for j in 0..2 {
            let f: Vec<Vec<f64>> = (0..rows)
                .map(|m| add(&node.prior, &message(j, m)))
                .collect();
            let both: Vec<Vec<f64>> = f.iter().map(|f| add(&s, f)).collect();
            let g = both.iter().zip(&f);
            let g: Vec<f64> = g
                .map(|(both, f)| belief.log_normalizer(both) - belief.log_normalizer(f))
                .collect();
            let top = g.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let total: f64 = g.iter().map(|g| (g - top).exp()).sum();
            for (d, mu) in mean(&f[n]).into_iter().enumerate() {
                gradient.message_mut(j)[d * stride + n] -= mu;
            }
            for m in 0..rows {
                let w = (g[m] - top).exp() / total;
                small += usize::from(w < 1e-10);
                let (joint, alone) = (mean(&both[m]), mean(&f[m]));
                for d in 0..dim {
                    at_sum[d] -= w * joint[d];
                    gradient.message_mut(j)[d * stride + m] -= w * (joint[d] - alone[d]);
                }
            }
        }
        for j in 0..2 {
            for (d, x) in at_sum.iter().enumerate() {
                gradient.message_mut(j)[d * stride + n] += x;
            }
        }
    }
    for m in 0..2 {
        gradient
            .message_mut(m)
            .iter_mut()
            .for_each(|x| *x /= rows as f64);
    }
    (gradient, small as f64 / (2 * rows * rows) as f64)
}

#[test]
fn leaving_out_pairs_without_weight_leaves_the_gradient() {
    for dim in [3, 5, 8] {
        let belief: Belief = format!("gaussian({dim})").parse().unwrap();
        let (node, messages) = sharp(&belief, 83);
        let (exact, small) = naive_gradient(&node, &messages);
        assert!(
            small > 0.25 && small < 0.995,
            "{dim}: {small} of the pairs have no weight"
        );
        let mut single = Messages::<f32>::zeros(messages.rows(), [belief.dim(); 2]);
        for m in 0..2 {
            let pairs = single.message_mut(m).iter_mut().zip(messages.message(m));
            pairs.for_each(|(to, &from)| *to = from as f32);
        }
        let presence = Presence::complete(2);
        let nodes = [node];
        let (mut of_double, mut of_single) = (messages.clone(), single.clone());
        free_energy(
            &nodes,
            &messages,
            &presence,
            Mixture::default(),
            Some(&mut of_double),
        );
        free_energy(
            &nodes,
            &single,
            &presence,
            Mixture::default(),
            Some(&mut of_single),
        );
        for m in 0..2 {
            let exact = exact.message(m);
            let norm = exact.iter().map(|x| x * x).sum::<f64>().sqrt();
            let away = |other: &mut dyn Iterator<Item = f64>| {
                let differences = exact.iter().zip(other).map(|(a, b)| (a - b) * (a - b));
                differences.sum::<f64>().sqrt() / norm
            };
            let double = away(&mut of_double.message(m).iter().copied());
            let single = away(&mut of_single.message(m).iter().map(|&x| f64::from(x)));
            assert!(double < 1e-8, "{dim}: {double} of the gradient in f64");
            // Sharp beliefs have log-normalisers of hundreds of nats, which f32 rounds to 1e-5: that much their weights are off. The line above is
            // the one that measures what leaving out pairs costs.
            assert!(single < 1e-4, "{dim}: {single} of the gradient in f32");
        }
    }
}
