//! The figures of the linear tree: correlation and posterior variance per iteration and at the end.

use super::LinearTreeResults;
use crate::figure::{COLUMN_MM, Color, Figure, GREY, Key, Legend, Marker, PAGE_MM, Panel, Stroke};
use crate::harness::style::{
    BBVI_COLOR, INK, RAMP_COLOR, depth_color, depth_entries, latent_names, method_bars, reference,
};

/// Latents from the deepest up, so that the few near the root are drawn over the many below.
fn drawing_order(depths: &[usize]) -> impl Iterator<Item = (usize, Color)> + '_ {
    let latents = depths.iter().enumerate().rev();
    latents.map(|(latent, &depth)| (latent, depth_color(depth)))
}

/// One latent's part of a learning curve.
fn curve<P>(
    points: &[P],
    latent: usize,
    read: fn(&P) -> (usize, &Vec<f64>),
) -> impl Iterator<Item = (f64, f64)> + '_ {
    let read = points.iter().map(read);
    read.filter_map(move |(iteration, row)| Some((iteration as f64, *row.get(latent)?)))
}

/// Correlations per iteration with the level of exact inference.
fn correlation_panel<P>(
    results: &LinearTreeResults,
    depths: &[usize],
    points: &[P],
    read: fn(&P) -> (usize, &Vec<f64>),
) -> Panel {
    let mut panel = Panel::new()
        .x_label("Iteration")
        .y_label("|Pearson correlation|")
        .y_range(0.0, 1.0);
    for (latent, color) in drawing_order(depths) {
        panel = panel.line(curve(points, latent, read), Stroke::new(color));
    }
    for (latent, color) in drawing_order(depths) {
        panel = panel.hline(results.corr.exact[latent], reference(color).dashed());
    }
    panel
}

fn ramp_panel(results: &LinearTreeResults, depths: &[usize]) -> Panel {
    let history = &results.corr_history;
    let panel = correlation_panel(results, depths, history, |p| (p.iteration, &p.corr));
    depth_entries(panel.legend(Legend::Inside), depths)
        .legend_entry("exact inference", Key::Line(reference(INK).dashed()))
}

/// The correlation of each latent with the truth per iteration, with the level of exact inference.
pub(super) fn correlation_figure(results: &LinearTreeResults, depths: &[usize]) -> Figure {
    Figure::new(COLUMN_MM, 62.0).panel(ramp_panel(results, depths))
}

/// BBVI beside RAMP: correlations per iteration with the level of exact inference, and at the end.
pub(super) fn bbvi_figure(results: &LinearTreeResults, depths: &[usize]) -> Figure {
    let history = &results.bbvi_history;
    let bbvi = correlation_panel(results, depths, history, |p| (p.iteration, &p.corr));
    let bars = method_bars(vec![
        ("exact", &results.corr.exact, GREY),
        ("RAMP", &results.corr.ramp, RAMP_COLOR),
        ("BBVI", &results.corr.bbvi, BBVI_COLOR),
    ]);
    let end = Panel::new()
        .title("After training")
        .x_categories(latent_names(depths.len()))
        .y_label("|Pearson correlation|")
        .y_range(0.0, 1.0)
        .legend(Legend::Above)
        .bars(bars);
    Figure::new(PAGE_MM, 60.0)
        .panel(bbvi.title("BBVI").legend(Legend::Hidden))
        .panel(ramp_panel(results, depths).title("RAMP"))
        .panel(end)
        .column_shares([1.0, 1.0, 1.15])
        .lettered()
}

/// The average posterior variance of each latent: per iteration, and at the end of training against
/// exact inference and the mean-field approximation.
pub(super) fn variance_figure(results: &LinearTreeResults, depths: &[usize]) -> Figure {
    let variance = &results.variance;
    let mut during = Panel::new()
        .title("During training")
        .x_label("Iteration")
        .y_label("Posterior variance")
        .y_range(0.0, upper_end(results))
        .legend(Legend::Hidden);
    for (latent, color) in drawing_order(depths) {
        during = during
            .hline(variance.mean_field[latent], reference(color).dotted())
            .hline(variance.exact[latent], reference(color).dashed());
    }
    for (latent, color) in drawing_order(depths) {
        let line = curve(&results.corr_history, latent, |p| {
            (p.iteration, &p.variance)
        });
        during = during.line(line, Stroke::new(color));
    }

    let mut end = Panel::new()
        .title("After training")
        .x_label("Latent")
        .x_categories(latent_names(depths.len()))
        .y_label("Posterior variance")
        .y_range(0.0, final_upper_end(results))
        .legend(Legend::Right);
    for (latent, color) in drawing_order(depths) {
        // The references look as in the panel beside it, cut to the place of their latent.
        let level = |value: f64| [-0.36, 0.36].map(|side| (latent as f64 + side, value));
        end = end
            .line(
                level(variance.mean_field[latent]),
                reference(color).dotted(),
            )
            .line(level(variance.exact[latent]), reference(color).dashed())
            .points(
                [(latent as f64, variance.ramp[latent])],
                Marker::disc(color),
            );
    }
    end = depth_entries(end, depths)
        .legend_entry("RAMP", Key::Line(Stroke::new(INK)))
        .legend_entry("RAMP", Key::Marker(Marker::disc(INK)))
        .legend_entry("exact inference", Key::Line(reference(INK).dashed()))
        .legend_entry("mean field", Key::Line(reference(INK).dotted()));
    Figure::new(PAGE_MM, 62.0)
        .panel(during)
        .panel(end)
        .lettered()
}

/// The end of the axis while training, which starts near the prior's variance of one.
fn upper_end(results: &LinearTreeResults) -> f64 {
    let all = results.corr_history.iter().flat_map(|p| &p.variance);
    let highest = highest(all).max(final_upper_end(results));
    if highest > 1.0 {
        1.03 * highest
    } else {
        highest
    }
}

/// The end of the axis after training, a round number above all values.
fn final_upper_end(results: &LinearTreeResults) -> f64 {
    let variance = &results.variance;
    let references = variance.exact.iter().chain(&variance.mean_field);
    let highest = highest(references.chain(&variance.ramp));
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
