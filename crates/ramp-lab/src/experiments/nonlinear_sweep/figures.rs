//! The figure of the nonlinear sweep.

use super::NonlinearSweepResults;
use crate::experiments::nonlinear_tree::Method;
use crate::figure::{Figure, Legend, Marker, PAGE_MM, Panel, Shape, Stroke};
use crate::harness::style::{BBVI_COLOR, GAUSSIAN_COLOR, RAMP_COLOR, level_names};

/// A row per level, a column per link: correlation against the share of noise for every method.
pub(super) fn summary_figure(results: &NonlinearSweepResults) -> Figure {
    let links = &results.info.settings.links;
    let levels = level_names(&results.depth_of_latent);
    let mut figure = Figure::new(PAGE_MM, 42.0 * levels.len() as f64 + 8.0).columns(links.len());
    let methods: [(&str, Method, _, _); 3] = [
        ("RAMP", |m| &m.ramp, RAMP_COLOR, Shape::Disc),
        ("BBVI", |m| &m.bbvi, BBVI_COLOR, Shape::Square),
        ("Gaussian", |m| &m.gaussian, GAUSSIAN_COLOR, Shape::Triangle),
    ];
    let noises = &results.info.settings.noises;
    let least = noises.iter().copied().fold(f64::INFINITY, f64::min);
    let most = noises.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    for (level, (_, name)) in levels.iter().enumerate() {
        for (column, &link) in links.iter().enumerate() {
            let last = level + 1 == levels.len();
            let mut panel = Panel::new()
                .y_range(0.0, 1.0)
                .x_range(least - 0.04, most + 0.04)
                .legend(if level == 0 && column + 1 == links.len() {
                    Legend::Right
                } else {
                    Legend::Hidden
                });
            if level == 0 {
                panel = panel.title(link.formula());
            }
            if last {
                panel = panel.x_label("Noise α");
            }
            if column == 0 {
                panel = panel.y_label(format!("|Spearman|, {name}"));
            }
            for (method, pick, color, shape) in methods {
                let points: Vec<(f64, f64)> = noises
                    .iter()
                    .map(|&noise| (noise, results.level_means(link, noise, pick)[level]))
                    .collect();
                panel = panel
                    .line(points.iter().copied(), Stroke::new(color))
                    .named(method)
                    .points(points, Marker::new(shape, color).size(3.2))
                    .named(method);
            }
            figure = figure.panel(panel);
        }
    }
    figure
}
