//! The legend: its entries, its size, and a place where it covers no data.

use super::raster::text_width;
use super::style::{Color, Marker, Stroke, WHITE, ink, size};
use super::svg::{Align, Area, Svg};

/// Where the legend of a panel stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Legend {
    /// In a corner or at an edge that is free of data; to the right of the axes if there is none.
    Inside,
    /// To the right of the axes.
    Right,
    /// In rows above the axes.
    Above,
    /// Nowhere.
    Hidden,
}

/// The sample of an entry of the legend.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Key {
    /// A piece of a line.
    Line(Stroke),
    /// A marker.
    Marker(Marker),
    /// A patch of a colour with its opacity.
    Patch(Color, f64),
}

#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub name: String,
    /// Several when marks of different kinds share the name.
    pub keys: Vec<Key>,
}

const KEY_WIDTH: f64 = 14.0;
const KEY_GAP: f64 = 4.0;
const ENTRY_GAP: f64 = 10.0;
pub(super) const ROW: f64 = 9.5;
const PADDING: f64 = 2.5;
/// The space between a legend and the nearest data.
const CLEARANCE: f64 = 2.5;

fn entry_width(entry: &Entry) -> f64 {
    KEY_WIDTH + KEY_GAP + text_width(&entry.name, size::SMALL)
}

/// The size of a legend with one entry per row.
pub(super) fn column_size(entries: &[Entry]) -> (f64, f64) {
    let width = entries.iter().map(entry_width).fold(0.0, f64::max);
    (
        width + 2.0 * PADDING,
        ROW * entries.len() as f64 + 2.0 * PADDING,
    )
}

/// The entries in rows that fit a width, at least one in each.
pub(super) fn rows(entries: &[Entry], width: f64) -> Vec<Vec<&Entry>> {
    let mut rows: Vec<Vec<&Entry>> = Vec::new();
    let mut used = f64::INFINITY;
    for entry in entries {
        let needed = entry_width(entry);
        match rows.last_mut() {
            Some(row) if used + ENTRY_GAP + needed <= width => {
                row.push(entry);
                used += ENTRY_GAP + needed;
            }
            _ => {
                rows.push(vec![entry]);
                used = needed;
            }
        }
    }
    rows
}

/// A place inside the axes for a legend of some size where it covers none of the taken points.
pub(super) fn free_place(
    axes: Area,
    (width, height): (f64, f64),
    taken: &[(f64, f64)],
) -> Option<Area> {
    let inner = axes.grown(-3.0);
    let (left, right) = (inner.left, inner.right - width);
    let (top, bottom) = (inner.top, inner.bottom - height);
    if right < left || bottom < top {
        return None;
    }
    let (centre, middle) = (0.5 * (left + right), 0.5 * (top + bottom));
    // Corners first, as the eye expects; then the middles of the edges.
    let places = [
        (right, top),
        (right, bottom),
        (left, top),
        (left, bottom),
        (centre, top),
        (centre, bottom),
        (right, middle),
        (left, middle),
    ];
    places
        .map(|(x, y)| Area {
            left: x,
            top: y,
            right: x + width,
            bottom: y + height,
        })
        .into_iter()
        .find(|place| {
            let kept_free = place.grown(CLEARANCE);
            !taken.iter().any(|&point| kept_free.contains(point))
        })
}

/// Draws one entry per row from the upper left corner of an area.
pub(super) fn draw_column(entries: &[Entry], area: Area, svg: &mut Svg) {
    // Grid lines end before the legend.
    svg.rectangle(area, WHITE, 1.0);
    for (row, entry) in entries.iter().enumerate() {
        draw_entry(
            entry,
            (
                area.left + PADDING,
                area.top + PADDING + ROW * (row as f64 + 0.5),
            ),
            svg,
        );
    }
}

/// Draws rows of entries from a corner on.
pub(super) fn draw_rows(rows: &[Vec<&Entry>], (left, top): (f64, f64), svg: &mut Svg) {
    for (number, row) in rows.iter().enumerate() {
        let mut x = left;
        for entry in row {
            draw_entry(entry, (x, top + ROW * (number as f64 + 0.5)), svg);
            x += entry_width(entry) + ENTRY_GAP;
        }
    }
}

fn draw_entry(entry: &Entry, (x, y): (f64, f64), svg: &mut Svg) {
    for key in &entry.keys {
        match *key {
            Key::Line(stroke) => svg.line((x, y), (x + KEY_WIDTH, y), stroke),
            Key::Marker(marker) => {
                // Tiny and faint markers would not show their colour.
                let marker = Marker {
                    size: marker.size.clamp(3.0, 5.0),
                    opacity: 1.0,
                    ..marker
                };
                svg.markers(&[(x + 0.5 * KEY_WIDTH, y)], marker);
            }
            Key::Patch(color, opacity) => {
                let patch = Area {
                    left: x + 2.0,
                    top: y - 2.8,
                    right: x + KEY_WIDTH - 2.0,
                    bottom: y + 2.8,
                };
                svg.rectangle(patch, color, opacity);
            }
        }
    }
    svg.text(
        (x + KEY_WIDTH + KEY_GAP, y),
        size::SMALL,
        Align::Start,
        ink::TEXT,
        &entry.name,
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    const AXES: Area = Area {
        left: 0.0,
        top: 0.0,
        right: 100.0,
        bottom: 100.0,
    };

    #[test]
    fn a_legend_goes_where_nothing_is() {
        let taken = [(90.0, 10.0), (90.0, 90.0)];
        let place = free_place(AXES, (30.0, 20.0), &taken).unwrap();
        assert_eq!((place.left, place.top), (3.0, 3.0));
    }

    #[test]
    fn a_full_panel_has_no_place() {
        let everywhere: Vec<(f64, f64)> = (0..100)
            .flat_map(|i| (0..100).map(move |j| (f64::from(i), f64::from(j))))
            .collect();
        assert_eq!(free_place(AXES, (30.0, 20.0), &everywhere), None);
        assert_eq!(free_place(AXES, (300.0, 20.0), &[]), None);
    }
}
