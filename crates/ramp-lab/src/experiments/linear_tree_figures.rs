//! The figures of the linear tree: correlation and posterior variance per iteration and at the end.

use serde::{Deserialize, Serialize};

use crate::error::LabError;
use crate::figure::{
    BLUE, COLUMN_MM, Color, Figure, GREEN, Key, Legend, Marker, PAGE_MM, Panel, Stroke, VERMILLION,
    series,
};

/// What a run on the linear tree leaves for its figures. Latents count in level order.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LinearTreeCurves {
    /// The iterations at which the curves have a point.
    pub iterations: Vec<usize>,
    /// The absolute correlation of posterior means and true latents, per point and latent.
    pub correlation: Vec<Vec<f64>>,
    /// The posterior variance averaged over the data, per point and latent.
    pub variance: Vec<Vec<f64>>,
    /// The correlation that exact inference reaches, per latent.
    pub exact_correlation: Vec<f64>,
    /// The exact posterior variance per latent.
    pub exact_variance: Vec<f64>,
    /// The variance of the best factorised posterior per latent.
    pub mean_field_variance: Vec<f64>,
    /// The average posterior variance after the last iteration, per latent.
    pub final_variance: Vec<f64>,
    /// The level of every latent, 0 for the root.
    pub depth_of_latent: Vec<usize>,
}

impl LinearTreeCurves {
    /// Refuses curves whose lengths do not agree, rather than drawing some of them.
    fn check(&self) -> Result<(), LabError> {
        let (points, latents) = (self.iterations.len(), self.depth_of_latent.len());
        let complain = |what: &str, found: usize, wanted: usize, of: &str| {
            Err(LabError::Invalid(format!(
                "the curves of the linear tree have {found} values of {what} for {wanted} {of}"
            )))
        };
        for (what, rows) in [
            ("correlation", &self.correlation),
            ("variance", &self.variance),
        ] {
            if rows.len() != points {
                return complain(what, rows.len(), points, "iterations");
            }
            if let Some(row) = rows.iter().find(|row| row.len() != latents) {
                return complain(what, row.len(), latents, "latents");
            }
        }
        for (what, values) in [
            ("exact correlation", &self.exact_correlation),
            ("exact variance", &self.exact_variance),
            ("mean-field variance", &self.mean_field_variance),
            ("final variance", &self.final_variance),
        ] {
            if values.len() != latents {
                return complain(what, values.len(), latents, "latents");
            }
        }
        Ok(())
    }

    fn curve<'a>(
        &'a self,
        rows: &'a [Vec<f64>],
        latent: usize,
    ) -> impl Iterator<Item = (f64, f64)> + 'a {
        self.iterations
            .iter()
            .zip(rows)
            .map(move |(&iteration, row)| (iteration as f64, row[latent]))
    }

    /// Latents from the deepest up, so that the few near the root are drawn over the many below.
    fn drawing_order(&self) -> impl Iterator<Item = (usize, Color)> + '_ {
        self.depth_of_latent
            .iter()
            .enumerate()
            .rev()
            .map(|(latent, &depth)| (latent, depth_color(depth)))
    }
}

/// The correlation of each latent with the truth per iteration, with the level of exact inference.
pub fn correlation_figure(curves: &LinearTreeCurves) -> Result<Figure, LabError> {
    curves.check()?;
    let mut panel = Panel::new()
        .x_label("Iteration")
        .y_label("|Pearson correlation|")
        .y_range(0.0, 1.0)
        .legend(Legend::Inside);
    for (latent, color) in curves.drawing_order() {
        panel = panel.line(
            curves.curve(&curves.correlation, latent),
            Stroke::new(color),
        );
    }
    for (latent, color) in curves.drawing_order() {
        panel = panel.hline(curves.exact_correlation[latent], reference(color).dashed());
    }
    panel = depth_entries(panel, curves)
        .legend_entry("exact inference", Key::Line(reference(INK).dashed()));
    Ok(Figure::new(COLUMN_MM, 62.0).panel(panel))
}

/// The average posterior variance of each latent: per iteration, and at the end of training against
/// exact inference and the mean-field approximation.
pub fn variance_figure(curves: &LinearTreeCurves) -> Result<Figure, LabError> {
    curves.check()?;
    let mut course = Panel::new()
        .title("During training")
        .x_label("Iteration")
        .y_label("Posterior variance")
        .y_range(0.0, upper_end(curves))
        .legend(Legend::Hidden);
    for (latent, color) in curves.drawing_order() {
        course = course
            .hline(
                curves.mean_field_variance[latent],
                reference(color).dotted(),
            )
            .hline(curves.exact_variance[latent], reference(color).dashed());
    }
    for (latent, color) in curves.drawing_order() {
        course = course.line(curves.curve(&curves.variance, latent), Stroke::new(color));
    }

    let mut end = Panel::new()
        .title("After training")
        .x_label("Latent")
        .x_categories(
            (1..=curves.depth_of_latent.len()).map(|number| format!("z{}", subscript(number))),
        )
        .y_label("Posterior variance")
        .y_range(0.0, final_upper_end(curves))
        .legend(Legend::Right);
    for (latent, color) in curves.drawing_order() {
        // The references look as in the panel beside it, cut to the place of their latent.
        let level = |value: f64| [-0.36, 0.36].map(|side| (latent as f64 + side, value));
        end = end
            .line(
                level(curves.mean_field_variance[latent]),
                reference(color).dotted(),
            )
            .line(
                level(curves.exact_variance[latent]),
                reference(color).dashed(),
            )
            .points(
                [(latent as f64, curves.final_variance[latent])],
                Marker::disc(color),
            );
    }
    end = depth_entries(end, curves)
        .legend_entry("RAMP", Key::Line(Stroke::new(INK)))
        .legend_entry("RAMP", Key::Marker(Marker::disc(INK)))
        .legend_entry("exact inference", Key::Line(reference(INK).dashed()))
        .legend_entry("mean field", Key::Line(reference(INK).dotted()));
    Ok(Figure::new(PAGE_MM, 62.0)
        .panel(course)
        .panel(end)
        .lettered())
}

