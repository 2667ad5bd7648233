//! The figures of the linear tree: correlation and posterior variance per iteration and at the end.

use serde::{Deserialize, Serialize};

use super::latents::{
    BBVI_COLOR, INK, RAMP_COLOR, depth_color, depth_entries, latent_names, method_bars, reference,
};
use crate::error::LabError;
use crate::figure::{COLUMN_MM, Color, Figure, GREY, Key, Legend, Marker, PAGE_MM, Panel, Stroke};

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
    /// The iterations at which the curves of BBVI have a point.
    pub bbvi_iterations: Vec<usize>,
    /// The absolute correlation of BBVI's means and true latents, per point and latent.
    pub bbvi_correlation: Vec<Vec<f64>>,
    /// RAMP's correlation after the last iteration, per latent.
    pub final_correlation: Vec<f64>,
    /// That of BBVI.
    pub final_bbvi_correlation: Vec<f64>,
    /// The level of every latent, 0 for the root.
    pub depth_of_latent: Vec<usize>,
}

impl LinearTreeCurves {
    /// Refuses curves whose lengths do not agree, rather than drawing some of them.
    fn check(&self) -> Result<(), LabError> {
        let latents = self.depth_of_latent.len();
        let complain = |what: &str, found: usize, wanted: usize, of: &str| {
            Err(LabError::Invalid(format!(
                "the curves of the linear tree have {found} values of {what} for {wanted} {of}"
            )))
        };
        for (what, rows, iterations) in [
            ("correlation", &self.correlation, &self.iterations),
            ("variance", &self.variance, &self.iterations),
            (
                "BBVI's correlation",
                &self.bbvi_correlation,
                &self.bbvi_iterations,
            ),
        ] {
            if rows.len() != iterations.len() {
                return complain(what, rows.len(), iterations.len(), "iterations");
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
            ("final correlation", &self.final_correlation),
            ("BBVI's final correlation", &self.final_bbvi_correlation),
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
        course(&self.iterations, rows, latent)
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
    panel = depth_entries(panel, &curves.depth_of_latent)
        .legend_entry("exact inference", Key::Line(reference(INK).dashed()));
    Ok(Figure::new(COLUMN_MM, 62.0).panel(panel))
}

/// BBVI beside RAMP: correlations per iteration with the level of exact inference, and at the end.
pub fn bbvi_figure(curves: &LinearTreeCurves) -> Result<Figure, LabError> {
    curves.check()?;
    let during = |title: &str, iterations: &[usize], rows: &[Vec<f64>]| {
        let mut panel = Panel::new()
            .title(title)
            .x_label("Iteration")
            .y_label("|Pearson correlation|")
            .y_range(0.0, 1.0)
            .legend(Legend::Hidden);
        for (latent, color) in curves.drawing_order() {
            panel = panel.line(course(iterations, rows, latent), Stroke::new(color));
        }
        for (latent, color) in curves.drawing_order() {
            panel = panel.hline(curves.exact_correlation[latent], reference(color).dashed());
        }
        panel
    };
    let ramp = depth_entries(
        during("RAMP", &curves.iterations, &curves.correlation).legend(Legend::Inside),
        &curves.depth_of_latent,
    )
    .legend_entry("exact inference", Key::Line(reference(INK).dashed()));
    let bars = method_bars(vec![
        ("exact", &curves.exact_correlation, GREY),
        ("RAMP", &curves.final_correlation, RAMP_COLOR),
        ("BBVI", &curves.final_bbvi_correlation, BBVI_COLOR),
    ]);
    let end = Panel::new()
        .title("After training")
        .x_categories(latent_names(curves.depth_of_latent.len()))
        .y_label("|Pearson correlation|")
        .y_range(0.0, 1.0)
        .legend(Legend::Above)
        .bars(bars);
    Ok(Figure::new(PAGE_MM, 60.0)
        .panel(during(
            "BBVI",
            &curves.bbvi_iterations,
            &curves.bbvi_correlation,
        ))
        .panel(ramp)
        .panel(end)
        .column_shares([1.0, 1.0, 1.15])
        .lettered())
}

fn course<'a>(
    iterations: &'a [usize],
    rows: &'a [Vec<f64>],
    latent: usize,
) -> impl Iterator<Item = (f64, f64)> + 'a {
    let points = iterations.iter().zip(rows);
    points.map(move |(&iteration, row)| (iteration as f64, row[latent]))
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
        .x_categories(latent_names(curves.depth_of_latent.len()))
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
    end = depth_entries(end, &curves.depth_of_latent)
        .legend_entry("RAMP", Key::Line(Stroke::new(INK)))
        .legend_entry("RAMP", Key::Marker(Marker::disc(INK)))
        .legend_entry("exact inference", Key::Line(reference(INK).dashed()))
        .legend_entry("mean field", Key::Line(reference(INK).dotted()));
    Ok(Figure::new(PAGE_MM, 62.0)
        .panel(course)
        .panel(end)
        .lettered())
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
            bbvi_iterations: iterations.iter().map(|i| 5 * i).collect(),
            bbvi_correlation: rows(&|i, k| 0.8 * correlations[k] * rise(i / 2, k)),
            final_correlation: correlations.clone(),
            final_bbvi_correlation: correlations.iter().map(|c| 0.8 * c).collect(),
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
    fn all_figures_draw() {
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
            (bbvi_figure(&curves).unwrap(), "linear-tree-bbvi"),
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
        let mut fewer = plausible();
        fewer.bbvi_correlation.pop();
        assert!(bbvi_figure(&fewer).is_err());
        let mut bare = plausible();
        bare.exact_variance.clear();
        assert!(correlation_figure(&bare).is_err());
        assert!(correlation_figure(&LinearTreeCurves::default()).is_ok());
    }
}
