//! The figures of the pendulum: its videos, the learned phase space, learning, and prediction.

use super::data::{Videos, picture};
use super::prediction::{Predicted, Prediction};
use super::{PendulumResults, Shape};
use crate::error::LabError;
use crate::figure::{
    Anchor, BLACK, BLUE, COLUMN_MM, Color, Figure, GREEN, Image, Legend, Marker, ORANGE, PAGE_MM,
    Panel, Stroke, VERMILLION, WHITE, angle_colorbar, colorbar, twilight, viridis,
};
use crate::harness::style::{INK, RAMP_COLOR, energy_panel, reference};
use std::f64::consts::{PI, TAU};

/// Frames of a contact sheet, and how many stand in a row.
const SHEET: usize = 25;
const SHEET_ROW: usize = 5;
/// Points of a phase picture at most: more hide each other.
const POINTS: usize = 40_000;
/// Thumbnails along a trajectory.
const THUMBNAILS: usize = 6;
/// Steps ahead on a video strip.
const STRIP: usize = 6;
/// The speeds that colours stand for.
const FASTEST: f64 = 3.0;

/// The first frames of the first video.
pub(super) fn videos_figure(videos: &Videos) -> Result<Figure, LabError> {
    let mut panel = Panel::new()
        .without_axes()
        .equal_aspect()
        .x_range(0.0, SHEET_ROW as f64)
        .y_range(0.0, SHEET_ROW as f64);
    for step in 0..SHEET.min(videos.sizes.steps) {
        let image = Image::from_grey(videos.frame(0, step), videos.sizes.size as u32)?;
        let (column, row) = (step % SHEET_ROW, SHEET_ROW - 1 - step / SHEET_ROW);
        panel = panel.image(
            image,
            (column as f64 + 0.03, column as f64 + 0.97),
            (row as f64 + 0.03, row as f64 + 0.97),
        );
    }
    Ok(Figure::new(COLUMN_MM, COLUMN_MM).panel(panel))
}

/// Frames at their places in the latent space.
pub(in crate::experiments) struct Drawn<'a> {
    pub videos: &'a Videos,
    pub plane: &'a [(f64, f64)],
    pub shape: Shape,
}

/// All frames of test videos, coloured by angular velocity and by angle, and one video's way with some of its frames.
pub(super) fn phase_figure(drawn: &Drawn<'_>) -> Result<Figure, LabError> {
    let ranges = drawn.ranges();
    let speed = |frame: usize| speed_color(drawn.videos.omega[frame]);
    let angle = |frame: usize| twilight((drawn.videos.theta[frame] + PI) / TAU);
    Ok(Figure::new(PAGE_MM, 72.0)
        .column_shares([1.0, 0.14, 1.0, 0.14])
        .panel(drawn.panel(ranges, &speed)?)
        .panel(speed_colorbar()?)
        .panel(drawn.way(drawn.panel(ranges, &angle)?, ranges)?)
        .panel(angle_colorbar("θ")?))
}

fn speed_color(omega: f64) -> Color {
    viridis((omega + FASTEST) / (2.0 * FASTEST))
}

/// Where baselines put the frames of test videos, coloured by angular velocity.
pub(super) fn baselines_figure(
    videos: &Videos,
    baselines: &[(&str, &Vec<(f64, f64)>)],
) -> Result<Figure, LabError> {
    let mut figure = Figure::new(PAGE_MM, 72.0).column_shares([1.0, 1.0, 0.14]);
    for (name, plane) in baselines {
        let drawn = Drawn {
            videos,
            plane,
            shape: Shape::Gaussian,
        };
        let color = |frame: usize| speed_color(videos.omega[frame]);
        figure = figure.panel(drawn.panel(drawn.ranges(), &color)?.title(*name));
    }
    Ok(figure.panel(speed_colorbar()?))
}

/// What the colours of angular velocities mean.
fn speed_colorbar() -> Result<Panel, LabError> {
    let ticks = [-FASTEST, 0.0, FASTEST].map(|v| (v, format!("{v:.0}")));
    colorbar("ω", (-FASTEST, FASTEST), &ticks, viridis)
}

type Ranges = ((f64, f64), (f64, f64));

