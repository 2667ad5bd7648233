//! Which tree? Runs compared, trees doubted and grown; findings cross the border as JSON.

use crate::data::Data;
use crate::errors::detached;
use crate::run::Run;
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use ramp_io::change::Effort;
use ramp_io::compare::Comparison;
use ramp_io::diagnose::Diagnosis;
use ramp_io::grow::{GrowSettings, Progress, State};
use ramp_io::{Origin, Project};
use serde_json::{Value, json};
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How often Python is asked whether to go on, and told how far it is.
const EVERY: Duration = Duration::from_millis(60);

/// How far some work is, and whether it is to stop: between the threads that do it and the one that may speak with Python.
#[derive(Default)]
struct Watch {
    at: Mutex<(String, usize, usize)>,
    stop: AtomicBool,
}

impl Watch {
    /// So much of so much is done; whether to stop.
    fn at(&self, stage: &str, done: usize, all: usize) -> bool {
        if let Ok(mut at) = self.at.lock() {
            if at.0 != stage {
                at.0 = stage.into();
            }
            (at.1, at.2) = (done, all);
        }
        self.stop.load(Ordering::Relaxed)
    }
}

/// Does some work on other threads while this one, which alone hears Ctrl-C, asks Python. What is `None` was stopped.
fn watched<T: Send>(
    py: Python<'_>,
    progress: Option<&Py<PyAny>>,
    work: impl FnOnce(&Watch) -> ramp_io::Result<Option<T>> + Send,
) -> PyResult<T> {
    let watch = Watch::default();
    let heard: Mutex<Option<PyErr>> = Mutex::new(None);
    let ask = || {
        let (stage, done, all) = watch.at.lock().map(|at| at.clone()).unwrap_or_default();
        Python::attach(|py| {
            py.check_signals()?;
            match progress {
                Some(progress) if all > 0 => {
                    let none = None::<f64>;
                    progress.call1(py, (stage, done, all, none, none)).map(drop)
                }
                _ => Ok(()),
            }
        })
    };
    let done = detached(py, || {
        std::thread::scope(|scope| {
            let working = scope.spawn(|| work(&watch));
            while !working.is_finished() {
                std::thread::sleep(EVERY / 4);
                if watch.stop.load(Ordering::Relaxed) {
                    continue;
                }
                if let Err(error) = ask() {
                    watch.stop.store(true, Ordering::Relaxed);
                    *heard.lock().unwrap_or_else(|e| e.into_inner()) = Some(error);
                }
            }
            // A panic over there is one here.
            working.join().unwrap_or_else(|panic| resume_unwind(panic))
        })
    });
    match heard.into_inner().unwrap_or_else(|e| e.into_inner()) {
        Some(error) => Err(error),
        None => done?.ok_or_else(|| PyKeyboardInterrupt::new_err(())),
    }
}

/// A run with the data that it was fitted to: given, or in the file that it knows.
fn reopened(run: &Run, name: &Path, origin: Option<&Origin>) -> ramp_io::Result<Project> {
    match origin {
        Some(origin) => origin.reopen(&run.run, name),
        None => Project::reopen(&run.run, name, None),
    }
}

/// Which of some runs explains more of rows that none has learned from.
#[pyfunction]
#[pyo3(signature = (runs, data=None))]
pub fn compare(
    py: Python<'_>,
    runs: Vec<(String, Py<Run>)>,
    data: Option<&Bound<'_, PyAny>>,
) -> PyResult<String> {
    let data = data.map(Data::of).transpose()?;
    detached(py, || {
        let origin = data.map(Data::origin).transpose()?;
        let names: Vec<PathBuf> = runs.iter().map(|(name, _)| name.into()).collect();
        let projects = runs
            .iter()
            .zip(&names)
            .map(|((_, run), name)| reopened(run.get(), name, origin.as_ref()))
            .collect::<ramp_io::Result<Vec<_>>>()?;
        let found = Comparison::of_projects(&names, &projects)?;
        let runs = found.runs.iter().map(|run| {
            let difference = run.difference.as_ref().map(|difference| {
                let latents = difference.latents.iter();
                let latents = latents.map(|(name, mean, error)| json!([name, mean, error]));
                json!({
                    "mean": difference.mean,
                    "standard_error": difference.standard_error,
                    "latents": latents.collect::<Vec<Value>>(),
                    "is_clear": difference.is_clear(),
                })
            });
            json!({
                "name": run.folder.to_string_lossy(),
                "latents": run.latents,
                "nats": run.mean,
                "standard_error": run.standard_error,
                "difference": difference,
            })
        });
        Ok(json!({
            "rows": found.rows,
            "runs": runs.collect::<Vec<Value>>(),
            "sentences": found.sentences(),
        })
        .to_string())
    })
}

