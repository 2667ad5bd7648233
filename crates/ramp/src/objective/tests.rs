//! The free energy against a naive N×N formula, quadrature, finite differences and the literal equation of the paper.

use super::*;
use crate::family::{Belief, NAMES};
use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// A batch of random messages at a few nodes, some of them missing.
struct Case {
    nodes: Vec<Node>,
    messages: Messages<f64>,
    presence: Presence,
    present: Vec<Vec<bool>>,
    drawn: Option<Vec<u32>>,
    population: Option<usize>,
}

#[derive(Clone, Copy, Debug)]
struct Shape {
    rows: usize,
    missing: f64,
    drawn: Option<usize>,
    population: Option<usize>,
}

impl Case {
    fn new(beliefs: &[Belief], shape: Shape, seed: u64) -> Case {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut nodes = vec![];
        let mut dims = vec![];
        for (k, belief) in beliefs.iter().enumerate() {
            let from = dims.len();
            dims.extend(std::iter::repeat_n(belief.dim(), 2 + k % 2));
            nodes.push(Node {
                belief: belief.clone(),
                prior: belief.prior(),
                messages: from..dims.len(),
            });
        }
        let mut messages = Messages::zeros(shape.rows, dims.iter().copied());
        let mut present = vec![];
        for node in &nodes {
            for m in node.messages.clone() {
                let dim = node.belief.dim();
                let mut raw = vec![0.0; dim];
                let mut message = vec![0.0; dim];
                let mut there = vec![false; shape.rows];
                for n in 0..shape.rows {
                    raw.iter_mut()
                        .for_each(|x| *x = rng.random_range(-1.5..1.5));
                    node.belief.constrain(&raw, &mut message);
                    there[n] = !rng.random_bool(shape.missing);
                    let stride = messages.stride();
                    for d in 0..dim {
                        messages.message_mut(m)[d * stride + n] = if there[n] {
                            f64::from(message[d] as f32)
                        } else {
                            0.0
                        };
                    }
                }
                present.push(there);
            }
        }
        let lists = present.iter().map(|there| {
            let list: Vec<u32> = (0..shape.rows as u32)
                .filter(|&n| there[n as usize])
                .collect();
            (list.len() < shape.rows).then_some(list)
        });
        let drawn = shape.drawn.map(|size| {
            let mut all: Vec<u32> = (0..shape.rows as u32).collect();
            for i in 0..size {
                let j = rng.random_range(i..shape.rows);
                all.swap(i, j);
            }
            all.truncate(size);
            all.sort_unstable();
            all
        });
        Case {
            nodes,
            presence: Presence::new(lists.collect()),
            messages,
            present,
            drawn,
            population: shape.population,
        }
    }

