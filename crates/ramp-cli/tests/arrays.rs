//! The main job on arrays: sequences, images, vectors.

mod scene;

use ramp_io::array::{Array, ArrayValues, write_arrays};
use scene::{Scene, model, names, noise, numbers};

fn array(name: &str, shape: &[usize], value: impl Fn(usize) -> f32) -> Array {
    let size = shape.iter().product();
    Array {
        name: name.into(),
        shape: shape.to_vec(),
        values: ArrayValues::Numbers((0..size).map(value).collect()),
    }
}

#[test]
fn sequences_in_arrays_come_out_wide_or_long() {
    let scene = Scene::new();
    let (n, t) = (30, 4);
    // Every third sequence is a step shorter.
    let short =
        |i: usize, width: usize| (i / width) % t == t - 1 && (i / width / t).is_multiple_of(3);
    let arrays = [
        array("x", &[n, t], |i| match short(i, 1) {
            true => f32::NAN,
            false => noise(i, 0) as f32,
        }),
        array("y", &[n, t, 2], |i| match short(i, 2) {
            true => f32::NAN,
            false => noise(i, 1) as f32,
        }),
    ];
    write_arrays(&scene.path("s.npz"), &arrays, true).unwrap();
    scene.write(
        "m.toml",
        model("s.npz", "[tree]\nchain = { observe = [\"x\", \"y\"] }\n"),
    );
    let (printed, _) = scene.does(&["fit", "m.toml", "--out", "run"]);
    assert!(
        printed.contains("3 to 4 steps") && printed.contains("vector of 2"),
        "{printed}"
    );
    assert!(scene.path("run/support.npz").is_file());

    scene.does(&["infer", "run", "--data", "s.npz", "--out", "wide.csv"]);
    scene.does(&[
        "infer", "run", "--data", "s.npz", "--out", "long.csv", "--long",
    ]);
    let (wide, long) = (scene.table("wide.csv"), scene.table("long.csv"));
    assert_eq!((wide.num_rows(), long.num_rows()), (n, n * t));
    assert_eq!(names(&long), ["sample", "step", "z.mean", "z.sd"]);
    for step in 0..t {
        let column = numbers(&wide, &format!("z{}.mean", step + 1));
        for (sample, x) in column.iter().enumerate() {
            let y = numbers(&long, "z.mean")[sample * t + step];
            assert!(x == &y || x.is_nan() && y.is_nan());
            assert_eq!(x.is_nan(), step == 3 && sample % 3 == 0);
        }
    }
    scene.does(&["score", "run", "--data", "s.npz", "--out", "s.csv"]);
    assert_eq!(scene.table("s.csv").num_rows(), n);
    scene.fails(
        &["impute", "run", "--data", "s.npz", "--out", "i.csv"],
        &["only tables can be imputed"],
    );
}

#[test]
fn short_sequences_alone_have_columns_for_every_step_of_their_array() {
    let scene = Scene::new();
    let full = array("x", &[20, 3], |i| noise(i, 0) as f32);
    write_arrays(&scene.path("s.npz"), &[full], false).unwrap();
    scene.write(
        "m.toml",
        model("s.npz", "[tree]\nchain = { observe = [\"x\"] }\n"),
    );
    scene.does(&["fit", "m.toml", "--out", "run"]);
    // More than go through the model at once; the long ones come last.
    let late = array("x", &[20_000, 3], |i| match i % 3 == 2 && i < 59_000 {
        true => f32::NAN,
        false => noise(i % 999, 0) as f32,
    });
    write_arrays(&scene.path("late.npz"), &[late], false).unwrap();
    scene.does(&["infer", "run", "--data", "late.npz", "--out", "o.parquet"]);
    let out = scene.table("o.parquet");
    assert_eq!(out.num_rows(), 20_000);
    let last = numbers(&out, "z3.mean");
    assert!(last[0].is_nan() && last[19_999].is_finite());
}

#[test]
fn images_train_with_convolutions() {
    let scene = Scene::new();
    let image = |name: &str, column: usize| Array {
        name: name.into(),
        shape: vec![24, 6, 5],
        values: ArrayValues::Bytes(
            (0..24 * 30)
                .map(|i| (255.0 * noise(i / 30, column)) as u8)
                .collect(),
        ),
    };
    write_arrays(
        &scene.path("i.npz"),
        &[image("front", 0), image("back", 1)],
        true,
    )
    .unwrap();
    scene.write(
        "m.toml",
        "version = 1\n[data]\nfile = \"i.npz\"\n[tree]\nnewick = \"(front,back)z;\"\n[train]\niterations = 2\n",
    );
    let (printed, _) = scene.does(&["fit", "m.toml", "--out", "run"]);
    assert!(printed.contains("image 1×6×5"), "{printed}");
    assert!(
        String::from_utf8_lossy(&scene.read("run/weights.safetensors"))
            .contains("\\\"kind\\\":\\\"conv\\\""),
        "the recognition network is convolutional"
    );
    scene.does(&["infer", "run", "--data", "i.npz", "--out", "o.csv"]);
    let out = scene.table("o.csv");
    assert_eq!(
        (out.num_rows(), names(&out)),
        (24, vec!["sample", "z.mean", "z.sd", "split"])
    );
}

#[test]
fn pictures_of_numbers_may_have_a_rim() {
    let scene = Scene::new();
    let picture = |name: &str, column: usize| {
        array(name, &[24, 4, 4], |i| match (i / 4 % 4, i % 4) {
            (1 | 2, 1 | 2) => noise(i, column) as f32,
            _ => 7.0,
        })
    };
    let all = [picture("front", 0), picture("back", 1)];
    write_arrays(&scene.path("i.npz"), &all, true).unwrap();
    let tree = "[tree]\nnewick = \"(front,back)z;\"\n";
    scene.write("m.toml", model("i.npz", tree));
    scene.does(&["fit", "m.toml", "--out", "run"]);
    scene.does(&["infer", "run", "--data", "i.npz", "--out", "o.csv"]);
    let blank = array("back", &[24, 4, 4], |_| 7.0);
    write_arrays(&scene.path("i.npz"), &[picture("front", 0), blank], true).unwrap();
    scene.fails(
        &["fit", "m.toml", "--out", "other"],
        &["array `back` is the same in all training samples"],
    );
}
