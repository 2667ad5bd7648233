//! The figure of dynamics: where every system's latents lie, coloured by something that no single observation shows.

use crate::error::LabError;
use crate::experiments::state_probe::Points;
use crate::figure::{Figure, Image, PAGE_MM, Panel, viridis};
use serde::{Deserialize, Serialize};

/// Points of a portrait at most: more hide each other.
const POINTS: usize = 12_000;
/// Portraits in a row.
const ROW: usize = 4;
/// Pixels on a side of a portrait.
const PIXELS: u32 = 500;

/// Test points in their two widest directions, and a variable for each.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Portrait {
    variable: String,
    points: Vec<(f32, f32, f32)>,
}

impl Portrait {
    /// Of points and a variable.
    pub fn of(points: &Points, values: &[f64], variable: &str) -> Self {
        let every = values.len().div_ceil(POINTS).max(1);
        let at = |i: usize, k: usize| points.values[i * points.features + k] as f32;
        let second = usize::from(points.features > 1);
        Portrait {
            variable: variable.into(),
            points: (0..values.len())
                .step_by(every)
                .map(|i| (at(i, 0), at(i, second), values[i] as f32))
                .collect(),
        }
    }
}

/// All portraits, side by side.
pub(super) fn portraits_figure(portraits: &[(&str, &Portrait)]) -> Result<Figure, LabError> {
    let rows = portraits.len().div_ceil(ROW);
    let mut figure = Figure::new(PAGE_MM, 48.0 * rows as f64).columns(ROW.min(portraits.len()));
    for (name, portrait) in portraits {
        let range = |pick: fn(&(f32, f32, f32)) -> f32| {
            let mut all: Vec<f64> = portrait.points.iter().map(|p| f64::from(pick(p))).collect();
            all.sort_by(f64::total_cmp);
            let at = |share: f64| all[((all.len() - 1) as f64 * share) as usize];
            (at(0.005), at(0.995))
        };
        let (x, y, v) = (range(|p| p.0), range(|p| p.1), range(|p| p.2));
        let wide = |(low, high): (f64, f64)| {
            let room = 0.08 * (high - low).max(1e-6);
            (low - room, high + room)
        };
        let (x, y) = (wide(x), wide(y));
        let points = portrait.points.iter().map(|p| {
            let share = (f64::from(p.2) - v.0) / (v.1 - v.0).max(1e-9);
            (f64::from(p.0), f64::from(p.1), viridis(share))
        });
        let image = Image::from_colored_points(points, x, y, (PIXELS, PIXELS), 2.5, 0.6)?;
        figure = figure.panel(
            Panel::new()
                .without_axes()
                .x_range(x.0, x.1)
                .y_range(y.0, y.1)
                .image(image, x, y)
                .title(format!("{name}: {}", portrait.variable)),
        );
    }
    Ok(figure)
}
