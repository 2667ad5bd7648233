//! The figures of poses: what is seen, bodies drawn anew from latents, latents by angle, and R² of limbs.

use super::PoseResults;
use super::data::{JOINTS, LIMBS, NAMES, PATCH, Pose, Poses, direction, neighbours, picture};
use super::occlusion::Occluded;
use super::probe::{LimbProbe, Probe, ProbeR2, Seen};
use crate::error::LabError;
use crate::figure::{
    Anchor, BLACK, COLUMN_MM, Color, Figure, GREY, Image, Key, Legend, Marker, ORANGE, PAGE_MM,
    Panel, Shape, Stroke, VERMILLION, angle_colorbar, twilight,
};
use crate::harness::style::{INK, RAMP_COLOR, energy_panel};
use crate::metrics::mean;
use crate::scaling::scaled;
use std::f64::consts::{PI, TAU};

/// Poses of the gallery, and pairs of pictures in a row.
const GALLERY: usize = 16;
const GALLERY_ROW: usize = 4;
/// Points of a scaled picture at most.
const SCALED: usize = 600;
const NECK: usize = 12;

/// A joint as people write it.
fn words(joint: usize) -> String {
    NAMES[joint].replace('_', " ")
}

/// A limb seen from a joint; the neighbour's side is said where the joint has none.
fn limb_words(joint: usize, neighbour: usize) -> String {
    let neighbour = match (
        NAMES[joint].split_once('_'),
        NAMES[neighbour].split_once('_'),
    ) {
        (Some(_), Some((_, part))) => part.into(),
        _ => words(neighbour),
    };
    format!("{} → {neighbour}", words(joint))
}

/// Adds a body to a panel, upright and around a place.
fn with_body(mut panel: Panel, pose: &Pose, at: (f64, f64), stroke: Stroke) -> Panel {
    let place = placed(pose, at);
    for &(a, b) in &LIMBS {
        if let (Some(a), Some(b)) = (pose[a], pose[b]) {
            panel = panel.line([place(a), place(b)], stroke);
        }
    }
    panel
}

/// One pose and what is seen around each of its joints.
pub(super) fn patches_figure(poses: &Poses) -> Result<Figure, LabError> {
    let missing = |pose: &&Pose| pose.iter().filter(|j| j.is_none()).count();
    // A pose with something out of sight shows more.
    let pose = poses
        .poses
        .iter()
        .take(50)
        .min_by_key(|p| (missing(p).abs_diff(1), p[NECK].is_none()));
    let pose = pose.ok_or_else(|| LabError::Invalid("there is no pose to draw".into()))?;
    let whole = Panel::new().without_axes().equal_aspect();
    let whole = with_body(whole, pose, (0.0, 0.0), Stroke::new(BLACK).width(1.2));
    let mut sheet = Panel::new()
        .without_axes()
        .equal_aspect()
        .x_range(0.0, 5.0)
        .y_range(-0.1, 3.9);
    for joint in 0..JOINTS {
        let (column, row) = ((joint % 5) as f64, 2.0 - (joint / 5) as f64);
        let (left, low) = (column, row * 1.3);
        sheet = sheet.text((left + 0.47, low + 1.02), words(joint), Anchor::Above);
        let Some(centre) = pose[joint] else {
            sheet = sheet.text((left + 0.47, low + 0.45), "not seen", Anchor::Centre);
            continue;
        };
        let paper: Vec<u8> = picture(pose, centre, PATCH)
            .iter()
            .map(|v| 255 - v)
            .collect();
        let image = Image::from_grey(&paper, PATCH as u32)?;
        let (x, y) = ((left + 0.02, left + 0.92), (low, low + 0.9));
        let frame = [(x.0, y.0), (x.1, y.0), (x.1, y.1), (x.0, y.1), (x.0, y.0)];
        sheet = sheet
            .image(image, x, y)
            .line(frame, Stroke::new(GREY).width(0.4));
    }
    Ok(Figure::new(PAGE_MM, 78.0)
        .column_shares([0.6, 1.0])
        .panel(whole)
        .panel(sheet))
}

