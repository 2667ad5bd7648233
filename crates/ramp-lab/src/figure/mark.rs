//! What a panel can show: each mark's extent, the room it takes and its drawing.

use super::image::Image;
use super::scale::Scale;
use super::style::{BLACK, Color, Marker, Stroke, WHITE, ink, size};
use super::svg::{Align, Area, Svg};

/// Where a text stands, seen from its point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Anchor {
    /// Centred on the point.
    Centre,
    /// To the right of the point.
    Right,
    /// To the left of the point.
    Left,
    /// Above the point.
    Above,
    /// Below the point.
    Below,
}

/// One bar in every group of a bar chart.
#[derive(Clone, Debug)]
pub struct BarSeries {
    pub(super) name: String,
    pub(super) heights: Vec<f64>,
    pub(super) color: Color,
    pub(super) colors: Vec<Color>,
    pub(super) errors: Vec<f64>,
}

impl BarSeries {
    /// A series with its name in the legend (none if empty), a height per group and its colour.
    pub fn new(name: impl Into<String>, heights: Vec<f64>, color: Color) -> Self {
        Self {
            name: name.into(),
            heights,
            color,
            colors: Vec::new(),
            errors: Vec::new(),
        }
    }

    /// The series with a colour of its own for every group.
    pub fn colors(mut self, colors: Vec<Color>) -> Self {
        self.colors = colors;
        self
    }

    /// The series with an error bar of plus or minus this much for every group.
    pub fn errors(mut self, errors: Vec<f64>) -> Self {
        self.errors = errors;
        self
    }
}

#[derive(Clone, Debug)]
pub(super) enum Mark {
    Line {
        points: Vec<(f64, f64)>,
        stroke: Stroke,
    },
    Points {
        points: Vec<(f64, f64)>,
        marker: Marker,
    },
    Errors {
        spans: Vec<(f64, f64, f64)>,
        stroke: Stroke,
    },
    Band {
        spans: Vec<(f64, f64, f64)>,
        color: Color,
        opacity: f64,
    },
    Bars {
        series: Vec<BarSeries>,
    },
    Horizontal {
        y: f64,
        stroke: Stroke,
    },
    Vertical {
        x: f64,
        stroke: Stroke,
    },
    Text {
        at: (f64, f64),
        text: String,
        anchor: Anchor,
        color: Color,
    },
    Node {
        at: (f64, f64),
        radius: f64,
        label: String,
        fill: Color,
    },
    Image {
        image: Image,
        x: (f64, f64),
        y: (f64, f64),
    },
}

/// The share of a group's slot that its bars fill.
const GROUP_WIDTH: f64 = 0.78;
/// Points nearer than this, about a pixel of 600 per inch, are one on paper.
const TOGETHER: f64 = 0.12;
/// The space between a text and its point.
const TEXT_GAP: f64 = 3.5;

impl Mark {
    /// The values that the axes have to show, without the strange ones.
    pub fn values(&self) -> (Vec<f64>, Vec<f64>) {
        let (mut x, mut y): (Vec<f64>, Vec<f64>) = match self {
            Self::Line { points, .. } | Self::Points { points, .. } => {
                points.iter().copied().unzip()
            }
            Self::Errors { spans, .. } | Self::Band { spans, .. } => (
                spans.iter().map(|span| span.0).collect(),
                spans.iter().flat_map(|span| [span.1, span.2]).collect(),
            ),
            Self::Bars { series } => {
                let groups = series.iter().map(|s| s.heights.len()).max().unwrap_or(0);
                let tops = series.iter().flat_map(|s| {
                    s.heights.iter().enumerate().flat_map(|(i, &height)| {
                        let error = s.errors.get(i).copied().unwrap_or(0.0);
                        [height - error, height + error]
                    })
                });
                (vec![-0.5, groups as f64 - 0.5], tops.chain([0.0]).collect())
            }
            Self::Horizontal { y, .. } => (vec![], vec![*y]),
            Self::Vertical { x, .. } => (vec![*x], vec![]),
            Self::Text { at, .. } | Self::Node { at, .. } => (vec![at.0], vec![at.1]),
            Self::Image { x, y, .. } => (vec![x.0, x.1], vec![y.0, y.1]),
        };
        x.retain(|value| value.is_finite());
        y.retain(|value| value.is_finite());
        (x, y)
    }

    /// Whether the mark wants air around its outermost points.
    pub fn needs_margin(&self) -> bool {
        matches!(
            self,
            Self::Points { .. } | Self::Errors { .. } | Self::Text { .. } | Self::Node { .. }
        )
    }

