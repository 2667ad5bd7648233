//! Readouts in a run folder: numbers only, under a checksum; signals and their scales follow from the support set.

use super::waves::Waves;
use super::{ColumnReadout, Measured, Readout};
use crate::Result;
use crate::encode::Encoder;
use crate::run::RunError;
use crate::source::Samples;
use ramp::data::Dataset;
use ramp::infer::{Conditionals, Imputer};
use ramp::storage::{Arrays, Numbers, read_tensors, write_tensors};
use std::path::Path;

/// Numbers of a column before its weights: the tree's weight, the constant, the range, what was measured, and the tree's usual doubt.
const HEAD: usize = 9;

/// Writes the readouts of a run.
pub(crate) fn write(readout: &Readout, path: &Path) -> Result<()> {
    let mut arrays: Vec<(String, Vec<f64>)> = vec![];
    for (o, columns) in readout.columns.iter().enumerate() {
        for (c, column) in columns.iter().enumerate() {
            let Some(column) = column else { continue };
            let Measured {
                variance,
                tree,
                linear,
                both,
            } = column.measured;
            let mut head = vec![column.tree, column.constant, column.low, column.high];
            head.extend([variance, tree, linear, both, column.doubt]);
            head.extend(&column.weights);
            arrays.push((format!("{o}.{c}.weights"), head));
            let signals = column.signals.iter().map(|&s| s as f64).collect();
            arrays.push((format!("{o}.{c}.signals"), signals));
            arrays.push((format!("{o}.{c}.residuals"), column.residuals.clone()));
            arrays.push((format!("{o}.{c}.said"), column.said.clone()));
            if let Some(curves) = &column.curves {
                let mut all = vec![curves.stretch];
                all.extend(&curves.weights);
                arrays.push((format!("{o}.{c}.curves"), all));
            }
        }
    }
    let tensors = arrays
        .iter()
        .map(|(name, x)| (name.clone(), vec![x.len()], Numbers::from(&x[..])))
        .collect();
    Ok(write_tensors(path, tensors, "readout")?)
}

/// Reads the readouts of a run and puts them beside its support set.
pub(crate) fn read(
    path: &Path,
    encoder: &Encoder,
    samples: &Samples,
    data: &Dataset,
    imputer: &Imputer,
    conditionals: &Conditionals<'_>,
) -> Result<Readout> {
    let Some(stored) = read_tensors(path)? else {
        return Err(RunError::Gone { path: path.into() }.into());
    };
    let mut arrays = stored.arrays()?;
    let mut readout = Readout::unlearned(encoder, samples, data, imputer, conditionals)?;
    for (o, observation) in encoder.observations.iter().enumerate() {
        let mut columns = vec![];
        for c in 0..observation.columns.len() {
            let candidates = imputer.candidates(o).len();
            let column = column(&mut arrays, o, c, readout.signals.len(), candidates);
            let column = column.map_err(|array| RunError::DamagedArray {
                path: path.into(),
                array,
            })?;
            columns.push(column);
        }
        readout.columns[o] = columns;
    }
    Ok(readout)
}

/// One column out of the arrays, if it is there; the name of an array that cannot be.
fn column(
    arrays: &mut Arrays,
    o: usize,
    c: usize,
    signals: usize,
    candidates: usize,
) -> Result<Option<ColumnReadout>, String> {
    let name = |what: &str| format!("{o}.{c}.{what}");
    let mut take = |what: &str| match arrays.double.remove(&name(what)) {
        Some(x) if x.iter().all(|x| x.is_finite()) => Ok(Some(x)),
        Some(_) => Err(name(what)),
        None => Ok(None),
    };
    let (Some(head), Some(seen), Some(residuals), Some(said)) = (
        take("weights")?,
        take("signals")?,
        take("residuals")?,
        take("said")?,
    ) else {
        return Ok(None);
    };
    let curves = match take("curves")? {
        None => None,
        Some(all) if all.len() == 1 + Waves::WEIGHTS && all[0] > 0.0 => Some(Waves {
            stretch: all[0],
            weights: all[1..].to_vec(),
        }),
        Some(_) => return Err(name("curves")),
    };
    let index = |&s: &f64| (s >= 0.0 && s < signals as f64).then_some(s as usize);
    let seen: Option<Vec<usize>> = seen.iter().map(index).collect();
    let seen = seen.ok_or_else(|| name("signals"))?;
    if head.len() != HEAD + seen.len() || head[2] > head[3] {
        return Err(name("weights"));
    }
    if residuals.len() != candidates {
        return Err(name("residuals"));
    }
    if said.len() != candidates || candidates == 0 || !said.is_sorted() {
        return Err(name("said"));
    }
    Ok(Some(ColumnReadout {
        weights: head[HEAD..].to_vec(),
        signals: seen,
        tree: head[0],
        constant: head[1],
        curves,
        low: head[2],
        high: head[3],
        doubt: head[8],
        residuals,
        said,
        measured: Measured {
            variance: head[4],
            tree: head[5],
            linear: head[6],
            both: head[7],
        },
    }))
}
