//! One pair of axes as its author describes it; nothing here knows where it will stand.

use super::image::Image;
use super::legend::{Entry, Key, Legend};
use super::mark::{Anchor, BarSeries, Mark};
use super::scale::Tick;
use super::style::{Color, Marker, Stroke, ink};

#[derive(Clone, Debug, Default)]
pub(super) struct Axis {
    pub label: String,
    pub range: Option<(f64, f64)>,
    pub log: bool,
    /// Ticks chosen by the author instead of 1-2-5.
    pub ticks: Option<Vec<Tick>>,
    /// Categories stand between ticks: no tick marks, no grid.
    pub categories: bool,
}

/// A pair of axes with marks. Points that are not finite are left out and break a line.
///
/// ```
/// use ramp_lab::figure::{Panel, Stroke, BLUE};
///
/// let panel = Panel::new()
///     .title("Free energy")
///     .x_label("Iteration")
///     .line((0..100).map(|i| (i as f64, (-0.05 * i as f64).exp())), Stroke::new(BLUE))
///     .named("RAMP")
///     .hline(0.0, Stroke::new(BLUE).dashed())
///     .named("exact");
/// ```
#[derive(Clone, Debug)]
pub struct Panel {
    pub(super) title: String,
    pub(super) x: Axis,
    pub(super) y: Axis,
    pub(super) marks: Vec<Mark>,
    pub(super) entries: Vec<Entry>,
    pub(super) legend: Legend,
    pub(super) axes: bool,
    pub(super) equal_aspect: bool,
}

impl Default for Panel {
    fn default() -> Self {
        Self::new()
    }
}

impl Panel {
    /// Empty axes.
    pub fn new() -> Self {
        Self {
            title: String::new(),
            x: Axis::default(),
            y: Axis::default(),
            marks: Vec::new(),
            entries: Vec::new(),
            legend: Legend::Inside,
            axes: true,
            equal_aspect: false,
        }
    }