/// A body from the directions that a probe of the latents predicts, with limbs of their usual lengths.
fn reconstructed(probes: &[Probe], lengths: &[f64], seen: &Seen<'_>, pose: usize) -> Pose {
    // The sum of what both ends say.
    let direction_of = |from: usize, to: usize| {
        let (mut x, mut y) = (0.0, 0.0);
        for probe in probes {
            let sign = match (probe.limb.joint, probe.limb.neighbour) {
                limb if limb == (from, to) => 1.0,
                limb if limb == (to, from) => -1.0,
                _ => continue,
            };
            let told = probe.kernel.predict(seen.means.at(probe.limb.joint, pose));
            (x, y) = (x + sign * told[0][0], y + sign * told[1][0]);
        }
        f64::atan2(y, x)
    };
    let mut body: Pose = [None; JOINTS];
    body[NECK] = Some((0.0, 0.0));
    let mut next = vec![NECK];
    while let Some(from) = next.pop() {
        let Some(at) = body[from] else { continue };
        for to in neighbours(from).filter(|&to| to != from) {
            if body[to].is_some() {
                continue;
            }
            let limb = LIMBS
                .iter()
                .position(|&l| l == (from, to) || l == (to, from));
            let length = limb.map_or(0.0, |l| lengths[l]);
            let angle = direction_of(from, to);
            body[to] = Some((at.0 + length * angle.cos(), at.1 + length * angle.sin()));
            next.push(to);
        }
    }
    body
}

/// Held-out poses, and beside each the body that its latents tell, with what was not seen in another colour.
pub(super) fn reconstructions_figure(probes: &[Probe], train: &Poses, test: &Seen<'_>) -> Figure {
    let lengths: Vec<f64> = LIMBS
        .iter()
        .map(|&(a, b)| {
            let seen = train.poses.iter().filter_map(|p| Some((p[a]?, p[b]?)));
            mean(
                &seen
                    .map(|(a, b)| (a.0 - b.0).hypot(a.1 - b.1))
                    .collect::<Vec<_>>(),
            )
        })
        .collect();
    // Every other pose has something out of sight.
    let (whole, partly): (Vec<usize>, Vec<usize>) = (0..test.poses.poses.len())
        .filter(|&i| test.poses.poses[i].iter().flatten().count() > JOINTS / 2)
        .partition(|&i| test.poses.poses[i].iter().all(Option::is_some));
    let each = (0..whole.len().max(partly.len())).flat_map(|k| [whole.get(k), partly.get(k)]);
    let chosen = each.flatten().copied();
    let rows = GALLERY / GALLERY_ROW;
    let (width, height) = (320.0, 190.0);
    let mut panel = Panel::new()
        .without_axes()
        .equal_aspect()
        .x_range(0.0, width * GALLERY_ROW as f64)
        .y_range(0.0, height * rows as f64);
    for (k, index) in chosen.take(GALLERY).enumerate() {
        let (column, row) = (k % GALLERY_ROW, rows - 1 - k / GALLERY_ROW);
        let at = |share: f64| ((column as f64 + share) * width, (row as f64 + 0.5) * height);
        let pose = &test.poses.poses[index];
        let body = reconstructed(probes, &lengths, test, index);
        let unseen: Vec<(usize, usize)> = LIMBS
            .iter()
            .copied()
            .filter(|&(a, b)| pose[a].is_none() || pose[b].is_none())
            .collect();
        panel = with_body(panel, pose, at(0.27), Stroke::new(BLACK).width(0.9));
        panel = with_body(panel, &body, at(0.75), Stroke::new(RAMP_COLOR).width(0.9));
        for (a, b) in unseen {
            panel = with_limb(panel, &body, (a, b), at(0.75));
        }
    }
    Figure::new(PAGE_MM, 105.0).panel(
        panel
            .legend(Legend::Above)
            .legend_entry("stick figure", Key::Line(Stroke::new(BLACK)))
            .legend_entry("told by the latents", Key::Line(Stroke::new(RAMP_COLOR)))
            .legend_entry("and not seen", Key::Line(Stroke::new(ORANGE))),
    )
}

