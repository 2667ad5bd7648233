//! Where the panels of a figure stand: a grid in which axes align and margins fit their labels.

use super::Figure;
use super::axes::{Margins, Prepared};
use super::legend::Legend;
use super::svg::{Area, Svg};

const OUTER: f64 = 3.0;
const COLUMN_GAP: f64 = 12.0;
const ROW_GAP: f64 = 9.0;

pub(super) fn draw(figure: &Figure, width: f64, height: f64, svg: &mut Svg) {
    let columns = figure.column_count();
    let rows = figure.panels.len().div_ceil(columns).max(1);
    let shares: Vec<f64> = (0..columns)
        .map(|c| figure.column_shares.get(c).copied().unwrap_or(1.0))
        .collect();
    let arrange = |prepared: &[Prepared]| arrange(prepared, &shares, rows, width, height);
    let prepare = |legends: &[Legend], areas: &[Area]| -> Vec<Prepared<'_>> {
        let panels = figure.panels.iter().zip(legends).zip(areas);
        panels
            .map(|((panel, &legend), area)| {
                Prepared::new(
                    panel,
                    legend,
                    (area.width(), area.height()),
                    figure.lettered,
                )
            })
            .collect()
    };

    // Ticks depend on the size of the axes and margins on the ticks: a guess first, then the real size.
    let share = Area {
        left: 45.0,
        top: 35.0,
        right: width / columns as f64,
        bottom: height / rows as f64,
    };
    let mut legends: Vec<Legend> = figure.panels.iter().map(|panel| panel.legend).collect();
    let guess = arrange(&prepare(&legends, &vec![share; legends.len()]));
    let mut prepared = prepare(&legends, &guess);
    let mut areas = arrange(&prepared);

    // A legend that would cover data inside its panel moves out, and all panels move with it.
    let mut crowded = false;
    for ((panel, area), legend) in prepared.iter().zip(&areas).zip(&mut legends) {
        if *legend == Legend::Inside && !panel.legend_fits_inside(*area) {
            *legend = Legend::Right;
            crowded = true;
        }
    }
    if crowded {
        let guess = arrange(&prepare(&legends, &areas));
        prepared = prepare(&legends, &guess);
        areas = arrange(&prepared);
    }

    for (index, (panel, area)) in prepared.iter().zip(&areas).enumerate() {
        let letter = figure.lettered.then(|| {
            let margin = widest(&prepared, |m| m.left, |i| i % columns == index % columns);
            // Pictures of equal aspect are narrower than their column; letters stay in line.
            let column = areas.iter().skip(index % columns).step_by(columns);
            let left = column.map(|area| area.left).fold(f64::INFINITY, f64::min);
            (char::from(b'a' + (index % 26) as u8), left - margin)
        });
        panel.draw(*area, letter, svg);
    }
}

/// The largest of one margin among the panels of a row or column.
fn widest(prepared: &[Prepared], pick: fn(&Margins) -> f64, keep: impl Fn(usize) -> bool) -> f64 {
    let kept = prepared
        .iter()
        .enumerate()
        .filter(|(index, _)| keep(*index));
    kept.map(|(_, panel)| pick(&panel.margins))
        .fold(0.0, f64::max)
}

/// The axes of all panels: aligned in rows and columns, as large as their margins allow.
fn arrange(
    prepared: &[Prepared],
    shares: &[f64],
    rows: usize,
    width: f64,
    height: f64,
) -> Vec<Area> {
    let columns = shares.len();
    let lefts: Vec<f64> = (0..columns)
        .map(|c| widest(prepared, |m| m.left, |i| i % columns == c))
        .collect();
    let rights: Vec<f64> = (0..columns)
        .map(|c| widest(prepared, |m| m.right, |i| i % columns == c))
        .collect();
    let tops: Vec<f64> = (0..rows)
        .map(|r| widest(prepared, |m| m.top, |i| i / columns == r))
        .collect();
    let bottoms: Vec<f64> = (0..rows)
        .map(|r| widest(prepared, |m| m.bottom, |i| i / columns == r))
        .collect();

    let sum = |values: &[f64]| values.iter().sum::<f64>();
    let free_width =
        width - 2.0 * OUTER - sum(&lefts) - sum(&rights) - COLUMN_GAP * (columns as f64 - 1.0);
    let free_height =
        height - 2.0 * OUTER - sum(&tops) - sum(&bottoms) - ROW_GAP * (rows as f64 - 1.0);
    // A figure too small for its labels still has axes, if tiny ones.
    let column_width = |c: usize| (free_width * shares[c] / sum(shares)).max(8.0);
    let row_height = (free_height / rows as f64).max(8.0);

    let mut areas = Vec::with_capacity(prepared.len());
    for (index, panel) in prepared.iter().enumerate() {
        let (row, column) = (index / columns, index % columns);
        let left = OUTER
            + sum(&lefts[..=column])
            + sum(&rights[..column])
            + (0..column)
                .map(|c| column_width(c) + COLUMN_GAP)
                .sum::<f64>();
        let top =
            OUTER + sum(&tops[..=row]) + sum(&bottoms[..row]) + row as f64 * (row_height + ROW_GAP);
        let cell = Area {
            left,
            top,
            right: left + column_width(column),
            bottom: top + row_height,
        };
        areas.push(if panel.panel.equal_aspect {
            equalised(cell, panel.x, panel.y)
        } else {
            cell
        });
    }
    areas
}

/// The largest area inside another in which a unit of both axes has the same length.
fn equalised(cell: Area, x: (f64, f64), y: (f64, f64)) -> Area {
    let (across, up) = ((x.1 - x.0).abs(), (y.1 - y.0).abs());
    let unit = (cell.width() / across).min(cell.height() / up);
    if !unit.is_finite() {
        return cell;
    }
    let (spare_x, spare_y) = (cell.width() - unit * across, cell.height() - unit * up);
    Area {
        left: cell.left + 0.5 * spare_x,
        right: cell.right - 0.5 * spare_x,
        top: cell.top + 0.5 * spare_y,
        bottom: cell.bottom - 0.5 * spare_y,
    }
}
