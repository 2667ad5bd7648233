//! Pixels inside a figure: heat maps, pictures, and scatters too large for a mark per point.

use resvg::tiny_skia::{self, FillRule, IntSize, Paint, Path, PathBuilder, Pixmap, Transform};

use super::style::Color;
use crate::error::LabError;

/// A picture that a panel can show.
#[derive(Clone, Debug)]
pub struct Image {
    pixels: Pixmap,
    pub(super) smooth: bool,
}

impl Image {
    /// A picture from rows of red, green, blue and opacity, top row first.
    pub fn from_rgba(mut rgba: Vec<u8>, width: u32, height: u32) -> Result<Self, LabError> {
        let length = rgba.len();
        for pixel in rgba.chunks_exact_mut(4) {
            let alpha = u32::from(pixel[3]);
            for channel in &mut pixel[..3] {
                *channel = ((u32::from(*channel) * alpha + 127) / 255) as u8;
            }
        }
        IntSize::from_wh(width, height)
            .and_then(|size| Pixmap::from_vec(rgba, size))
            .map(|pixels| Self { pixels, smooth: false })
            .ok_or_else(|| {
                LabError::Invalid(format!(
                    "a picture of {width} by {height} pixels needs four bytes per pixel, not {length} in all"
                ))
            })
    }

    /// A heat map: rows of values, top row first, each turned into a colour.
    pub fn from_values(
        values: &[f64],
        width: u32,
        color: impl Fn(f64) -> Color,
    ) -> Result<Self, LabError> {
        let rgba = values
            .iter()
            .map(|&value| color(value))
            .flat_map(|color| [color.red, color.green, color.blue, 255])
            .collect();
        Self::from_rgba(
            rgba,
            width,
            (values.len() as u32).checked_div(width).unwrap_or(0),
        )
    }

    /// A scatter of any size in one colour, drawn into pixels: 100 000 points cost no more than the picture.
    ///
    /// The picture covers the ranges `x` and `y`; show it at the same place with
    /// [`Panel::image`](super::Panel::image). The radius counts in pixels.
    pub fn from_points(
        points: impl IntoIterator<Item = (f64, f64)>,
        x: (f64, f64),
        y: (f64, f64),
        size: (u32, u32),
        radius: f32,
        color: Color,
        opacity: f64,
    ) -> Result<Self, LabError> {
        let points = points.into_iter().map(|(px, py)| (px, py, color));
        Self::from_colored_points(points, x, y, size, radius, opacity)
    }

    /// The same with a colour for every point; later ones lie on top.
    pub fn from_colored_points(
        points: impl IntoIterator<Item = (f64, f64, Color)>,
        x: (f64, f64),
        y: (f64, f64),
        (width, height): (u32, u32),
        radius: f32,
        opacity: f64,
    ) -> Result<Self, LabError> {
        let mut pixels = Pixmap::new(width, height).ok_or_else(|| {
            LabError::Invalid(format!(
                "a picture of {width} by {height} pixels has no room for points"
            ))
        })?;
        let alpha = (opacity.clamp(0.0, 1.0) * 255.0).round() as u8;
        let disc: Option<Path> = PathBuilder::from_circle(0.0, 0.0, radius);
        let Some(disc) = disc else {
            return Err(LabError::Invalid(format!(
                "the radius of a point is positive, not {radius}"
            )));
        };
        for (px, py, color) in points {
            let column = (px - x.0) / (x.1 - x.0) * f64::from(width);
            let row = (y.1 - py) / (y.1 - y.0) * f64::from(height);
            let inside = column.abs() < 1e5 && row.abs() < 1e5;
            if inside {
                let mut paint = Paint::default();
                paint.set_color_rgba8(color.red, color.green, color.blue, alpha);
                let place = Transform::from_translate(column as f32, row as f32);
                pixels.fill_path(
                    &disc,
                    &paint,
                    FillRule::Winding,
                    place,
                    None::<&tiny_skia::Mask>,
                );
            }
        }
        Ok(Self {
            pixels,
            smooth: true,
        })
    }

    /// A grey picture: rows of brightness, top row first.
    pub fn from_grey(brightness: &[u8], width: u32) -> Result<Self, LabError> {
        let rgba = brightness.iter().flat_map(|&v| [v, v, v, 255]).collect();
        let height = (brightness.len() as u32).checked_div(width).unwrap_or(0);
        Self::from_rgba(rgba, width, height)
    }

    /// The picture with neighbouring pixels blended when it is enlarged; by default they are squares.
    pub fn smooth(mut self) -> Self {
        self.smooth = true;
        self
    }

    /// Nothing when the encoder fails, which an image in memory gives it no reason to.
    pub(super) fn png(&self) -> Vec<u8> {
        self.pixels.encode_png().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::viridis;

    #[test]
    fn sizes_have_to_agree() {
        assert!(Image::from_rgba(vec![0; 16], 2, 2).is_ok());
        assert!(Image::from_rgba(vec![0; 15], 2, 2).is_err());
        assert!(Image::from_rgba(vec![], 0, 0).is_err());
        assert!(Image::from_values(&[0.0; 6], 3, viridis).is_ok());
        assert!(Image::from_values(&[0.0; 6], 4, viridis).is_err());
    }

    #[test]
    fn points_land_where_they_are_and_strange_ones_nowhere() {
        let points = [(0.25, 0.75), (f64::NAN, 0.0), (f64::INFINITY, 0.5)];
        let image = Image::from_points(
            points,
            (0.0, 1.0),
            (0.0, 1.0),
            (40, 40),
            2.0,
            Color::hex(0x123456),
            1.0,
        )
        .unwrap();
        assert_eq!(image.pixels.pixel(10, 10).unwrap().alpha(), 255);
        assert_eq!(image.pixels.pixel(30, 30).unwrap().alpha(), 0);
    }
}