/// Where a body's points go when it stands around a place, upright.
fn placed(body: &Pose, at: (f64, f64)) -> impl Fn((f64, f64)) -> (f64, f64) + use<> {
    let middle =
        |part: fn(&(f64, f64)) -> f64| mean(&body.iter().flatten().map(part).collect::<Vec<_>>());
    let centre = (middle(|p| p.0), middle(|p| p.1));
    move |p| (at.0 + p.0 - centre.0, at.1 - (p.1 - centre.1))
}

/// Draws over one limb of a body.
fn with_limb(panel: Panel, body: &Pose, (a, b): (usize, usize), at: (f64, f64)) -> Panel {
    let place = placed(body, at);
    let ends = [body[a], body[b]].into_iter().flatten().map(place);
    panel.line(ends, Stroke::new(ORANGE).width(1.1))
}

/// The colour of an angle.
fn angle_color(angle: f64) -> Color {
    twilight((angle + PI) / TAU)
}

/// A square picture of points without numbers on its axes.
fn cloud(points: &[(f64, f64)], angles: &[f64], size: f32) -> Result<Panel, LabError> {
    let range = |part: fn(&(f64, f64)) -> f64| {
        let all = points.iter().map(part);
        all.fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| {
            (l.min(v), h.max(v))
        })
    };
    let (x, y) = (range(|p| p.0), range(|p| p.1));
    let half = 0.55 * (x.1 - x.0).max(y.1 - y.0).max(1e-9);
    let around = |(low, high): (f64, f64)| ((low + high) / 2.0 - half, (low + high) / 2.0 + half);
    let (x, y) = (around(x), around(y));
    let colored = points
        .iter()
        .zip(angles)
        .map(|(p, a)| (p.0, p.1, angle_color(*a)));
    let image = Image::from_colored_points(colored, x, y, (420, 420), size, 0.8)?;
    Ok(Panel::new()
        .without_axes()
        .equal_aspect()
        .x_range(x.0, x.1)
        .y_range(y.0, y.1)
        .image(image, x, y))
}

/// Posterior means at every joint, projected onto the directions of linear regression to each limb.
pub(super) fn angles_figure(probes: &[Probe], test: &Seen<'_>) -> Result<Figure, LabError> {
    /// Limbs in a row, beside which there is a narrow column for the key.
    const ROW: usize = 6;
    let shares = [[1.0; ROW].as_slice(), &[0.25]].concat();
    let mut figure = Figure::new(PAGE_MM, 165.0)
        .columns(ROW + 1)
        .column_shares(shares);
    for (i, probe) in probes.iter().enumerate() {
        let (joint, neighbour) = (probe.limb.joint, probe.limb.neighbour);
        let (u, v) = (probe.linear.direction(0), probe.linear.direction(1));
        let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        let unit = |a: &[f64]| {
            let length = dot(a, a).sqrt().max(1e-12);
            a.iter().map(|x| x / length).collect::<Vec<f64>>()
        };
        let u = unit(&u);
        let along = dot(&u, &v);
        let v = unit(
            &v.iter()
                .zip(&u)
                .map(|(v, u)| v - along * u)
                .collect::<Vec<_>>(),
        );
        let (points, angles): (Vec<_>, Vec<_>) = (0..test.poses.poses.len())
            .filter_map(|i| {
                let angle = direction(&test.poses.poses[i], joint, neighbour)?;
                let mean = test.means.at(joint, i);
                Some(((dot(mean, &u), dot(mean, &v)), angle))
            })
            .unzip();
        let title = limb_words(joint, neighbour)
            .replace("left", "l.")
            .replace("right", "r.");
        figure = figure.panel(cloud(&points, &angles, 5.0)?.title(title));
        figure = match i + 1 {
            ROW => figure.panel(angle_colorbar("angle")?),
            n if n % ROW == 0 => figure.panel(Panel::new().without_axes()),
            _ => figure,
        };
    }
    Ok(figure)
}

