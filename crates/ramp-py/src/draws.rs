//! Draws from posteriors.

use crate::errors::detached;
use crate::table::to_numpy;
use numpy::{PyReadonlyArrayDyn, PyUntypedArrayMethods};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use ramp::family::Belief;
use ramp::rand_chacha::ChaCha8Rng;
use rand::SeedableRng;

/// Draws `[draw, …, coordinate]` from beliefs with the natural parameters `[…, parameter]`.
#[pyfunction]
pub fn draws<'py>(
    py: Python<'py>,
    family: &str,
    natural: PyReadonlyArrayDyn<'py, f64>,
    count: usize,
    seed: u64,
) -> PyResult<Bound<'py, PyAny>> {
    let belief: Belief = family
        .parse()
        .map_err(|e: ramp::family::FamilyError| PyValueError::new_err(e.to_string()))?;
    let shape = natural.shape().to_vec();
    let dim = belief.dim();
    if shape.last() != Some(&dim) {
        return Err(PyValueError::new_err(format!(
            "{family} has {dim} natural parameters, the array has the shape {shape:?}"
        )));
    }
    let natural = natural.as_slice()?;
    let width = belief.describe(&belief.prior()).mean.len();
    let values = detached(py, || {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut values = Vec::with_capacity(count * natural.len() / dim * width);
        for _ in 0..count {
            for eta in natural.chunks_exact(dim) {
                match belief.check(eta) {
                    Ok(()) => values.extend(belief.draw(eta, &mut rng).unwrap_or_default()),
                    // After the end of a sequence there is nothing to believe.
                    Err(_) => values.resize(values.len() + width, f64::NAN),
                }
            }
        }
        Ok(values)
    })?;
    let mut drawn = vec![count];
    drawn.extend(&shape[..shape.len() - 1]);
    drawn.push(width);
    to_numpy(py, values, &drawn)
}