    /// Points on the page, dense enough that a legend that avoids them avoids the mark.
    pub fn footprint(&self, x: &Scale, y: &Scale) -> Vec<(f64, f64)> {
        let place = |&(px, py): &(f64, f64)| Some((x.place(px)?, y.place(py)?));
        let mut taken = Vec::new();
        match self {
            Self::Line { points, .. } => {
                for piece in pieces(points, x, y) {
                    taken.extend(piece.first());
                    for pair in piece.windows(2) {
                        along(pair[0], pair[1], &mut taken);
                    }
                }
            }
            Self::Points { points, .. } => taken.extend(points.iter().filter_map(place)),
            Self::Errors { spans, .. } | Self::Band { spans, .. } => {
                for &(px, low, high) in spans {
                    if let (Some(bottom), Some(top)) = (place(&(px, low)), place(&(px, high))) {
                        along(bottom, top, &mut taken);
                    }
                }
            }
            Self::Bars { series } => {
                for bar in bars(series, x, y) {
                    fill(bar.area, &mut taken);
                    taken.extend(bar.error.into_iter().flat_map(|(a, b)| [a, b]));
                }
            }
            Self::Horizontal { y: level, .. } => {
                if let Some(level) = y.place(*level) {
                    along((x.page().0, level), (x.page().1, level), &mut taken);
                }
            }
            Self::Vertical { x: level, .. } => {
                if let Some(level) = x.place(*level) {
                    along((level, y.page().0), (level, y.page().1), &mut taken);
                }
            }
            Self::Text {
                at, text, anchor, ..
            } => {
                if let Some(at) = place(at) {
                    fill(text_area(at, text, *anchor), &mut taken);
                }
            }
            Self::Node { at, radius, .. } => {
                if let Some((px, py)) = place(at) {
                    let centre = Area {
                        left: px,
                        top: py,
                        right: px,
                        bottom: py,
                    };
                    fill(centre.grown(*radius), &mut taken);
                }
            }
            Self::Image {
                x: across, y: up, ..
            } => {
                if let (Some(a), Some(b)) = (place(&(across.0, up.0)), place(&(across.1, up.1))) {
                    fill(spanned(a, b), &mut taken);
                }
            }
        }
        taken
    }

    /// Draws the part that belongs inside the axes.
    pub fn draw(&self, x: &Scale, y: &Scale, svg: &mut Svg) {
        let place = |&(px, py): &(f64, f64)| Some((x.place(px)?, y.place(py)?));
        match self {
            Self::Line { points, stroke } => svg.polyline(&pieces(points, x, y), *stroke),
            Self::Points { points, marker } => {
                let places: Vec<_> = points.iter().filter_map(place).collect();
                svg.markers(&places, *marker);
            }
            Self::Errors { spans, stroke } => {
                for &(px, low, high) in spans {
                    if let (Some(bottom), Some(top)) = (place(&(px, low)), place(&(px, high))) {
                        whisker(bottom, top, *stroke, svg);
                    }
                }
            }
            Self::Band {
                spans,
                color,
                opacity,
            } => {
                for piece in runs(spans, |&(px, low, high)| {
                    Some((place(&(px, low))?, place(&(px, high))?))
                }) {
                    let lower = piece.iter().map(|pair| pair.0);
                    let outline: Vec<_> =
                        lower.chain(piece.iter().rev().map(|pair| pair.1)).collect();
                    svg.polygon(&outline, *color, *opacity);
                }
            }
            Self::Bars { series } => {
                for bar in bars(series, x, y) {
                    svg.rectangle(bar.area, bar.color, 1.0);
                    if let Some((bottom, top)) = bar.error {
                        whisker(bottom, top, Stroke::new(ink::TEXT).width(0.7), svg);
                    }
                }
                // The ground on which bars of both signs stand.
                if let Some(ground) = y
                    .place(0.0)
                    .filter(|ground| (ground - y.page().0).abs() > 0.1)
                {
                    let axis = Stroke::new(ink::AXIS).width(size::AXIS);
                    svg.line((x.page().0, ground), (x.page().1, ground), axis);
                }
            }
            Self::Horizontal { y: level, stroke } => {
                if let Some(level) = y.place(*level) {
                    svg.line((x.page().0, level), (x.page().1, level), *stroke);
                }
            }
            Self::Vertical { x: level, stroke } => {
                if let Some(level) = x.place(*level) {
                    svg.line((level, y.page().0), (level, y.page().1), *stroke);
                }
            }
            Self::Image {
                image,
                x: across,
                y: up,
            } => {
                if let (Some(a), Some(b)) = (place(&(across.0, up.0)), place(&(across.1, up.1))) {
                    svg.image(spanned(a, b), &image.png(), image.smooth);
                }
            }
            Self::Text { .. } | Self::Node { .. } => {}
        }
    }

    /// Draws what may reach over the axes and lies above all else: texts and nodes.
    pub fn draw_above(&self, x: &Scale, y: &Scale, svg: &mut Svg) {
        let place = |(px, py): (f64, f64)| Some((x.place(px)?, y.place(py)?));
        match self {
            Self::Text {
                at,
                text,
                anchor,
                color,
            } => {
                let Some(at) = place(*at) else { return };
                let area = text_area(at, text, *anchor);
                let middle = 0.5 * (area.top + area.bottom);
                svg.text((area.left, middle), size::SMALL, Align::Start, *color, text);
            }
            Self::Node {
                at,
                radius,
                label,
                fill,
            } => {
                let Some(at) = place(*at) else { return };
                svg.circle(at, *radius, *fill, Stroke::new(ink::AXIS).width(0.7));
                let color = if fill.is_dark() { WHITE } else { BLACK };
                svg.text(at, size::SMALL, Align::Middle, color, label);
            }
            _ => {}
        }
    }
}

