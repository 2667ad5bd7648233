//! Small samples: fits to parts of them judge, and a linear factor model is said to be the better choice where it is.

use super::*;
use crate::ModelFile;
use ramp::train::{Control, Event};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};
use std::fs;
use std::path::{Path, PathBuf};

const TREE: &str = "[tree]\nnewick = \"((a,b,c)u,(d,e,f)v)w;\"\n";

/// Rows of six items under two factors under a general one: lines with noise, or folded, where a line says nothing.
fn table(folder: &Path, rows: usize, folded: bool) -> PathBuf {
    let mut rng = ChaCha8Rng::seed_from_u64(4);
    let mut normal = || -> f64 { StandardNormal.sample(&mut rng) };
    let mut text = String::from("a,b,c,d,e,f\n");
    for _ in 0..rows {
        let general = normal();
        let row: Vec<String> = (0..2)
            .flat_map(|_| {
                let factor = 0.8 * general + 0.6 * normal();
                let own = if folded { factor.powi(2) } else { factor };
                [0.8, 0.7, 0.6].map(|loading| {
                    let item: f64 = match folded {
                        // One item runs straight, the others along its square: no line connects them.
                        true if loading == 0.8 => factor,
                        _ => own,
                    };
                    format!("{:.4}", loading * item + (1.0 - loading) * normal())
                })
            })
            .collect();
        text += &format!("{}\n", row.join(","));
    }
    let path = folder.join("data.csv");
    fs::write(&path, text).unwrap();
    path
}

fn project(data: &Path, more: &str) -> Project {
    let mut file = ModelFile::parse(&format!("{TREE}{more}")).unwrap();
    file.data.file = Some(data.to_path_buf());
    Project::prepare(file).unwrap()
}

fn judged(mut project: Project) -> Project {
    let mut nobody = |_: &Event<'_>| Control::Continue;
    project.cross_validate(None, &mut nobody).unwrap();
    project
}

#[test]
fn a_linear_factor_model_is_said_to_be_better_where_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let straight = judged(project(&table(folder.path(), 200, false), ""));
    let found = straight.cross_validation.as_ref().unwrap();
    let sentence = straight.beyond_linear.unwrap().sentence();
    assert!(
        sentence.starts_with("a linear factor model is the better choice"),
        "{sentence}"
    );
    assert_eq!((found.folds, found.rows, found.iteration), (5, 180, 0));
    let folded = judged(project(&table(folder.path(), 400, true), ""));
    let found = folded.cross_validation.as_ref().unwrap();
    let sentence = folded.beyond_linear.unwrap().sentence();
    assert!(!sentence.contains("better choice"), "{sentence}");
    assert!(found.iteration > 0);
    // What the table says is a point of the curve, but that every part's iteration was chosen by the others.
    let table = found.latents.iter().sum::<f64>() / found.latents.len() as f64;
    let best = found.curve.iter().map(|c| c.1).fold(f64::MIN, f64::max);
    assert!((table - best).abs() < 0.05, "{table} {best}");
}

#[test]
fn larger_samples_other_starts_and_who_asks_for_none_are_not_divided() {
    let folder = tempfile::tempdir().unwrap();
    let small = table(folder.path(), 200, false);
    assert_eq!(project(&small, "").folds(), 5);
    assert_eq!(project(&small, "[data]\nfolds = 0\n").folds(), 0);
    assert_eq!(project(&small, "[data]\nfolds = 3\n").folds(), 3);
    assert_eq!(project(&small, "[data]\nvalidation = 0.0\n").folds(), 0);
    let few = "[train]\niterations = 20\n[networks]\ninit = \"shared\"\n";
    let shared = judged(project(&small, few));
    assert_eq!(shared.beyond_linear, None);
    assert_eq!(shared.cross_validation.unwrap().iteration, 20);
    let large = table(folder.path(), 3000, false);
    assert_eq!(project(&large, "").folds(), 0);
}

#[test]
fn rows_of_the_fit_are_known_again_and_others_are_not() {
    let folder = tempfile::tempdir().unwrap();
    let data = table(folder.path(), 100, false);
    let project = project(&data, "[data]\nfolds = 0\n");
    let place = RunFolder::claim(&folder.path().join("run"), Intent::New, &[]).unwrap();
    place.finish(&project, "<html>").unwrap();
    drop(place);
    let run = Run::open(&folder.path().join("run")).unwrap();
    let uses = run.row_uses(&data).unwrap().unwrap();
    for (n, found) in uses.iter().enumerate() {
        let within = |rows: &[u32]| rows.contains(&(n as u32));
        let expected = match () {
            _ if within(&project.held_out) => RowUse::HeldOut,
            _ if within(&project.validation) => RowUse::Validation,
            _ => RowUse::Training,
        };
        assert_eq!(*found, expected, "{n}");
    }
    assert!(uses.contains(&RowUse::HeldOut) && uses.contains(&RowUse::Validation));
    let text = fs::read_to_string(&data).unwrap();
    fs::write(&data, text.replacen('1', "2", 1)).unwrap();
    assert_eq!(run.row_uses(&data).unwrap(), None);
    assert!(run.knows_its_rows());
}
