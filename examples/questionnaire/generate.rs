//! Makes the questionnaire: 5,000 people answer 12 items about three facets under one general factor.
//!
//! `cargo run --release -p ramp-lab --example questionnaire` writes `answers.csv` and `truth.csv` anew, bit for bit.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};
use std::fmt::Write;
use std::path::Path;

const PEOPLE: usize = 5000;
const ITEMS_PER_FACET: usize = 4;
const FACETS: [&str; 3] = ["anxiety", "anger", "sadness"];
/// How strongly each facet follows the general factor.
const FACET_LOADINGS: [f64; 3] = [0.85, 0.7, 0.8];
/// How strongly each item of a facet follows it.
const ITEM_LOADINGS: [f64; ITEMS_PER_FACET] = [0.85, 0.8, 0.7, 0.6];
const MISSING: f64 = 0.08;

/// The level of an answer from 1 to 5: few people endorse the upper ones, and each item is skewed in its own way.
fn answer(propensity: f64, item: usize) -> usize {
    let shift = 0.25 * (item % 4) as f64;
    let thresholds = [-0.2, 0.5, 1.1, 1.8].map(|t| t + shift);
    1 + thresholds.iter().filter(|&&t| propensity > t).count()
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut rng = ChaCha8Rng::seed_from_u64(2024);
    let mut answers = String::from("person,age");
    let mut truth = String::from("person,distress");
    for (f, facet) in FACETS.iter().enumerate() {
        write!(truth, ",{facet}")?;
        for i in 0..ITEMS_PER_FACET {
            write!(answers, ",q{}", f * ITEMS_PER_FACET + i + 1)?;
        }
    }
    for person in 1..=PEOPLE {
        let mut normal = || -> f64 { StandardNormal.sample(&mut rng) };
        let distress = normal();
        let facets = FACET_LOADINGS.map(|a| a * distress + (1.0 - a * a).sqrt() * normal());
        let mut levels = vec![];
        for (f, &facet) in facets.iter().enumerate() {
            for (i, &a) in ITEM_LOADINGS.iter().enumerate() {
                let propensity = a * facet + (1.0 - a * a).sqrt() * normal();
                levels.push(answer(propensity, f * ITEMS_PER_FACET + i));
            }
        }
        // Nobody tells the model how old people are; the report can colour by it. The older are a little calmer.
        let age = (45.0 - 5.0 * distress + 14.0 * normal())
            .clamp(18.0, 90.0)
            .round();
        write!(answers, "\n{person},{age}")?;
        for level in levels {
            match rng.random_bool(MISSING) {
                true => answers.push(','),
                false => write!(answers, ",{level}")?,
            }
        }
        write!(truth, "\n{person},{distress:.4}")?;
        for facet in facets {
            write!(truth, ",{facet:.4}")?;
        }
    }
    answers.push('\n');
    truth.push('\n');
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/questionnaire");
    std::fs::write(folder.join("answers.csv"), answers)?;
    std::fs::write(folder.join("truth.csv"), truth)?;
    println!("wrote answers.csv and truth.csv");
    Ok(())
}