/// The colour of legend entries that hold for every depth.
const INK: Color = Color::hex(0x333333);

/// One colour per level, the root first.
fn depth_color(depth: usize) -> Color {
    match depth {
        0 => BLUE,
        1 => VERMILLION,
        2 => GREEN,
        deeper => series(deeper),
    }
}

/// Thinner than the data it is compared with.
fn reference(color: Color) -> Stroke {
    Stroke::new(color).width(0.9)
}

fn depth_entries(mut panel: Panel, curves: &LinearTreeCurves) -> Panel {
    let mut first = 0;
    for group in curves.depth_of_latent.chunk_by(|a, b| a == b) {
        let (from, to) = (first + 1, first + group.len());
        let name = match group.len() {
            1 => format!("z{}", subscript(from)),
            2 => format!("z{}, z{}", subscript(from), subscript(to)),
            _ => format!("z{} – z{}", subscript(from), subscript(to)),
        };
        panel = panel.legend_entry(
            name,
            Key::Line(Stroke::new(depth_color(group[0])).width(1.6)),
        );
        first = to;
    }
    panel
}

fn subscript(number: usize) -> String {
    let small =
        |digit: char| char::from_u32(0x2080 + digit.to_digit(10).unwrap_or(0)).unwrap_or(digit);
    number.to_string().chars().map(small).collect()
}

/// The end of the axis while training, which starts near the prior's variance of one.
fn upper_end(curves: &LinearTreeCurves) -> f64 {
    let highest = highest(curves.variance.iter().flatten()).max(final_upper_end(curves));
    if highest > 1.0 {
        1.03 * highest
    } else {
        highest
    }
}

/// The end of the axis after training, a round number above all values.
fn final_upper_end(curves: &LinearTreeCurves) -> f64 {
    let references = curves
        .exact_variance
        .iter()
        .chain(&curves.mean_field_variance);
    let highest = highest(references.chain(&curves.final_variance));
    if highest > 0.0 {
        (1.05 * highest * 10.0).ceil() / 10.0
    } else {
        1.0
    }
}

fn highest<'a>(values: impl Iterator<Item = &'a f64>) -> f64 {
    values
        .copied()
        .filter(|value| value.is_finite())
        .fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree_data::LinearTree;

    /// Curves as a good run leaves them, with the levels of the paper's tree.
    fn plausible() -> LinearTreeCurves {
        let tree = LinearTree::default();
        let posterior = tree.gaussian().unwrap().posterior(&[]).unwrap();
        let depth_of_latent = tree.depth_of_latent().unwrap();
        let (exact, correlations) = (posterior.variances().to_vec(), posterior.correlations());
        let iterations: Vec<usize> = (0..=500).step_by(5).collect();
        let wobble = |i: usize, latent: usize| {
            0.008 * ((i as f64 * 0.13 + 2.0 * latent as f64).sin() + (i as f64 * 0.41).cos())
        };
        let late = |latent: usize| {
            40.0 + 35.0 * (2.0 - depth_of_latent[latent] as f64) + 5.0 * latent as f64
        };
        let rise = |i: usize, latent: usize| 1.0 - (-(i as f64) / late(latent)).exp();
        let rows = |value: &dyn Fn(usize, usize) -> f64| -> Vec<Vec<f64>> {
            iterations
                .iter()
                .map(|&i| (0..7).map(|latent| value(i, latent)).collect())
                .collect()
        };
        let correlation = rows(&|i, k| (correlations[k] * rise(i, k) + wobble(i, k) * 0.5).abs());
        let variance =
            rows(&|i, k| exact[k] + (1.0 - exact[k]) * (1.0 - rise(i, k)) + wobble(i, k));
        LinearTreeCurves {
            final_variance: variance.last().unwrap().clone(),
            correlation,
            variance,
            exact_correlation: correlations,
            mean_field_variance: posterior.mean_field_variances().to_vec(),
            exact_variance: exact,
            iterations,
            depth_of_latent,
        }
    }

    #[test]
    fn both_figures_draw() {
        let temporary = tempfile::tempdir().unwrap();
        // A place to look at them: FIGURES=folder cargo test -p ramp-lab figures_draw
        let wanted = std::env::var_os("FIGURES").map(std::path::PathBuf::from);
        let folder = wanted.as_deref().unwrap_or(temporary.path());
        let curves = plausible();
        for (figure, name) in [
            (
                correlation_figure(&curves).unwrap(),
                "linear-tree-correlation",
            ),
            (variance_figure(&curves).unwrap(), "linear-tree-variance"),
        ] {
            assert!(figure.write(folder, name).unwrap().png.is_file());
        }
    }

    #[test]
    fn curves_that_do_not_fit_together_are_refused() {
        let mut short = plausible();
        short.variance.pop();
        let message = variance_figure(&short).unwrap_err().to_string();
        assert!(
            message.contains("100 values of variance for 101 iterations"),
            "{message}"
        );
        let mut thin = plausible();
        thin.correlation[3].pop();
        assert!(correlation_figure(&thin).is_err());
        let mut bare = plausible();
        bare.exact_variance.clear();
        assert!(correlation_figure(&bare).is_err());
        assert!(correlation_figure(&LinearTreeCurves::default()).is_ok());
    }
}
