//! Colour bars: what colours mean.

use super::{Color, Image, Panel, twilight};
use crate::error::LabError;
use std::f64::consts::PI;

/// A bar of colours with a label above and ticks beside it.
pub(crate) fn colorbar(
    label: &str,
    range: (f64, f64),
    ticks: &[(f64, String)],
    color: fn(f64) -> Color,
) -> Result<Panel, LabError> {
    let values: Vec<f64> = (0..256).rev().map(|i| f64::from(i) / 255.0).collect();
    let image = Image::from_values(&values, 1, color)?.smooth();
    let ticks = ticks.iter().map(|(v, t)| (*v, t.replace('-', "−")));
    Ok(Panel::new()
        .title(label)
        .x_range(0.0, 1.0)
        .x_ticks(Vec::<(f64, String)>::new())
        .y_range(range.0, range.1)
        .y_ticks(ticks)
        .image(image, (0.0, 1.0), range))
}

/// The colour bar of angles.
pub(crate) fn angle_colorbar(label: &str) -> Result<Panel, LabError> {
    let ticks = [(-PI, "−π"), (0.0, "0"), (PI, "π")].map(|(v, t)| (v, t.to_string()));
    colorbar(label, (-PI, PI), &ticks, twilight)
}
