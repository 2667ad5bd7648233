//! Samples in, tables out, some at a time: what `infer`, `score` and `impute` have in common.

use super::StreamError;
use crate::run::Run;
use crate::source::{SampleReader, Samples, SourceError};
use crate::table::{TableWriter, check_format, create_table, write_stream};
use crate::{Error, Result};
use arrow_array::RecordBatch;
use arrow_schema::Schema;
use ramp::data::Dataset;
use ramp::model::Model;
use ramp::storage::same_file;
use std::io::Write;
use std::ops::ControlFlow;
use std::path::Path;

/// Samples that go through the model together, at most.
pub(super) const AT_ONCE: usize = 4096;

/// Where samples come from, some at a time.
pub trait SampleSource {
    /// The next samples; `None` after the last.
    fn next_samples(&mut self) -> Result<Option<Samples>>;

    /// Asks for no more than so many samples at a time from now on.
    fn at_most(&mut self, samples: usize) {
        let _ = samples;
    }

    /// How much has been read, from 0 to 1, if that can be known.
    fn progress(&self) -> Option<f64> {
        None
    }

    /// The file that is read, if it is one.
    fn path(&self) -> Option<&Path> {
        None
    }
}

impl SampleSource for SampleReader {
    fn next_samples(&mut self) -> Result<Option<Samples>> {
        self.next(self.samples_at_once().min(AT_ONCE))
    }

    fn at_most(&mut self, samples: usize) {
        SampleReader::at_most(self, samples);
    }

    fn progress(&self) -> Option<f64> {
        SampleReader::progress(self)
    }

    fn path(&self) -> Option<&Path> {
        SampleReader::path(self)
    }
}

/// Some samples, as their source has them and as the model gets them.
pub(super) struct Part<'a> {
    pub samples: &'a Samples,
    pub data: &'a Dataset,
    pub model: &'a Model,
    /// The place of the first sample.
    pub first: usize,
}

/// Something made for the model at hand, and made again when a longer sequence calls for a longer model.
pub(super) struct ForModel<T>(Option<(usize, T)>);

impl<T> ForModel<T> {
    pub fn new() -> Self {
        ForModel(None)
    }

    pub fn get(&mut self, model: &Model, make: impl FnOnce() -> Result<T>) -> Result<&T> {
        let steps = model.tree().latents().len();
        let kept = match self.0.take() {
            Some(kept) if kept.0 == steps => kept,
            _ => (steps, make()?),
        };
        Ok(&self.0.insert(kept).1)
    }
}

/// What is said of some samples.
pub(super) struct Answered {
    pub table: RecordBatch,
    pub cells: FilledCells,
}

impl From<RecordBatch> for Answered {
    fn from(table: RecordBatch) -> Self {
        Answered {
            table,
            cells: FilledCells::default(),
        }
    }
}

/// Cells that were missing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct FilledCells {
    /// Those that were filled; once, however many copies are drawn.
    pub filled: u64,
    /// Those that stayed empty, as no training sample has anything to fill them with.
    pub empty: u64,
}

type Answer<'a> = Box<dyn FnMut(&Part<'_>) -> Result<Answered> + 'a>;

/// The answers of a run about samples, batch by batch: an iterator of tables in constant memory.
#[must_use = "answers are computed as they are asked for"]
pub struct Answers<'a, S> {
    run: &'a Run,
    source: S,
    answer: Answer<'a>,
    /// The model, unrolled as far as the longest sequence until now.
    longer: Option<Model>,
    /// Whether it needs to be.
    unrolls: bool,
    samples: usize,
    unseen: u64,
    cells: FilledCells,
}

