//! A parser of damaged files behind a fence: its panics become sentences.
//!
//! Parsers of this size have places where damaged files meet an assertion or an index out of bounds. Sizes are checked before
//! anything is decoded; for what is left, a panic of the parser is a damaged file too. Nothing of its state is used after.

use super::{Damage, TableError};
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

thread_local! {
    static GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// Whether this thread is within a parser whose panics are caught and become an error, so that a panic hook may keep quiet.
pub fn is_guarded() -> bool {
    GUARDED.get()
}

/// Runs a piece of a parser, its errors as sentences about the file.
pub(super) fn guarded<T, E: std::fmt::Display>(
    path: &Path,
    run: impl FnOnce() -> Result<T, E>,
) -> Result<T, TableError> {
    let before = GUARDED.replace(true);
    let outcome = catch_unwind(AssertUnwindSafe(run));
    GUARDED.set(before);
    let why = match outcome {
        Ok(Ok(value)) => return Ok(value),
        Ok(Err(error)) => Damage::Said {
            said: error.to_string(),
        },
        Err(_) => Damage::Damaged,
    };
    Err(unusable(path, why))
}

pub(super) fn unusable(path: &Path, why: impl Into<Damage>) -> TableError {
    TableError::Unusable {
        path: path.to_path_buf(),
        why: why.into(),
    }
}
