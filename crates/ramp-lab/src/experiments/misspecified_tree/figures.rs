//! The figures of misspecified trees: correlation against mismatch, and the trees themselves.

use super::MisspecifiedTreeResults;
use super::data::Plan;
use crate::error::LabError;
use crate::figure::{
    Anchor, COLUMN_MM, Figure, GREY, Key, Legend, Marker, ORANGE, PAGE_MM, Panel, Stroke,
    VERMILLION, WHITE,
};
use crate::harness::style::{INK, depth_color, level_names, reference, subscript};
use ramp::graph::{FactorId, FactorTree, Interchange, VariableId};

/// How far the dots of neighbouring levels stand apart.
const APART: f64 = 0.24;

/// One dot per latent of every perturbed tree, medians per mismatch and level, dashed levels of the true tree.
pub(super) fn mismatch_figure(results: &MisspecifiedTreeResults, depths: &[usize]) -> Figure {
    let levels = level_names(depths);
    let widest = results.largest_mismatch();
    let mut panel = Panel::new()
        .x_label("Partition mismatch (observations)")
        .y_label("|Pearson correlation|")
        .x_range(-0.5, widest as f64 + 0.5)
        .x_ticks((0..=widest).map(|m| (m as f64, m.to_string())))
        .y_range(lower_end(results), 1.0)
        .legend(Legend::Right);
    for (depth, _) in &levels {
        let color = depth_color(*depth);
        panel = panel.hline(results.unperturbed(*depth), reference(color).dashed());
    }
    let centre = 0.5 * (levels.len() as f64 - 1.0);
    for (depth, _) in &levels {
        let aside = APART * (*depth as f64 - centre);
        let of_level = results
            .latents
            .iter()
            .filter(|l| l.k > 0 && l.depth == *depth);
        // Dots of one group spread a little, always the same way.
        let dots = of_level.enumerate().map(|(i, latent)| {
            let jitter = ((i * 7) % 11) as f64 / 11.0 - 0.45;
            (
                latent.mismatch as f64 + aside + 0.6 * APART * jitter,
                latent.correlation,
            )
        });
        panel = panel.points(
            dots,
            Marker::disc(depth_color(*depth)).size(2.4).opacity(0.5),
        );
    }
    for (depth, _) in &levels {
        let medians = (0..=widest).filter_map(|mismatch| {
            let (median, count) = results.perturbed_median(*depth, mismatch);
            (count > 0).then_some((mismatch as f64 + APART * (*depth as f64 - centre), median))
        });
        panel = panel.line(medians, Stroke::new(depth_color(*depth)));
    }
    for (depth, name) in &levels {
        panel = panel.legend_entry(name.clone(), Key::Marker(Marker::disc(depth_color(*depth))));
    }
    panel = panel
        .legend_entry("median", Key::Line(Stroke::new(INK)))
        .legend_entry("true tree", Key::Line(reference(INK).dashed()));
    Figure::new(1.25 * COLUMN_MM, 68.0).panel(panel)
}

/// A round number below all correlations.
fn lower_end(results: &MisspecifiedTreeResults) -> f64 {
    let lowest = results.latents.iter().map(|l| l.correlation);
    let lowest = lowest.filter(|c| c.is_finite()).fold(1.0, f64::min);
    ((lowest - 0.02) * 10.0).floor().clamp(0.0, 9.0) / 10.0
}

/// The trees of a sequence of interchanges, and the last one with the mismatch of every latent.
pub(super) fn moves_figure(
    plan: &Plan,
    truth: &FactorTree,
    depths: &[usize],
) -> Result<Figure, LabError> {
    let mut figure = Figure::new(PAGE_MM, 52.0).lettered();
    for (number, (tree, step)) in plan.way.iter().enumerate() {
        let title = match number {
            0 => "The true tree, an interchange".to_owned(),
            1 => "The next tree, another".to_owned(),
            more => format!("After {more} interchanges, another"),
        };
        figure = figure.panel(
            drawn(tree, Some(*step), &|latent| {
                let own = truth.latents().iter().position(|&l| l == latent);
                (own.map_or(0, |k| depths[k]), String::new())
            })
            .title(title),
        );
    }
    let matches = plan.tree.matches(truth)?;
    let annotated = drawn(&plan.tree, None, &|latent| {
        let place = plan.tree.latents().iter().position(|&l| l == latent);
        let found = matches[place.unwrap_or(0)];
        let matched = found.latent.index();
        let text = if truth.name(found.latent) == plan.tree.name(latent) {
            found.mismatch.to_string()
        } else {
            format!("{} (z{})", found.mismatch, subscript(matched + 1))
        };
        (depths[matched], text)
    });
    Ok(figure.panel(annotated.title("Mismatches (and matches)")))
}

