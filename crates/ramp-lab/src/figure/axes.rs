//! One panel on paper: its ticks, the margins they need, and the drawing of axes, title and legend.

use super::legend::{self, Legend};
use super::mark::Mark;
use super::panel::{Axis, Panel};
use super::raster::text_width;
use super::scale::{Scale, Tick, linear_ticks, log_ticks, padded};
use super::style::{Stroke, ink, size};
use super::svg::{Align, Area, Svg};

/// Between tick and label, between label and axis title.
const GAP: f64 = 2.5;
/// The height of a line of text as a share of its size.
const LINE: f64 = 1.25;
/// How far category names lean when they do not fit side by side.
const LEAN: f64 = 38.0;
/// The least margin in which the letter of a panel stands free of its title.
const LETTER_MARGIN: f64 = 12.0;

/// The room around a pair of axes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Margins {
    pub left: f64,
    pub top: f64,
    pub right: f64,
    pub bottom: f64,
}

/// A panel with its ranges and ticks chosen.
pub(super) struct Prepared<'a> {
    pub panel: &'a Panel,
    pub x: (f64, f64),
    pub y: (f64, f64),
    x_ticks: Vec<Tick>,
    y_ticks: Vec<Tick>,
    leaning: bool,
    legend: Legend,
    /// The width for which the rows of a legend above were broken.
    width: f64,
    pub margins: Margins,
}

fn range(axis: &Axis, values: &[f64], margin: f64) -> (f64, f64) {
    let given = axis.range.filter(|&(low, high)| {
        low.is_finite() && high.is_finite() && low != high && !(axis.log && low.min(high) <= 0.0)
    });
    given.unwrap_or_else(|| {
        let seen = values
            .iter()
            .copied()
            .filter(|&value| !axis.log || value > 0.0);
        let extent = seen.fold(None, |extent: Option<(f64, f64)>, value| {
            let (low, high) = extent.unwrap_or((value, value));
            Some((low.min(value), high.max(value)))
        });
        padded(extent, axis.log, margin)
    })
}

fn ticks(axis: &Axis, range: (f64, f64), wanted: usize) -> Vec<Tick> {
    let inside = |at: f64| at >= range.0.min(range.1) && at <= range.0.max(range.1);
    match &axis.ticks {
        Some(chosen) => chosen
            .iter()
            .filter(|tick| inside(tick.at))
            .cloned()
            .collect(),
        None if axis.log => log_ticks(range, wanted),
        None => linear_ticks(range, wanted),
    }
}

fn fit_side_by_side(ticks: &[Tick], range: (f64, f64), log: bool, width: f64) -> bool {
    let scale = Scale::new(log, range, (0.0, width));
    let mut end = f64::NEG_INFINITY;
    ticks
        .iter()
        .filter_map(|tick| Some((scale.place(tick.at)?, tick)))
        .all(|(place, tick)| {
            let half = 0.5 * text_width(&tick.label, size::SMALL);
            let fits = place - half >= end;
            end = place + half + 4.0;
            fits
        })
}

fn widest_label(ticks: &[Tick]) -> f64 {
    ticks
        .iter()
        .map(|tick| text_width(&tick.label, size::SMALL))
        .fold(0.0, f64::max)
}

impl<'a> Prepared<'a> {
    /// Chooses ranges, ticks and margins for axes of about this size.
    pub fn new(
        panel: &'a Panel,
        legend: Legend,
        (width, height): (f64, f64),
        lettered: bool,
    ) -> Self {
        let (mut xs, mut ys) = (Vec::new(), Vec::new());
        for mark in &panel.marks {
            let (x, y) = mark.values();
            xs.extend(x);
            ys.extend(y);
        }
        let x_margin = if panel.marks.iter().any(|mark| mark.needs_margin()) {
            0.05
        } else {
            0.0
        };
        let x = range(&panel.x, &xs, x_margin);
        let mut y = range(&panel.y, &ys, 0.05);
        let has_bars = panel
            .marks
            .iter()
            .any(|mark| matches!(mark, Mark::Bars { .. }));
        if panel.y.range.is_none() && has_bars && !panel.y.log {
            // Bars stand on the axis.
            if ys.iter().all(|&value| value >= 0.0) {
                y.0 = 0.0;
            } else if ys.iter().all(|&value| value <= 0.0) {
                y.1 = 0.0;
            }
        }

        let y_ticks = ticks(&panel.y, y, (height / 20.0).clamp(2.0, 6.0) as usize);
        let mut wanted = (width / 28.0).clamp(2.0, 7.0) as usize;
        let mut x_ticks = ticks(&panel.x, x, wanted);
        while wanted > 1
            && panel.x.ticks.is_none()
            && !fit_side_by_side(&x_ticks, x, panel.x.log, width)
        {
            wanted -= 1;
            x_ticks = ticks(&panel.x, x, wanted);
        }
        let leaning = panel.x.categories && !fit_side_by_side(&x_ticks, x, false, width);

        let mut prepared = Self {
            panel,
            x,
            y,
            x_ticks,
            y_ticks,
            leaning,
            legend,
            width,
            margins: Margins::default(),
        };
        prepared.margins = prepared.needed_margins(lettered);
        prepared
    }