impl Drawn<'_> {
    /// What the picture covers: all but the farthest points, in equal steps on both axes of a plane.
    fn ranges(&self) -> Ranges {
        let of = |coordinate: fn(&(f64, f64)) -> f64| {
            let mut all: Vec<f64> = self.plane.iter().map(coordinate).collect();
            all.sort_by(f64::total_cmp);
            let at = |share: f64| all[((all.len() - 1) as f64 * share) as usize];
            let (low, high) = (at(0.001), at(0.999));
            let room = 0.08 * (high - low).max(1e-6);
            (low - room, high + room)
        };
        let (x, y) = (of(|p| p.0), of(|p| p.1));
        match self.shape {
            Shape::Circle => ((-PI, PI), y),
            Shape::Beta => ((0.0, 1.0), (0.0, 1.0)),
            Shape::Gaussian => {
                let half = (x.1 - x.0).max(y.1 - y.0) / 2.0;
                let around = |(low, high): (f64, f64)| {
                    let centre = (low + high) / 2.0;
                    (centre - half, centre + half)
                };
                (around(x), around(y))
            }
        }
    }

    /// The frames without axes, coloured by angular velocity: one of many.
    pub fn thumbnail(&self) -> Result<Panel, LabError> {
        let color = |frame: usize| speed_color(self.videos.omega[frame]);
        Ok(self.panel(self.ranges(), &color)?.without_axes())
    }

    fn panel(&self, (x, y): Ranges, color: &dyn Fn(usize) -> Color) -> Result<Panel, LabError> {
        let every = self.plane.len().div_ceil(POINTS).max(1);
        let frames = (0..self.plane.len()).step_by(every);
        let points = frames.map(|f| (self.plane[f].0, self.plane[f].1, color(f)));
        let image = Image::from_colored_points(points, x, y, (900, 900), 2.5, 0.6)?;
        let names = match self.shape {
            Shape::Circle => ("Mean direction (rad)", "Mean of z₂"),
            _ => ("Mean of z₁", "Mean of z₂"),
        };
        let panel = Panel::new()
            .x_label(names.0)
            .y_label(names.1)
            .x_range(x.0, x.1)
            .y_range(y.0, y.1)
            .image(image, x, y);
        Ok(match self.shape {
            Shape::Circle => panel,
            _ => panel.equal_aspect(),
        })
    }

    /// Adds the way of a video that turns about, with frames beside it.
    fn way(&self, mut panel: Panel, (x, y): Ranges) -> Result<Panel, LabError> {
        let steps = self.videos.sizes.steps;
        let lively = |video: usize| {
            let speeds = &self.videos.omega[video * steps..][..steps];
            speeds.iter().map(|w| w.abs()).sum::<f64>()
        };
        // Of the first videos, one of middling speed: it shows a whole swing.
        let mut videos: Vec<usize> = (0..self.videos.sizes.sequences.min(40)).collect();
        videos.sort_by(|&a, &b| lively(a).total_cmp(&lively(b)));
        let video = videos[videos.len() / 2];
        let way = &self.plane[video * steps..][..steps];
        // A way around the cylinder is broken where it leaves the picture.
        let apart = |a: (f64, f64), b: (f64, f64)| (a.0 - b.0).abs() > (x.1 - x.0) / 2.0;
        for piece in way.chunk_by(|a, b| !apart(*a, *b)) {
            panel = panel.line(piece.iter().copied(), Stroke::new(WHITE).width(2.0));
            panel = panel.line(piece.iter().copied(), Stroke::new(BLACK).width(0.8));
        }
        let (width, height) = (0.13 * (x.1 - x.0), 0.13 * (y.1 - y.0));
        let centre = ((x.0 + x.1) / 2.0, (y.0 + y.1) / 2.0);
        let mut places: Vec<(f64, f64)> = vec![];
        for step in (0..steps).step_by((steps / 20).max(1)) {
            let at = way[step];
            // Outwards of the way, inside the picture, and beside those that are there.
            let side = |at: f64, centre: f64, size: f64, range: (f64, f64)| {
                let moved = at + if at >= centre { 0.75 } else { -0.75 } * size;
                moved.clamp(range.0 + size / 2.0, range.1 - size / 2.0)
            };
            let place = (
                side(at.0, centre.0, width, x),
                side(at.1, centre.1, height, y),
            );
            let beside = |p: &(f64, f64)| {
                (p.0 - place.0).abs() > 1.1 * width || (p.1 - place.1).abs() > 1.1 * height
            };
            if places.len() == THUMBNAILS || !places.iter().all(beside) {
                continue;
            }
            places.push(place);
            let image = Image::from_grey(
                self.videos.frame(video, step),
                self.videos.sizes.size as u32,
            )?;
            panel = panel
                .line([at, place], Stroke::new(INK).width(0.5))
                .points([at], Marker::disc(BLACK).size(3.0))
                .image(
                    image,
                    (place.0 - width / 2.0, place.0 + width / 2.0),
                    (place.1 - height / 2.0, place.1 + height / 2.0),
                );
        }
        Ok(panel)
    }
}

