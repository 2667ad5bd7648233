//! Quick runs are calibrated, and would not pass with spreads that are off by a tenth.

use super::*;
use crate::experiments::linear_tree::data::LinearTree;
use crate::gaussian::GaussianPosterior;
use crate::harness::{Scale, StopAfter};
use ramp::infer::{Calibration, rank_in_normal};

/// Exact posteriors of the linear tree with gaps are calibrated: the promise can be kept, and the test has the power to see it broken.
#[test]
fn exact_posteriors_with_gaps_are_calibrated_and_others_are_not() {
    let [_, test] = Case::LinearTree.sample(1, 2000, 7).unwrap();
    let tree = LinearTree::default().gaussian().unwrap();
    let (latents, nodes) = (test.latents.len(), test.latents.len() + test.observed.len());
    let (which, observed) = (Vec::from_iter(0..latents), Vec::from_iter(latents..nodes));
    let covariance = tree.covariance();
    let judged = |factor: f64| {
        let ranks: Vec<f64> = (0..test.rows())
            .map(|row| {
                let value = |o: usize| test.observed[o][row];
                let missing: Vec<usize> =
                    (0..observed.len()).filter(|&o| value(o).is_nan()).collect();
                let exact = GaussianPosterior::condition(&covariance, &which, &observed, &missing);
                let exact = exact.unwrap();
                let row_of: Vec<Vec<f32>> = (0..observed.len()).map(|o| vec![value(o)]).collect();
                let k = row % latents;
                let (mean, variance) = (exact.means(&row_of).unwrap()[k][0], exact.variances()[k]);
                rank_in_normal(
                    f64::from(test.latents[k][row]),
                    mean,
                    factor * variance.sqrt(),
                )
            })
            .collect();
        Calibration::of(&ranks, None).unwrap()
    };
    let right = judged(1.0);
    assert!(right.is_uniform(), "{right:?}");
    for factor in [0.9, 1.1] {
        let wrong = judged(factor);
        assert!(!wrong.is_uniform(), "{factor} {wrong:?}");
    }
}

/// Ranks in exact posteriors of the same samples tell what of an unevenness is luck: of the tree they are those above, of the chain those of a smoother.
#[test]
fn ranks_in_exact_posteriors_are_uniform_for_the_tree_and_the_chain() {
    for case in [Case::LinearTree, Case::LinearChain] {
        let [_, mut test] = case.sample(1, 2000, 7).unwrap();
        let tree = case.gaussian().unwrap().unwrap();
        let right = probe::exact_latents(&tree, &test).unwrap().unwrap();
        assert!(right.is_uniform(), "{} {right:?}", case.name());
        // Truths that lie elsewhere are noticed, and where.
        let moved = |z: &mut f32| *z += 0.1;
        test.latents.iter_mut().flatten().for_each(moved);
        let wrong = probe::exact_latents(&tree, &test).unwrap().unwrap();
        let (name, shift) = (case.name(), wrong.shift - right.shift);
        assert!(
            !wrong.is_uniform() && shift > 0.1,
            "{name} {right:?} {wrong:?}"
        );
    }
    assert!(Case::Gaussian.gaussian().unwrap().is_none());
}

/// A linear tree, a linear chain and a nonlinear star, with gaps. All families are in the experiment, which takes minutes.
#[test]
fn quick_fits_are_calibrated_and_would_not_pass_if_spreads_were_off_by_a_tenth() {
    let folder = tempfile::tempdir().unwrap();
    let mut run = CalibrationRun::new(Scale::Quick, 3);
    run.cases = vec![Case::LinearTree, Case::LinearChain, Case::Gaussian];
    let finished = run.run(folder.path(), &mut ()).unwrap();
    assert!(finished.files.iter().all(|f| f.is_file()));
    let mut kinds = 0;
    for found in &finished.results.cases {
        for ranks in &found.ranks {
            kinds += 1;
            let (name, c) = (found.case.name(), &ranks.calibration);
            assert!(c.ranks >= 2000, "{name} {:?}: {} ranks", ranks.of, c.ranks);
            assert_eq!(c.histogram.iter().sum::<usize>(), c.ranks);
            assert_eq!(ranks.exact.is_some(), ranks.of == Of::Latents);
            let off = (c.spread - 1.0).abs();
            assert!(off < 3.0 * c.spread_error, "{name} {:?}: {c:?}", ranks.of);
            assert!(c.is_uniform(), "{name} {:?}: {c:?}", ranks.of);
            // The same test notices spreads that are off by a tenth: in both directions, unless what is left of one is less than that.
            let (narrow, wide) = (ranks.p_narrow < 0.001, ranks.p_wide < 0.001);
            assert!(
                narrow || c.spread > 1.01,
                "{name} {:?}: {ranks:?}",
                ranks.of
            );
            assert!(wide || c.spread < 0.99, "{name} {:?}: {ranks:?}", ranks.of);
        }
    }
    assert_eq!(kinds, 6);
}

#[test]
fn a_run_in_pieces_measures_what_a_whole_run_measures() {
    let mut run = CalibrationRun::new(Scale::Quick, 1);
    run.cases = vec![Case::Beta, Case::LinearChain];
    (run.n, run.test) = (300, 100);
    run.core.train.iterations = 8;
    run.core.train.batch = Some(100);
    run.core.train.warmup = 0;
    let folder = tempfile::tempdir().unwrap();
    let whole = run.run(&folder.path().join("whole"), &mut ()).unwrap();
    let pieces = folder.path().join("pieces");
    for (what, steps) in [("beta", 5), ("linear-chain", 3 + 4)] {
        match run.run(&pieces, &mut StopAfter(steps)) {
            Err(LabError::Interrupted { what: stopped, .. }) => assert_eq!(stopped, what),
            other => panic!("{what} was not stopped: {other:?}"),
        }
    }
    let pieces = run.run(&pieces, &mut ()).unwrap();
    for (a, b) in whole.results.cases.iter().zip(&pieces.results.cases) {
        assert_eq!(a.ranks, b.ranks);
    }
}
