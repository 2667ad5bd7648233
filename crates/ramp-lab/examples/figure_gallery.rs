//! Every kind of mark on one page: `cargo run -p ramp-lab --example figure_gallery -- folder`.

use std::path::PathBuf;

use ramp_lab::error::LabError;
use ramp_lab::experiments::linear_tree::data::LinearTree;
use ramp_lab::figure::{
    Anchor, BLUE, BarSeries, Figure, GREEN, GREY, Image, Legend, Marker, ORANGE, PAGE_MM, Panel,
    SKY, Shape, Stroke, VERMILLION, WHITE, series, viridis,
};

fn main() -> Result<(), LabError> {
    let folder = std::env::args_os()
        .nth(1)
        .map_or_else(|| PathBuf::from("."), PathBuf::from);
    let files = Figure::new(PAGE_MM, 150.0)
        .columns(3)
        .lettered()
        .panel(lines())
        .panel(bars())
        .panel(scatter()?)
        .panel(dense_scatter()?)
        .panel(heat_map()?)
        .panel(tree()?)
        .panel(crowded())
        .panel(names())
        .panel(markers())
        .write(&folder, "figure-gallery")?;
    println!("{}\n{}", files.svg.display(), files.png.display());
    Ok(())
}

fn lines() -> Panel {
    let steps = || (0..60).map(|i| 10_f64.powf(f64::from(i) / 15.0));
    let course = |t: f64| 2.0 / t.sqrt() + 0.02;
    Panel::new()
        .title("Lines and a band")
        .x_label("Iteration")
        .y_label("Free energy")
        .log_x()
        .log_y()
        .band(
            steps().map(|t| (t, 0.7 * course(t), 1.4 * course(t))),
            BLUE,
            0.2,
        )
        .line(steps().map(|t| (t, course(t))), Stroke::new(BLUE))
        .named("RAMP")
        .hline(0.02, Stroke::new(GREY).dashed())
        .named("exact")
}

fn bars() -> Panel {
    Panel::new()
        .title("Bars")
        .y_label("|Spearman correlation|")
        .x_categories(["z₁", "z₂", "z₃"])
        .legend(Legend::Above)
        .bars(vec![
            BarSeries::new("RAMP", vec![0.7, 0.82, 0.84], BLUE).errors(vec![0.03, 0.02, 0.05]),
            BarSeries::new("BBVI", vec![0.5, 0.61, 0.58], ORANGE).errors(vec![0.08, 0.05, 0.05]),
            BarSeries::new("Gaussian", vec![0.6, 0.55, 0.57], SKY),
        ])
}

fn scatter() -> Result<Panel, LabError> {
    let sample = LinearTree::default().sample(250, 2, 0)?;
    let pairs = sample.latents[0].iter().zip(&sample.latents[1]);
    Ok(Panel::new()
        .title("Points")
        .x_label("z₁")
        .y_label("z₂")
        .points(
            pairs.map(|(&a, &b)| (f64::from(a), f64::from(b))),
            Marker::disc(GREEN).size(2.5).opacity(0.6),
        )
        .line([(-3.0, -3.0), (3.0, 3.0)], Stroke::new(GREY).dashed()))
}

fn dense_scatter() -> Result<Panel, LabError> {
    let sample = LinearTree::default().sample(100_000, 1, 0)?;
    let pairs = sample.latents[0].iter().zip(&sample.observations[0]);
    let (x, y) = ((-4.0, 4.0), (-8.0, 8.0));
    let points = pairs.map(|(&a, &b)| (f64::from(a), f64::from(b)));
    let image = Image::from_points(points, x, y, (600, 600), 1.5, VERMILLION, 0.12)?;
    Ok(Panel::new()
        .title("100 000 points")
        .x_label("z₁")
        .y_label("x₁")
        .image(image, x, y))
}

fn heat_map() -> Result<Panel, LabError> {
    let covariance = LinearTree::default().gaussian()?.covariance();
    let nodes = covariance.nrows();
    let values: Vec<f64> = (0..nodes * nodes)
        .map(|i| covariance[(i / nodes, i % nodes)] / 4.0)
        .collect();
    let side = nodes as f64;
    Ok(Panel::new()
        .title("Heat map")
        .equal_aspect()
        .without_axes()
        .image(
            Image::from_values(&values, nodes as u32, viridis)?,
            (0.0, side),
            (0.0, side),
        ))
}

fn tree() -> Result<Panel, LabError> {
    let parents = LinearTree::default().parents()?;
    let place = |node: usize| {
        let level = (node + 1).ilog2();
        let within = node + 1 - (1 << level);
        (
            (within as f64 + 0.5) * 8.0 / f64::from(1 << level),
            -f64::from(level),
        )
    };
    let mut panel = Panel::new().title("A tree").without_axes();
    for (node, parent) in parents.iter().enumerate() {
        if let Some(parent) = parent {
            panel = panel.line([place(*parent), place(node)], Stroke::new(GREY).width(0.7));
        }
    }
    for node in 0..parents.len() {
        let fill = if node < 7 { WHITE } else { GREY.lighter(0.5) };
        let name = if node < 7 {
            format!("z{}", node + 1)
        } else {
            format!("x{}", node - 6)
        };
        panel = panel.node(place(node), 6.0, name, fill);
    }
    Ok(panel)
}

fn crowded() -> Panel {
    let mut panel = Panel::new()
        .title("No free corner")
        .x_label("t")
        .y_label("y");
    for number in 0..3 {
        let wave = (0..200).map(move |i| {
            let t = f64::from(i) / 10.0;
            (t, (3.0 * t + f64::from(number)).sin())
        });
        panel = panel.line(wave, Stroke::new(series(number as usize)));
        panel = panel.named(format!("wave {}", number + 1));
    }
    panel
}

fn names() -> Panel {
    Panel::new()
        .title("Long names lean")
        .y_label("R²")
        .x_categories([
            "left shoulder",
            "right shoulder",
            "left hip",
            "right hip",
            "neck",
        ])
        .bars(vec![BarSeries::new(
            "",
            vec![0.9, 0.85, -0.1, 0.66, 0.4],
            BLUE,
        )])
        .text((3.0, 0.66), "0.66", Anchor::Above)
}

fn markers() -> Panel {
    let shapes = [
        Shape::Disc,
        Shape::Ring,
        Shape::Square,
        Shape::Diamond,
        Shape::Triangle,
        Shape::Cross,
        Shape::Dash,
    ];
    let mut panel = Panel::new()
        .title("Markers")
        .x_label("size")
        .legend(Legend::Right);
    for (row, shape) in shapes.into_iter().enumerate() {
        let marker = Marker::new(shape, series(row));
        for size in [2.0, 4.0, 6.0] {
            panel = panel.points([(size, row as f64)], marker.size(size));
        }
        panel = panel.named(format!("{shape:?}"));
    }
    panel
}