/// Posterior means of two joints in the plane, by distances among them.
pub(super) fn scaling_figure(test: &Seen<'_>) -> Result<Figure, LabError> {
    let mut figure = Figure::new(PAGE_MM, 72.0).column_shares([1.0, 1.0, 0.14]);
    for (joint, neighbour) in [(1, 0), (NECK, 2)] {
        let (some, angles): (Vec<usize>, Vec<f64>) = (0..test.poses.poses.len())
            .filter_map(|i| Some((i, direction(&test.poses.poses[i], joint, neighbour)?)))
            .take(SCALED)
            .unzip();
        let places = scaled(&test.means.some(joint, &some), test.means.dim)?;
        let panel = cloud(&places, &angles, 6.0)?;
        figure = figure.panel(panel.title(limb_words(joint, neighbour)));
    }
    Ok(figure.panel(angle_colorbar("angle")?))
}

/// A line for each limb, the first on top.
fn limbs_panel(limbs: impl Iterator<Item = String>) -> (Panel, usize) {
    let names: Vec<String> = limbs.collect();
    let count = names.len();
    let ticks = names
        .into_iter()
        .enumerate()
        .map(|(i, name)| ((count - 1 - i) as f64, name));
    let panel = Panel::new()
        .y_range(-0.7, count as f64 - 0.3)
        .y_ticks(ticks)
        .legend(Legend::Above);
    (panel, count)
}

/// R² of every limb beside the paper's.
pub(super) fn table_figure(rows: &[LimbProbe]) -> Figure {
    let (panel, count) = limbs_panel(rows.iter().map(|r| limb_words(r.joint, r.neighbour)));
    let at = |value: fn(&LimbProbe) -> f64| {
        rows.iter()
            .enumerate()
            .map(move |(i, r)| (value(r), (count - 1 - i) as f64))
    };
    let panel = panel
        .x_label("R² of the limb's direction")
        .x_range(0.0, 1.0)
        .points(at(|r| r.paper), Marker::new(Shape::Ring, INK))
        .named("paper, training images")
        .points(
            at(|r| r.kernel.train.max(0.0)),
            Marker::disc(RAMP_COLOR.lighter(0.6)),
        )
        .named("RAMP, training images")
        .points(at(|r| r.kernel.test.max(0.0)), Marker::disc(RAMP_COLOR))
        .named("RAMP, held-out images");
    Figure::new(1.4 * COLUMN_MM, 120.0).panel(panel)
}

/// Errors of limbs whose joint is occluded.
pub(super) fn occlusion_figure(rows: &[Occluded]) -> Figure {
    let number = |name: &str| NAMES.iter().position(|n| *n == name).unwrap_or(0);
    let name = |r: &Occluded| limb_words(number(&r.joint), number(&r.neighbour));
    let (panel, count) = limbs_panel(rows.iter().map(name));
    let at = |value: fn(&Occluded) -> f64| {
        rows.iter()
            .enumerate()
            .map(move |(i, r)| (value(r).to_degrees(), (count - 1 - i) as f64))
    };
    let panel = panel
        .x_label("Mean error of the direction (degrees)")
        .points(at(|r| r.mean), Marker::new(Shape::Ring, INK))
        .named("mean direction")
        .points(at(|r| r.neighbours), Marker::disc(ORANGE))
        .named("neighbours alone")
        .points(at(|r| r.tree), Marker::disc(RAMP_COLOR))
        .named("the tree");
    Figure::new(1.4 * COLUMN_MM, 120.0).panel(panel)
}

/// R² over all limbs and the free energy, per iteration.
pub(super) fn learning_figure(results: &PoseResults) -> Figure {
    let curve = |value: fn(&ProbeR2) -> f64| {
        let points = results.history.iter();
        points.map(move |p| (p.iteration as f64, value(&p.r2).max(0.0)))
    };
    let read = Panel::new()
        .x_label("Iteration")
        .y_label("Mean R² over limbs")
        .y_range(0.0, 1.0)
        .line(curve(|t| t.train), Stroke::new(VERMILLION))
        .named("training images")
        .line(curve(|t| t.test), Stroke::new(RAMP_COLOR))
        .named("held-out images");
    Figure::new(PAGE_MM, 60.0)
        .panel(read)
        .panel(energy_panel(&results.training.free_energy_history, "joint"))
        .lettered()
}
