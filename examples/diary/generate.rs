//! Makes the diary: 400 people note sleep, steps and mood for 10 to 30 days, while their mood follows itself from day to day.
//!
//! `cargo run --release -p ramp-lab --example diary` writes `diary.csv` and `truth.csv` anew, bit for bit.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};
use std::fmt::Write;
use std::path::Path;

const PEOPLE: usize = 400;
const DAYS: std::ops::RangeInclusive<usize> = 10..=30;
/// How much of yesterday's mood is left today; its variance is 1 on every day.
const PERSISTENCE: f64 = 0.9;
/// How strongly sleep, steps and the rating follow mood.
const LOADINGS: [f64; 3] = [0.6, 0.6, 0.75];
/// The chance that a person writes nothing on a day, and that a written day lacks one of its cells.
const SKIPPED: f64 = 0.08;
const MISSING: f64 = 0.1;

/// Hours of sleep, in quarters: long nights have a limit, short ones have less of one.
fn sleep(propensity: f64) -> f64 {
    let hours = 10.0 - 2.6 * (-0.45 * propensity).exp();
    (4.0 * hours.max(1.0)).round() / 4.0
}

/// Steps: most days a few thousand, on some days very many.
fn steps(propensity: f64) -> f64 {
    (8.6 + 0.6 * propensity).exp().round()
}

/// A rating from 1 to 7; few people call a day a 1.
fn rating(propensity: f64) -> f64 {
    let thresholds = [-2.2, -1.5, -0.8, -0.1, 0.6, 1.4];
    1.0 + thresholds.iter().filter(|&&t| propensity > t).count() as f64
}

/// What exact inference knows of mood on every day: Kalman's filter and the smoother of Rauch, Tung and Striebel, told the
/// true parameters and the propensities before they were bent and rounded.
fn smoothed(readings: &[[Option<f64>; 3]]) -> Vec<f64> {
    let (mut mean, mut variance) = (0.0, 1.0);
    let mut filtered = vec![];
    for (t, day) in readings.iter().enumerate() {
        if t > 0 {
            mean *= PERSISTENCE;
            variance = PERSISTENCE.powi(2) * variance + 1.0 - PERSISTENCE.powi(2);
        }
        for (reading, a) in day.iter().zip(LOADINGS) {
            if let Some(reading) = reading {
                let gain = variance * a / (a * a * variance + 1.0 - a * a);
                mean += gain * (reading - a * mean);
                variance *= 1.0 - gain * a;
            }
        }
        filtered.push((mean, variance));
    }
    let mut means = vec![mean; readings.len()];
    for t in (0..readings.len() - 1).rev() {
        let (mean, variance) = filtered[t];
        let ahead = PERSISTENCE.powi(2) * variance + 1.0 - PERSISTENCE.powi(2);
        means[t] = mean + PERSISTENCE * variance / ahead * (means[t + 1] - PERSISTENCE * mean);
    }
    means
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut rng = ChaCha8Rng::seed_from_u64(2025);
    let mut diary = String::from("person,day,sleep,steps,mood_rating\n");
    let mut truth = String::from("person,day,mood,exact\n");
    for person in 1..=PEOPLE {
        let days = rng.random_range(DAYS);
        let (mut moods, mut readings, mut written) = (vec![], vec![], vec![]);
        for day in 0..days {
            let mut normal = || -> f64 { StandardNormal.sample(&mut rng) };
            let mood = match moods.last() {
                None => normal(),
                Some(last) => PERSISTENCE * last + (1.0 - PERSISTENCE.powi(2)).sqrt() * normal(),
            };
            let propensities = LOADINGS.map(|a| a * mood + (1.0 - a * a).sqrt() * normal());
            // The first and the last day are there, so that a diary is as long as it looks.
            let there = day == 0 || day + 1 == days || !rng.random_bool(SKIPPED);
            let read = propensities.map(|p| (there && !rng.random_bool(MISSING)).then_some(p));
            moods.push(mood);
            readings.push(read);
            written.push(there);
        }
        let exact = smoothed(&readings);
        for day in (0..days).filter(|&d| written[d]) {
            write!(diary, "{person},{}", day + 1)?;
            for (reading, bend) in readings[day].iter().zip([sleep, steps, rating]) {
                match reading {
                    None => diary.push(','),
                    Some(propensity) => write!(diary, ",{}", bend(*propensity))?,
                }
            }
            diary.push('\n');
            writeln!(
                truth,
                "{person},{},{:.4},{:.4}",
                day + 1,
                moods[day],
                exact[day]
            )?;
        }
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/diary");
    std::fs::write(folder.join("diary.csv"), diary)?;
    std::fs::write(folder.join("truth.csv"), truth)?;
    println!("wrote diary.csv and truth.csv");
    Ok(())
}
