//! The tree as text for people.

use super::rooted::Rooted;
use super::{FactorId, FactorTree, Kind, VariableId};
use std::fmt::{self, Display, Write};
use std::rc::Rc;

/// What stands on a line of a drawing. A factor of two variables is the stroke between them.
#[derive(Clone, Copy, PartialEq)]
enum Node {
    Variable(VariableId),
    Factor(FactorId),
}

/// How a line hangs on what is above it.
#[derive(Clone, Copy)]
enum Hanging {
    Root,
    Branch {
        last: bool,
    },
    /// Straight below: the one way on, drawn without indentation.
    Spine,
}

impl FactorTree {
    /// A drawing of the tree from its first latent: `○` latents, `●` observations, `■` factors of more than two
    /// variables. A chain runs straight down, so that long trees stay narrow.
    ///
    /// ```
    /// use ramp::graph::FactorTree;
    ///
    /// let drawing = FactorTree::chain(2)?.draw();
    /// assert_eq!(drawing, "\
    /// ○ z1
    /// ├─ ● x.1
    /// │
    /// ○ z2
    /// └─ ● x.2
    /// ");
    /// # Ok::<(), ramp::graph::GraphError>(())
    /// ```
    pub fn draw(&self) -> String {
        self.to_string()
    }

    fn draw_name(&self, node: Node, out: &mut impl Write) -> fmt::Result {
        match node {
            Node::Variable(variable) => {
                let mark = if self.kind(variable) == Kind::Latent {
                    '○'
                } else {
                    '●'
                };
                writeln!(out, "{mark} {}", self.name(variable))
            }
            Node::Factor(_) => writeln!(out, "■"),
        }
    }
}

impl Display for FactorTree {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rooted = Rooted::new(self);
        let sizes = Sizes::new(self, &rooted);
        let mut open: Vec<(Node, Rc<str>, Hanging)> =
            vec![(Node::Variable(self.root()), Rc::from(""), Hanging::Root)];
        while let Some((node, margin, hanging)) = open.pop() {
            let inner = match hanging {
                Hanging::Root => margin,
                Hanging::Branch { last } => {
                    write!(out, "{margin}{}", if last { "└─ " } else { "├─ " })?;
                    Rc::from(format!("{margin}{}", if last { "   " } else { "│  " }))
                }
                Hanging::Spine => {
                    write!(out, "{margin}│\n{margin}")?;
                    margin
                }
            };
            self.draw_name(node, out)?;

            let mut children = children(self, &rooted, node);
            let spine = sizes.spine(self, node, &children);
            children.retain(|&child| Some(child) != spine);
            open.extend(spine.map(|spine| (spine, inner.clone(), Hanging::Spine)));
            let count = children.len();
            open.extend(
                children
                    .into_iter()
                    .enumerate()
                    .rev()
                    .map(|(position, child)| {
                        (
                            child,
                            inner.clone(),
                            Hanging::Branch {
                                last: spine.is_none() && position + 1 == count,
                            },
                        )
                    }),
            );
        }
        Ok(())
    }
}

/// What hangs on a node.
fn children(tree: &FactorTree, rooted: &Rooted, node: Node) -> Vec<Node> {
    match node {
        Node::Factor(factor) => {
            let head = rooted.head[factor.index()];
            let members = tree.variables_of(factor).iter();
            members
                .filter(|&&member| member != head)
                .map(|&member| Node::Variable(member))
                .collect()
        }
        Node::Variable(variable) => rooted
            .outward(tree, variable)
            .map(|factor| match *tree.variables_of(factor) {
                [a, b] => Node::Variable(if a == variable { b } else { a }),
                _ => Node::Factor(factor),
            })
            .collect(),
    }
}

/// How many variables there are from a node on.
struct Sizes {
    variables: Vec<usize>,
    factors: Vec<usize>,
}

impl Sizes {
    fn new(tree: &FactorTree, rooted: &Rooted) -> Self {
        let mut sizes = Sizes {
            variables: vec![1; tree.variable_count()],
            factors: vec![0; tree.factor_count()],
        };
        for &variable in rooted.order.iter().rev() {
            let size = sizes.variables[variable.index()];
            if let Some(entrance) = rooted.entrance[variable.index()] {
                sizes.factors[entrance.index()] += size;
                sizes.variables[rooted.head[entrance.index()].index()] += size;
            }
        }
        sizes
    }

    fn of(&self, node: Node) -> usize {
        match node {
            Node::Variable(variable) => self.variables[variable.index()],
            Node::Factor(factor) => self.factors[factor.index()],
        }
    }

    /// The child to draw straight below: the only one that goes on, or one that holds most of what is left. Every
    /// indentation then loses a quarter of the tree, so that a drawing's size stays near its number of nodes.
    fn spine(&self, tree: &FactorTree, node: Node, children: &[Node]) -> Option<Node> {
        let goes_on =
            |child: &Node| !matches!(*child, Node::Variable(variable) if !tree.is_latent(variable));
        let mut onward = children.iter().copied().filter(goes_on);
        let first = onward.next()?;
        if onward.next().is_none() {
            return Some(first);
        }
        children
            .iter()
            .copied()
            .filter(goes_on)
            .find(|&child| self.of(child) > self.of(node) / 4 * 3)
    }
}
