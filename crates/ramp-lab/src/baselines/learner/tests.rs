//! The problem of a sequence model: gradients array by array, threads, interruptions, starts, rates gone wild.

use super::*;
use crate::baselines::{Svae, SvaeSpec};
use crate::experiments::pendulum::data::{Pendulum, Videos};
use rand_distr::Distribution;
use rand_distr::StandardNormal;

/// Checks a gradient in `f32` by central differences, array by array: along directions half random, half uphill within the
/// array alone, so that each derivative is well above rounding; then number by number wherever it is large in its array.
pub(in crate::baselines) fn check_gradient<M: SequenceModel>(
    model: &M,
    start: &[f32],
    data: &dyn Sequences,
    batch: &Batch,
) {
    let mut parts = vec![];
    let mut at = |parameters: &[f32]| {
        let mut gradient = vec![f32::NAN; parameters.len()];
        let value = model.gradient(parameters, data, batch, &mut parts, &mut gradient);
        (value, gradient)
    };
    let (_, gradient) = at(start);
    let mut slope = |from: usize, direction: &[f64], step: f64| {
        let [high, low] = [step, -step].map(|by| {
            let mut moved = start.to_vec();
            for (x, d) in moved[from..].iter_mut().zip(direction) {
                *x = (f64::from(*x) + by * d) as f32;
            }
            at(&moved).0
        });
        (high - low) / (2.0 * step)
    };
    let rng = &mut ChaCha8Rng::seed_from_u64(9);
    let norm = |v: &[f64]| v.iter().map(|x| x * x).sum::<f64>().sqrt();
    let overall = norm(&gradient.iter().map(|&g| f64::from(g)).collect::<Vec<_>>());
    let (mut end, mut unused) = (0, 0);
    for Array { name, span, .. } in model.arrays() {
        assert_eq!(span.start, end, "{name} follows the array before it");
        end = span.end;
        let uphill: Vec<f64> = gradient[span.clone()]
            .iter()
            .map(|&g| f64::from(g))
            .collect();
        let own = norm(&uphill);
        if own == 0.0 {
            // Noise of pixels that are on or off: nothing may depend on it.
            let ones = vec![1.0; uphill.len()];
            assert_eq!(slope(span.start, &ones, 4e-3), 0.0, "{name}");
            unused += 1;
            continue;
        }
        for _ in 0..3 {
            let random: Vec<f64> = uphill.iter().map(|_| StandardNormal.sample(rng)).collect();
            let length = norm(&random);
            let direction: Vec<f64> = random
                .iter()
                .zip(&uphill)
                .map(|(r, u)| r / length + 0.5 * u / own)
                .collect();
            let expected: f64 = direction.iter().zip(&uphill).map(|(d, u)| d * u).sum();
            let found = slope(span.start, &direction, 4e-3);
            assert!(
                (found - expected).abs() < 1e-2 * expected.abs() + 2e-3 * own + 2e-5 * overall,
                "{name}: {expected} by backward, {found} by differences"
            );
        }
        let largest = uphill.iter().fold(0.0, |m: f64, x| m.max(x.abs()));
        // The largest few of every array: a swapped index cannot hide behind larger arrays.
        let mut order: Vec<usize> = (0..uphill.len()).collect();
        order.sort_by(|&a, &b| uphill[b].abs().total_cmp(&uphill[a].abs()));
        for &i in order.iter().take(24) {
            let found = slope(span.start + i, &[1.0], 5e-3);
            assert!(
                (found - uphill[i]).abs() < 1e-2 * largest + 2e-5 * overall,
                "number {i} of {name}: {} by backward, {found} by differences",
                uphill[i]
            );
        }
    }
    assert_eq!(end, start.len(), "every number belongs to an array");
    assert!(unused <= 1, "{unused} arrays have no gradient");
}

fn videos() -> Videos {
    let sizes = Pendulum {
        size: 10,
        sequences: 12,
        steps: 9,
    };
    sizes.videos(3, 0).unwrap()
}

/// A small SVAE at its start.
fn small(videos: &Videos) -> Learner<Svae> {
    let mut spec = SvaeSpec::default();
    (spec.learning.iterations, spec.learning.batch) = (8, 11);
    (spec.learning.starts, spec.learning.trial) = (3, 5);
    Learner::new(spec, videos).unwrap()
}

fn trainer(of: &Learner<Svae>) -> Trainer<'static, Learner<Svae>> {
    Trainer::new(of.train_spec()).unwrap()
}

