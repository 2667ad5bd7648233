//! A trained model in its folder, as Python holds it.

use crate::data::Data;
use crate::errors::{detached, exception};
use crate::filter::Filter;
use crate::fit::Unmeasured;
use crate::posterior::posteriors;
use crate::table::{Table, to_numpy};
use numpy::IntoPyArray;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};
use ramp_io::arrow::{AsArray, RecordBatch, types::Float64Type};
use ramp_io::report::data_of;
use ramp_io::run::{Intent, RunFolder};
use ramp_io::source::SampleReader;
use ramp_io::stream::{
    Answers, Draws, Horizon, OutputOptions, PosteriorColumn, TOTAL, posterior_columns,
};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use tempfile::TempDir;

/// A folder of this process alone, removed with the last model that needs it.
pub struct OwnFolder {
    folder: Option<TempDir>,
    process: u32,
}

impl OwnFolder {
    pub fn new() -> ramp_io::Result<Arc<Self>> {
        let folder = tempfile::Builder::new().prefix("ramp-").tempdir();
        let folder = folder.map_err(|source| ramp_io::Error::File {
            action: "create",
            path: std::env::temp_dir(),
            source,
        })?;
        Ok(Arc::new(OwnFolder {
            folder: Some(folder),
            process: std::process::id(),
        }))
    }

    pub fn path(&self) -> &Path {
        self.folder.as_ref().map_or(Path::new(""), TempDir::path)
    }
}

impl Drop for OwnFolder {
    fn drop(&mut self) {
        // A process that was forked off must not take the folder away from its parent.
        if self.process != std::process::id()
            && let Some(folder) = self.folder.take()
        {
            let _ = folder.keep();
        }
    }
}

/// A trained model in its folder.
#[pyclass(module = "ramp_ml._lib", frozen)]
pub struct Run {
    pub run: Arc<ramp_io::Run>,
    /// Where it is while it has not been saved.
    pub own: Option<Arc<OwnFolder>>,
    /// Of a training that was stopped: what is left to measure. Weights are in the folder, the page and the readout are not.
    pub unmeasured: Option<Mutex<Option<Box<Unmeasured>>>>,
}

/// Totals, what each latent adds, and cells with levels that training never saw.
type Nats<'py> = (Bound<'py, PyAny>, Bound<'py, PyAny>, u64);

/// The name of a number of a latent: the latent's where it has one, with its place else.
fn coordinate_name(latent: &str, column: &PosteriorColumn, single: bool) -> String {
    match (single, column.probability) {
        (true, _) => latent.into(),
        (_, true) => format!("{latent}.{}", column.suffix),
        (_, false) => format!("{latent}.{}", column.coordinate + 1),
    }
}

impl Run {
    pub fn open_folder(folder: &Path, own: Option<Arc<OwnFolder>>) -> ramp_io::Result<Self> {
        Ok(Run {
            run: Arc::new(ramp_io::Run::open(folder)?),
            own,
            unmeasured: None,
        })
    }

    /// The same run once more.
    pub fn again(&self) -> Self {
        Run {
            run: self.run.clone(),
            own: self.own.clone(),
            unmeasured: None,
        }
    }

    /// The latents with the numbers that describe each: of a chain, the one latent.
    fn latent_columns(&self) -> Vec<(String, String, Vec<PosteriorColumn>)> {
        let model = &self.run.model;
        let tree = model.tree();
        let of = |(name, belief): (String, &ramp::family::Belief)| {
            (name, belief.to_string(), posterior_columns(belief))
        };
        let mut beliefs = model.beliefs();
        match &self.run.chain {
            Some(_) => beliefs
                .next()
                .map(|b| of(("z".into(), b)))
                .into_iter()
                .collect(),
            None => tree
                .latents()
                .iter()
                .map(|&v| tree.name(v).to_string())
                .zip(beliefs)
                .map(of)
                .collect(),
        }
    }