struct Bar {
    area: Area,
    color: Color,
    error: Option<((f64, f64), (f64, f64))>,
}

/// The bars of all groups, side by side around 0, 1, 2 …
fn bars(series: &[BarSeries], x: &Scale, y: &Scale) -> Vec<Bar> {
    let width = GROUP_WIDTH / series.len().max(1) as f64;
    let Some(ground) = y.place(0.0).or(Some(y.page().0)) else {
        return Vec::new();
    };
    let mut all = Vec::new();
    for (number, one) in series.iter().enumerate() {
        for (group, &height) in one.heights.iter().enumerate() {
            let left = group as f64 - 0.5 * GROUP_WIDTH + number as f64 * width;
            // A sliver of white between neighbours in a group.
            let (inner_left, inner_right) = (left + 0.04 * width, left + 0.96 * width);
            let (Some(a), Some(b), Some(top)) =
                (x.place(inner_left), x.place(inner_right), y.place(height))
            else {
                continue;
            };
            let error = one.errors.get(group).and_then(|error| {
                let middle = 0.5 * (a + b);
                Some((
                    (middle, y.place(height - error)?),
                    (middle, y.place(height + error)?),
                ))
            });
            let color = one.colors.get(group).copied().unwrap_or(one.color);
            all.push(Bar {
                area: spanned((a, ground), (b, top)),
                color,
                error,
            });
        }
    }
    all
}

fn whisker(bottom: (f64, f64), top: (f64, f64), stroke: Stroke, svg: &mut Svg) {
    let cap = 1.5;
    svg.polyline(
        &[
            vec![bottom, top],
            vec![(bottom.0 - cap, bottom.1), (bottom.0 + cap, bottom.1)],
            vec![(top.0 - cap, top.1), (top.0 + cap, top.1)],
        ],
        stroke,
    );
}

/// The pieces of a line between points that have no place.
fn pieces(points: &[(f64, f64)], x: &Scale, y: &Scale) -> Vec<Vec<(f64, f64)>> {
    let mut pieces = runs(points, |&(px, py)| Some((x.place(px)?, y.place(py)?)));
    for piece in &mut pieces {
        // Points that fall together on paper only make the file large; the last one closes the line.
        let last = piece.last().copied();
        piece.dedup_by(|next, kept| {
            (next.0 - kept.0).abs() < TOGETHER && (next.1 - kept.1).abs() < TOGETHER
        });
        if piece.len() > 1
            && let (Some(end), Some(last)) = (piece.last_mut(), last)
        {
            *end = last;
        }
    }
    pieces
}

/// The longest runs of neighbours that have a place.
fn runs<T, P>(items: &[T], place: impl Fn(&T) -> Option<P>) -> Vec<Vec<P>> {
    let mut runs = vec![Vec::new()];
    for item in items {
        match (place(item), runs.last_mut()) {
            (Some(place), Some(run)) => run.push(place),
            (None, Some(run)) if !run.is_empty() => runs.push(Vec::new()),
            _ => {}
        }
    }
    runs.retain(|run| !run.is_empty());
    runs
}

/// Points every two points (of paper) from one place to another.
fn along(from: (f64, f64), to: (f64, f64), taken: &mut Vec<(f64, f64)>) {
    let length = (to.0 - from.0).hypot(to.1 - from.1).min(1e4);
    let steps = (length / 2.0).ceil().max(1.0) as usize;
    for step in 0..=steps {
        let share = step as f64 / steps as f64;
        taken.push((
            from.0 + share * (to.0 - from.0),
            from.1 + share * (to.1 - from.1),
        ));
    }
}

fn fill(area: Area, taken: &mut Vec<(f64, f64)>) {
    let rows = (area.height() / 4.0).ceil().clamp(1.0, 1e3) as usize;
    for row in 0..=rows {
        let y = area.top + area.height() * row as f64 / rows as f64;
        along((area.left, y), (area.right, y), taken);
    }
}

fn spanned(a: (f64, f64), b: (f64, f64)) -> Area {
    Area {
        left: a.0.min(b.0),
        top: a.1.min(b.1),
        right: a.0.max(b.0),
        bottom: a.1.max(b.1),
    }
}

fn text_area((x, y): (f64, f64), text: &str, anchor: Anchor) -> Area {
    let (width, half) = (
        super::raster::text_width(text, size::SMALL),
        0.5 * size::SMALL,
    );
    let (left, middle) = match anchor {
        Anchor::Centre => (x - 0.5 * width, y),
        Anchor::Right => (x + TEXT_GAP, y),
        Anchor::Left => (x - TEXT_GAP - width, y),
        Anchor::Above => (x - 0.5 * width, y - TEXT_GAP - half),
        Anchor::Below => (x - 0.5 * width, y + TEXT_GAP + half),
    };
    Area {
        left,
        top: middle - half,
        right: left + width,
        bottom: middle + half,
    }
}