    fn needed_margins(&self, lettered: bool) -> Margins {
        let panel = self.panel;
        let mut margins = Margins {
            left: 1.0,
            top: 1.0,
            right: 1.0,
            bottom: 1.0,
        };
        if panel.axes {
            margins.left = widest_label(&self.y_ticks) + size::TICK + GAP;
            if !panel.y.label.is_empty() {
                margins.left += LINE * size::LABEL + GAP;
            }
            margins.bottom = self.x_label_height() + size::TICK + GAP;
            if !panel.x.label.is_empty() {
                margins.bottom += LINE * size::LABEL + 0.5 * GAP;
            }
            // Half of the outermost labels hang over the ends of the axes.
            margins.top = 0.5 * size::SMALL;
            if let (Some(last), false) = (self.x_ticks.last(), self.leaning || panel.x.categories) {
                margins.right = 0.5 * text_width(&last.label, size::SMALL);
            }
        }
        if lettered {
            margins.left = margins.left.max(LETTER_MARGIN);
        }
        if !panel.title.is_empty() || lettered {
            margins.top += LINE * size::LABEL + GAP;
        }
        match self.legend {
            Legend::Above if !panel.entries.is_empty() => {
                let rows = legend::rows(&panel.entries, self.width).len();
                margins.top += legend::ROW * rows as f64 + 1.0;
            }
            Legend::Right if !panel.entries.is_empty() => {
                margins.right = margins
                    .right
                    .max(legend::column_size(&panel.entries).0 + 6.0);
            }
            _ => {}
        }
        margins
    }

    fn x_label_height(&self) -> f64 {
        if self.leaning {
            let angle = LEAN.to_radians();
            widest_label(&self.x_ticks) * angle.sin() + size::SMALL * angle.cos()
        } else if self.x_ticks.is_empty() {
            0.0
        } else {
            size::SMALL
        }
    }

    fn scales(&self, area: Area) -> (Scale, Scale) {
        (
            Scale::new(self.panel.x.log, self.x, (area.left, area.right)),
            Scale::new(self.panel.y.log, self.y, (area.bottom, area.top)),
        )
    }

    /// Whether the legend finds a place inside the axes that is free of data.
    pub fn legend_fits_inside(&self, area: Area) -> bool {
        self.panel.entries.is_empty() || self.free_legend_place(area).is_some()
    }

    fn free_legend_place(&self, area: Area) -> Option<Area> {
        let (x, y) = self.scales(area);
        let taken: Vec<_> = self
            .panel
            .marks
            .iter()
            .flat_map(|mark| mark.footprint(&x, &y))
            .collect();
        legend::free_place(area, legend::column_size(&self.panel.entries), &taken)
    }

    /// Draws the panel, with its letter and the letter's left end if it has one.
    pub fn draw(&self, area: Area, letter: Option<(char, f64)>, svg: &mut Svg) {
        let (x, y) = self.scales(area);
        if self.panel.axes {
            self.draw_grid(area, &x, &y, svg);
        }
        // Lines and markers on the very edge keep their full width.
        svg.begin_clip(area.grown(1.5));
        for mark in &self.panel.marks {
            mark.draw(&x, &y, svg);
        }
        svg.end();
        if self.panel.axes {
            self.draw_axes(area, &x, &y, svg);
        }
        for mark in &self.panel.marks {
            mark.draw_above(&x, &y, svg);
        }
        self.draw_heading(area, letter, svg);
    }

