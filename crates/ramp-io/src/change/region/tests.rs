//! Changes around a model: what is fitted again, with which weights it begins, and that gains are those of whole fits.

use super::*;
use crate::diagnose::gains;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Where the latent that is merged away has latents beside it, what these believe is heard by the one that it goes into.
#[test]
fn latents_beside_a_merged_one_are_heard_as_before() {
    let tree = FactorTree::from_newick("((((x1,x2)a,(x3,x4)b)c,(x5,x6)d)e,(x7,x8)f)g;").unwrap();
    let mut random = ChaCha8Rng::seed_from_u64(1);
    let rows = 120;
    let mut data = Dataset::new();
    for i in 1..=8 {
        let values = (0..rows).map(|_| random.random_range(-1.0..1.0)).collect();
        data = data.observe(format!("x{i}"), 1, values).unwrap();
    }
    let model = Model::builder(tree.clone()).build(&data).unwrap();
    let place: Vec<u32> = (0..rows as u32).collect();
    let effort = Effort {
        iterations: 2,
        ..Effort::default()
    };
    let parts = [&place[..60], &place[60..90], &place[90..]];
    let around = Surroundings::new(&model, &data, parts, &TrainSpec::default(), effort).unwrap();
    for (kept, gone) in [("e", "c"), ("c", "e"), ("c", "a"), ("g", "e")] {
        let merged = Change::Merge {
            kept: tree.find(kept).unwrap(),
            gone: tree.find(gone).unwrap(),
        };
        let tried = gains(&tree, &around, vec![merged], &|_, _| false)
            .unwrap_or_else(|error| panic!("{gone} into {kept}: {error}"))
            .unwrap();
        assert!(tried[0].gain.is_finite() && tried[0].standard_error > 0.0);
    }
}

fn numbers(rows: usize) -> Dataset {
    let mut random = ChaCha8Rng::seed_from_u64(1);
    (1..=10).fold(Dataset::new(), |data, i| {
        let values = (0..rows).map(|_| random.random_range(-1.0..1.0)).collect();
        data.observe(format!("x{i}"), 1, values).unwrap()
    })
}

/// With one step latents beside those of a change are fitted again, with two those beside them.
#[test]
fn regions_reach_as_far_as_is_asked() {
    let tree = FactorTree::from_newick("(((((x1,x2)a,x3)b,x4)c,x5,x6)d,(x7,x8,x9,x10)e)f;");
    let tree = tree.unwrap();
    let data = numbers(60);
    let model = Model::builder(tree.clone()).build(&data).unwrap();
    let place: Vec<u32> = (0..60).collect();
    let parts = [&place[..30], &place[30..45], &place[45..]];
    let moved = Change::Move {
        observation: tree.find("x1").unwrap(),
        to: tree.find("b").unwrap(),
    };
    for (around, expected) in [(0, "ab"), (1, "abc"), (2, "abcd"), (9, "abcdef")] {
        let effort = Effort {
            around,
            ..Effort::default()
        };
        let around = Surroundings::new(&model, &data, parts, &TrainSpec::default(), effort);
        let region = around.unwrap().region(&moved);
        let mut names: Vec<&str> = region.iter().map(|&l| tree.name(l)).collect();
        names.sort_unstable();
        assert_eq!(names.concat(), expected);
    }
}

