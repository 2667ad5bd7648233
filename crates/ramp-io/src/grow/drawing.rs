//! A grown tree as a picture: columns on the right, latents where they branch, and beside every edge how many of the bootstrap's trees have it.

use ramp::graph::{FactorTree, Rooted, VariableId};
use std::fmt::Write;

const LINE: f64 = 22.0;
const STEP: f64 = 130.0;
const MARGIN: f64 = 16.0;

/// An SVG of a tree; `support` says of each latent but the root in which part of the bootstrap's trees its edge is.
pub fn drawing(tree: &FactorTree, support: &dyn Fn(VariableId) -> Option<f64>) -> String {
    let rooted = Rooted::new(tree);
    let depth = |v: VariableId| rooted.depth[v.index()];
    let deepest = tree.latents().iter().map(|&l| depth(l)).max().unwrap_or(0);
    let mut y = vec![0.0; tree.variable_count()];
    let mut lines = 0;
    place(tree, &rooted, tree.root(), &mut y, &mut lines);
    let x = |v: VariableId| match tree.is_latent(v) {
        true => MARGIN + STEP * depth(v) as f64,
        false => MARGIN + STEP * (deepest + 1) as f64,
    };
    let longest = tree
        .observations()
        .iter()
        .map(|&o| tree.name(o).chars().count())
        .max();
    let width = MARGIN * 2.0 + STEP * (deepest + 1) as f64 + 8.0 * longest.unwrap_or(0) as f64;
    let height = 2.0 * MARGIN + LINE * lines as f64;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" width=\"{width:.0}\" height=\"{height:.0}\" \
         font-family=\"sans-serif\" font-size=\"13\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
    );
    for &variable in &rooted.order {
        let Some(factor) = rooted.entrance[variable.index()] else {
            continue;
        };
        let parent = rooted.head[factor.index()];
        let (x1, y1, x2, y2) = (
            x(parent),
            y[parent.index()],
            x(variable),
            y[variable.index()],
        );
        let _ = writeln!(
            svg,
            "<path d=\"M{x1:.1} {y1:.1}V{y2:.1}H{x2:.1}\" fill=\"none\" stroke=\"#445\" stroke-width=\"1.5\"/>"
        );
        if let Some(part) = support(variable).filter(|_| tree.is_latent(variable)) {
            let _ = writeln!(
                svg,
                "<text x=\"{:.1}\" y=\"{:.1}\" fill=\"#777\" font-size=\"11\" text-anchor=\"end\">{:.0}</text>",
                x2 - 8.0,
                y2 - 4.0,
                100.0 * part
            );
        }
    }
    for &variable in &rooted.order {
        let (x, y) = (x(variable), y[variable.index()]);
        let name = escaped(tree.name(variable));
        let _ = match tree.is_latent(variable) {
            true => writeln!(
                svg,
                "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4\" fill=\"#2468a8\"/><text x=\"{:.1}\" y=\"{:.1}\" fill=\"#2468a8\">{name}</text>",
                x + 7.0,
                y - 6.0
            ),
            false => writeln!(
                svg,
                "<text x=\"{:.1}\" y=\"{:.1}\">{name}</text>",
                x + 5.0,
                y + 4.5
            ),
        };
    }
    svg + "</svg>\n"
}

/// Gives every column a line and every latent the middle of its branches.
fn place(
    tree: &FactorTree,
    rooted: &Rooted,
    variable: VariableId,
    y: &mut [f64],
    lines: &mut usize,
) {
    let branches: Vec<VariableId> = rooted
        .outward(tree, variable)
        .flat_map(|f| tree.variables_of(f).iter().copied())
        .filter(|&v| v != variable)
        .collect();
    if branches.is_empty() {
        y[variable.index()] = MARGIN + LINE * (*lines as f64 + 0.5);
        *lines += 1;
        return;
    }
    let count = branches.len() as f64;
    let mut sum = 0.0;
    for branch in branches {
        place(tree, rooted, branch, y, lines);
        sum += y[branch.index()];
    }
    y[variable.index()] = sum / count;
}

fn escaped(text: &str) -> String {
    let plain: String = text.chars().filter(|c| !c.is_control()).collect();
    plain
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}
