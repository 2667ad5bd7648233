//! A readout against the exact conditional of a linear-Gaussian table in which a column depends on another beyond the tree.

use crate::run::{Intent, RunFolder};
use crate::stream::{Draws, Horizon};
use crate::table::{BatchReader, columns, open_table};
use crate::{ModelFile, Project, Run};
use ramp::train::Trainer;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};
use std::fmt::Write;
use std::path::Path;

const NAMES: [&str; 5] = ["a", "b", "c", "d", "e"];
const FRESH: usize = 600;
const DRAWS: u16 = 40;

/// Four numbers that share a cause, and one that follows the fourth besides: a star over all five cannot say that.
fn rows(count: usize, seed: u64) -> Vec<[f64; 5]> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut normal = || -> f64 { StandardNormal.sample(&mut rng) };
    (0..count)
        .map(|_| {
            let z = normal();
            let [a, b, c, d] = [0.0; 4].map(|_| z + 0.8 * normal());
            [a, b, c, d, 0.9 * d + 0.3 * normal()]
        })
        .collect()
}

/// The best guess of the last from the others: `e` follows `d` alone.
fn exact(row: &[f64; 5]) -> f64 {
    0.9 * row[3]
}

fn text(rows: &[[f64; 5]], gone: Option<usize>) -> String {
    let mut text = NAMES.join(",") + "\n";
    for row in rows {
        let cell = |(i, x): (usize, &f64)| match gone == Some(i) {
            true => String::new(),
            false => x.to_string(),
        };
        let cells: Vec<String> = row.iter().enumerate().map(cell).collect();
        writeln!(text, "{}", cells.join(",")).unwrap();
    }
    text
}

fn fitted(folder: &Path) -> (Project, Run) {
    let data = folder.join("data.csv");
    std::fs::write(&data, text(&rows(900, 1), None)).unwrap();
    let mut file = ModelFile::parse(
        "[tree]\nnewick = \"(a,b,c,d,e)z;\"\n[train]\niterations = 120\nbatch = 300\nseed = 1",
    )
    .unwrap();
    file.data.file = Some(data);
    let mut project = Project::prepare(file).unwrap();
    Trainer::new(project.train.clone())
        .unwrap()
        .fit(&mut project.model, &project.data)
        .unwrap();
    project.learn_readout().unwrap();
    let place = folder.join("run");
    let claimed = RunFolder::claim(&place, Intent::New, &[]).unwrap();
    claimed.finish(&project, "<html></html>").unwrap();
    (project, Run::open(&place).unwrap())
}

/// What a run fills into the last column.
fn filled(run: &Run, folder: &Path, draws: Option<Draws>, pieces: usize) -> Vec<f64> {
    let gaps = folder.join("gaps.csv");
    std::fs::write(&gaps, text(&rows(FRESH, 2), Some(4))).unwrap();
    let whole = open_table(&gaps).unwrap().next(FRESH).unwrap().unwrap();
    let size = FRESH.div_ceil(pieces);
    let parts: Vec<_> = (0..pieces)
        .map(|i| Ok(whole.slice(i * size, size.min(FRESH - i * size))))
        .collect();
    let reader = BatchReader::new(whole.schema(), parts);
    let samples = run.read_table(Box::new(reader)).unwrap();
    let mut values = vec![];
    for batch in run.impute(samples, draws).unwrap() {
        let batch = batch.unwrap();
        let last = columns(&batch).find(|c| c.name() == "e").unwrap();
        values.extend(last.numbers(0).unwrap());
    }
    values
}

#[test]
fn means_are_near_the_exact_conditional_and_draws_keep_their_promise() {
    let folder = tempfile::tempdir().unwrap();
    let (project, run) = fitted(folder.path());
    let fresh = rows(FRESH, 2);
    let means = filled(&run, folder.path(), None, 1);
    let rmse = |guess: &dyn Fn(usize) -> f64, truth: &dyn Fn(usize) -> f64| {
        let squares = (0..FRESH).map(|n| (guess(n) - truth(n)).powi(2));
        (squares.sum::<f64>() / FRESH as f64).sqrt()
    };
    let ours = rmse(&|n| means[n], &|n| fresh[n][4]);
    let best = rmse(&|n| exact(&fresh[n]), &|n| fresh[n][4]);
    assert!(ours < 1.05 * best, "{ours} where {best} is possible");
    // The tree alone cannot say it, and the numbers of the readout say that it cannot.
    let (.., e) = project.readout.as_ref().unwrap().measured().last().unwrap();
    assert!(
        e.tree > 1.4 * e.both && e.both < 1.15 * best * best,
        "{e:?}"
    );
    assert!(
        e.linear < 1.15 * best * best && e.variance > 10.0 * e.both,
        "{e:?}"
    );

    let draws = Draws {
        count: DRAWS,
        seed: 5,
    };
    let drawn = filled(&run, folder.path(), Some(draws), 1);
    assert_eq!(drawn.len(), FRESH * usize::from(DRAWS));
    let inside = (0..FRESH).filter(|&n| {
        let mut own = drawn[n * usize::from(DRAWS)..][..usize::from(DRAWS)].to_vec();
        own.sort_by(f64::total_cmp);
        // Of 41 places among 40 draws, 33 lie between these: 80.5 %.
        own[3] < fresh[n][4] && fresh[n][4] < own[36]
    });
    let covers = inside.count() as f64 / FRESH as f64;
    // 77 to 83 % is promised; 600 rows tell it to within 3.
    assert!(
        (0.74..0.86).contains(&covers),
        "80 % intervals cover {covers}"
    );
    // Every draw is a value of a training row.
    let known: std::collections::HashSet<u64> =
        rows(900, 1).iter().map(|row| row[4].to_bits()).collect();
    assert!(drawn.iter().all(|x| known.contains(&x.to_bits())));
    // However the rows are cut, and from run to run.
    assert_eq!(filled(&run, folder.path(), None, 7), means);
    assert_eq!(filled(&run, folder.path(), Some(draws), 7), drawn);
}