impl<'a, S: SampleSource> Answers<'a, S> {
    pub(super) fn new(
        run: &'a Run,
        source: S,
        answer: impl FnMut(&Part<'_>) -> Result<Answered> + 'a,
    ) -> Self {
        Answers {
            run,
            source,
            answer: Box::new(answer),
            longer: None,
            unrolls: true,
            samples: 0,
            unseen: 0,
            cells: FilledCells::default(),
        }
    }

    /// For answers that go through sequences step by step: the model may be shorter than they are.
    pub(super) fn at_trained_length(mut self) -> Self {
        self.unrolls = false;
        self
    }

    /// Samples until now.
    pub fn samples(&self) -> usize {
        self.samples
    }

    /// Cells until now that held levels which training never saw; they count as missing.
    pub fn unseen_levels(&self) -> u64 {
        self.unseen
    }

    /// Of imputing, the cells that were missing until now.
    pub fn cells(&self) -> FilledCells {
        self.cells
    }

    /// How much of the source has been read, from 0 to 1, if that can be known.
    pub fn progress(&self) -> Option<f64> {
        self.source.progress()
    }

    fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        let Some(samples) = self.source.next_samples()? else {
            return Ok(None);
        };
        let own = &self.run.model;
        let reach = self.longer.as_ref().unwrap_or(own).tree().latents().len();
        if self.unrolls && samples.steps() > reach {
            self.longer = self.run.longer_model(samples.steps())?;
        }
        let model = self.longer.as_ref().unwrap_or(own);
        let (data, unseen) = self.run.encode(&samples)?;
        let Answered { table, cells } = (self.answer)(&Part {
            samples: &samples,
            data: &data,
            model,
            first: self.samples,
        })?;
        self.unseen += unseen;
        self.samples += samples.len();
        self.cells.filled += cells.filled;
        self.cells.empty += cells.empty;
        Ok(Some(table))
    }

    /// Writes all answers into a file, which takes its place at the end, whole. After every batch `progress` is told how far it is
    /// and says whether to go on; where it breaks off, nothing is written.
    pub fn write(
        self,
        to: &Path,
        progress: impl FnMut(Progress) -> ControlFlow<()>,
    ) -> Result<Written> {
        self.write_by(to, |schema| create_table(to, schema), progress)
    }

    /// Writes all answers into a pipe as an Arrow IPC stream, each batch as soon as it is there; errors call the pipe by this name. Where
    /// `progress` breaks off, the stream ends after the last batch, without the mark of its end.
    pub fn write_stream(
        self,
        name: &Path,
        pipe: impl Write + Send + 'static,
        progress: impl FnMut(Progress) -> ControlFlow<()>,
    ) -> Result<Written> {
        self.write_by(name, |schema| write_stream(name, pipe, schema), progress)
    }

    fn write_by(
        mut self,
        to: &Path,
        create: impl FnOnce(&Schema) -> Result<Box<dyn TableWriter>>,
        mut progress: impl FnMut(Progress) -> ControlFlow<()>,
    ) -> Result<Written> {
        let mut create = Some(create);
        let mut writer: Option<Box<dyn TableWriter>> = None;
        let mut rows = 0;
        while let Some(batch) = self.next_batch()? {
            rows += batch.num_rows() as u64;
            if let Some(create) = create.take() {
                writer = Some(create(batch.schema_ref())?);
            }
            if let Some(writer) = &mut writer {
                writer.write(&batch)?;
            }
            let at = Progress {
                rows,
                fraction: self.source.progress(),
            };
            if progress(at).is_break() {
                return Err(StreamError::Interrupted { path: to.into() }.into());
            }
        }
        let Some(writer) = writer else {
            let path = self.source.path().map(Path::to_path_buf);
            return Err(SourceError::Empty { path }.into());
        };
        writer.finish()?;
        Ok(Written {
            rows,
            unseen_levels: self.unseen,
            cells: self.cells,
        })
    }
}

impl<S: SampleSource> Iterator for Answers<'_, S> {
    type Item = Result<RecordBatch, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_batch().transpose()
    }
}

/// How far writing has come.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Progress {
    /// Rows written.
    pub rows: u64,
    /// How much of the source has been read, from 0 to 1, if that can be known.
    pub fraction: Option<f64>,
}

/// What was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Written {
    /// Rows.
    pub rows: u64,
    /// Cells that held levels which training never saw; they counted as missing.
    pub unseen_levels: u64,
    /// Of imputing, the cells that were missing.
    pub cells: FilledCells,
}

/// Checks that a table may be written to this place: of a format that is known, and no file that is still needed.
pub fn check_output(run: &Run, data: &Path, to: &Path) -> Result<()> {
    check_format(to)?;
    let same = |other: &Path| same_file(to, other) || to == other;
    if same(data) {
        return Err(StreamError::OverData { path: to.into() }.into());
    }
    if run.files().iter().any(|file| same(file)) {
        return Err(StreamError::OverRun { path: to.into() }.into());
    }
    Ok(())
}