    fn table(&self, answers: Answers<'_, SampleReader>) -> ramp_io::Result<(Table, u64)> {
        let mut answers = answers;
        let mut batches = vec![];
        for batch in answers.by_ref() {
            batches.push(batch?);
        }
        let unseen = answers.unseen_levels();
        let empty = RecordBatch::new_empty(Arc::new(ramp_io::arrow::Schema::empty())).schema();
        Ok((Table::new(batches, empty), unseen))
    }
}

/// Numbers of some columns of tables, row by row in one block.
fn matrix(
    answers: Answers<'_, SampleReader>,
    wanted: impl Fn(&str) -> bool,
) -> ramp_io::Result<(Vec<f64>, usize, usize, u64)> {
    let mut answers = answers;
    let (mut values, mut rows, mut width) = (vec![], 0, 0);
    for batch in answers.by_ref() {
        let batch = batch?;
        let fields = batch.schema_ref().fields().iter();
        let columns: Vec<&[f64]> = fields
            .zip(batch.columns())
            .filter(|(field, _)| wanted(field.name()))
            .filter_map(|(_, cells)| cells.as_primitive_opt::<Float64Type>())
            .map(|cells| &cells.values()[..])
            .collect();
        width = columns.len();
        rows += batch.num_rows();
        values.reserve(batch.num_rows() * width);
        for row in 0..batch.num_rows() {
            values.extend(columns.iter().map(|column| column[row]));
        }
    }
    Ok((values, rows, width, answers.unseen_levels()))
}

#[pymethods]
impl Run {
    /// Opens the folder of a finished fit.
    #[staticmethod]
    fn open(py: Python<'_>, folder: PathBuf) -> PyResult<Self> {
        detached(py, || Run::open_folder(&folder, None))
    }

    /// Whether the page and the readout are still to come, as the training was stopped.
    #[getter]
    fn is_unmeasured(&self) -> bool {
        self.unmeasured.is_some()
    }

    /// The same run with everything measured: for a training that was stopped, who asks for it waits.
    fn measured(&self, py: Python<'_>) -> PyResult<Self> {
        detached(py, || {
            let folder = self.own.as_ref();
            if let (Some(left), Some(own)) = (&self.unmeasured, folder) {
                // Others that ask meanwhile find it done.
                let mut left = left.lock().unwrap_or_else(|e| e.into_inner());
                if let Some(left) = left.take() {
                    left.measure(&RunFolder::claim(own.path(), Intent::Resume, &[])?)?;
                }
                return Run::open_folder(own.path(), Some(own.clone()));
            }
            Ok(self.again())
        })
    }

