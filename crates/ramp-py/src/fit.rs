//! Training: settings in, a run out; Python hears how far it is and may stop it.

use crate::data::Data;
use crate::errors::detached;
use crate::run::{OwnFolder, Run};
use pyo3::exceptions::{PyKeyboardInterrupt, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use ramp::train::{Control, Event, Observer, Record, TrainError, read_records};
use ramp_io::report::Shown;
use ramp_io::run::{Account, Intent, RunFolder};
use ramp_io::{Error, Findings, ModelFile, Project};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// How often Python is asked whether to go on, and told how far it is.
const EVERY: Duration = Duration::from_millis(60);

/// The settings that model files have, section by section.
#[pyfunction]
pub fn settings() -> Vec<(&'static str, Vec<&'static str>)> {
    let sections = ramp_io::model_file::known_settings().into_iter();
    sections.map(|(name, keys)| (name, keys.to_vec())).collect()
}

/// A model file, from JSON.
fn model_file(json: &str) -> PyResult<ramp_io::Result<ModelFile>> {
    let table: toml::Table = serde_json::from_str(json)
        .map_err(|e| PyValueError::new_err(format!("the settings cannot be read: {e}")))?;
    Ok(ModelFile::from_table(&table))
}

/// Variables with whether each is a latent, which hang together, and the root.
type Shape = (Vec<(String, bool)>, Vec<Vec<usize>>, usize);

/// Checks settings as far as that is possible without data, and gives the tree: of a chain, one step.
#[pyfunction]
pub fn check(py: Python<'_>, json: &str) -> PyResult<Shape> {
    let file = model_file(json)?;
    detached(py, || {
        let file = file?;
        if let Some(chain) = file.chain() {
            let mut variables = vec![("z".to_string(), true)];
            variables.extend(chain.observe.iter().map(|name| (name.clone(), false)));
            let factors = (1..variables.len()).map(|i| vec![0, i]).collect();
            return Ok((variables, factors, 0));
        }
        let tree = file.build_tree(2)?;
        let variables = tree.variables();
        let factors = tree.factors();
        Ok((
            variables
                .map(|v| (tree.name(v).to_string(), tree.is_latent(v)))
                .collect(),
            factors
                .map(|f| tree.variables_of(f).iter().map(|v| v.index()).collect())
                .collect(),
            tree.root().index(),
        ))
    })
}

/// Who asks Python. Errors of the callback, and Ctrl-C, end the training and are kept.
struct Watcher<'a> {
    stage: &'static str,
    progress: Option<&'a Py<PyAny>>,
    heard: &'a Mutex<Option<PyErr>>,
    last: Option<Instant>,
    iterations: usize,
    held_out: Option<f64>,
}

impl Observer for Watcher<'_> {
    fn observe(&mut self, event: &Event<'_>) -> Control {
        let (iteration, free_energy) = match event {
            Event::Start {
                iteration,
                iterations,
                ..
            } => {
                self.iterations = *iterations;
                (*iteration, None)
            }
            Event::Step { record, .. } => {
                self.held_out = record.held_out.or(self.held_out);
                (record.iteration, Some(record.free_energy))
            }
            _ => return Control::Continue,
        };
        let last = iteration == self.iterations;
        if !last && self.last.is_some_and(|last| last.elapsed() < EVERY) {
            return Control::Continue;
        }
        self.last = Some(Instant::now());
        let told = Python::attach(|py| {
            py.check_signals()?;
            match self.progress {
                Some(progress) => progress
                    .call1(
                        py,
                        (
                            self.stage,
                            iteration,
                            self.iterations,
                            free_energy,
                            self.held_out,
                        ),
                    )
                    .map(drop),
                None => Ok(()),
            }
        });
        match told {
            Ok(()) => Control::Continue,
            Err(error) => {
                let mut heard = self.heard.lock().unwrap_or_else(|e| e.into_inner());
                heard.get_or_insert(error);
                Control::Stop
            }
        }
    }
}

/// What is left of a training that was stopped: measuring it and its page take seconds, and who presses Ctrl-C does not wait for them.
pub struct Unmeasured {
    project: Project,
    shown: Shown,
    records: Vec<Record>,
    account: Account,
}

impl Unmeasured {
    /// Measures what was learned and writes the run anew.
    pub fn measure(mut self, place: &RunFolder) -> ramp_io::Result<Findings> {
        self.project.learn_readout()?;
        place.conclude(&self.project, &self.shown, &self.records, self.account)
    }
}

/// How a training ended.
struct Outcome {
    run: Run,
    /// What the latents warn of; nothing where the training was stopped.
    warnings: Vec<String>,
    iterations: usize,
    steps: usize,
    /// The iteration whose weights were kept, if validation samples chose it.
    iteration: Option<usize>,
    stopped: bool,
}