    fn draw_grid(&self, area: Area, x: &Scale, y: &Scale, svg: &mut Svg) {
        let stroke = Stroke::new(ink::GRID).width(size::GRID);
        if !self.panel.x.categories {
            for at in self.x_ticks.iter().filter_map(|tick| x.place(tick.at)) {
                svg.line((at, area.top), (at, area.bottom), stroke);
            }
        }
        for at in self.y_ticks.iter().filter_map(|tick| y.place(tick.at)) {
            svg.line((area.left, at), (area.right, at), stroke);
        }
    }

    fn draw_axes(&self, area: Area, x: &Scale, y: &Scale, svg: &mut Svg) {
        let stroke = Stroke::new(ink::AXIS).width(size::AXIS);
        svg.polyline(
            &[vec![
                (area.left, area.top),
                (area.left, area.bottom),
                (area.right, area.bottom),
            ]],
            stroke,
        );
        let below = area.bottom + size::TICK + GAP;
        for tick in &self.x_ticks {
            let Some(at) = x.place(tick.at) else { continue };
            if !self.panel.x.categories {
                svg.line((at, area.bottom), (at, area.bottom + size::TICK), stroke);
            }
            if self.leaning {
                let corner = (at + 2.0, below + 0.5);
                svg.turned_text(
                    corner,
                    size::SMALL,
                    Align::End,
                    ink::TEXT,
                    &tick.label,
                    -LEAN,
                );
            } else {
                let middle = below + 0.5 * size::SMALL - 0.5;
                svg.text(
                    (at, middle),
                    size::SMALL,
                    Align::Middle,
                    ink::TEXT,
                    &tick.label,
                );
            }
        }
        for tick in &self.y_ticks {
            let Some(at) = y.place(tick.at) else { continue };
            svg.line((area.left - size::TICK, at), (area.left, at), stroke);
            let end = (area.left - size::TICK - GAP + 0.5, at);
            svg.text(end, size::SMALL, Align::End, ink::TEXT, &tick.label);
        }
        if !self.panel.x.label.is_empty() {
            let middle = below + self.x_label_height() + 0.5 * (LINE * size::LABEL + GAP) - 0.5;
            let centre = (0.5 * (area.left + area.right), middle);
            svg.text(
                centre,
                size::LABEL,
                Align::Middle,
                ink::TEXT,
                &self.panel.x.label,
            );
        }
        if !self.panel.y.label.is_empty() {
            let across = area.left - size::TICK - GAP - widest_label(&self.y_ticks);
            let centre = (
                across - GAP - 0.5 * size::LABEL,
                0.5 * (area.top + area.bottom),
            );
            svg.turned_text(
                centre,
                size::LABEL,
                Align::Middle,
                ink::TEXT,
                &self.panel.y.label,
                -90.0,
            );
        }
    }

    fn draw_heading(&self, area: Area, letter: Option<(char, f64)>, svg: &mut Svg) {
        let panel = self.panel;
        let mut bottom = area.top - if panel.axes { 0.5 * size::SMALL } else { 1.0 };
        if !panel.entries.is_empty() {
            match self.legend {
                Legend::Above => {
                    let rows = legend::rows(&panel.entries, self.width);
                    let top = bottom - legend::ROW * rows.len() as f64;
                    legend::draw_rows(&rows, (area.left, top), svg);
                    bottom = top - 1.0;
                }
                Legend::Right => {
                    let (width, height) = legend::column_size(&panel.entries);
                    let left = area.right + 6.0;
                    let place = Area {
                        left,
                        top: area.top,
                        right: left + width,
                        bottom: area.top + height,
                    };
                    legend::draw_column(&panel.entries, place, svg);
                }
                Legend::Inside => {
                    if let Some(place) = self.free_legend_place(area) {
                        legend::draw_column(&panel.entries, place, svg);
                    }
                }
                Legend::Hidden => {}
            }
        }
        let middle = bottom - 0.5 * LINE * size::LABEL - 0.5 * GAP;
        if !panel.title.is_empty() {
            svg.text(
                (area.left, middle),
                size::LABEL,
                Align::Start,
                ink::TEXT,
                &panel.title,
            );
        }
        if let Some((letter, left)) = letter {
            svg.letter((left, middle), ink::TEXT, letter);
        }
    }
}