    /// The files of a run as bytes, for pickling.
    fn files<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let files = PyDict::new(py);
        for path in self.run.files() {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if path.exists() {
                files.set_item(name.as_ref(), PyBytes::new(py, &std::fs::read(&path)?))?;
            }
        }
        Ok(files)
    }

    /// A run of such files.
    #[staticmethod]
    fn from_files(py: Python<'_>, files: Vec<(String, Vec<u8>)>) -> PyResult<Self> {
        detached(py, || {
            let own = OwnFolder::new()?;
            for (name, bytes) in files {
                // The manifest, which is checked when the run is opened, says which of them count.
                let plain = Path::new(&name).file_name().is_some_and(|n| *n == *name);
                if plain {
                    let path = own.path().join(&name);
                    std::fs::write(&path, bytes).map_err(|source| ramp_io::Error::File {
                        action: "write",
                        path,
                        source,
                    })?;
                }
            }
            Run::open_folder(own.path(), Some(own.clone()))
        })
    }

    /// Writes the run into a folder, whole or not at all.
    fn save(&self, py: Python<'_>, folder: PathBuf, overwrite: bool) -> PyResult<()> {
        let intent = match overwrite {
            true => Intent::Overwrite,
            false => Intent::New,
        };
        detached(py, || {
            RunFolder::check(&folder, intent, &[])?;
            RunFolder::claim(&folder, intent, &[])?.copy_run(&self.run)
        })
    }

    /// All settings as JSON.
    fn settings(&self, py: Python<'_>) -> PyResult<String> {
        let path = self.run.model_file().map_err(|e| exception(py, &e))?;
        let text = std::fs::read_to_string(path)?;
        let table: toml::Table = text
            .parse()
            .map_err(|e: toml::de::Error| PyValueError::new_err(e.to_string()))?;
        serde_json::to_string(&table).map_err(|e| PyValueError::new_err(e.to_string()))
    }

    /// The page of the fit.
    fn report(&self, py: Python<'_>) -> PyResult<String> {
        let path = self.run.report().map_err(|e| exception(py, &e))?;
        Ok(std::fs::read_to_string(path)?)
    }

    /// What the page shows, as JSON.
    fn report_data(&self, py: Python<'_>) -> PyResult<String> {
        let page = self.report(py)?;
        let data = data_of(&page).ok_or_else(|| PyValueError::new_err("the report has no data"))?;
        Ok(data.into())
    }

    /// The columns or arrays that the model observes.
    #[getter]
    fn columns(&self) -> Vec<String> {
        self.run.encoder.columns()
    }

    /// Whether samples are sequences.
    #[getter]
    fn is_chain(&self) -> bool {
        self.run.chain.is_some()
    }

    /// Every latent with its family and the names of its coordinates.
    fn latents(&self) -> Vec<(String, String, Vec<String>)> {
        let of = |(name, family, columns): (String, String, Vec<PosteriorColumn>)| {
            let means: Vec<_> = columns.iter().filter(|c| !c.sd).collect();
            let named = |c: &&PosteriorColumn| coordinate_name(&name, c, means.len() == 1);
            let names = means.iter().map(named).collect();
            (name.clone(), family, names)
        };
        self.latent_columns().into_iter().map(of).collect()
    }

    /// The number of training samples.
    #[getter]
    fn population(&self) -> usize {
        self.run.population
    }

    /// Posterior means of every row, `[row, coordinate]`; of arrays of sequences `[sample, time, coordinate]`.
    fn transform<'py>(
        &self,
        py: Python<'py>,
        data: &Bound<'py, PyAny>,
    ) -> PyResult<(Bound<'py, PyAny>, u64)> {
        let data = Data::of(data)?;
        let arrays = matches!(data, Data::Arrays(_)) || is_array_file(&data);
        let latents = self.latent_columns();
        if arrays && self.run.chain.is_some() {
            let all = detached(py, || posteriors(&self.run, data.reader(&self.run, false)?))?;
            let [block] = <[_; 1]>::try_from(all.blocks)
                .map_err(|_| PyValueError::new_err("a chain has one latent"))?;
            let mut shape = block.shape.clone();
            shape.push(latents[0].2.iter().filter(|c| !c.sd).count());
            return Ok((to_numpy(py, block.mean, &shape)?, all.unseen));
        }
        let means: std::collections::HashSet<String> = latents
            .iter()
            .flat_map(|(name, _, columns)| {
                let means = columns.iter().filter(|c| !c.sd);
                means.map(move |c| format!("{name}.{}", c.suffix))
            })
            .collect();
        let (values, rows, width, unseen) = detached(py, || {
            let reader = data.reader(&self.run, false)?;
            let answers = self.run.infer(reader, OutputOptions::default());
            matrix(answers, |name| means.contains(name))
        })?;
        Ok((to_numpy(py, values, &[rows, width])?, unseen))
    }

    /// Posteriors of every latent: name, family, means, standard deviations and natural parameters; and of a table of sequences, which sample and
    /// step each row is.
    fn posterior<'py>(
        &self,
        py: Python<'py>,
        data: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let data = Data::of(data)?;
        let all = detached(py, || posteriors(&self.run, data.reader(&self.run, false)?))?;
        let found = PyDict::new(py);
        let latents = PyList::empty(py);
        for block in all.blocks {
            let cells: usize = block.shape.iter().product();
            let shape = |values: &Vec<f64>| {
                let mut shape = block.shape.clone();
                shape.push(values.len() / cells.max(1));
                shape
            };
            let (mean, natural) = (shape(&block.mean), shape(&block.natural));
            latents.append((
                block.name,
                block.family,
                to_numpy(py, block.mean, &mean)?,
                to_numpy(py, block.sd, &mean)?,
                to_numpy(py, block.natural, &natural)?,
            ))?;
        }
        found.set_item("latents", latents)?;
        if let Some(rows) = all.rows {
            let (samples, steps): (Vec<i64>, Vec<i64>) = rows.into_iter().unzip();
            found.set_item("samples", samples.into_pyarray(py))?;
            found.set_item("steps", steps.into_pyarray(py))?;
        }
        found.set_item("unseen", all.unseen)?;
        Ok(found)
    }

    /// The table that `ramp infer` writes.
    fn infer(
        &self,
        py: Python<'_>,
        data: &Bound<'_, PyAny>,
        keep: Vec<String>,
        long: bool,
    ) -> PyResult<(Table, u64)> {
        let data = Data::of(data)?;
        let options = OutputOptions::default().keep(keep).long(long);
        detached(py, || {
            let reader = data.reader(&self.run, options.needs_all_columns())?;
            self.table(self.run.infer(reader, options))
        })
    }

    /// Free energies of every row, `[row, latent]`; of arrays of sequences `[sample, time]`.
    fn score<'py>(
        &self,
        py: Python<'py>,
        data: &Bound<'py, PyAny>,
    ) -> PyResult<(Bound<'py, PyAny>, u64)> {
        let data = Data::of(data)?;
        let (values, rows, width, unseen) = detached(py, || {
            let reader = data.reader(&self.run, false)?;
            let answers = self.run.score(reader, OutputOptions::default())?;
            matrix(answers, |name| name.ends_with(".free_energy"))
        })?;
        Ok((to_numpy(py, values, &[rows, width])?, unseen))
    }

    /// How much the tree explains of every row in all, and what each latent adds, `[row, latent]`: what `ramp score --total` writes. Of sequences in
    /// arrays a row is a sequence; where every row is a step of one, its own part stands for the whole.
    fn total<'py>(&self, py: Python<'py>, data: &Bound<'py, PyAny>) -> PyResult<Nats<'py>> {
        let data = Data::of(data)?;
        let (values, rows, width, unseen) = detached(py, || {
            let reader = data.reader(&self.run, false)?;
            let answers = self.run.total(reader, OutputOptions::default())?;
            let ending = format!(".{TOTAL}");
            matrix(answers, |name| name == TOTAL || name.ends_with(&ending))
        })?;
        // The first column is the whole, unless there is but one.
        let whole = values.iter().copied().step_by(width.max(1)).collect();
        let first = usize::from(width > 1);
        let parts = values
            .chunks_exact(width.max(1))
            .flat_map(|row| &row[first..]);
        Ok((
            to_numpy(py, whole, &[rows])?,
            to_numpy(
                py,
                parts.copied().collect(),
                &[rows, width - first.min(width)],
            )?,
            unseen,
        ))
    }

    /// The table that `ramp impute` writes.
    fn impute(
        &self,
        py: Python<'_>,
        data: &Bound<'_, PyAny>,
        draws: Option<u16>,
        seed: u64,
    ) -> PyResult<(Table, u64)> {
        let data = Data::of(data)?;
        let draws = draws.map(|count| Draws { count, seed });
        detached(py, || {
            let reader = data.reader(&self.run, true)?;
            self.table(self.run.impute(reader, draws)?)
        })
    }

    /// The table that `ramp forecast` writes.
    fn forecast(
        &self,
        py: Python<'_>,
        data: &Bound<'_, PyAny>,
        steps: u32,
        interval: f64,
    ) -> PyResult<(Table, u64)> {
        let data = Data::of(data)?;
        detached(py, || {
            let horizon = Horizon::new(steps).interval(interval);
            let reader = data.reader(&self.run, false)?;
            self.table(self.run.forecast(reader, horizon)?)
        })
    }

    /// A filter that has seen nothing.
    fn filter(&self, py: Python<'_>) -> PyResult<Filter> {
        Filter::new(self.run.clone()).map_err(|e| exception(py, &e))
    }
}

/// Whether a file holds arrays and no table.
fn is_array_file(data: &Data) -> bool {
    let Data::File(path) = data else { return false };
    let extension = path.extension().unwrap_or_default().to_ascii_lowercase();
    extension == "npy" || extension == "npz"
}
