//! The look that all figures share: colours, strokes, markers, sizes.

/// A colour without transparency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Color {
    /// Red.
    pub red: u8,
    /// Green.
    pub green: u8,
    /// Blue.
    pub blue: u8,
}

impl Color {
    /// The colour of a hexadecimal number such as `0x0072b2`.
    pub const fn hex(value: u32) -> Self {
        Self {
            red: (value >> 16) as u8,
            green: (value >> 8) as u8,
            blue: value as u8,
        }
    }

    /// The colour on its way to another: 0 is this one, 1 the other.
    pub fn towards(self, other: Self, share: f64) -> Self {
        let share = if share.is_nan() {
            0.0
        } else {
            share.clamp(0.0, 1.0)
        };
        let mix =
            |a: u8, b: u8| (f64::from(a) + share * (f64::from(b) - f64::from(a))).round() as u8;
        Self {
            red: mix(self.red, other.red),
            green: mix(self.green, other.green),
            blue: mix(self.blue, other.blue),
        }
    }

    /// The colour nearer to white: 0 is the colour itself, 1 is white.
    pub fn lighter(self, share: f64) -> Self {
        self.towards(WHITE, share)
    }

    /// Whether white reads better than black on this colour.
    pub(super) fn is_dark(self) -> bool {
        let [red, green, blue] = [self.red, self.green, self.blue].map(f64::from);
        0.299 * red + 0.587 * green + 0.114 * blue < 140.0
    }

    pub(super) fn css(self) -> String {
        format!("#{:02x}{:02x}{:02x}", self.red, self.green, self.blue)
    }
}

/// Black, for text and for what stands apart from the data.
pub const BLACK: Color = Color::hex(0x000000);
/// White.
pub const WHITE: Color = Color::hex(0xffffff);
/// A grey for references that should stay in the background.
pub const GREY: Color = Color::hex(0x8a8a8a);
/// Blue of the Okabe–Ito palette.
pub const BLUE: Color = Color::hex(0x0072b2);
/// Vermillion of the Okabe–Ito palette.
pub const VERMILLION: Color = Color::hex(0xd55e00);
/// Bluish green of the Okabe–Ito palette.
pub const GREEN: Color = Color::hex(0x009e73);
/// Reddish purple of the Okabe–Ito palette.
pub const PURPLE: Color = Color::hex(0xcc79a7);
/// Orange of the Okabe–Ito palette.
pub const ORANGE: Color = Color::hex(0xe69f00);
/// Sky blue of the Okabe–Ito palette.
pub const SKY: Color = Color::hex(0x56b4e9);
/// Yellow of the Okabe–Ito palette, too pale for thin lines.
pub const YELLOW: Color = Color::hex(0xf0e442);

/// The Okabe–Ito colours, told apart with any common colour vision, in the order series take them.
pub const PALETTE: [Color; 7] = [BLUE, VERMILLION, GREEN, PURPLE, ORANGE, SKY, BLACK];

/// The colour of the series with this number; it starts over after seven.
pub fn series(number: usize) -> Color {
    PALETTE[number % PALETTE.len()]
}

/// A perceptually even colour map (viridis) for a value from 0 to 1.
pub fn viridis(value: f64) -> Color {
    const STOPS: [Color; 9] = [
        Color::hex(0x440154),
        Color::hex(0x472d7b),
        Color::hex(0x3b528b),
        Color::hex(0x2c728e),
        Color::hex(0x21918c),
        Color::hex(0x28ae80),
        Color::hex(0x5ec962),
        Color::hex(0xaddc30),
        Color::hex(0xfde725),
    ];
    between(&STOPS, value)
}

/// A colour map that ends where it begins (twilight), for angles as a share of the circle from 0 to 1.
pub fn twilight(value: f64) -> Color {
    const STOPS: [Color; 13] = [
        Color::hex(0xd5cfd8),
        Color::hex(0x9ab5c3),
        Color::hex(0x6e8ebf),
        Color::hex(0x5f60b0),
        Color::hex(0x582f86),
        Color::hex(0x43174f),
        Color::hex(0x2f1436),
        Color::hex(0x531d3f),
        Color::hex(0x83304b),
        Color::hex(0xab5650),
        Color::hex(0xc48a6d),
        Color::hex(0xcfb9a9),
        Color::hex(0xd5cfd8),
    ];
    between(&STOPS, value)
}