/// What a latent says to one that it has never met begins as what it said to the one that it left, turned around where the two run against each other.
#[test]
fn a_latent_that_moves_begins_with_what_it_said() {
    let tree = FactorTree::from_newick("((x1,x2,x3)a,(x4,x5,x6,x7)b,(x8,x9,x10)c)top;");
    let tree = tree.unwrap();
    let data = numbers(60);
    let place: Vec<u32> = (0..60).collect();
    let parts = [&place[..30], &place[30..45], &place[45..]];
    let step = tree.interchanges().into_iter().find(|step| {
        step.sentence(&tree)
            .starts_with("across top–b, the branch of c moves from top to b")
    });
    let change = Change::Interchange(step.unwrap());
    let changed = tree.changed(&change).unwrap();
    let mut turned = 0;
    for seed in 0..6 {
        let mut model = Model::builder(tree.clone())
            .seed(seed)
            .build(&data)
            .unwrap();
        let latent = |name: &str| tree.latents().iter().position(|&l| tree.name(l) == name);
        if seed >= 3 {
            model.flip_sign(latent("b").unwrap()).unwrap();
        }
        let train = TrainSpec::default();
        let around = Surroundings::new(&model, &data, parts, &train, Effort::default()).unwrap();
        let (_, part) = around.part(&changed, changed.latents()).unwrap();
        let said = &model.parameters()[model.span("c>top").unwrap()];
        let says = &part.parameters()[part.span("c>b").unwrap()];
        let means = |name: &str| around.means_of(tree.find(name).unwrap());
        let against = correlation(means("top"), means("b")) < 0.0;
        let differ = said.iter().zip(says).any(|(before, now)| before != now);
        assert_eq!(differ, against, "seed {seed}");
        for (before, now) in said.iter().zip(says) {
            assert_eq!(before.abs(), now.abs(), "seed {seed}");
        }
        turned += usize::from(against);
    }
    assert!((1..6).contains(&turned), "{turned} of six were turned");
}

/// Around a linear factor model, what changes gain is what factor models of the whole changed trees explain more.
#[test]
fn around_a_linear_model_gains_are_those_of_whole_fits() {
    let tree = FactorTree::from_newick("((x1,x2,x3)a,(x4,x5,x6,x7)b,(x8,x9,x10)c)top;");
    let tree = tree.unwrap();
    let mut random = ChaCha8Rng::seed_from_u64(2);
    let mut normal = || -> f64 { (0..12).map(|_| random.random_range(-0.5..0.5)).sum() };
    let rows = 1200;
    let mut columns = vec![vec![]; 10];
    for _ in 0..rows {
        let top = normal();
        for items in [0..3, 3..6, 6..10] {
            let facet = 0.7 * top + 0.71 * normal();
            for column in &mut columns[items] {
                column.push((0.8 * facet + 0.6 * normal()) as f32);
            }
        }
    }
    let mut data = Dataset::new();
    for (i, values) in columns.into_iter().enumerate() {
        data = data.observe(format!("x{}", i + 1), 1, values).unwrap();
    }
    let place: Vec<u32> = (0..rows as u32).collect();
    let parts = [&place[..700], &place[700..800], &place[800..]];
    let whole = |tree: &FactorTree| {
        let mut model = Model::builder(tree.clone()).build(&data).unwrap();
        assert!(model.init_factors(&data, parts[0]).unwrap());
        let support = SupportSet::new(&model, &data.select(parts[0]), 700).unwrap();
        let judged = data.select(parts[2]);
        let total = model.totals(&support, &judged, &[tree.root()]).unwrap();
        let samples = total[0].samples();
        let nats = samples.iter().sum::<f64>() / samples.len() as f64;
        (model, nats)
    };
    let (model, nats) = whole(&tree);
    let train = TrainSpec::default();
    let around = Surroundings::new(&model, &data, parts, &train, Effort::default());
    let around = around.unwrap().linear(true);
    let moved = |item: &str, to: &str| Change::Move {
        observation: tree.find(item).unwrap(),
        to: tree.find(to).unwrap(),
    };
    let changes = vec![moved("x7", "c"), moved("x7", "a"), moved("x1", "b")];
    let tried = gains(&tree, &around, changes, &|_, _| false)
        .unwrap()
        .unwrap();
    assert_eq!(tried[0].sentence, "x7 belongs to c rather than b");
    for change in tried {
        let gain = whole(&change.tree).1 - nats;
        let off = (change.gain - gain).abs();
        assert!(
            off < 0.02 + 0.1 * gain.abs(),
            "{}: {} for {gain}",
            change.sentence,
            change.gain
        );
    }
}
