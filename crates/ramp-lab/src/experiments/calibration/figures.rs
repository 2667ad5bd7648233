//! The histograms of ranks, one for each kind of each case, with the band that right beliefs stay in.

use super::CaseResults;
use super::probe::{Of, Ranks};
use crate::figure::{BarSeries, Figure, GREY, PAGE_MM, Panel, Stroke};
use crate::harness::style::{INK, RAMP_COLOR, reference};

/// Panels side by side: with four, the longest titles are cut.
const ACROSS: usize = 3;

pub(super) fn ranks_figure(cases: &[CaseResults]) -> Figure {
    let panels: Vec<Panel> = cases
        .iter()
        .flat_map(|case| case.ranks.iter().map(move |ranks| panel(case, ranks)))
        .collect();
    let down = panels.len().div_ceil(ACROSS);
    let mut figure =
        Figure::new(PAGE_MM, 8.0 + 36.0 * down as f64).columns(ACROSS.min(panels.len()));
    for panel in panels {
        figure = figure.panel(panel);
    }
    figure
}

fn panel(case: &CaseResults, ranks: &Ranks) -> Panel {
    let found = &ranks.calibration;
    let bins = found.histogram.len();
    let even = found.ranks as f64 / bins as f64;
    // Two standard deviations of a bin's count.
    let band = 2.0 * (even * (1.0 - 1.0 / bins as f64)).sqrt() / even;
    let heights: Vec<f64> = found.histogram.iter().map(|&n| n as f64 / even).collect();
    let highest = heights.iter().copied().fold(1.0 + 2.0 * band, f64::max);
    let what = match ranks.of {
        Of::Latents => "latents",
        Of::HiddenCells => "hidden cells",
        Of::Forecasts => "forecasts",
    };
    let ticks = [
        (-0.5, "0"),
        (bins as f64 / 2.0 - 0.5, "0.5"),
        (bins as f64 - 0.5, "1"),
    ];
    Panel::new()
        .title(format!("{}, {what}", case.case.name()))
        .x_label("Rank")
        .y_label("Ranks, relative")
        .x_ticks(ticks)
        .x_range(-0.5, bins as f64 - 0.5)
        .y_range(0.0, 1.05 * highest)
        .bars(vec![BarSeries::new("", heights, RAMP_COLOR)])
        .hline(1.0, Stroke::new(INK))
        .hline(1.0 - band, reference(GREY).dashed())
        .hline(1.0 + band, reference(GREY).dashed())
}