#[test]
fn a_changed_readout_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (_, run) = fitted(folder.path());
    let path = folder.path().join("run/readout.safetensors");
    let mut bytes = std::fs::read(&path).unwrap();
    let last = bytes.len() - 9;
    bytes[last] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    let gaps = folder.path().join("data.csv");
    let samples = run.read(&gaps, true).unwrap();
    let said = match run.impute(samples, None) {
        Err(error) => error.to_string(),
        Ok(mut answers) => answers.next().unwrap().unwrap_err().to_string(),
    };
    assert!(said.contains("readout.safetensors"), "{said}");
}

/// A series that keeps 0.8 of its distance from 10 from step to step, in pieces of so many steps.
fn autoregression(pieces: usize, steps: usize, seed: u64) -> Vec<Vec<f64>> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut normal = || -> f64 { StandardNormal.sample(&mut rng) };
    (0..pieces)
        .map(|_| {
            let mut x = normal() / 0.6;
            let mut next = || {
                x = 0.8 * x + normal();
                10.0 + x
            };
            (0..steps).map(|_| next()).collect()
        })
        .collect()
}

fn series_text(pieces: &[Vec<f64>], steps: usize) -> String {
    let mut text = String::from("piece,day,x\n");
    for (n, piece) in pieces.iter().enumerate() {
        for (t, x) in piece[..steps].iter().enumerate() {
            writeln!(text, "{n},{t},{x}").unwrap();
        }
    }
    text
}

#[test]
fn steps_ahead_are_near_the_exact_forecast_even_of_an_untrained_chain() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data.csv");
    std::fs::write(&data, series_text(&autoregression(60, 40, 3), 40)).unwrap();
    let mut file = ModelFile::parse(
        "[tree]\nchain = { sequence = \"piece\", time = \"day\", step = 1, observe = [\"x\"] }\n[networks]\ninit = \"independent\"\n[train]\nseed = 1",
    )
    .unwrap();
    file.data.file = Some(data);
    let project = Project::prepare(file).unwrap();
    let place = folder.path().join("run");
    let claimed = RunFolder::claim(&place, Intent::New, &[]).unwrap();
    claimed.finish(&project, "<html></html>").unwrap();
    let run = Run::open(&place).unwrap();
    let fresh = autoregression(400, 23, 4);
    let past = folder.path().join("past.csv");
    std::fs::write(&past, series_text(&fresh, 20)).unwrap();
    let samples = run.read(&past, true).unwrap();
    let (mut square, mut best, mut inside) = ([0.0; 3], [0.0; 3], [0.0; 3]);
    let mut at = 0;
    for batch in run.forecast(samples, Horizon::new(3)).unwrap() {
        let batch = batch.unwrap();
        let of = |name: &str| {
            let own = columns(&batch).find(|c| c.name() == name).unwrap();
            own.numbers(0).unwrap()
        };
        let (means, lows, highs) = (of("x.mean"), of("x.low"), of("x.high"));
        for ((mean, low), high) in means.iter().zip(lows).zip(highs) {
            let (piece, h) = (&fresh[at / 3], at % 3);
            let (truth, last) = (piece[20 + h], piece[19]);
            let exact = 10.0 + 0.8_f64.powi(h as i32 + 1) * (last - 10.0);
            square[h] += (mean - truth).powi(2);
            best[h] += (exact - truth).powi(2);
            inside[h] += f64::from(low <= truth && truth <= high);
            at += 1;
        }
    }
    assert_eq!(at, 1200);
    for h in 0..3 {
        let ratio = f64::sqrt(square[h] / best[h]);
        assert!(
            ratio < 1.03,
            "{} steps ahead: {ratio} of the best error",
            h + 1
        );
        let covers = inside[h] / 400.0;
        assert!(
            (0.74..0.86).contains(&covers),
            "{} steps ahead: {covers}",
            h + 1
        );
    }
}
