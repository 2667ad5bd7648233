//! Filtering online: one observation after the other.

use crate::data::Data;
use crate::errors::detached;
use numpy::IntoPyArray;
use pyo3::prelude::*;
use ramp::infer::{self, PointBelief};
use ramp_io::encode::{Encoded, Encoding};
use ramp_io::model_file::Chain;
use ramp_io::source::SampleReader;
use ramp_io::{Result, Run};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// What is known about the present of one sequence.
#[pyclass(module = "ramp_ml._lib", frozen)]
pub struct Filter {
    run: Arc<Run>,
    /// The chain as one step knows it: without a column that tells sequences apart, and without times where no season needs them.
    chain: Option<Chain>,
    state: Mutex<infer::Filter>,
}

impl Filter {
    pub fn new(run: Arc<Run>) -> Result<Self> {
        let state = Mutex::new(infer::Filter::new(&run.model)?);
        let seasons = run.encoder.season.is_some();
        let chain = run.chain.clone().map(|chain| Chain {
            sequence: None,
            time: chain.time.filter(|_| seasons),
            step: chain.step.filter(|_| seasons),
            ..chain
        });
        Ok(Filter { run, chain, state })
    }

    fn reader(&self, data: Data) -> Result<SampleReader> {
        match data {
            Data::Columns(columns) => {
                SampleReader::from_table(Box::new(columns), self.chain.as_ref())
            }
            other => other.reader(&self.run, false),
        }
    }

    fn advance(&self, mut reader: SampleReader, missing: &[String]) -> Result<PointBelief> {
        let samples = reader.rest()?;
        let (data, _) = self.run.encode(&samples)?;
        let mut numbers = vec![];
        for encoded in &self.run.encoder.observations {
            let observation = data.observation(&encoded.name)?;
            let features = observation.features();
            let gone = encoded
                .columns
                .iter()
                .any(|column| missing.contains(column));
            let there = !gone && observation.step(0).is_present(0);
            numbers.push(there.then(|| observation.numbers(0)[..features].to_vec()));
        }
        let numbers: Vec<Option<&[f32]>> = numbers.iter().map(Option::as_deref).collect();
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(state.step(&numbers)?)
    }
}

#[pymethods]
impl Filter {
    /// Whether the model was fitted to arrays, and not to a table.
    #[getter]
    fn in_arrays(&self) -> bool {
        self.run.is_of_arrays()
    }

    /// The column of times, where a season needs it.
    #[getter]
    fn time(&self) -> Option<String> {
        self.chain.as_ref()?.time.clone()
    }

    /// How many numbers each observation has at a step, and whether they are pixels.
    #[getter]
    fn shapes(&self) -> HashMap<String, (usize, bool)> {
        let observations = self.run.encoder.observations.iter();
        let of = |o: &Encoded| {
            let image = matches!(o.encoding, Encoding::Image { .. });
            (o.columns[0].clone(), (o.encoding.features(), image))
        };
        observations.map(of).collect()
    }

    /// The belief after one more step: means, standard deviations, natural parameters.
    fn step<'py>(
        &self,
        py: Python<'py>,
        data: &Bound<'py, PyAny>,
        missing: Vec<String>,
    ) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>, Bound<'py, PyAny>)> {
        let data = Data::of(data)?;
        let belief = detached(py, || self.advance(self.reader(data)?, &missing))?;
        let said = belief.describe();
        Ok((
            said.mean.into_pyarray(py).into_any(),
            said.sd.into_pyarray(py).into_any(),
            belief.natural().to_vec().into_pyarray(py).into_any(),
        ))
    }

    /// Forgets everything.
    fn reset(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.reset();
    }
}