    fn mixture(&self) -> Mixture<'_> {
        Mixture {
            drawn: self.drawn.as_deref(),
            population: self.population,
            scored: None,
        }
    }

    fn single(&self) -> Messages<f32> {
        let mut single = Messages::zeros(
            self.messages.rows(),
            self.nodes
                .iter()
                .flat_map(|n| n.messages.clone().map(|_| n.belief.dim())),
        );
        for m in 0..self.messages.len() {
            for (to, from) in single
                .message_mut(m)
                .iter_mut()
                .zip(self.messages.message(m))
            {
                *to = *from as f32;
            }
        }
        single
    }

    /// MATH's formula, term by term, with every N×N number written out.
    fn naive(&self, messages: &Messages<f64>) -> Vec<f64> {
        let rows = messages.rows();
        let everyone: Vec<u32> = (0..rows as u32).collect();
        let drawn = self.drawn.as_ref().unwrap_or(&everyone);
        let mut values = vec![];
        for node in &self.nodes {
            let dim = node.belief.dim();
            let message = |m: usize, n: usize| {
                (0..dim)
                    .map(|d| messages.plane(m, d)[n])
                    .collect::<Vec<_>>()
            };
            let add =
                |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a + b).collect::<Vec<_>>();
            let phi = |eta: &[f64]| node.belief.log_normalizer(eta);
            for n in 0..rows {
                let there: Vec<usize> = node
                    .messages
                    .clone()
                    .filter(|&m| self.present[m][n])
                    .collect();
                if there.is_empty() {
                    values.push(0.0);
                    continue;
                }
                let s = there
                    .iter()
                    .fold(vec![0.0; dim], |s, &m| add(&s, &message(m, n)));
                let mut value =
                    (there.len() + 1) as f64 * phi(&add(&node.prior, &s)) - phi(&node.prior);
                for &m in &there {
                    let g = |other: usize| {
                        let f = add(&node.prior, &message(m, other));
                        phi(&add(&s, &f)) - phi(&f)
                    };
                    let having = self.present[m].iter().filter(|&&p| p).count() as f64;
                    let others: Vec<f64> = drawn
                        .iter()
                        .map(|&o| o as usize)
                        .filter(|&o| o != n && self.present[m][o])
                        .map(g)
                        .collect();
                    let count = others.len() as f64;
                    let population = match self.population {
                        Some(p) => p as f64 * having / rows as f64,
                        None => having,
                    };
                    let log_mixture = if others.is_empty() {
                        g(n)
                    } else {
                        let population = population.max(count + 1.0);
                        let top = others.iter().copied().fold(g(n), f64::max);
                        let sum: f64 = others.iter().map(|g| (g - top).exp()).sum();
                        top + ((g(n) - top).exp() / population
                            + (population - 1.0) / (population * count) * sum)
                            .ln()
                    };
                    value -= phi(&add(&node.prior, &message(m, n))) + log_mixture;
                }
                values.push(value);
            }
        }
        values
    }
}

/// Every family alone at two sizes, and one tree of mixed nodes.
fn zoo() -> Vec<Vec<Belief>> {
    let mut all: Vec<Vec<Belief>> = NAMES
        .iter()
        .flat_map(|name| [2, 3].map(|size| vec![format!("{name}({size})").parse().unwrap()]))
        .collect();
    let several = [
        "gaussian(1)",
        "gaussian(6)",
        "gaussian(7)",
        "von_mises(1) x gaussian(1)",
        "beta(1) x categorical(3)",
    ];
    all.extend(several.map(|text| vec![text.parse().unwrap()]));
    all.push(several.map(|text| text.parse().unwrap()).to_vec());
    all.push(vec!["gaussian(4)".parse().unwrap()]);
    all.push(vec!["gaussian(8)".parse().unwrap()]);
    all
}

const SHAPES: [Shape; 7] = [
    Shape {
        rows: 37,
        missing: 0.0,
        drawn: None,
        population: None,
    },
    Shape {
        rows: 37,
        missing: 0.3,
        drawn: None,
        population: None,
    },
    Shape {
        rows: 37,
        missing: 0.3,
        drawn: Some(12),
        population: None,
    },
    Shape {
        rows: 40,
        missing: 0.0,
        drawn: Some(12),
        population: Some(1000),
    },
    Shape {
        rows: 21,
        missing: 0.5,
        drawn: None,
        population: Some(300),
    },
    Shape {
        rows: 1,
        missing: 0.0,
        drawn: None,
        population: None,
    },
    Shape {
        rows: 5,
        missing: 0.9,
        drawn: Some(1),
        population: Some(9),
    },
];

