//! Errors as the exceptions that Python's users expect, with the library's sentences; panics as an error of ours.

use pyo3::exceptions::{
    PyFileExistsError, PyFileNotFoundError, PyOSError, PyRuntimeError, PyValueError,
};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;
use ramp::infer::InferError;
use ramp::storage::StorageError;
use ramp::train::TrainError;
use ramp_io::Error;
use ramp_io::encode::EncodeError;
use ramp_io::model_file::ModelFileError;
use ramp_io::run::RunError;
use ramp_io::source::SourceError;
use ramp_io::table::TableError;
use std::io::ErrorKind;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Lets go of the interpreter for some work; a panic in it becomes an error.
pub fn detached<T: Send>(
    py: Python<'_>,
    work: impl FnOnce() -> Result<T, Error> + Send,
) -> PyResult<T> {
    let done = py.detach(|| catch_unwind(AssertUnwindSafe(work)));
    match done {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) => Err(exception(py, &error)),
        Err(panic) => {
            let said = panic.downcast_ref::<&str>().map(|text| text.to_string());
            let said = said.or_else(|| panic.downcast_ref::<String>().cloned());
            let said = said.unwrap_or_default();
            Err(PyRuntimeError::new_err(format!(
                "ramp_ml ran into a mistake of its own, please report it: {said}"
            )))
        }
    }
}

/// The exception of an error.
pub fn exception(py: Python<'_>, error: &Error) -> PyErr {
    let sentence = error.to_string();
    match kind(error) {
        Kind::Value => PyValueError::new_err(sentence),
        Kind::Key => key_error(py, sentence),
        Kind::NotFound => PyFileNotFoundError::new_err(sentence),
        Kind::Exists => PyFileExistsError::new_err(sentence),
        Kind::System => PyOSError::new_err(sentence),
        Kind::Ours => PyRuntimeError::new_err(sentence),
    }
}

/// A `KeyError` whose sentence is not shown in quotes.
fn key_error(py: Python<'_>, sentence: String) -> PyErr {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    match CLASS.import(py, "ramp_ml._errors", "MissingColumnError") {
        Ok(class) => PyErr::from_type(class.clone(), sentence),
        Err(error) => error,
    }
}

enum Kind {
    Value,
    Key,
    NotFound,
    Exists,
    System,
    Ours,
}

fn of_system(kind: ErrorKind) -> Kind {
    match kind {
        ErrorKind::NotFound => Kind::NotFound,
        _ => Kind::System,
    }
}

fn kind(error: &Error) -> Kind {
    match error {
        Error::File { source, .. } => of_system(source.kind()),
        Error::InFile { source, .. }
        | Error::ModelFile(
            ModelFileError::InFile { source, .. } | ModelFileError::InSection { source, .. },
        ) => kind(source),
        Error::Table(TableError::NoFile { .. })
        | Error::ModelFile(ModelFileError::NotFound { .. })
        | Error::Run(RunError::NotFinished { .. } | RunError::Gone { .. }) => Kind::NotFound,
        Error::Run(RunError::Occupied { .. }) => Kind::Exists,
        Error::Table(TableError::NotInTable { .. } | TableError::NotInFile { .. })
        | Error::Run(RunError::MissingColumn { .. })
        | Error::Source(SourceError::NoArray { .. })
        | Error::Encode(EncodeError::NoColumn { .. } | EncodeError::NoArray { .. }) => Kind::Key,
        Error::Encode(EncodeError::InObservation { source, .. }) => kind(source),
        Error::ModelFile(ModelFileError::Write(_)) | Error::Run(RunError::Write(_)) => Kind::Ours,
        Error::Engine(error) => match error {
            ramp::Error::Infer(InferError::UnknownLatent { .. }) => Kind::Key,
            ramp::Error::Storage(StorageError::File { source, .. }) => of_system(source.kind()),
            ramp::Error::Train(TrainError::Description(_) | TrainError::Threads { .. }) => {
                Kind::Ours
            }
            _ => Kind::Value,
        },
        _ => Kind::Value,
    }
}
