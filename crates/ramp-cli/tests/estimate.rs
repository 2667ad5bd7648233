//! What `ramp check` says of the time of a fit, against the time that it takes: alone in its file, because it reads the clock of the whole process.

use ramp::train::{Control, Event};
use ramp_io::{ModelFile, Project};
use std::path::Path;

/// Seconds of processor time that the threads of this process have had: other programs on a busy machine do not count.
#[cfg(target_os = "linux")]
fn processor_seconds() -> f64 {
    let threads = std::fs::read_dir("/proc/self/task").unwrap();
    let nanoseconds = |thread: std::fs::DirEntry| -> Option<f64> {
        let stat = std::fs::read_to_string(thread.path().join("schedstat")).ok()?;
        stat.split_whitespace().next()?.parse().ok()
    };
    let all = threads.filter_map(|thread| nanoseconds(thread.unwrap()));
    all.sum::<f64>() * 1e-9
}

#[cfg(target_os = "linux")]
#[test]
fn a_fit_takes_about_as_long_as_estimated() {
    for example in ["questionnaire", "diary"] {
        let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
        let mut file = ModelFile::read(&examples.join(example).join("model.toml")).unwrap();
        // Not so many that the test takes minutes, and so many that what the estimate leaves out, the factor model before the first step, is little of them:
        // of 60 steps it is half where steps are quick.
        let iterations = 300;
        file.train
            .insert("iterations".into(), i64::from(iterations).into());
        let mut project = Project::prepare(file).unwrap();
        let estimate = project.estimate(processor_seconds).unwrap();
        let begun = processor_seconds();
        let mut watch = |_: &Event<'_>| Control::Continue;
        project.initialise(None, &mut watch).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let fit = project
            .train_among(&ramp::collective::Single, folder.path(), None, watch)
            .unwrap();
        let taken = processor_seconds() - begun;
        let expected = estimate.seconds(fit.steps);
        assert!(taken > 0.2, "{example}: {taken} s is too short to compare");
        assert!(
            expected > taken / 2.0 && expected < taken * 2.0,
            "{example}: estimated {expected:.2} s, taken {taken:.2} s, {estimate:?}"
        );
    }
}
