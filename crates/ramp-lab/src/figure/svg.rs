//! SVG text, written by hand: the only file that knows its syntax.

use std::fmt::Write as _;

use super::raster;
use super::style::{Color, Dash, Marker, Shape, Stroke, WHITE, size};

/// A rectangle on the page, in points, y downwards.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Area {
    pub left: f64,
    pub top: f64,
    pub right: f64,
    pub bottom: f64,
}

impl Area {
    pub fn width(&self) -> f64 {
        self.right - self.left
    }

    pub fn height(&self) -> f64 {
        self.bottom - self.top
    }

    /// The area with its edges moved outwards.
    pub fn grown(&self, by: f64) -> Self {
        Self {
            left: self.left - by,
            top: self.top - by,
            right: self.right + by,
            bottom: self.bottom + by,
        }
    }

    pub fn contains(&self, (x, y): (f64, f64)) -> bool {
        x >= self.left && x <= self.right && y >= self.top && y <= self.bottom
    }
}

/// On which side of its point a text stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Align {
    Start,
    Middle,
    End,
}

/// A drawing under construction.
#[derive(Debug, Default)]
pub(super) struct Svg {
    body: String,
    clips: usize,
}

impl Svg {
    /// The whole document, on white, at its true size on paper.
    pub fn document(&self, width_mm: f64, height_mm: f64, width: f64, height: f64) -> String {
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{}mm\" height=\"{}mm\" viewBox=\"0 0 {} {}\">\n\
             <style>@font-face{{font-family:\"{family}\";src:url(data:font/woff2;base64,{font}) format(\"woff2\")}}</style>\n\
             <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n\
             <g font-family=\"{family}, 'Helvetica Neue', Arial, sans-serif\" stroke-linejoin=\"round\">\n{}</g>\n</svg>\n",
            number(width_mm),
            number(height_mm),
            number(width),
            number(height),
            self.body,
            family = raster::FAMILY,
            font = base64(raster::WEB_FONT),
        )
    }

    /// Everything until [`Self::end`] shows only inside an area.
    pub fn begin_clip(&mut self, area: Area) {
        self.clips += 1;
        let _ = writeln!(
            self.body,
            "<clipPath id=\"clip{}\"><rect {}/></clipPath><g clip-path=\"url(#clip{})\">",
            self.clips,
            corners(area),
            self.clips,
        );
    }

    pub fn end(&mut self) {
        self.body.push_str("</g>\n");
    }

    /// A polyline in pieces; a piece of one point is a dot.
    pub fn polyline(&mut self, pieces: &[Vec<(f64, f64)>], stroke: Stroke) {
        let mut path = String::new();
        for piece in pieces.iter().filter(|piece| !piece.is_empty()) {
            let _ = write!(path, "M{} {}", number(piece[0].0), number(piece[0].1));
            for (x, y) in &piece[1..] {
                let _ = write!(path, "L{} {}", number(*x), number(*y));
            }
            if piece.len() == 1 {
                path.push_str("h0");
            }
        }
        if path.is_empty() {
            return;
        }
        let width = stroke.width;
        let dash = match stroke.dash {
            Dash::Solid => " stroke-linecap=\"round\"".to_owned(),
            Dash::Dashed => {
                format!(
                    " stroke-dasharray=\"{} {}\"",
                    number(2.2 + 1.6 * width),
                    number(1.2 + 1.2 * width)
                )
            }
            // A dash of no length with a round cap is a dot.
            Dash::Dotted => {
                format!(
                    " stroke-dasharray=\"0 {}\" stroke-linecap=\"round\"",
                    number(1.0 + 1.5 * width)
                )
            }
        };
        let _ = writeln!(
            self.body,
            "<path d=\"{path}\" fill=\"none\" stroke=\"{}\" stroke-width=\"{}\"{dash}{}/>",
            stroke.color.css(),
            number(width),
            opacity("stroke-opacity", stroke.opacity),
        );
    }

    pub fn line(&mut self, from: (f64, f64), to: (f64, f64), stroke: Stroke) {
        self.polyline(&[vec![from, to]], stroke);
    }

    pub fn rectangle(&mut self, area: Area, fill: Color, alpha: f64) {
        if area.width() > 0.0 && area.height() > 0.0 {
            let _ = writeln!(
                self.body,
                "<rect {} fill=\"{}\"{}/>",
                corners(area),
                fill.css(),
                opacity("fill-opacity", alpha),
            );
        }
    }

    pub fn polygon(&mut self, points: &[(f64, f64)], fill: Color, alpha: f64) {
        if points.len() < 3 {
            return;
        }
        let list: Vec<String> = points
            .iter()
            .map(|(x, y)| format!("{},{}", number(*x), number(*y)))
            .collect();
        let _ = writeln!(
            self.body,
            "<polygon points=\"{}\" fill=\"{}\"{}/>",
            list.join(" "),
            fill.css(),
            opacity("fill-opacity", alpha),
        );
    }

    pub fn circle(&mut self, (x, y): (f64, f64), radius: f64, fill: Color, stroke: Stroke) {
        let _ = writeln!(
            self.body,
            "<circle cx=\"{}\" cy=\"{}\" r=\"{}\" fill=\"{}\" stroke=\"{}\" stroke-width=\"{}\"/>",
            number(x),
            number(y),
            number(radius),
            fill.css(),
            stroke.color.css(),
            number(stroke.width),
        );
    }

    /// The same marker at many places; each is an element of its own so that overlaps add up.
    pub fn markers(&mut self, places: &[(f64, f64)], marker: Marker) {
        let half = 0.5 * marker.size;
        let color = marker.color.css();
        let paint = match marker.shape {
            Shape::Ring => {
                format!(
                    "fill=\"{}\" stroke=\"{color}\" stroke-width=\"{}\"",
                    WHITE.css(),
                    number(0.25 * marker.size)
                )
            }
            Shape::Cross | Shape::Dash => {
                format!(
                    "fill=\"none\" stroke=\"{color}\" stroke-width=\"{}\"",
                    number((0.25 * marker.size).min(1.3))
                )
            }
            _ => format!("fill=\"{color}\""),
        };
        let _ = writeln!(self.body, "<g {paint}>");
        let faint = opacity("opacity", marker.opacity);
        for &(x, y) in places {
            let (x0, y0, d) = (number(x - half), number(y - half), number(2.0 * half));
            let _ = match marker.shape {
                Shape::Disc | Shape::Ring => writeln!(
                    self.body,
                    "<circle cx=\"{}\" cy=\"{}\" r=\"{}\"{faint}/>",
                    number(x),
                    number(y),
                    number(if marker.shape == Shape::Ring {
                        0.875 * half
                    } else {
                        half
                    }),
                ),
                Shape::Square => {
                    writeln!(
                        self.body,
                        "<rect x=\"{x0}\" y=\"{y0}\" width=\"{d}\" height=\"{d}\"{faint}/>"
                    )
                }
                Shape::Diamond => {
                    // The same area as the square: its tips reach out by √2.
                    let tip = number(half * std::f64::consts::SQRT_2);
                    let start = number(y - half * std::f64::consts::SQRT_2);
                    writeln!(
                        self.body,
                        "<path d=\"M{} {start}l{tip} {tip}l-{tip} {tip}l-{tip} -{tip}z\"{faint}/>",
                        number(x),
                    )
                }
                Shape::Triangle => writeln!(
                    self.body,
                    "<path d=\"M{} {}h{}l-{} -{}z\"{faint}/>",
                    number(x - 1.1 * half),
                    number(y + 0.75 * half),
                    number(2.2 * half),
                    number(1.1 * half),
                    number(1.9 * half),
                ),
                Shape::Cross => writeln!(
                    self.body,
                    "<path d=\"M{x0} {y0}l{d} {d}M{x0} {}l{d} -{d}\"{faint}/>",
                    number(y + half),
                ),
                Shape::Dash => writeln!(
                    self.body,
                    "<path d=\"M{} {}h{}\"{faint}/>",
                    number(x - 1.6 * half),
                    number(y),
                    number(3.2 * half),
                ),
            };
        }
        self.end();
    }

    /// A text whose capitals are centred on the height of its point.
    pub fn text(&mut self, at: (f64, f64), size: f64, align: Align, color: Color, text: &str) {
        self.turned_text(at, size, align, color, text, 0.0);
    }

    /// A text turned about its point, by degrees clockwise.
    pub fn turned_text(
        &mut self,
        (x, y): (f64, f64),
        size: f64,
        align: Align,
        color: Color,
        text: &str,
        degrees: f64,
    ) {
        let anchor = match align {
            Align::Start => "start",
            Align::Middle => "middle",
            Align::End => "end",
        };
        let place = if degrees == 0.0 {
            format!(
                "x=\"{}\" y=\"{}\"",
                number(x),
                number(y + size::HALF_CAPITAL * size)
            )
        } else {
            format!(
                "transform=\"translate({} {}) rotate({})\" y=\"{}\"",
                number(x),
                number(y),
                number(degrees),
                number(size::HALF_CAPITAL * size),
            )
        };
        let _ = writeln!(
            self.body,
            "<text {place} font-size=\"{}\" text-anchor=\"{anchor}\" fill=\"{}\" xml:space=\"preserve\">{}</text>",
            number(size),
            color.css(),
            escape(text),
        );
    }

    /// The letter of a panel: the one font has no bold, so the outline is thickened.
    pub fn letter(&mut self, (x, y): (f64, f64), color: Color, letter: char) {
        let css = color.css();
        let _ = writeln!(
            self.body,
            "<text x=\"{}\" y=\"{}\" font-size=\"{}\" fill=\"{css}\" stroke=\"{css}\" stroke-width=\"0.4\">{}</text>",
            number(x),
            number(y + size::HALF_CAPITAL * size::LETTER),
            number(size::LETTER),
            escape(&letter.to_string()),
        );
    }

    /// Pixels stretched over an area; `smooth` blends neighbours, otherwise every pixel is a square.
    pub fn image(&mut self, area: Area, png: &[u8], smooth: bool) {
        let style = if smooth {
            ""
        } else {
            " style=\"image-rendering:pixelated\""
        };
        let _ = writeln!(
            self.body,
            "<image {} preserveAspectRatio=\"none\"{style} href=\"data:image/png;base64,{}\"/>",
            corners(area),
            base64(png),
        );
    }
}

