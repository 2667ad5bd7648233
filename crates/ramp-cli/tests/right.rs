//! Is it right? The commands on data from a linear-Gaussian tree, against exact inference.

use assert_cmd::Command;
use ramp_io::table::{columns, open_table};
use ramp_lab::experiments::linear_tree::data::{LinearTree, TreeSample};
use ramp_lab::metrics::pearson;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::collections::HashMap;
use std::path::Path;

const TRAIN: usize = 12_000;
const TEST: usize = 3000;
const MODEL: &str = r#"
    [tree]
    newick = "(((x1,x2)z4,(x3,x4)z5)z2,((x5,x6)z6,(x7,x8)z7)z3)z1;"
    [train]
    iterations = 1000
    seed = 1
"#;

fn ramp(words: &[&str], folder: &Path) -> String {
    let output = Command::new(assert_cmd::cargo::cargo_bin!("ramp"))
        .args(words)
        .current_dir(folder)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{words:?}: {said}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Writes observations as a table; `shape(column, value)` distorts, `gone(column, row)` hides.
fn write(
    path: &Path,
    sample: &TreeSample,
    shape: &dyn Fn(usize, f32) -> f64,
    gone: &dyn Fn(usize, usize) -> bool,
) {
    let mut text = (1..=8)
        .map(|i| format!("x{i}"))
        .collect::<Vec<_>>()
        .join(",");
    for row in 0..sample.observations[0].len() {
        text.push('\n');
        let cells: Vec<String> = (0..8)
            .map(|i| match gone(i, row) {
                true => String::new(),
                false => format!("{:e}", shape(i, sample.observations[i][row])),
            })
            .collect();
        text += &cells.join(",");
    }
    std::fs::write(path, text).unwrap();
}

/// Columns of a table by name.
fn read(path: &Path) -> HashMap<String, Vec<f64>> {
    let mut reader = open_table(path).unwrap();
    let mut all: HashMap<String, Vec<f64>> = HashMap::new();
    while let Some(table) = reader.next(1000).unwrap() {
        for column in columns(&table) {
            all.entry(column.name().to_owned())
                .or_default()
                .extend(column.numbers(0).unwrap());
        }
    }
    all
}

/// The correlation of every latent's posterior mean with the truth, in level order.
fn correlations(path: &Path, truth: &TreeSample) -> Vec<f64> {
    let said = read(path);
    (0..7)
        .map(|k| pearson(&said[&format!("z{}.mean", k + 1)], &truth.latents[k]).abs())
        .collect()
}

#[test]
fn the_commands_come_close_to_exact_inference() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let tree = LinearTree::default();
    let (train, test) = (
        tree.sample(TRAIN, 5, 0).unwrap(),
        tree.sample(TEST, 5, 1).unwrap(),
    );
    std::fs::write(at("model.toml"), MODEL).unwrap();
    let plain = |_: usize, x: f32| f64::from(x);
    let all = |_: usize, _: usize| false;
    let fit_and_infer = |name: &str| {
        let run = format!("run-{name}");
        ramp(
            &[
                "fit",
                "model.toml",
                "--data",
                &format!("train-{name}.csv"),
                "--out",
                &run,
            ],
            folder.path(),
        );
        let out = format!("latents-{name}.csv");
        ramp(
            &[
                "infer",
                &run,
                "--data",
                &format!("test-{name}.csv"),
                "--out",
                &out,
            ],
            folder.path(),
        );
        correlations(&at(&out), &test)
    };

    // As they are.
    write(&at("train-plain.csv"), &train, &plain, &all);
    write(&at("test-plain.csv"), &test, &plain, &all);
    let ours = fit_and_infer("plain");
    let exact = tree.gaussian().unwrap().posterior(&[]).unwrap();
    let best: Vec<f64> = exact
        .means(&test.observations)
        .unwrap()
        .iter()
        .zip(&test.latents)
        .map(|(m, z)| pearson(m, z).abs())
        .collect();
    for k in 0..7 {
        assert!(
            best[k] - ours[k] < 0.02,
            "latent {k}: {} or {}",
            ours[k],
            best[k]
        );
    }
    // The posterior says how far off it is: mean variances near the exact ones.
    let said = read(&at("latents-plain.csv"));
    for (k, &exact) in exact.variances().iter().enumerate() {
        let sds = &said[&format!("z{}.sd", k + 1)];
        let ours = sds.iter().map(|s| s * s).sum::<f64>() / sds.len() as f64;
        assert!(
            (ours / exact - 1.0).abs() < 0.15,
            "latent {k}: {ours} or {exact}"
        );
    }

    // Through monotone distortions of every column.
    let distorted = |i: usize, x: f32| match i % 3 {
        0 => f64::from(x).exp(),
        1 => f64::from(x).powi(3),
        _ => f64::from(x).signum() * f64::from(x).abs().sqrt(),
    };
    write(&at("train-bent.csv"), &train, &distorted, &all);
    write(&at("test-bent.csv"), &test, &distorted, &all);
    for (k, bent) in fit_and_infer("bent").into_iter().enumerate() {
        assert!(
            (bent - ours[k]).abs() < 0.02,
            "latent {k}: {bent} or {}",
            ours[k]
        );
    }

    // With a fifth of the cells missing, against exact inference with the same cells missing.
    let holes = |seed: u64, rows: usize| -> Vec<bool> {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        (0..8 * rows).map(|_| rng.random_bool(0.2)).collect()
    };
    let (train_holes, test_holes) = (holes(1, TRAIN), holes(2, TEST));
    write(&at("train-holes.csv"), &train, &plain, &|i, r| {
        train_holes[i * TRAIN + r]
    });
    write(&at("test-holes.csv"), &test, &plain, &|i, r| {
        test_holes[i * TEST + r]
    });
    let ours = fit_and_infer("holes");
    let mut means = vec![vec![0.0; TEST]; 7];
    let gaussian = tree.gaussian().unwrap();
    let mut patterns: HashMap<Vec<usize>, Vec<usize>> = HashMap::new();
    for row in 0..TEST {
        let missing = (0..8).filter(|i| test_holes[i * TEST + row]).collect();
        patterns.entry(missing).or_default().push(row);
    }
    for (missing, rows) in &patterns {
        let observations: Vec<Vec<f32>> = test
            .observations
            .iter()
            .map(|x| rows.iter().map(|&r| x[r]).collect())
            .collect();
        let part = gaussian
            .posterior(missing)
            .unwrap()
            .means(&observations)
            .unwrap();
        for k in 0..7 {
            for (i, &row) in rows.iter().enumerate() {
                means[k][row] = part[k][i];
            }
        }
    }
    for k in 0..7 {
        let best = pearson(&means[k], &test.latents[k]).abs();
        assert!(
            best - ours[k] < 0.02,
            "latent {k} with holes: {} or {best}",
            ours[k]
        );
    }

    // What fills the holes, against the exact conditional mean: a leaf is its parent, of variance 3, plus noise.
    ramp(
        &[
            "impute",
            "run-holes",
            "--data",
            "test-holes.csv",
            "--out",
            "filled.csv",
        ],
        folder.path(),
    );
    let filled = read(&at("filled.csv"));
    let (mut ours, mut exact) = (0.0, 0.0);
    for i in 0..8 {
        for row in 0..TEST {
            let truth = f64::from(test.observations[i][row]);
            let said = filled[&format!("x{}", i + 1)][row];
            if test_holes[i * TEST + row] {
                ours += (said - truth).powi(2);
                exact += (3f64.sqrt() * means[3 + i / 2][row] - truth).powi(2);
            } else {
                assert!((said - truth).abs() < 1e-5, "only holes are filled");
            }
        }
    }
    let ratio = (ours / exact).sqrt();
    assert!(
        ratio < 1.1,
        "imputation error is {ratio} times the exact one"
    );
}
