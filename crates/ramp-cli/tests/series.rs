//! Series in time: dates and steps, one long series cut by itself, forecasts, and times that cannot be.

mod scene;

use ramp_io::table::column;
use ramp_io::time::{parse_moment, spell_moment};
use scene::{Scene, model, names, noise, numbers};

const DAY: f64 = 86_400.0;

/// Days of a temperature that follows the year and itself, and of clouds that follow it; some cells and days are missing.
fn weather(days: usize) -> String {
    let first = parse_moment("2019-03-01").unwrap();
    let mut text = String::from("date,temperature,clouds\n");
    let mut anomaly = 0.0;
    for n in 0..days {
        let shock: f64 = (0..12).map(|k| noise(n, k)).sum::<f64>() - 6.0;
        anomaly = 0.8 * anomaly + 0.6 * shock;
        let year = 10.0 * (std::f64::consts::TAU * n as f64 / 365.25).sin();
        let temperature = match n % 17 {
            3 => String::new(),
            _ => format!("{:.2}", 12.0 + year + anomaly),
        };
        let clouds = if anomaly + noise(n, 20) > 0.5 {
            "few"
        } else {
            "many"
        };
        if n % 101 != 50 {
            let date = spell_moment(first + n as f64 * DAY);
            text += &format!("{date},{temperature},{clouds}\n");
        }
    }
    text
}

const DAILY: &str =
    "[tree]\nchain = { time = \"date\", step = \"1d\", observe = [\"temperature\", \"clouds\"] }\n";