/// A tree from its root down, latents coloured by level with a text beside each; the edges of a step stand out.
fn drawn(
    tree: &FactorTree,
    step: Option<Interchange>,
    look: &dyn Fn(VariableId) -> (usize, String),
) -> Panel {
    let mut nodes = vec![];
    let mut next_leaf = 0.0;
    place(tree, tree.root(), None, 0, &mut next_leaf, &mut nodes);
    let deepest = nodes.iter().map(|n| n.depth).max().unwrap_or(0);
    let at = |node: &Node| {
        let level = if tree.is_latent(node.variable) {
            node.depth
        } else {
            deepest
        };
        (node.x, -(level as f64))
    };
    let mut panel = Panel::new()
        .without_axes()
        .x_range(-0.8, next_leaf - 0.2)
        .y_range(-(deepest as f64) - 0.35, 0.35)
        .legend(Legend::Hidden);
    for node in &nodes {
        let Some((parent, factor)) = node.above else {
            continue;
        };
        let Some(parent) = nodes.iter().find(|n| n.variable == parent) else {
            continue;
        };
        let stroke = match step {
            Some(step) if factor == step.across => Stroke::new(VERMILLION).width(2.2),
            Some(step) if factor == step.first || factor == step.second => {
                Stroke::new(ORANGE).width(2.2)
            }
            _ => Stroke::new(GREY).width(0.8),
        };
        panel = panel.line([at(parent), at(node)], stroke);
    }
    for node in &nodes {
        let name = tree.name(node.variable);
        let (letter, number) = name.split_at(name.len().min(1));
        let label = match number.parse() {
            Ok(number) => format!("{letter}{}", subscript(number)),
            Err(_) => name.to_owned(),
        };
        if tree.is_latent(node.variable) {
            let (depth, text) = look(node.variable);
            panel = panel.node(at(node), 6.4, label, depth_color(depth));
            if !text.is_empty() {
                // Beside the edge that comes from above.
                let (x, y) = at(node);
                let parent = node
                    .above
                    .and_then(|(parent, _)| nodes.iter().find(|n| n.variable == parent));
                panel = match parent {
                    Some(parent) if parent.x > x => {
                        panel.text((x - 0.28, y + 0.2), text, Anchor::Left)
                    }
                    _ => panel.text((x + 0.28, y + 0.2), text, Anchor::Right),
                };
            }
        } else {
            panel = panel.node(at(node), 6.4, label, WHITE);
        }
    }
    panel
}

struct Node {
    variable: VariableId,
    x: f64,
    depth: usize,
    above: Option<(VariableId, FactorId)>,
}

/// Leaves side by side, every latent over the middle of what hangs on it.
fn place(
    tree: &FactorTree,
    variable: VariableId,
    above: Option<(VariableId, FactorId)>,
    depth: usize,
    next_leaf: &mut f64,
    nodes: &mut Vec<Node>,
) -> f64 {
    let mut children = vec![];
    for &factor in tree.factors_of(variable) {
        if above.is_some_and(|(_, from)| from == factor) {
            continue;
        }
        for &child in tree.variables_of(factor).iter().filter(|&&v| v != variable) {
            let below = Some((variable, factor));
            children.push(place(tree, child, below, depth + 1, next_leaf, nodes));
        }
    }
    let x = match (children.first(), children.last()) {
        (Some(first), Some(last)) => 0.5 * (first + last),
        _ => {
            *next_leaf += 1.0;
            *next_leaf - 1.0
        }
    };
    nodes.push(Node {
        variable,
        x,
        depth,
        above,
    });
    x
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sequence_of_trees_draws_with_every_variable_in_every_tree() {
        let truth = FactorTree::balanced(4, 2).unwrap();
        let depths = [0, 1, 1, 2, 2, 2, 2];
        for moves in 0..=3 {
            let plan = Plan::new(&truth, moves, 0, 1).unwrap();
            let svg = moves_figure(&plan, &truth, &depths).unwrap().svg();
            for name in ["x₁", "x₈", "z₁", "z₇"] {
                assert!(
                    svg.matches(name).count() > moves,
                    "{name} after {moves} moves"
                );
            }
        }
    }
}
