//! How latents and methods look in every figure of the trees: names, one colour per level, one per method.

use crate::figure::{
    BLUE, BarSeries, Color, GREEN, Key, ORANGE, Panel, SKY, Stroke, VERMILLION, series,
};
use crate::metrics::mean;

/// The colour of legend entries that hold for every level.
pub(crate) const INK: Color = Color::hex(0x333333);
/// The colours of methods.
pub(crate) const RAMP_COLOR: Color = BLUE;
pub(crate) const BBVI_COLOR: Color = ORANGE;
pub(crate) const GAUSSIAN_COLOR: Color = SKY;

/// One colour per level, the root first.
pub(crate) fn depth_color(depth: usize) -> Color {
    match depth {
        0 => BLUE,
        1 => VERMILLION,
        2 => GREEN,
        deeper => series(deeper),
    }
}

/// Thinner than the data it is compared with.
pub(crate) fn reference(color: Color) -> Stroke {
    Stroke::new(color).width(0.9)
}

/// A number as a subscript.
pub(crate) fn subscript(number: usize) -> String {
    let small =
        |digit: char| char::from_u32(0x2080 + digit.to_digit(10).unwrap_or(0)).unwrap_or(digit);
    number.to_string().chars().map(small).collect()
}

/// `z₁`, `z₂`, … of the first so many latents.
pub(crate) fn latent_names(count: usize) -> impl Iterator<Item = String> {
    (1..=count).map(|number| format!("z{}", subscript(number)))
}

/// The latents of every level, with the level: `z₂, z₃` or `z₄ – z₇`.
pub(crate) fn level_names(depth_of_latent: &[usize]) -> Vec<(usize, String)> {
    let mut first = 0;
    let name = |group: &[usize]| {
        let (from, to) = (first + 1, first + group.len());
        first = to;
        let name = match group.len() {
            1 => format!("z{}", subscript(from)),
            2 => format!("z{}, z{}", subscript(from), subscript(to)),
            _ => format!("z{} – z{}", subscript(from), subscript(to)),
        };
        (group[0], name)
    };
    depth_of_latent.chunk_by(|a, b| a == b).map(name).collect()
}

/// Entries of a legend for the levels.
pub(crate) fn depth_entries(mut panel: Panel, depth_of_latent: &[usize]) -> Panel {
    for (depth, name) in level_names(depth_of_latent) {
        let key = Key::Line(Stroke::new(depth_color(depth)).width(1.6));
        panel = panel.legend_entry(name, key);
    }
    panel
}

/// The mean of a number over the latents of every level.
pub(crate) fn level_means(values: &[f64], depth_of_latent: &[usize]) -> Vec<f64> {
    let levels = depth_of_latent
        .iter()
        .max()
        .map_or(0, |deepest| deepest + 1);
    (0..levels)
        .map(|level| {
            let of_level = values.iter().zip(depth_of_latent);
            let of_level: Vec<f64> = of_level
                .filter(|(_, depth)| **depth == level)
                .map(|(value, _)| *value)
                .collect();
            crate::metrics::mean(&of_level)
        })
        .collect()
}

/// Bars of several methods for every latent.
pub(crate) fn method_bars(methods: Vec<(&str, &[f64], Color)>) -> Vec<BarSeries> {
    methods
        .into_iter()
        .map(|(name, heights, color)| BarSeries::new(name, heights.to_vec(), color))
        .collect()
}

/// The free energy per iteration, in nats per frame or whatever there is one latent for.
pub(crate) fn energy_panel(history: &[f64], per: &str) -> Panel {
    // A page has room for a few hundred points.
    let every = (history.len() / 400).max(1);
    let points = history.chunks(every).enumerate();
    let points = points.map(|(i, some)| ((i * every) as f64, mean(some)));
    Panel::new()
        .x_label("Iteration")
        .y_label(format!("Free energy (nats per {per})"))
        .line(points, Stroke::new(RAMP_COLOR))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_named_by_their_latents() {
        let depths = [0, 1, 1, 2, 2, 2, 2];
        let names: Vec<String> = level_names(&depths).into_iter().map(|(_, n)| n).collect();
        assert_eq!(names, ["z₁", "z₂, z₃", "z₄ – z₇"]);
        let values = [1.0, 2.0, 4.0, 1.0, 2.0, 3.0, 4.0];
        assert_eq!(level_means(&values, &depths), [1.0, 3.0, 2.5]);
    }
}