#[test]
fn threads_and_interruptions_change_nothing() {
    let videos = videos();
    let mut whole = small(&videos);
    let fit = trainer(&whole)
        .threads(1)
        .train(&mut whole.on(&videos).unwrap())
        .unwrap();
    let folder = tempfile::tempdir().unwrap();
    let mut stopped = small(&videos);
    let outcome = trainer(&stopped)
        .threads(3)
        .checkpoints(folder.path(), 100)
        .observer(|event: &Event<'_, Learner<Svae>>| match event {
            Event::Step { record, .. } if record.iteration == 5 => Control::Stop,
            _ => Control::Continue,
        })
        .train(&mut stopped.on(&videos).unwrap());
    assert!(matches!(
        outcome,
        Err(LabError::Ramp(ramp::Error::Train(
            TrainError::Interrupted { iteration: 5, .. }
        )))
    ));
    let mut resumed = small(&videos);
    let again = trainer(&resumed)
        .threads(2)
        .checkpoints(folder.path(), 100)
        .train(&mut resumed.on(&videos).unwrap())
        .unwrap();
    assert_eq!(fit.records, again.records);
    assert_eq!(whole.parameters, resumed.parameters);
    assert_eq!(
        whole.embed(&videos).unwrap(),
        resumed.embed(&videos).unwrap()
    );

    // Fewer sequences, and another model of the same ones.
    let refused = |videos: &Videos, mut other: Learner<Svae>| {
        let outcome = trainer(&other)
            .checkpoints(folder.path(), 100)
            .train(&mut other.on(videos).unwrap());
        outcome.unwrap_err().to_string()
    };
    let fewer = videos.first(11);
    let message = refused(&fewer, small(&fewer));
    assert!(
        message.contains("made with 12 samples but the data now has 11"),
        "{message}"
    );
    let mut spec = small(&videos).model().spec().clone();
    spec.learning.seed = 1;
    let message = refused(&videos, Learner::new(spec, &videos).unwrap());
    assert!(message.contains("belongs to another model"), "{message}");
}

#[test]
fn of_several_starts_the_best_is_kept() {
    let videos = videos();
    let folder = tempfile::tempdir().unwrap();
    let mut chosen = small(&videos);
    let mut heard = vec![vec![]; 3];
    // Stopped on the way, it goes on where it was.
    let mut most = 7;
    let stopped = chosen.choose_start(&videos, folder.path(), None, &mut |start, record| {
        heard[start].push(record.free_energy);
        most -= 1;
        match most {
            0 => Control::Stop,
            _ => Control::Continue,
        }
    });
    assert!(stopped.is_err());
    let place = chosen
        .choose_start(&videos, folder.path(), None, &mut |start, record| {
            heard[start].push(record.free_energy);
            Control::Continue
        })
        .unwrap();
    assert_eq!(heard.iter().map(Vec::len).collect::<Vec<_>>(), [5; 3]);
    let last: Vec<f64> = heard.iter().map(|values| values[4]).collect();
    let best = (0..3).max_by(|&a, &b| last[a].total_cmp(&last[b])).unwrap();
    assert_eq!(place, folder.path().join(format!("start-{best}")));
    // Training goes on from the trial, and ends as if it had begun there.
    let again = trainer(&chosen)
        .checkpoints(&place, 100)
        .train(&mut chosen.on(&videos).unwrap())
        .unwrap();
    let mut whole = small(&videos);
    whole.initialise(&videos, best);
    let fit = trainer(&whole)
        .train(&mut whole.on(&videos).unwrap())
        .unwrap();
    assert_eq!(fit.records, again.records);
    assert_eq!(whole.parameters, chosen.parameters);
}

#[test]
fn a_bound_rises_and_a_wild_rate_is_told() {
    let videos = videos();
    let mut spec = SvaeSpec::default();
    spec.learning.iterations = 60;
    let mut svae = Learner::<Svae>::new(spec.clone(), &videos).unwrap();
    let fit = trainer(&svae)
        .train(&mut svae.on(&videos).unwrap())
        .unwrap();
    assert!(fit.records[59].free_energy > fit.records[0].free_energy);

    spec.learning.learning_rate = -1.0;
    assert!(Learner::<Svae>::new(spec.clone(), &videos).is_err());
    spec.learning.learning_rate = 1e9;
    let mut wild = Learner::<Svae>::new(spec, &videos).unwrap();
    let told = trainer(&wild).train(&mut wild.on(&videos).unwrap());
    let told = told.unwrap_err().to_string();
    assert!(told.contains("SVAE lost its way") && told.contains("smaller learning rate"));
}