/// The colour at a share of the way along evenly spaced stops.
fn between(stops: &[Color], value: f64) -> Color {
    let place = if value.is_nan() {
        0.0
    } else {
        value.clamp(0.0, 1.0) * (stops.len() - 1) as f64
    };
    let below = (place as usize).min(stops.len() - 2);
    stops[below].towards(stops[below + 1], place - below as f64)
}

/// How a stroke is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dash {
    /// Not at all.
    Solid,
    /// Dashes, by habit the exact value.
    Dashed,
    /// Dots, by habit the approximation.
    Dotted,
}

/// How a line is drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stroke {
    /// Its colour.
    pub color: Color,
    /// Its width in points.
    pub width: f64,
    /// Whether it is broken.
    pub dash: Dash,
    /// From 0, invisible, to 1.
    pub opacity: f64,
}

impl Stroke {
    /// A solid line of ordinary width.
    pub const fn new(color: Color) -> Self {
        Self {
            color,
            width: 1.1,
            dash: Dash::Solid,
            opacity: 1.0,
        }
    }

    /// The stroke with another width, in points.
    pub const fn width(mut self, width: f64) -> Self {
        self.width = width;
        self
    }

    /// The stroke broken into dashes.
    pub const fn dashed(mut self) -> Self {
        self.dash = Dash::Dashed;
        self
    }

    /// The stroke broken into dots.
    pub const fn dotted(mut self) -> Self {
        self.dash = Dash::Dotted;
        self
    }

    /// The stroke with another opacity.
    pub const fn opacity(mut self, opacity: f64) -> Self {
        self.opacity = opacity;
        self
    }
}

/// The outline of a marker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// A filled circle.
    Disc,
    /// A circle filled with white.
    Ring,
    /// A filled square.
    Square,
    /// A filled square on its tip.
    Diamond,
    /// A filled triangle.
    Triangle,
    /// Two crossing strokes.
    Cross,
    /// A short horizontal stroke, for a level at one place.
    Dash,
}

/// How a point is drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Marker {
    /// Its outline.
    pub shape: Shape,
    /// Its colour.
    pub color: Color,
    /// Its width in points.
    pub size: f64,
    /// From 0, invisible, to 1.
    pub opacity: f64,
}

impl Marker {
    /// A marker of ordinary size.
    pub const fn new(shape: Shape, color: Color) -> Self {
        Self {
            shape,
            color,
            size: 4.0,
            opacity: 1.0,
        }
    }

    /// A filled circle of ordinary size.
    pub const fn disc(color: Color) -> Self {
        Self::new(Shape::Disc, color)
    }

    /// The marker with another width, in points.
    pub const fn size(mut self, size: f64) -> Self {
        self.size = size;
        self
    }

    /// The marker with another opacity.
    pub const fn opacity(mut self, opacity: f64) -> Self {
        self.opacity = opacity;
        self
    }
}

/// Sizes in points at the figure's true width, chosen to stay legible in a journal's column.
pub(super) mod size {
    /// Axis titles and panel titles.
    pub const LABEL: f64 = 7.5;
    /// Tick labels, legend and notes inside a panel.
    pub const SMALL: f64 = 6.5;
    /// The letter of a panel.
    pub const LETTER: f64 = 9.0;
    /// Axis lines and tick marks.
    pub const AXIS: f64 = 0.6;
    /// Grid lines.
    pub const GRID: f64 = 0.4;
    /// The length of a tick mark.
    pub const TICK: f64 = 2.5;
    /// Half the height of a capital, as a share of the font size: what centres text on a line.
    pub const HALF_CAPITAL: f64 = 0.364;
}

/// Colours of everything that is not data.
pub(super) mod ink {
    use super::Color;

    /// Text.
    pub const TEXT: Color = Color::hex(0x222222);
    /// Axes and ticks.
    pub const AXIS: Color = Color::hex(0x444444);
    /// Grid lines.
    pub const GRID: Color = Color::hex(0xe4e4e4);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_print_and_mix() {
        assert_eq!(BLUE.css(), "#0072b2");
        assert_eq!(BLACK.lighter(1.0), WHITE);
        assert_eq!(viridis(0.0), Color::hex(0x440154));
        assert_eq!(viridis(1.0), Color::hex(0xfde725));
        assert_eq!(viridis(f64::NAN), viridis(0.0));
    }
}
