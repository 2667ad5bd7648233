//! Trees of several shapes and data from them: what a grown tree is measured against.

use crate::error::LabError;
use crate::experiments::nonlinear_tree::data::Link;
use ramp::graph::{FactorTree, Rooted};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};
use serde::{Deserialize, Serialize};
use std::fmt;

/// What a tree looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Shape {
    /// Latents with four observations each, joined two by two.
    Balanced,
    /// Every branch of the root half as large as the one before.
    Unbalanced,
    /// One latent.
    Star,
    /// Latents in a line, with three observations each.
    Chain,
}

impl Shape {
    /// Every shape.
    pub const ALL: [Shape; 4] = [
        Shape::Balanced,
        Shape::Unbalanced,
        Shape::Star,
        Shape::Chain,
    ];

    /// The tree of so many observations, `x1` and on. Every latent has at least three branches, so that the observations tell it.
    ///
    /// ```
    /// use ramp_lab::experiments::grow::data::Shape;
    ///
    /// let tree = Shape::Balanced.tree(16)?;
    /// assert_eq!((tree.observations().len(), tree.latents().len()), (16, 6));
    /// assert_eq!(Shape::Star.tree(8)?.latents().len(), 1);
    /// # Ok::<(), ramp_lab::error::LabError>(())
    /// ```
    pub fn tree(self, leaves: usize) -> Result<FactorTree, LabError> {
        if leaves < 8 {
            return Err(LabError::Invalid(format!(
                "a tree to be grown has 8 observations and more, not {leaves}"
            )));
        }
        let leaf = |i: usize| format!("x{}", i + 1);
        let group = |from: usize, to: usize| -> String {
            let all: Vec<String> = (from..to).map(leaf).collect();
            format!("({})", all.join(","))
        };
        let text = match self {
            Shape::Star => group(0, leaves),
            Shape::Balanced => {
                let count = leaves / 4;
                let mut open: Vec<String> = (0..count)
                    .map(|g| group(4 * g, if g + 1 == count { leaves } else { 4 * g + 4 }))
                    .collect();
                // Two are joined by an edge, three by a latent: no latent has two branches only.
                while open.len() > 3 {
                    open = open
                        .chunks(2)
                        .map(|pair| match pair {
                            [a, b] => format!("({a},{b})"),
                            rest => rest.concat(),
                        })
                        .collect();
                }
                match &open[..] {
                    [a, b] => {
                        let inner = a.strip_prefix('(').and_then(|a| a.strip_suffix(')'));
                        format!("({},{b})", inner.unwrap_or(a))
                    }
                    _ => format!("({})", open.join(",")),
                }
            }
            Shape::Unbalanced => {
                let mut from = 0;
                let mut branches = vec![];
                let mut size = leaves / 2;
                while size > 2 && leaves - from > size {
                    branches.push(group(from, from + size));
                    from += size;
                    size /= 2;
                }
                branches.extend((from..leaves).map(leaf));
                format!("({})", branches.join(","))
            }
            Shape::Chain => {
                let count = leaves / 3;
                let mut text = String::new();
                for g in (0..count).rev() {
                    let to = if g + 1 == count { leaves } else { 3 * g + 3 };
                    let own: Vec<String> = (3 * g..to).map(leaf).collect();
                    text = match text.is_empty() {
                        true => format!("({})", own.join(",")),
                        false => format!("({},{text})", own.join(",")),
                    };
                }
                text
            }
        };
        Ok(FactorTree::from_newick(&format!("{text};")).map_err(ramp::Error::from)?)
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Shape::Balanced => "balanced",
            Shape::Unbalanced => "unbalanced",
            Shape::Star => "star",
            Shape::Chain => "chain",
        })
    }
}

/// Draws of a tree's observations: every variable is the standardised link of its parent mixed with noise, whose share differs from edge to edge.
/// `None` is a straight line. Some values are missing.
pub fn draw(
    tree: &FactorTree,
    link: Option<Link>,
    rows: usize,
    missing: f64,
    seed: u64,
) -> Vec<Vec<f32>> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let rooted = Rooted::new(tree);
    let mut values: Vec<Vec<f64>> = vec![vec![]; tree.variable_count()];
    for &variable in &rooted.order {
        let normal = |rng: &mut ChaCha8Rng| -> f64 { StandardNormal.sample(rng) };
        values[variable.index()] = match rooted.entrance[variable.index()] {
            None => (0..rows).map(|_| normal(&mut rng)).collect(),
            Some(factor) => {
                let parent = &values[rooted.head[factor.index()].index()];
                let bent: Vec<f64> = match link {
                    None => parent.clone(),
                    Some(link) => parent.iter().map(|&z| link.of(z)).collect(),
                };
                let n = rows as f64;
                let mean = bent.iter().sum::<f64>() / n;
                let sd = (bent.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n).sqrt();
                let noise: f64 = rng.random_range(0.25..0.6);
                bent.iter()
                    .map(|x| {
                        (1.0 - noise).sqrt() * (x - mean) / sd + noise.sqrt() * normal(&mut rng)
                    })
                    .collect()
            }
        };
    }
    let observed = tree.observations().iter();
    observed
        .map(|o| {
            let cell = |x: &f64| match missing > 0.0 && rng.random_bool(missing) {
                true => f32::NAN,
                false => *x as f32,
            };
            values[o.index()].iter().map(cell).collect()
        })
        .collect()
}
