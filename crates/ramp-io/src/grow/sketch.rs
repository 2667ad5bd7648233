//! A tree in the making: columns and unnamed inner nodes, joined by edges.

use ramp::graph::{FactorTree, GraphError};
use std::collections::BTreeSet;

/// An unrooted tree. Nodes below `columns` are the columns, the others are inner ones.
#[derive(Clone, Debug)]
pub struct Sketch {
    /// How many columns.
    pub columns: usize,
    /// Edges, with their lengths.
    pub edges: Vec<(usize, usize, f64)>,
}

/// A division of the columns in two: its side without column 0, ascending.
pub type Split = Vec<usize>;

impl Sketch {
    /// All columns on one inner node.
    pub fn star(columns: usize) -> Self {
        Sketch {
            columns,
            edges: (0..columns).map(|c| (columns, c, 1.0)).collect(),
        }
    }

    /// A tree of a model over these columns, all edges of length one.
    pub fn of(tree: &FactorTree, columns: &[String]) -> Self {
        let number = |variable: ramp::graph::VariableId| match tree.is_latent(variable) {
            true => columns.len() + variable.index(),
            false => columns
                .iter()
                .position(|c| c == tree.name(variable))
                .unwrap_or(0),
        };
        let edges = tree.factors().map(|f| {
            let ends = tree.variables_of(f);
            (number(ends[0]), number(ends[ends.len() - 1]), 1.0)
        });
        Sketch {
            columns: columns.len(),
            edges: edges.collect(),
        }
    }

    /// The nodes that share an edge with one, and those edges.
    pub fn neighbours(&self, node: usize) -> impl Iterator<Item = (usize, usize)> + '_ {
        self.edges
            .iter()
            .enumerate()
            .filter_map(move |(e, &(a, b, _))| match node {
                n if n == a => Some((b, e)),
                n if n == b => Some((a, e)),
                _ => None,
            })
    }

    /// Whether both ends of an edge are inner nodes.
    pub fn is_inner(&self, edge: usize) -> bool {
        let (a, b, _) = self.edges[edge];
        a >= self.columns && b >= self.columns
    }

    /// The columns behind a node, seen from across an edge, each with how far it is from that node.
    pub fn behind(&self, node: usize, edge: usize) -> Vec<(usize, f64)> {
        let mut found = vec![];
        let mut open = vec![(node, edge, 0.0)];
        while let Some((node, from, far)) = open.pop() {
            if node < self.columns {
                found.push((node, far));
            }
            for (next, e) in self.neighbours(node).filter(|&(_, e)| e != from) {
                open.push((next, e, far + self.edges[e].2.max(0.0)));
            }
        }
        found
    }

    /// The division that an edge makes.
    pub fn split(&self, edge: usize) -> Split {
        let (a, b, _) = self.edges[edge];
        let columns = |node| -> Vec<usize> {
            let mut all: Vec<usize> = self
                .behind(node, edge)
                .into_iter()
                .map(|(c, _)| c)
                .collect();
            all.sort_unstable();
            all
        };
        let side = columns(a);
        if side.binary_search(&0).is_ok() {
            columns(b)
        } else {
            side
        }
    }

    /// The divisions of all inner edges.
    pub fn splits(&self) -> BTreeSet<Split> {
        let inner = (0..self.edges.len()).filter(|&e| self.is_inner(e));
        inner.map(|e| self.split(e)).collect()
    }

    /// Takes an inner edge out: its ends become one.
    pub fn contract(&mut self, edge: usize) {
        let (kept, gone, _) = self.edges.remove(edge);
        for (a, b, _) in &mut self.edges {
            for end in [a, b] {
                if *end == gone {
                    *end = kept;
                }
            }
        }
    }

    /// The tree of a model, with names for columns and inner nodes; the root comes first.
    pub fn tree(
        &self,
        columns: &[String],
        latents: &[(usize, String)],
    ) -> Result<FactorTree, GraphError> {
        let mut builder = FactorTree::builder();
        let name = |node: usize| match node < self.columns {
            true => columns[node].clone(),
            false => latents
                .iter()
                .find(|(n, _)| *n == node)
                .map_or_else(String::new, |(_, name)| name.clone()),
        };
        for (_, latent) in latents {
            builder = builder.latent(latent.clone());
        }
        for column in columns {
            builder = builder.observed(column.clone());
        }
        // Outwards from the root, as people read it.
        let mut open = vec![(latents.first().map_or(self.columns, |l| l.0), usize::MAX)];
        let mut next = 0;
        while let Some(&(node, from)) = open.get(next) {
            next += 1;
            let mut around: Vec<(usize, usize)> =
                self.neighbours(node).filter(|&(_, e)| e != from).collect();
            around.sort_unstable_by_key(|&(n, e)| self.behind(n, e).iter().map(|b| b.0).min());
            for (other, e) in around {
                builder = builder.factor([name(node), name(other)]);
                open.push((other, e));
            }
        }
        builder.build()
    }

    /// The inner nodes.
    pub fn inner(&self) -> BTreeSet<usize> {
        let ends = self.edges.iter().flat_map(|&(a, b, _)| [a, b]);
        ends.filter(|&n| n >= self.columns).collect()
    }
}
