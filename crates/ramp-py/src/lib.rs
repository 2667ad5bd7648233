//! The module `ramp_ml._lib`: what Python needs of `ramp-io`, and nothing that the command lacks.
//!
//! Everything that people call is in `python/ramp_ml`; here data crosses the border without copies (`data`, `table`), the
//! interpreter is let go while Rust works, errors become exceptions and no panic gets through (`errors`).

mod data;
mod draws;
mod errors;
mod filter;
mod fit;
mod posterior;
mod run;
mod table;
mod which_tree;

use pyo3::prelude::*;

/// The compiled part of ramp_ml.
#[pymodule]
fn _lib(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<run::Run>()?;
    module.add_class::<table::Table>()?;
    module.add_class::<filter::Filter>()?;
    module.add_function(wrap_pyfunction!(fit::fit, module)?)?;
    module.add_function(wrap_pyfunction!(fit::check, module)?)?;
    module.add_function(wrap_pyfunction!(fit::settings, module)?)?;
    module.add_function(wrap_pyfunction!(draws::draws, module)?)?;
    module.add_function(wrap_pyfunction!(which_tree::compare, module)?)?;
    module.add_function(wrap_pyfunction!(which_tree::diagnose, module)?)?;
    module.add_function(wrap_pyfunction!(which_tree::grow, module)?)?;
    Ok(())
}