#[test]
fn every_family_meets_the_naive_formula() {
    for (i, beliefs) in zoo().iter().enumerate() {
        for (j, &shape) in SHAPES.iter().enumerate() {
            let case = Case::new(beliefs, shape, (100 * i + j) as u64);
            let naive = case.naive(&case.messages);
            let double = free_energy(
                &case.nodes,
                &case.messages,
                &case.presence,
                case.mixture(),
                None,
            );
            let single = free_energy(
                &case.nodes,
                &case.single(),
                &case.presence,
                case.mixture(),
                None,
            );
            let mean = |v: &[f64]| v.iter().sum::<f64>() / v.len() as f64;
            let (n, s) = (mean(&naive), mean(&single.samples));
            assert!(
                (n - s).abs() < 1e-5 * n.abs().max(1.0),
                "{} {shape:?}: {n} or {s}",
                beliefs[0]
            );
            for ((n, d), s) in naive.iter().zip(&double.samples).zip(&single.samples) {
                assert!(
                    (n - d).abs() < 1e-9 * (1.0 + n.abs()),
                    "{} {shape:?}: {n} or {d}",
                    beliefs[0]
                );
                // One sample's value is a small difference of log-normalisers, each rounded to f32.
                assert!(
                    (n - s).abs() < 3e-5 * (1.0 + n.abs()),
                    "{} {shape:?}: {n} or {s}",
                    beliefs[0]
                );
            }
        }
    }
}

