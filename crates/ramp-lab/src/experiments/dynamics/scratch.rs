use super::*;
use crate::harness::Scale;
use ramp::train::{Control, Event, Trainer, start_chain};
fn knob(name: &str, or: f64) -> f64 {
    std::env::var(format!("X_{name}"))
        .ok()
        .and_then(|v| v.parse().ok())
        .unwrap_or(or)
}
use std::time::Instant;

fn show(x: &[f64]) -> String {
    x.iter()
        .map(|v| format!("{v:.3}"))
        .collect::<Vec<_>>()
        .join(" ")
}

#[test]
fn scratch() {
    let names = std::env::var("SYS").unwrap_or_default();
    let seeds: Vec<u64> = std::env::var("SEEDS")
        .unwrap_or("0".into())
        .split(',')
        .map(|s| s.parse().unwrap())
        .collect();
    let label = std::env::var("LABEL").unwrap_or_default();
    for name in names.split(',') {
        let system: System =
            serde_json::from_value(serde_json::Value::String(name.into())).unwrap();
        for &seed in &seeds {
            let mut run = DynamicsRun::new(Scale::Quick, vec![system], seed);
            run.baselines = None;
            run.core.train = ramp::train::TrainSpec {
                batch: Some(50),
                seed,
                learning_rate: 1e-3 * knob("rate", 1.0),
                ..ramp::train::TrainSpec::for_chain(knob("iterations", 400.0) as usize)
            };
            let dim = system.dimension() * knob("wider", 1.0) as usize;
            let record = |count, stream| {
                Recorded::new(system, run.size, count, run.steps, (seed, stream)).unwrap()
            };
            let (train, test) = (record(run.sequences, TRAIN), record(run.test, TEST));
            let (data, test_data) = (train.dataset().unwrap(), test.dataset().unwrap());
            if knob("kalman", 0.0) > 0.0 {
                let [known, others] = Scores::of(&train, &test).unwrap();
                let [_, wide] = kalman_smoothers([&known, &others], dim).unwrap();
                let r2 = probe(
                    (&wide.points[0], &train.truth),
                    (&wide.points[1], &test.truth),
                )
                .unwrap();
                println!(
                    "{label} {name} {seed} wide kalman {} | {}",
                    show(&r2.usual),
                    show(&r2.tuned)
                );
                continue;
            }
            let clock = Instant::now();
            let mut model = run.model(dim, &data).unwrap();
            let all: Vec<u32> = (0..run.sequences as u32).collect();
            let spec = run.core.train.clone();
            let mut nobody = |_: &Event<'_>| Control::Continue;
            let tried = start_chain(&mut model, &data, &all, &spec, None, &mut nobody).unwrap();
            let starts: Vec<String> = tried
                .iter()
                .map(|t| format!("{}:{:.3}", t, t.told))
                .collect();
            let started = clock.elapsed().as_secs_f64();
            let fit = Trainer::new(spec.clone())
                .unwrap()
                .fit(&mut model, &data)
                .unwrap();
            let seconds = clock.elapsed().as_secs_f64();
            let points = [
                embed(&model, &data).unwrap(),
                embed(&model, &test_data).unwrap(),
            ];
            let r2 = probe((&points[0], &train.truth), (&points[1], &test.truth)).unwrap();
            let share = model
                .foresight(&test_data, &(0..run.test as u32).collect::<Vec<_>>())
                .unwrap()
                .and_then(|f| f.share_of_motion());
            // The same without five steps at either end.
            let inner = |p: &Points, truth: &[Vec<f64>]| {
                let keep = |i: usize| (5..run.steps - 5).contains(&(i % run.steps));
                let n = truth[0].len();
                let pts = Points {
                    features: p.features,
                    values: (0..n)
                        .filter(|&i| keep(i))
                        .flat_map(|i| p.values[i * p.features..][..p.features].to_vec())
                        .collect(),
                };
                let t: Vec<Vec<f64>> = truth
                    .iter()
                    .map(|t| (0..n).filter(|&i| keep(i)).map(|i| t[i]).collect())
                    .collect();
                (pts, t)
            };
            let (a, b) = (
                inner(&points[0], &train.truth),
                inner(&points[1], &test.truth),
            );
            let mid = probe((&a.0, &a.1), (&b.0, &b.1)).unwrap();
            println!(
                "{label} {name} {seed} R2 {} | tuned {} | mid {} | share {:.2} | F {:.2} | {} | {:.0}+{:.0}s",
                show(&r2.usual),
                show(&r2.tuned),
                show(&mid.usual),
                share.unwrap_or(f64::NAN),
                fit.records.last().map_or(0.0, |r| r.free_energy),
                starts.join(" "),
                started,
                seconds - started
            );
        }
    }
}
