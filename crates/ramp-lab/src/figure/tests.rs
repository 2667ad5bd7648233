//! Whole figures: any data gives an SVG that parses and a PNG of the promised size.

use super::*;
use proptest::prelude::*;
use resvg::tiny_skia::Pixmap;

fn pixels(figure: &Figure) -> Pixmap {
    Pixmap::decode_png(&raster::png(&figure.svg()).unwrap()).unwrap()
}

fn everything() -> Panel {
    let nan = f64::NAN;
    let hostile = [
        (0.0, 1.0),
        (1.0, nan),
        (2.0, f64::INFINITY),
        (3.0, -1e300),
        (4.0, 2.0),
        (nan, 0.0),
    ];
    let image = Image::from_values(&[0.0, 0.5, 1.0, f64::NAN], 2, viridis).unwrap();
    Panel::new()
        .title("a < b & \"c\" > d \u{1}")
        .x_label("σ² → ∞")
        .y_label("|ρ|")
        .line(hostile, Stroke::new(BLUE))
        .named("<line>")
        .points(hostile, Marker::new(Shape::Cross, GREEN).opacity(0.5))
        .named("<line>")
        .error_bars([(1.0, 0.0, nan), (2.0, 0.5, 1.0)], Stroke::new(BLACK))
        .band(
            [
                (0.0, 0.0, 1.0),
                (1.0, nan, 1.0),
                (2.0, 0.0, 1.0),
                (3.0, 0.0, 1.0),
            ],
            ORANGE,
            0.3,
        )
        .named("band")
        .bars(vec![
            BarSeries::new("bars", vec![1.0, nan, -2.0], SKY).errors(vec![0.1, nan]),
        ])
        .hline(nan, Stroke::new(GREY).dashed())
        .vline(1.0, Stroke::new(GREY).dotted())
        .text((1.0, 1.0), "note & more", Anchor::Above)
        .node((2.0, 1.0), 5.0, "z₁", BLUE)
        .image(image, (0.0, 1.0), (0.0, 1.0))
}

#[test]
fn hostile_data_and_text_draw() {
    for legend in [Legend::Inside, Legend::Right, Legend::Above, Legend::Hidden] {
        let figure = Figure::new(COLUMN_MM, 60.0)
            .panel(everything().legend(legend))
            .panel(everything().log_x().log_y())
            .panel(
                everything()
                    .x_range(0.0, f64::NAN)
                    .y_range(-1.0, 0.0)
                    .log_y(),
            )
            .panel(everything().without_axes().equal_aspect())
            .panel(Panel::new())
            .columns(2)
            .column_shares([2.0, f64::NAN])
            .lettered();
        assert_eq!(pixels(&figure).width(), 1004);
    }
    let _ = pixels(&Figure::new(f64::NAN, -3.0));
    let _ = pixels(
        &Figure::new(10.0, 10.0)
            .panel(everything())
            .panel(everything())
            .columns(0),
    );
}

#[test]
fn a_picture_shows_its_colours() {
    let red = Image::from_rgba([200, 0, 0, 255].repeat(4), 2, 2).unwrap();
    let panel = Panel::new()
        .without_axes()
        .image(red, (0.0, 1.0), (0.0, 1.0));
    let shown = pixels(&Figure::new(20.0, 20.0).panel(panel));
    let middle = shown.pixel(shown.width() / 2, shown.height() / 2).unwrap();
    assert_eq!((middle.red(), middle.green(), middle.blue()), (200, 0, 0));
    assert_eq!(shown.pixel(0, 0).unwrap().red(), 255);
}

#[test]
fn files_appear_whole_and_alone() {
    let folder = tempfile::tempdir().unwrap();
    let inner = folder.path().join("figures");
    let files = Figure::new(30.0, 30.0)
        .panel(Panel::new())
        .write(&inner, "empty")
        .unwrap();
    assert!(files.svg.is_file() && files.png.is_file());
    assert_eq!(std::fs::read_dir(&inner).unwrap().count(), 2);
    let blocked = Figure::new(30.0, 30.0).write(&files.svg, "below-a-file");
    assert!(matches!(
        blocked,
        Err(LabError::Ramp(ramp::Error::Storage(_)))
    ));
}

#[test]
fn a_long_line_stays_a_small_file() {
    let wave = (0..200_000).map(|i| (f64::from(i), (f64::from(i) * 1e-4).sin()));
    let panel = Panel::new().line(wave, Stroke::new(BLUE));
    assert!(Figure::new(COLUMN_MM, 60.0).panel(panel).svg().len() < 200_000);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn any_numbers_draw(points in prop::collection::vec((any::<f64>(), any::<f64>()), 0..20)) {
        let panel = Panel::new()
            .line(points.clone(), Stroke::new(BLUE))
            .named("line")
            .points(points, Marker::disc(GREEN))
            .named("points");
        let figure = Figure::new(40.0, 30.0).panel(panel.clone()).panel(panel.log_x().log_y());
        prop_assert!(raster::png(&figure.svg()).is_ok());
    }
}
