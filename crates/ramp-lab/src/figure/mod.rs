//! Figures for every experiment: one look, drawn as SVG and rasterised from that same SVG.
//!
//! A [`Figure`] is a grid of [`Panel`]s, each a pair of axes with marks. Lengths of the figure are
//! millimetres of paper; strokes, markers and letters are points, so that a figure keeps its look at
//! any width.
//!
//! ```
//! use ramp_lab::figure::{Figure, Panel, Stroke, BLUE, COLUMN_MM};
//!
//! let panel = Panel::new()
//!     .x_label("Iteration")
//!     .y_label("Correlation")
//!     .line([(0.0, 0.1), (100.0, 0.8), (200.0, 0.9)], Stroke::new(BLUE))
//!     .named("RAMP");
//! let figure = Figure::new(COLUMN_MM, 55.0).panel(panel);
//! # let folder = tempfile::tempdir().unwrap();
//! # let folder = folder.path();
//! figure.write(folder, "correlation")?; // correlation.svg and correlation.png
//! # Ok::<(), ramp_lab::error::LabError>(())
//! ```

mod axes;
mod colorbar;
mod image;
mod layout;
mod legend;
mod mark;
mod panel;
mod raster;
mod scale;
mod style;
mod svg;

use std::path::{Path, PathBuf};

pub(crate) use colorbar::{angle_colorbar, colorbar};
pub use image::Image;
pub use legend::{Key, Legend};
pub use mark::{Anchor, BarSeries};
pub use panel::Panel;
pub use style::{
    BLACK, BLUE, Color, Dash, GREEN, GREY, Marker, ORANGE, PALETTE, PURPLE, SKY, Shape, Stroke,
    VERMILLION, WHITE, YELLOW, series, twilight, viridis,
};

use crate::error::LabError;
use ramp::storage::write_atomically;

/// The width of a figure in one column of a paper, in millimetres.
pub const COLUMN_MM: f64 = 85.0;
/// The width of a figure across a page, in millimetres.
pub const PAGE_MM: f64 = 175.0;

const POINTS_PER_MM: f64 = 72.0 / 25.4;

/// A grid of panels of a given size on paper.
#[derive(Clone, Debug)]
pub struct Figure {
    width_mm: f64,
    height_mm: f64,
    columns: Option<usize>,
    column_shares: Vec<f64>,
    panels: Vec<Panel>,
    lettered: bool,
}

/// The two files of a written figure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FigureFiles {
    /// The drawing, for papers and browsers.
    pub svg: PathBuf,
    /// Its pixels, 300 per inch.
    pub png: PathBuf,
}

impl Figure {
    /// A figure without panels; width and height in millimetres.
    pub fn new(width_mm: f64, height_mm: f64) -> Self {
        let sane = |length: f64| {
            if length.is_finite() {
                length.clamp(10.0, 2000.0)
            } else {
                COLUMN_MM
            }
        };
        Self {
            width_mm: sane(width_mm),
            height_mm: sane(height_mm),
            columns: None,
            column_shares: Vec::new(),
            panels: Vec::new(),
            lettered: false,
        }
    }

    /// Adds a panel; panels fill the grid row by row.
    pub fn panel(mut self, panel: Panel) -> Self {
        self.panels.push(panel);
        self
    }

    /// The number of panels in a row; by default all of them.
    pub fn columns(mut self, columns: usize) -> Self {
        self.columns = Some(columns);
        self
    }

    /// How wide the columns are relative to each other; by default all the same.
    pub fn column_shares(mut self, shares: impl IntoIterator<Item = f64>) -> Self {
        let usable = |share: f64| {
            if share.is_finite() && share > 0.0 {
                share
            } else {
                1.0
            }
        };
        self.column_shares = shares.into_iter().map(usable).collect();
        self
    }

    /// Panels carry the letters a, b, c … in their corners.
    pub fn lettered(mut self) -> Self {
        self.lettered = true;
        self
    }

    /// The figure as the text of an SVG file, its font included.
    pub fn svg(&self) -> String {
        let (width, height) = (
            self.width_mm * POINTS_PER_MM,
            self.height_mm * POINTS_PER_MM,
        );
        let mut svg = svg::Svg::default();
        layout::draw(self, width, height, &mut svg);
        svg.document(self.width_mm, self.height_mm, width, height)
    }

    /// Writes `name.svg` and `name.png` into a folder, which is made if it is not there.
    ///
    /// A file appears whole or not at all: a reader never meets half a figure.
    pub fn write(&self, folder: &Path, name: &str) -> Result<FigureFiles, LabError> {
        let svg = self.svg();
        let png = raster::png(&svg).map_err(|reason| LabError::Raster {
            name: name.to_owned(),
            reason,
        })?;
        Ok(FigureFiles {
            svg: write_whole(folder, &format!("{name}.svg"), svg.as_bytes())?,
            png: write_whole(folder, &format!("{name}.png"), &png)?,
        })
    }

    fn column_count(&self) -> usize {
        self.columns
            .unwrap_or(self.panels.len())
            .clamp(1, self.panels.len().max(1))
    }
}

fn write_whole(folder: &Path, name: &str, bytes: &[u8]) -> Result<PathBuf, LabError> {
    let path = folder.join(name);
    write_atomically(&path, bytes).map_err(ramp::Error::from)?;
    Ok(path)
}

#[cfg(test)]
mod tests;