    /// The line above the axes.
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.title = title.into();
        self
    }

    /// What the horizontal axis counts.
    pub fn x_label(mut self, label: impl Into<String>) -> Self {
        self.x.label = label.into();
        self
    }

    /// What the vertical axis counts.
    pub fn y_label(mut self, label: impl Into<String>) -> Self {
        self.y.label = label.into();
        self
    }

    /// The ends of the horizontal axis instead of those of the data.
    pub fn x_range(mut self, low: f64, high: f64) -> Self {
        self.x.range = Some((low, high));
        self
    }

    /// The ends of the vertical axis instead of those of the data.
    pub fn y_range(mut self, low: f64, high: f64) -> Self {
        self.y.range = Some((low, high));
        self
    }

    /// A logarithmic horizontal axis; values that are not positive are left out.
    pub fn log_x(mut self) -> Self {
        self.x.log = true;
        self
    }

    /// A logarithmic vertical axis; values that are not positive are left out.
    pub fn log_y(mut self) -> Self {
        self.y.log = true;
        self
    }

    /// Ticks of the horizontal axis, each a place and its label.
    pub fn x_ticks<S: Into<String>>(mut self, ticks: impl IntoIterator<Item = (f64, S)>) -> Self {
        self.x.ticks = Some(to_ticks(ticks));
        self
    }

    /// Ticks of the vertical axis, each a place and its label.
    pub fn y_ticks<S: Into<String>>(mut self, ticks: impl IntoIterator<Item = (f64, S)>) -> Self {
        self.y.ticks = Some(to_ticks(ticks));
        self
    }

    /// Names for the places 0, 1, 2 … of the horizontal axis, where the groups of bars stand.
    pub fn x_categories<S: Into<String>>(mut self, names: impl IntoIterator<Item = S>) -> Self {
        let ticks = to_ticks(
            names
                .into_iter()
                .enumerate()
                .map(|(place, name)| (place as f64, name)),
        );
        self.x.range = Some((-0.5, ticks.len().max(1) as f64 - 0.5));
        self.x.categories = true;
        self.x.ticks = Some(ticks);
        self
    }

    /// No axes, ticks or grid: for pictures and drawings of trees.
    pub fn without_axes(mut self) -> Self {
        self.axes = false;
        self
    }

    /// The same length on paper for a unit of both axes.
    pub fn equal_aspect(mut self) -> Self {
        self.equal_aspect = true;
        self
    }

    /// Where the legend stands; by default in a corner free of data.
    pub fn legend(mut self, legend: Legend) -> Self {
        self.legend = legend;
        self
    }

    /// A line through points.
    pub fn line(self, points: impl IntoIterator<Item = (f64, f64)>, stroke: Stroke) -> Self {
        self.with(Mark::Line {
            points: points.into_iter().collect(),
            stroke,
        })
    }

    /// A marker at every point.
    pub fn points(self, points: impl IntoIterator<Item = (f64, f64)>, marker: Marker) -> Self {
        self.with(Mark::Points {
            points: points.into_iter().collect(),
            marker,
        })
    }

    /// Error bars, each a place and its lower and upper end.
    pub fn error_bars(
        self,
        spans: impl IntoIterator<Item = (f64, f64, f64)>,
        stroke: Stroke,
    ) -> Self {
        self.with(Mark::Errors {
            spans: spans.into_iter().collect(),
            stroke,
        })
    }

    /// A shaded band, at every place from a lower to an upper value.
    pub fn band(
        self,
        spans: impl IntoIterator<Item = (f64, f64, f64)>,
        color: Color,
        opacity: f64,
    ) -> Self {
        self.with(Mark::Band {
            spans: spans.into_iter().collect(),
            color,
            opacity,
        })
    }

    /// Groups of bars around 0, 1, 2 …; every series has a bar in every group and names itself.
    pub fn bars(mut self, series: Vec<BarSeries>) -> Self {
        for one in series.iter().filter(|one| !one.name.is_empty()) {
            self.add_key(one.name.clone(), Key::Patch(one.color, 1.0));
        }
        self.with(Mark::Bars { series })
    }

    /// A line across at one height.
    pub fn hline(self, y: f64, stroke: Stroke) -> Self {
        self.with(Mark::Horizontal { y, stroke })
    }

    /// A line from bottom to top at one place.
    pub fn vline(self, x: f64, stroke: Stroke) -> Self {
        self.with(Mark::Vertical { x, stroke })
    }

    /// A text at a point.
    pub fn text(self, at: (f64, f64), text: impl Into<String>, anchor: Anchor) -> Self {
        self.colored_text(at, text, anchor, ink::TEXT)
    }

    /// A text at a point, in a colour.
    pub fn colored_text(
        self,
        at: (f64, f64),
        text: impl Into<String>,
        anchor: Anchor,
        color: Color,
    ) -> Self {
        self.with(Mark::Text {
            at,
            text: text.into(),
            anchor,
            color,
        })
    }

    /// A node of a drawn tree or graph, a disc with its name inside; the radius counts in points.
    pub fn node(self, at: (f64, f64), radius: f64, label: impl Into<String>, fill: Color) -> Self {
        self.with(Mark::Node {
            at,
            radius,
            label: label.into(),
            fill,
        })
    }

    /// A picture over a range of both axes; its top row lies at the higher end of `y`.
    pub fn image(self, image: Image, x: (f64, f64), y: (f64, f64)) -> Self {
        self.with(Mark::Image { image, x, y })
    }

    /// Names the last mark in the legend. Marks of the same name share an entry.
    pub fn named(mut self, name: impl Into<String>) -> Self {
        let key = match self.marks.last() {
            Some(
                Mark::Line { stroke, .. }
                | Mark::Errors { stroke, .. }
                | Mark::Horizontal { stroke, .. }
                | Mark::Vertical { stroke, .. },
            ) => Key::Line(*stroke),
            Some(Mark::Points { marker, .. }) => Key::Marker(*marker),
            Some(Mark::Band { color, opacity, .. }) => Key::Patch(*color, *opacity),
            Some(Mark::Node { fill, .. }) => Key::Patch(*fill, 1.0),
            // Texts and pictures explain themselves; bars are named by their series.
            _ => return self,
        };
        self.add_key(name.into(), key);
        self
    }

    /// An entry of the legend that belongs to no single mark.
    pub fn legend_entry(mut self, name: impl Into<String>, key: Key) -> Self {
        self.add_key(name.into(), key);
        self
    }

    fn add_key(&mut self, name: String, key: Key) {
        match self.entries.iter_mut().find(|entry| entry.name == name) {
            Some(entry) if entry.keys.contains(&key) => {}
            Some(entry) => entry.keys.push(key),
            None => self.entries.push(Entry {
                name,
                keys: vec![key],
            }),
        }
    }

    fn with(mut self, mark: Mark) -> Self {
        self.marks.push(mark);
        self
    }
}

fn to_ticks<S: Into<String>>(ticks: impl IntoIterator<Item = (f64, S)>) -> Vec<Tick> {
    ticks
        .into_iter()
        .map(|(at, label)| Tick {
            at,
            label: label.into(),
        })
        .collect()
}