/// R² of the probe and the free energy, per iteration.
pub(super) fn learning_figure(results: &PendulumResults) -> Figure {
    let mut read = Panel::new()
        .x_label("Iteration")
        .y_label("R² on test videos")
        .y_range(0.0, 1.0);
    for (k, (name, color)) in [("cos θ", BLUE), ("sin θ", VERMILLION), ("ω", GREEN)]
        .into_iter()
        .enumerate()
    {
        let line = results
            .history
            .iter()
            .map(move |p| (p.iteration as f64, p.r2.test[k].max(0.0)));
        read = read.line(line, Stroke::new(color)).named(name);
    }
    let mut learned = energy_panel(&results.training.free_energy_history, "frame");
    let train = &results.info.settings.core.train;
    if train.mask > 0.0 && train.mask_warmup > 0 {
        learned = learned.title("While more and more frames are masked");
    }
    Figure::new(PAGE_MM, 60.0)
        .panel(read)
        .panel(learned)
        .lettered()
}

/// Errors of predicted angles per step ahead.
pub(super) fn prediction_figure(prediction: &Prediction) -> Figure {
    let degrees = |errors: &[f64]| -> Vec<(f64, f64)> {
        let ahead = errors.iter().enumerate();
        ahead
            .map(|(k, e)| ((k + 1) as f64, e.to_degrees()))
            .collect()
    };
    let panel = Panel::new()
        .x_label("Frames ahead")
        .y_label("Mean error of the angle (degrees)")
        .legend(Legend::Above)
        .line(degrees(&prediction.ramp), Stroke::new(RAMP_COLOR))
        .named("RAMP")
        .line(degrees(&prediction.stay), Stroke::new(ORANGE))
        .named("stay where it was")
        .line(degrees(&prediction.go_on), reference(GREEN).dashed())
        .named("go on at the last speed");
    Figure::new(COLUMN_MM, 62.0).panel(panel)
}

/// Frames to come and what was expected of them: the average of what training videos showed from such a state, for three videos.
pub(super) fn strip_figure(videos: &Videos, predicted: &[Predicted]) -> Result<Figure, LabError> {
    let (size, steps) = (videos.sizes.size, videos.sizes.steps);
    let ahead = predicted.first().map_or(0, |f| f.angles.len());
    let shown: Vec<usize> = (0..STRIP.min(ahead))
        .map(|i| i * (ahead - 1) / (STRIP.min(ahead) - 1).max(1))
        .collect();
    let rows = 2 * predicted.len();
    let mut panel = Panel::new()
        .without_axes()
        .equal_aspect()
        .x_range(-1.6, shown.len() as f64)
        .y_range(0.0, rows as f64 + 0.35);
    let cell = |column: usize, row: usize| {
        let (x, y) = (column as f64, (rows - 1 - row) as f64);
        ((x + 0.03, x + 0.97), (y + 0.03, y + 0.97))
    };
    for (column, k) in shown.iter().enumerate() {
        panel = panel.text(
            (column as f64 + 0.5, rows as f64 + 0.12),
            format!("+{}", k + 1),
            Anchor::Centre,
        );
        for (video, predicted) in predicted.iter().enumerate() {
            let truth = videos.frame(video, steps - ahead + k);
            let mut expected = vec![0.0; size * size];
            let angles = &predicted.angles[*k];
            for &angle in angles {
                for (sum, v) in expected.iter_mut().zip(picture(angle, size)) {
                    *sum += f64::from(v) / angles.len() as f64;
                }
            }
            let expected: Vec<u8> = expected.iter().map(|v| v.round() as u8).collect();
            let (x, y) = cell(column, 2 * video);
            panel = panel.image(Image::from_grey(truth, size as u32)?, x, y);
            let (x, y) = cell(column, 2 * video + 1);
            panel = panel.image(Image::from_grey(&expected, size as u32)?, x, y);
        }
    }
    for row in 0..rows {
        let name = if row % 2 == 0 { "shown" } else { "expected" };
        panel = panel.text((-0.1, (rows - 1 - row) as f64 + 0.5), name, Anchor::Left);
    }
    Ok(Figure::new(
        COLUMN_MM,
        COLUMN_MM * (rows as f64 + 0.4) / (shown.len() as f64 + 1.6),
    )
    .panel(panel))
}