#[test]
fn every_family_has_the_gradient_of_its_value() {
    for (i, beliefs) in zoo().iter().enumerate() {
        for (j, &shape) in SHAPES.iter().enumerate() {
            let shape = Shape {
                rows: shape.rows.min(9),
                drawn: shape.drawn.map(|d| d.min(5)),
                ..shape
            };
            let mut case = Case::new(beliefs, shape, (200 * i + j) as u64);
            let mut gradient = case.messages.clone();
            free_energy(
                &case.nodes,
                &case.messages,
                &case.presence,
                case.mixture(),
                Some(&mut gradient),
            );
            let mut single = case.single();
            let messages = case.single();
            free_energy(
                &case.nodes,
                &messages,
                &case.presence,
                case.mixture(),
                Some(&mut single),
            );
            let value = |case: &Case| {
                let v = case.naive(&case.messages);
                v.iter().sum::<f64>() / v.len() as f64
            };
            for m in 0..case.messages.len() {
                let belief = case
                    .nodes
                    .iter()
                    .find(|n| n.messages.contains(&m))
                    .unwrap()
                    .belief
                    .clone();
                for d in 0..belief.dim() {
                    for n in 0..shape.rows {
                        let at = d * case.messages.stride() + n;
                        if !case.present[m][n] {
                            assert_eq!(
                                gradient.message(m)[at],
                                0.0,
                                "an absent message has no gradient"
                            );
                            assert_eq!(single.message(m)[at], 0.0);
                            continue;
                        }
                        let h = 1e-5;
                        let home = case.messages.message(m)[at];
                        case.messages.message_mut(m)[at] = home + h;
                        let up = value(&case);
                        case.messages.message_mut(m)[at] = home - h;
                        let slope = (up - value(&case)) / (2.0 * h);
                        case.messages.message_mut(m)[at] = home;
                        let (a, b) = (gradient.message(m)[at], f64::from(single.message(m)[at]));
                        assert!(
                            (a - slope).abs() < 1e-7,
                            "{belief} {shape:?} m{m} d{d} n{n}: {a} or {slope}"
                        );
                        assert!(
                            (b - slope).abs() < 2e-5 * (1.0 + slope.abs()),
                            "{belief} {shape:?}: {b} or {slope} in f32"
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn every_instruction_set_agrees_on_chunks_and_tails() {
    // One of each kernel.
    for family in ["gaussian(2)", "gaussian(4)"] {
        agrees_on_every_instruction_set(family.parse().unwrap());
    }
}

fn agrees_on_every_instruction_set(belief: Belief) {
    use crate::kernel::lanes::{Isa, dispatch_on};
    let shape = Shape {
        rows: CHUNK + 131,
        missing: 0.1,
        drawn: Some(301),
        population: Some(5000),
    };
    let case = Case::new(std::slice::from_ref(&belief), shape, 5);
    let messages = case.single();
    let mut node = NodeSums::default();
    let mut base = vec![0.0; messages.rows()];
    node.fill(&case.nodes[0], &messages, &case.presence, false, &mut base);
    let mut factor = Factor::default();
    factor.fill(
        &case.nodes[0],
        &messages,
        case.presence.rows(0),
        0,
        &node.sum,
        case.mixture(),
    );
    let on = |isa: Isa, start: usize| {
        let mut sums = Sums::default();
        let evaluate = Evaluate {
            pairwise: factor.chunk(&belief, start, false),
            sums: &mut sums,
        };
        dispatch_on(isa, evaluate);
        sums
    };
    for start in (0..factor.rows.len()).step_by(CHUNK) {
        let wide = on(Isa::Avx512, start);
        for isa in [Isa::Portable, Isa::Avx2] {
            let other = on(isa, start);
            let real = CHUNK.min(factor.rows.len() - start);
            for (a, b) in wide.log_sum[..real].iter().zip(&other.log_sum) {
                assert!((a - b).abs() < 1e-5 * (1.0 + a.abs()), "{isa:?} {a} {b}");
            }
            for (a, b) in wide.column_mean.iter().zip(&other.column_mean) {
                assert!((a - b).abs() < 2e-5 * (1.0 + a.abs()), "{isa:?} {a} {b}");
            }
        }
    }
}

#[test]
fn many_rows_agree_with_the_naive_formula_whatever_the_threads() {
    let beliefs: Vec<Belief> = vec!["gaussian(1)".parse().unwrap()];
    let shape = Shape {
        rows: CHUNK + 77,
        missing: 0.05,
        drawn: None,
        population: None,
    };
    let case = Case::new(&beliefs, shape, 3);
    let messages = case.single();
    let run = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .unwrap();
        pool.install(|| {
            let mut gradient = messages.clone();
            let value = free_energy(
                &case.nodes,
                &messages,
                &case.presence,
                case.mixture(),
                Some(&mut gradient),
            );
            (value, gradient.message(1).to_vec())
        })
    };
    let (one, two) = (run(1), run(2));
    assert_eq!(one.0, two.0);
    assert_eq!(one.1, two.1);
    let naive = case.naive(&case.messages);
    let mean = naive.iter().sum::<f64>() / naive.len() as f64;
    assert!(
        (one.0.mean() - mean).abs() < 1e-5 * mean.abs(),
        "{} or {mean}",
        one.0.mean()
    );
}

/// The interior bound of the paper's appendix, written out with its KL divergences and `log Γ̂`:
/// `F = −KL(q‖f0) + Σ_j [ ⟨log f_j/f0⟩_q − log Γ̂_j ]` with `Γ̂_j = ∫ F_j q/f0 · (normaliser of q/f0)`.
fn literal(node: &Node, messages: &Messages<f64>, n: usize) -> f64 {
    let belief = &node.belief;
    let dim = belief.dim();
    let rows = messages.rows();
    let message = |m: usize, n: usize| {
        (0..dim)
            .map(|d| messages.plane(m, d)[n])
            .collect::<Vec<_>>()
    };
    let add = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a + b).collect::<Vec<_>>();
    let s = node
        .messages
        .clone()
        .fold(vec![0.0; dim], |s, m| add(&s, &message(m, n)));
    let q = add(&node.prior, &s);
    let mut mu = vec![0.0; dim];
    let phi_q = belief.mean(&q, &mut mu);
    let phi = |eta: &[f64]| belief.log_normalizer(eta);
    // log f̂ = log q − log f0 as a function of z has natural parameters s and constant Φ(η0) − Φ(q).
    let constant = phi(&node.prior) - phi_q;
    let mut value = -belief.kl(&q, &node.prior);
    for m in node.messages.clone() {
        let f = add(&node.prior, &message(m, n));
        // ⟨log f_j − log f0⟩_q = KL(q‖f0) − KL(q‖f_j).
        value += belief.kl(&q, &node.prior) - belief.kl(&q, &f);
        let gamma: f64 = (0..rows)
            .map(|o| {
                let f = add(&node.prior, &message(m, o));
                (phi(&add(&s, &f)) - phi(&f) + constant).exp() / rows as f64
            })
            .sum();
        value -= gamma.ln();
    }
    value
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn the_closed_form_is_the_equation_of_the_appendix(seed in 0u64..1000) {
        for beliefs in zoo() {
            let shape = Shape { rows: 6, missing: 0.0, drawn: None, population: None };
            let case = Case::new(&beliefs, shape, seed);
            let value = free_energy(&case.nodes, &case.messages, &case.presence, case.mixture(), None);
            for (k, node) in case.nodes.iter().enumerate() {
                for n in 0..shape.rows {
                    let (a, b) = (value.samples[k * shape.rows + n], literal(node, &case.messages, n));
                    prop_assert!((a - b).abs() < 1e-9 * (1.0 + b.abs()), "{}: {a} or {b}", node.belief);
                }
            }
        }
    }

    #[test]
    fn it_never_exceeds_the_exact_log_likelihood_ratio(seed in 0u64..1000) {
        // log ∫ f0 Π_j f_jn / F_j dz with F_j = 1/M Σ_m f_jm: what the bound bounds, by quadrature.
        type Line = (f64, f64, fn(f64) -> Vec<f64>, fn(f64) -> f64);
        let lines: [(&str, Line); 4] = [
            ("gaussian", (-12.0, 12.0, |z| vec![z, -0.5 * z * z], |_| 0.0)),
            ("beta", (0.0, 1.0, |z| vec![z.ln(), (1.0 - z).ln()], |z| -(z * (1.0 - z)).ln())),
            ("gamma", (0.0, 60.0, |z| vec![z.ln(), -z], |z| -z.ln())),
            ("von_mises", (-std::f64::consts::PI, std::f64::consts::PI, |z| vec![z.cos(), z.sin()], |_| 0.0)),
        ];
        for (name, (low, high, statistics, log_measure)) in lines {
            let shape = Shape { rows: 8, missing: 0.0, drawn: None, population: None };
            let case = Case::new(&[name.parse().unwrap()], shape, seed);
            let node = &case.nodes[0];
            let value = free_energy(&case.nodes, &case.messages, &case.presence, case.mixture(), None);
            // Constants that Φ drops: the same for every belief of a family.
            let dropped = match name {
                "gaussian" => 0.5 * (2.0 * std::f64::consts::PI).ln(),
                "von_mises" => (2.0 * std::f64::consts::PI).ln(),
                _ => 0.0,
            };
            let density = |eta: &[f64], z: f64| {
                let dot: f64 = statistics(z).iter().zip(eta).map(|(t, e)| t * e).sum();
                (dot + log_measure(z) - node.belief.log_normalizer(eta) - dropped).exp()
            };
            let f = |m: usize, n: usize| -> Vec<f64> {
                (0..2).map(|d| node.prior[d] + case.messages.plane(m, d)[n]).collect()
            };
            let steps = 4000;
            let width = (high - low) / f64::from(steps);
            let mut exact = vec![0.0; shape.rows];
            for i in 0..steps {
                let z = low + width * (f64::from(i) + 0.5);
                let prior = density(&node.prior, z);
                let each: Vec<Vec<f64>> = node.messages.clone()
                    .map(|m| (0..shape.rows).map(|n| density(&f(m, n), z)).collect()).collect();
                for (n, e) in exact.iter_mut().enumerate() {
                    let ratio: f64 = each.iter().map(|all| all[n] / (all.iter().sum::<f64>() / shape.rows as f64)).product();
                    *e += width * prior * ratio;
                }
            }
            for (n, e) in exact.iter().enumerate() {
                let bound = value.samples[n];
                prop_assert!(bound <= e.ln() + 1e-4, "{name}: {bound} above {}", e.ln());
            }
        }
    }
}