#[test]
fn one_long_series_is_cut_by_itself_and_goes_on() {
    let scene = Scene::new();
    scene.write("weather.csv", weather(900));
    scene.write("m.toml", model("weather.csv", DAILY));
    let (printed, _) = scene.does(&["check", "m.toml"]);
    let line = "one series of 900 steps, cut into 771 overlapping windows of 40 steps to learn from, 51 windows of the time that comes last are held out";
    assert!(printed.contains(line), "{printed}");
    assert!(
        printed.contains("seasons of 1y: what is usual"),
        "{printed}"
    );
    scene.does(&["fit", "m.toml", "--out", "run"]);
    // The last tenth, in which one day has no row, is kept apart for forecasts.
    assert_eq!(scene.text("run/held_out.csv").lines().count(), 1 + 89);
    let last = |file: &str| scene.text(file).lines().last().unwrap().to_owned();
    assert!(last("run/held_out.csv").starts_with(last("weather.csv").split(',').next().unwrap()));
    let resolved = scene.text("run/model.toml");
    assert!(
        resolved.contains("window = 40") && resolved.contains("season = [\"1y\"]"),
        "{resolved}"
    );

    // Every row has its posterior, whichever window it was in.
    scene.does(&["infer", "run", "--out", "latents.csv"]);
    let latents = scene.table("latents.csv");
    assert_eq!(names(&latents), ["date", "z.mean", "z.sd"]);
    assert_eq!(latents.num_rows(), 900 - 9);
    assert!(numbers(&latents, "z.sd").iter().all(|sd| *sd > 0.0));

    // Gaps are filled at every step.
    let (printed, _) = scene.does(&["impute", "run", "--out", "filled.csv"]);
    assert!(
        printed.starts_with("filled 53 cells; wrote 891 rows"),
        "{printed}"
    );
    let filled = numbers(&scene.table("filled.csv"), "temperature");
    assert!(filled.iter().all(|t| t.is_finite()));

    let (printed, _) = scene.does(&["forecast", "run", "--steps", "5", "--out", "next.csv"]);
    assert_eq!(printed, "wrote 5 rows to next.csv\n");
    let next = scene.table("next.csv");
    assert_eq!(
        names(&next),
        [
            "date",
            "ahead",
            "z.mean",
            "z.sd",
            "temperature.mean",
            "temperature.low",
            "temperature.high",
            "clouds",
            "clouds.few",
            "clouds.many"
        ]
    );
    let last = parse_moment("2019-03-01").unwrap() + 899.0 * DAY;
    let dates: Vec<String> = (1..=5)
        .map(|h| spell_moment(last + f64::from(h) * DAY))
        .collect();
    let found = column(&next, "date").unwrap().texts();
    assert_eq!(found.into_iter().flatten().collect::<Vec<_>>(), dates);
    assert_eq!(numbers(&next, "ahead"), [1.0, 2.0, 3.0, 4.0, 5.0]);
    let of = |name: &str| numbers(&next, name);
    for (((low, mean), high), (few, many)) in (of("temperature.low").into_iter())
        .zip(of("temperature.mean"))
        .zip(of("temperature.high"))
        .zip(of("clouds.few").into_iter().zip(of("clouds.many")))
    {
        assert!(low < mean && mean < high, "{low} {mean} {high}");
        assert!((few + many - 1.0).abs() < 1e-9);
    }
    // A wider interval holds the narrower one.
    scene.does(&[
        "forecast",
        "run",
        "--steps",
        "5",
        "--interval",
        "0.95",
        "--out",
        "wide.csv",
    ]);
    let wide = scene.table("wide.csv");
    let pairs = |name: &str| numbers(&wide, name).into_iter().zip(numbers(&next, name));
    assert!(pairs("temperature.low").all(|(a, b)| a < b));
    assert!(pairs("temperature.high").all(|(a, b)| a > b));
    // Without a file, it is printed.
    let (printed, _) = scene.does(&["forecast", "run", "--steps", "2"]);
    assert!(
        printed.starts_with("date") && printed.lines().count() == 3,
        "{printed}"
    );
    assert!(printed.contains(&dates[1]), "{printed}");

    // The report shows the series and what comes next.
    let page = scene.text("run/report.html");
    assert!(
        page.contains(r#""over_time":{"name":"","steps":200,"#),
        "no series over time"
    );
    scene.does(&["report", "run"]);
}

#[test]
fn what_is_usual_at_a_time_of_the_year_is_foretold() {
    let scene = Scene::new();
    // The year and noise: whoever knows the date knows what can be known.
    let first = parse_moment("2015-01-01").unwrap();
    let mut text = String::from("date,x,y\n");
    let usual = |n: usize| 10.0 * (std::f64::consts::TAU * n as f64 / 365.2425).sin();
    for n in 0..1100 {
        let date = spell_moment(first + n as f64 * DAY);
        let (x, y) = (usual(n) + 6.0 * noise(n, 0), 6.0 * noise(n, 1) - usual(n));
        text += &format!("{date},{x:.3},{y:.3}\n");
    }
    scene.write("d.csv", text);
    let tree = "[tree]\nchain = { time = \"date\", step = \"1d\", observe = [\"x\", \"y\"] }\n";
    scene.write("m.toml", model("d.csv", tree));
    scene.mend("m.toml", "iterations = 5", "iterations = 200");
    scene.does(&["fit", "m.toml", "--out", "run"]);
    scene.does(&["forecast", "run", "--steps", "180", "--out", "next.csv"]);
    let next = scene.table("next.csv");
    for (name, sign) in [("x.mean", 1.0), ("y.mean", -1.0)] {
        let squares = (numbers(&next, name).into_iter().enumerate())
            .map(|(h, x)| (x - 3.0 - sign * usual(1100 + h)).powi(2));
        let error = (squares.sum::<f64>() / 180.0).sqrt();
        // The mean of all days is off by 7.
        assert!(error < 1.5, "{name}: {error}");
    }
}

#[test]
fn hours_months_and_numbers_are_steps_too() {
    let scene = Scene::new();
    let series = |times: &dyn Fn(usize) -> String| {
        let rows = (0..150).map(|n| {
            format!(
                "{},{:.3},{:.3}\n",
                times(n),
                noise(n, 0),
                noise(n, 0) + noise(n, 1)
            )
        });
        format!("t,a,b\n{}", rows.collect::<String>())
    };
    let first = parse_moment("2020-01-31").unwrap();
    let month: ramp_io::time::Interval = "1mo".parse().unwrap();
    for (name, step, text, last) in [
        (
            "hours",
            "\"1h\"",
            series(&|n| spell_moment(first + n as f64 * 3600.0)),
            "2020-02-06T06:00:00",
        ),
        (
            "months",
            "\"1mo\"",
            series(&|n| spell_moment(month.after(first, n as f64))),
            "2032-07-31",
        ),
        (
            "numbers",
            "0.5",
            series(&|n| format!("{}", 3.0 + 0.5 * n as f64)),
            "78",
        ),
    ] {
        scene.write(&format!("{name}.csv"), text);
        let tree = format!(
            "[tree]\nchain = {{ time = \"t\", step = {step}, observe = [\"a\", \"b\"] }}\n"
        );
        scene.write(
            &format!("{name}.toml"),
            model(&format!("{name}.csv"), &tree),
        );
        scene.does(&["fit", &format!("{name}.toml"), "--out", name]);
        scene.does(&[
            "forecast",
            name,
            "--steps",
            "1",
            "--out",
            &format!("{name}_next.csv"),
        ]);
        let next = scene.table(&format!("{name}_next.csv"));
        assert_eq!(
            column(&next, "t").unwrap().texts()[0].as_deref(),
            Some(last),
            "{name}"
        );
    }
}

#[test]
fn times_that_cannot_be_get_a_sentence() {
    let scene = Scene::new();
    scene.write(
        "m.toml",
        model(
            "d.csv",
            "[tree]\nchain = { time = \"t\", step = \"1d\", observe = [\"a\", \"b\"] }\n",
        ),
    );
    let write = |times: &[&str]| {
        let rows = times
            .iter()
            .enumerate()
            .map(|(n, t)| format!("{t},{},{}\n", noise(n, 0), noise(n, 1)));
        scene.write("d.csv", format!("t,a,b\n{}", rows.collect::<String>()));
    };
    // A slip of the finger is two hundred years of empty days.
    write(&["2024-01-01", "2024-01-02", "2204-01-03", "2024-01-04"]);
    scene.fails(
        &["fit", "m.toml"],
        &["the series has 65742 steps of 1d between data rows 4 and 3 (`2024-01-04` and `2204-01-03`)", "is one of these times wrong?"],
    );
    write(&["2024-01-01", "02.01.2024"]);
    scene.fails(
        &["fit", "m.toml"],
        &[
            "column `t` holds `02.01.2024` in data row 2, which is no date",
            "2024-02-29",
        ],
    );
    write(&["2024-01-01", "20240-01-02"]);
    scene.fails(&["fit", "m.toml"], &["data row 2, which is no date"]);
    write(&["2024-01-01", "2024-01-02", "2024-01-02"]);
    scene.fails(
        &["fit", "m.toml"],
        &[
            "the series has two rows with the same `t` (data rows 2 and 3)",
            "name the column that tells sequences apart",
        ],
    );
    scene.mend("m.toml", "\"1d\"", "1");
    write(&["2024-01-01", "2024-01-02"]);
    scene.fails(
        &["fit", "m.toml"],
        &["column `t` holds dates; write the chain's `step` as \"1d\""],
    );
    // Seconds since 1970 with a step of one, one of them in milliseconds.
    write(&["1700000000", "1700000001", "1700000002000"]);
    scene.fails(
        &["fit", "m.toml"],
        &[
            "between data rows 2 and 3",
            "make the chain's `step` larger",
        ],
    );
    for (from, to, says) in [
        ("step = 1", "step = \"1 day\"", "`1 day` is no interval"),
        (
            "step = \"1 day\"",
            "step = \"1d\", season = 7",
            "`season` 7 needs a `step` of the same kind",
        ),
        ("season = 7", "season = \"soon\"", "`soon` is no interval"),
        (
            "season = \"soon\"",
            "window = 2",
            "`window` must have 4 steps or more, not 2",
        ),
    ] {
        scene.mend("m.toml", from, to);
        scene.fails(&["check", "m.toml"], &[says]);
    }
}

#[test]
fn only_sequences_have_a_future() {
    let scene = Scene::with_run();
    scene.fails(
        &["forecast", "run", "--steps", "3", "--out", "x.csv"],
        &["only sequences have steps to come"],
    );
    scene.fails(
        &["forecast", "run", "--steps", "0", "--out", "x.csv"],
        &["0 steps cannot be forecast; ask for 1 to 10000"],
    );
    scene.fails(
        &[
            "forecast",
            "run",
            "--steps",
            "1",
            "--interval",
            "80",
            "--out",
            "x.csv",
        ],
        &["an interval holds a part between 0 and 1, such as 0.8, not 80"],
    );
}

#[test]
fn many_sequences_go_on_each_by_itself() {
    let scene = Scene::new();
    scene.write("long.csv", scene::long_table(30));
    scene.write("m.toml", model("long.csv", scene::CHAIN));
    scene.does(&["fit", "m.toml", "--out", "run"]);
    scene.does(&["forecast", "run", "--steps", "2", "--out", "all.csv"]);
    let all = scene.table("all.csv");
    assert_eq!(all.num_rows(), 60);
    // Alone, a sequence has the same future.
    let some: String = scene
        .text("long.csv")
        .lines()
        .filter(|l| l.starts_with("who") || l.starts_with("s7,"))
        .map(|l| format!("{l}\n"))
        .collect();
    scene.write("one.csv", some);
    scene.does(&[
        "forecast",
        "run",
        "--data",
        "one.csv",
        "--steps",
        "2",
        "--out",
        "alone.csv",
    ]);
    let alone = scene.table("alone.csv");
    for name in ["z.mean", "z.sd", "heart.mean", "heart.low", "sleep.high"] {
        assert_eq!(
            numbers(&alone, name)[..],
            numbers(&all, name)[14..16],
            "{name}"
        );
    }
    assert_eq!(
        column(&all, "who").unwrap().texts()[14].as_deref(),
        Some("s7")
    );
}