/// Which change of a run's tree would explain more; and the run with the changes in its report, where that is of this process alone.
#[pyfunction]
#[pyo3(signature = (run, data, iterations, around, progress=None))]
pub fn diagnose(
    py: Python<'_>,
    run: Py<Run>,
    data: Option<&Bound<'_, PyAny>>,
    iterations: Option<usize>,
    around: Option<usize>,
    progress: Option<Py<PyAny>>,
) -> PyResult<(String, Run)> {
    let data = data.map(Data::of).transpose()?;
    let run = run.get();
    watched(py, progress.as_ref(), |watch| {
        let origin = data.map(Data::origin).transpose()?;
        let project = reopened(run, Path::new("this model"), origin.as_ref())?;
        let usual = Effort::default();
        let effort = Effort {
            around: around.unwrap_or(usual.around),
            iterations: iterations.unwrap_or(usual.iterations),
            ..usual
        };
        let found = Diagnosis::of(&project, effort, &|done, all| {
            watch.at("trying changes", done, all)
        })?;
        let Some(found) = found else {
            return Ok(None);
        };
        let listed = serde_json::to_value(found.listed()?).unwrap_or_default();
        let text = json!({ "rows": found.rows, "changes": listed }).to_string();
        let run = match &run.own {
            Some(own) => {
                found.report(&run.run, own.path())?;
                Run::open_folder(own.path(), Some(own.clone()))?
            }
            None => run.again(),
        };
        Ok(Some((text, run)))
    })
}

/// A tree from a table. A checkpoint is where its state is kept, and where it goes on from.
#[pyfunction]
#[pyo3(signature = (data, keep, rounds, bootstraps, seed, checkpoint, progress=None))]
#[allow(clippy::too_many_arguments)]
pub fn grow(
    py: Python<'_>,
    data: &Bound<'_, PyAny>,
    keep: Option<String>,
    rounds: Option<usize>,
    bootstraps: Option<usize>,
    seed: u64,
    checkpoint: Option<PathBuf>,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    let data = Data::of(data)?;
    watched(py, progress.as_ref(), |watch| {
        let usual = GrowSettings::default();
        let settings = GrowSettings {
            keep,
            rounds: rounds.unwrap_or(usual.rounds),
            bootstraps: bootstraps.unwrap_or(usual.bootstraps),
            seed,
            ..usual
        };
        let resume = match &checkpoint {
            Some(path) if path.exists() => Some(State::read(path)?),
            _ => None,
        };
        let mut save = |state: &State| match &checkpoint {
            Some(path) => state.write(path),
            None => Ok(()),
        };
        let progress = |at: Progress| {
            let (done, all) = at.share();
            watch.at(&at.stage(), done, all)
        };
        let grown = ramp_io::grow::grow(&data.origin()?, &settings, resume, &mut save, &progress)?;
        let Some(grown) = grown else {
            return Ok(None);
        };
        if let Some(path) = &checkpoint {
            // What is done needs no state to go on from.
            let _ = std::fs::remove_file(path);
        }
        let total = grown.total.as_ref().map(|total| {
            json!({
                "nats": total.mean,
                "standard_error": total.standard_error,
                "rows": total.rows,
                "sentence": total.sentence(),
            })
        });
        Ok(Some(
            json!({
                "tree": grown.tree.to_newick().map_err(ramp::Error::from)?,
                "start": grown.start.to_newick().map_err(ramp::Error::from)?,
                "support": grown.support,
                "accepted": grown.accepted,
                "total": total,
                "left_out": grown.left_out,
                "drawing": grown.drawing(),
                "text": grown.tree.draw(),
            })
            .to_string(),
        ))
    })
}