fn corners(area: Area) -> String {
    format!(
        "x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"",
        number(area.left),
        number(area.top),
        number(area.width()),
        number(area.height()),
    )
}

fn opacity(attribute: &str, value: f64) -> String {
    if value < 1.0 {
        format!(" {attribute}=\"{}\"", number(value.max(0.0)))
    } else {
        String::new()
    }
}

/// A coordinate to a hundredth of a point, without superfluous zeros.
fn number(value: f64) -> String {
    let text = format!("{value:.2}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" {
        "0".to_owned()
    } else {
        text.to_owned()
    }
}

/// Text as XML may hold it: markup escaped, control characters (which XML forbids) left out.
pub(super) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\t' | '\n' | '\r' => escaped.push(' '),
            '\u{fffe}' | '\u{ffff}' => {}
            letter if letter.is_control() => {}
            letter => escaped.push(letter),
        }
    }
    escaped
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let byte = |index: usize| u32::from(chunk.get(index).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for digit in 0..4 {
            let value = (bits >> (18 - 6 * digit)) & 63;
            text.push(if digit <= chunk.len() {
                char::from(DIGITS[value as usize])
            } else {
                '='
            });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_has_the_values_of_its_standard() {
        for (plain, coded) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(base64(plain.as_bytes()), coded);
        }
    }

    #[test]
    fn numbers_are_short_and_text_is_safe() {
        assert_eq!(number(1.0), "1");
        assert_eq!(number(-0.001), "0");
        assert_eq!(number(12.345), "12.35");
        assert_eq!(escape("a<b & \"c\"\u{0}\n"), "a&lt;b &amp; &quot;c&quot; ");
    }
}
