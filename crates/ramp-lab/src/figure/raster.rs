//! Pixels from SVG: the one font, the width of a text in it, and the PNG of a figure.

use std::sync::{Arc, LazyLock};

use resvg::tiny_skia::{Color, Pixmap, Transform};
use resvg::usvg::{self, fontdb};

use super::svg::escape;

/// The family name of the embedded font.
pub(super) const FAMILY: &str = "Inter";

/// The font as browsers read it, small enough to travel in every SVG.
pub(super) const WEB_FONT: &[u8] = include_bytes!("font/Inter-Regular-subset.woff2");

/// The same glyphs as the rasteriser reads them.
const FONT: &[u8] = include_bytes!("font/Inter-Regular-subset.otf");

/// Pixels per inch of a PNG, at the figure's true size.
const PIXELS_PER_INCH: f32 = 300.0;

/// The resolution that SVG assumes for lengths such as millimetres.
const SVG_PIXELS_PER_INCH: f32 = 96.0;

/// No system fonts: a figure looks the same on every machine.
static FONTS: LazyLock<Arc<fontdb::Database>> = LazyLock::new(|| {
    let mut fonts = fontdb::Database::new();
    fonts.load_font_data(FONT.to_vec());
    fonts.set_sans_serif_family(FAMILY);
    Arc::new(fonts)
});

fn parse(svg: &str) -> Result<usvg::Tree, usvg::Error> {
    let options = usvg::Options {
        fontdb: FONTS.clone(),
        font_family: FAMILY.to_owned(),
        ..Default::default()
    };
    usvg::Tree::from_str(svg, &options)
}

/// The width of a text, measured by the shaper that will draw it.
pub(super) fn text_width(text: &str, size: f64) -> f64 {
    if text.is_empty() {
        return 0.0;
    }
    let svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"9\" height=\"9\"><text font-family=\"{FAMILY}\" \
         font-size=\"100\" xml:space=\"preserve\">{}</text></svg>",
        escape(text)
    );
    let box_width = parse(&svg).ok().and_then(|tree| {
        tree.root()
            .children()
            .first()
            .map(|node| node.abs_bounding_box().width())
    });
    f64::from(box_width.unwrap_or(0.0)) * size / 100.0
}

/// The PNG of an SVG on white, or what went wrong.
pub(super) fn png(svg: &str) -> Result<Vec<u8>, String> {
    let tree = parse(svg).map_err(|error| error.to_string())?;
    let scale = PIXELS_PER_INCH / SVG_PIXELS_PER_INCH;
    let size = tree.size();
    let (width, height) = (size.width() * scale, size.height() * scale);
    let mut pixels = Pixmap::new(width.round() as u32, height.round() as u32)
        .ok_or_else(|| format!("a picture of {width} by {height} pixels is not possible"))?;
    pixels.fill(Color::WHITE);
    resvg::render(
        &tree,
        Transform::from_scale(scale, scale),
        &mut pixels.as_mut(),
    );
    pixels.encode_png().map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_font_has_the_letters_of_the_paper() {
        let missing = text_width("\u{4e2d}", 10.0);
        for letter in "aZ09éßαβγδεζηθικλμνξπρστυφχψωΔΛΣΩ₀₁₂₉₊ₖₙ⁰¹²⁻→←⇒∂∏∑−√∞∫≈≠≤≥·×±…–".chars()
        {
            let width = text_width(&letter.to_string(), 10.0);
            assert!(width > 0.0 && width != missing, "{letter} has no glyph");
        }
    }

    #[test]
    fn a_longer_text_is_wider_and_markup_counts_as_letters() {
        assert_eq!(text_width("", 7.0), 0.0);
        assert!(text_width("iiii", 7.0) < text_width("mmmm", 7.0));
        let ratio = text_width("a & <b>", 14.0) / text_width("a & <b>", 7.0);
        assert!((ratio - 2.0).abs() < 1e-6);
    }
}
