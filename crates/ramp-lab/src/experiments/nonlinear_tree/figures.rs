//! The figures of the nonlinear tree: bars of all methods, learning curves, reciprocals against posterior means.

use super::data::RECIPROCAL_LIMIT;
use super::{NonlinearTreeResults, PerMethod, SpearmanPoint};
use crate::error::LabError;
use crate::figure::{Figure, Image, Key, Legend, PAGE_MM, Panel, Stroke};
use crate::harness::style::{
    BBVI_COLOR, GAUSSIAN_COLOR, INK, RAMP_COLOR, depth_color, depth_entries, latent_names,
    level_means, level_names, method_bars, reference, subscript,
};
use crate::metrics::pearson;

/// Clipped reciprocals of true latents and posterior means before and after learning, a row per latent.
pub(in crate::experiments) struct Scatter {
    pub truth: Vec<Vec<f64>>,
    pub before: Vec<Vec<f64>>,
    pub after: Vec<Vec<f64>>,
}

/// Correlations of every latent and method: Spearman's with latents, Pearson's with their reciprocals.
pub(super) fn bars_figure(results: &NonlinearTreeResults) -> Figure {
    let bars = |label: &str, values: &PerMethod| {
        Panel::new()
            .x_categories(latent_names(results.depth_of_latent.len()))
            .y_label(label)
            .y_range(0.0, 1.0)
            .legend(Legend::Above)
            .bars(method_bars(vec![
                ("RAMP", &values.ramp, RAMP_COLOR),
                ("BBVI", &values.bbvi, BBVI_COLOR),
                ("Gaussian (supervised)", &values.gaussian, GAUSSIAN_COLOR),
            ]))
    };
    // Spearman's correlation of a number with its reciprocal is one half: who finds reciprocals gets no further.
    let spearman = &results.spearman;
    let all = [&spearman.ramp, &spearman.bbvi, &spearman.gaussian];
    let highest = all.into_iter().flatten().copied().fold(0.0, f64::max);
    Figure::new(PAGE_MM, 62.0)
        .panel(
            bars("|Spearman correlation| with z", spearman)
                .y_range(0.0, (highest * 11.0).ceil().clamp(1.0, 10.0) / 10.0),
        )
        .panel(bars(
            "|Pearson correlation| with 1/z",
            &results.pearson_reciprocal,
        ))
        .lettered()
}

/// Spearman's correlation per iteration for RAMP and BBVI, with the level of the Gaussian approximation.
pub(super) fn learning_figure(results: &NonlinearTreeResults) -> Figure {
    let depths = &results.depth_of_latent;
    let gaussian = level_means(&results.spearman.gaussian, depths);
    let during = |title: &str, points: &[SpearmanPoint], legend: Legend| {
        let mut panel = Panel::new()
            .title(title)
            .x_label("Iteration")
            .y_label("|Spearman correlation|")
            .y_range(0.0, 0.6)
            .legend(legend);
        for (latent, &depth) in depths.iter().enumerate().rev() {
            let line = points
                .iter()
                .map(move |p| (p.iteration as f64, p.spearman[latent]));
            panel = panel.line(line, Stroke::new(depth_color(depth)));
        }
        for (level, value) in gaussian.iter().enumerate() {
            panel = panel.hline(*value, reference(depth_color(level)).dashed());
        }
        panel
    };
    Figure::new(PAGE_MM, 60.0)
        .panel(during("RAMP", &results.history, Legend::Hidden))
        .panel(
            depth_entries(during("BBVI", &results.bbvi_history, Legend::Right), depths)
                .legend_entry("Gaussian (supervised)", Key::Line(reference(INK).dashed())),
        )
        .lettered()
}

/// Clipped reciprocals against posterior means, before and after learning: the first latent of every level.
pub(super) fn scatter_figure(scatter: &Scatter, depths: &[usize]) -> Result<Figure, LabError> {
    let levels = level_names(depths).len();
    let mut figure = Figure::new(PAGE_MM, 105.0).columns(levels).lettered();
    for (title, means) in [("before", &scatter.before), ("after", &scatter.after)] {
        for level in 0..levels {
            let latent = depths.iter().position(|&d| d == level).unwrap_or(0);
            let (truth, means) = (&scatter.truth[latent], &means[latent]);
            let name = format!("z{}", subscript(latent + 1));
            let x = (-1.05 * RECIPROCAL_LIMIT, 1.05 * RECIPROCAL_LIMIT);
            let y = spread(means);
            let points = truth.iter().copied().zip(means.iter().copied());
            let image =
                Image::from_points(points, x, y, (640, 480), 2.2, depth_color(level), 0.25)?;
            let r = pearson(truth, means);
            figure = figure.panel(
                Panel::new()
                    .title(format!("{name} {title} learning, r = {r:.2}").replace('-', "−"))
                    .x_label(format!("1/{name}, clipped"))
                    .y_label("Posterior mean")
                    .x_range(x.0, x.1)
                    .y_range(y.0, y.1)
                    .image(image, x, y),
            );
        }
    }
    Ok(figure)
}

/// A range symmetric about zero with room around all values.
fn spread(values: &[f64]) -> (f64, f64) {
    let reach = values
        .iter()
        .copied()
        .filter(|v| v.is_finite())
        .fold(0.0, |reach: f64, v| reach.max(v.abs()));
    let reach = if reach > 0.0 { 1.1 * reach } else { 1.0 };
    (-reach, reach)
}