/// Trains a model and gives the run, what was found, and the exception that stopped it before its end, if one did.
#[pyfunction]
#[pyo3(signature = (json, data, resume=None, threads=None, name="model", command="", progress=None))]
#[allow(clippy::too_many_arguments)]
pub fn fit<'py>(
    py: Python<'py>,
    json: &str,
    data: &Bound<'py, PyAny>,
    resume: Option<&Run>,
    threads: Option<usize>,
    name: &str,
    command: &str,
    progress: Option<Py<PyAny>>,
) -> PyResult<(Run, Bound<'py, PyDict>, Option<PyErr>)> {
    let file = model_file(json)?;
    let data = Data::of(data)?;
    let before = resume.map(|run| run.own.clone());
    let heard = Mutex::new(None);
    let done = detached(py, || {
        train(
            file?,
            data,
            before,
            threads,
            (name, command),
            progress.as_ref(),
            &heard,
        )
    });
    let heard = heard.into_inner().unwrap_or_else(|e| e.into_inner());
    let Some(outcome) = done? else {
        // Nothing had been learned yet.
        return Err(heard.unwrap_or_else(|| PyKeyboardInterrupt::new_err(())));
    };
    let found = PyDict::new(py);
    found.set_item("iterations", outcome.iterations)?;
    found.set_item("steps", outcome.steps)?;
    found.set_item("iteration", outcome.iteration)?;
    found.set_item("warnings", outcome.warnings)?;
    let stopped = heard.filter(|_| outcome.stopped);
    Ok((outcome.run, found, stopped))
}

fn train(
    file: ModelFile,
    data: Data,
    before: Option<Option<std::sync::Arc<OwnFolder>>>,
    threads: Option<usize>,
    (name, command): (&str, &str),
    progress: Option<&Py<PyAny>>,
    heard: &Mutex<Option<PyErr>>,
) -> ramp_io::Result<Option<Outcome>> {
    let begun = Instant::now();
    let watcher = |stage| Watcher {
        stage,
        progress,
        heard,
        last: None,
        iterations: 0,
        held_out: None,
    };
    let mut project = match data.content()? {
        Ok(content) => Project::prepare_in_memory(file, content)?,
        Err(path) => {
            let mut file = file;
            file.data.file = Some(path);
            Project::prepare(file)?
        }
    };
    let resume = before.is_some();
    let own = match before.flatten() {
        Some(own) => own,
        None => OwnFolder::new()?,
    };
    let intent = match resume {
        true => Intent::Resume,
        false => Intent::New,
    };
    let shown = Shown::of(&project)?;
    let place = RunFolder::claim(own.path(), intent, &[])?;
    match project.cross_validate(threads, &mut watcher("cross-validating")) {
        Err(Error::Engine(ramp::Error::Train(TrainError::Interrupted { .. }))) => {
            return Ok(None);
        }
        judged => judged?,
    }
    if !resume {
        match project.initialise(threads, &mut watcher("pretraining")) {
            Err(Error::Engine(ramp::Error::Train(TrainError::Interrupted { .. }))) => {
                return Ok(None);
            }
            tried => drop(tried?),
        }
    }
    let trained = match project.train(&place, threads, watcher("fitting")) {
        Ok(trained) => Ok(trained),
        Err(ramp::Error::Train(TrainError::Interrupted { iteration, .. })) => Err(iteration),
        Err(error) => return Err(error.into()),
    };
    let (steps, iteration, kept, records) = match trained {
        Ok(trained) => {
            if let Some(error) = trained.fell(&project.train) {
                return Err(error.into());
            }
            let chosen = trained.held_out.is_some() || project.cross_validation.is_some();
            let best = chosen.then_some(trained.iteration);
            let kept = project.kept_weights(&trained);
            (trained.steps, best, kept, trained.records)
        }
        Err(steps) => {
            let records = read_records(&place.checkpoints())?.into_vec();
            let kept = format!("the best until training was stopped after iteration {steps}");
            (steps, None, kept, records)
        }
    };
    let stopped = iteration.is_none() && steps < project.train.iterations
        || heard.lock().is_ok_and(|h| h.is_some());
    project.align_signs()?;
    let account = Account {
        name: name.into(),
        command: command.into(),
        kept,
        seconds: begun.elapsed().as_secs_f64(),
    };
    let iterations = project.train.iterations;
    let left = Unmeasured {
        project,
        shown,
        records,
        account,
    };
    let (run, warnings) = if stopped {
        place.finish_unmeasured(&left.project)?;
        drop(place);
        let run = Run::open_folder(own.path(), Some(own.clone()))?;
        let unmeasured = Some(Mutex::new(Some(Box::new(left))));
        (Run { unmeasured, ..run }, vec![])
    } else {
        let findings = left.measure(&place)?;
        drop(place);
        let latents = findings.latents.into_iter();
        let run = Run::open_folder(own.path(), Some(own.clone()))?;
        (run, latents.flat_map(|l| l.warnings).collect())
    };
    Ok(Some(Outcome {
        run,
        warnings,
        iterations,
        steps,
        iteration,
        stopped,
    }))
}
