//! Data in, table out, some samples at a time: what `infer`, `score` and `impute` have in common.

use crate::progress::Passing;
use crate::{Failure, interrupt, printing};
use ramp::data::Dataset;
use ramp::graph::TimeAxis;
use ramp::model::Model;
use ramp_io::Run;
use ramp_io::arrow::{ArrayRef, Field, FieldRef, Float64Array, Int64Array, RecordBatch};
use ramp_io::source::Samples;
use ramp_io::table::{TableWriter, check_format, column, create_table};
use std::path::Path;
use std::sync::Arc;

/// Samples that go through the model together, at most.
const AT_ONCE: usize = 4096;

/// The ending of a passage through a file.
pub enum Passage {
    Done {
        rows: u64,
        /// Cells with levels that training never saw.
        unseen: u64,
    },
    Interrupted,
}

/// Some samples, as the file has them and as the model sees them.
pub struct Part<'a> {
    pub samples: &'a Samples,
    pub data: &'a Dataset,
    pub model: &'a Model,
    /// The place of the first sample.
    pub first: usize,
}

/// Something made for the model at hand, and made again when a longer sequence calls for a longer model.
pub struct ForModel<T>(Option<(usize, T)>);

impl<T> ForModel<T> {
    pub fn new() -> Self {
        ForModel(None)
    }

    pub fn get(
        &mut self,
        model: &Model,
        make: impl FnOnce() -> Result<T, Failure>,
    ) -> Result<&T, Failure> {
        let steps = model.tree().latents().len();
        let kept = match self.0.take() {
            Some(kept) if kept.0 == steps => kept,
            _ => (steps, make()?),
        };
        Ok(&self.0.insert(kept).1)
    }
}

/// Takes a file through a model; `each` makes rows of the new table. The table takes its place at the end, whole.
pub fn pass(
    run: &Run,
    from: &Path,
    to: &Path,
    all_columns: bool,
    mut each: impl FnMut(&Part<'_>) -> Result<RecordBatch, Failure>,
) -> Result<Passage, Failure> {
    check_output(run, from, to)?;
    let mut reader = run.read(from, all_columns)?;
    let folder = to
        .parent()
        .filter(|p| !p.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    printing::check_writable(folder)?;
    let at_once = reader.samples_at_once().min(AT_ONCE);
    let bar = Passing::new();
    let mut writer: Option<Box<dyn TableWriter>> = None;
    let (mut rows, mut unseen, mut first) = (0, 0, 0);
    let mut longer: Option<Model> = None;
    while let Some(samples) = reader.next(at_once)? {
        if interrupt::wished() {
            return Ok(Passage::Interrupted);
        }
        let reach = longer.as_ref().unwrap_or(&run.model).tree().latents().len();
        if samples.steps() > reach {
            longer = run.longer_model(samples.steps())?;
        }
        let model = longer.as_ref().unwrap_or(&run.model);
        let (data, strange) = run.encode(&samples)?;
        unseen += strange;
        let table = each(&Part {
            samples: &samples,
            data: &data,
            model,
            first,
        })?;
        first += samples.len();
        rows += table.num_rows() as u64;
        let writer = match &mut writer {
            Some(writer) => writer,
            None => writer.insert(create_table(to, table.schema_ref())?),
        };
        writer.write(&table)?;
        bar.at(rows, reader.progress());
    }
    let Some(writer) = writer else {
        return Err(Failure::user(format!("`{}` has no rows", from.display())));
    };
    writer.finish()?;
    Ok(Passage::Done { rows, unseen })
}

/// Whether a table may be written to this place: of a kind that is known, and no file that is still needed.
fn check_output(run: &Run, from: &Path, to: &Path) -> Result<(), Failure> {
    check_format(to)?;
    let same = |other: &Path| match (to.canonicalize(), other.canonicalize()) {
        (Ok(a), Ok(b)) => a == b,
        _ => to == other,
    };
    let sentence = if same(from) {
        "is both the data and the output"
    } else if run.files().iter().any(|file| same(file)) {
        "belongs to the run"
    } else {
        return Ok(());
    };
    Err(Failure::user(format!(
        "`{}` {sentence}; give the output another name",
        to.display()
    )))
}

/// Says how a passage ended.
pub fn say(passage: Passage, to: &Path) -> crate::Ending {
    match passage {
        Passage::Interrupted => {
            eprintln!("stopped; nothing was written to {}", to.display());
            crate::Ending::Interrupted
        }
        Passage::Done { rows, unseen } => {
            if unseen > 0 {
                eprintln!(
                    "note: {unseen} cells hold levels that training never saw; they count as missing"
                );
            }
            println!("wrote {rows} rows to {}", to.display());
            crate::Ending::Done
        }
    }
}

/// A column of the output.
pub type OutputColumn = (FieldRef, ArrayRef);

fn new_column(name: impl Into<String>, cells: ArrayRef) -> OutputColumn {
    let field = Field::new(name, cells.data_type().clone(), true);
    (Arc::new(field), cells)
}

fn number_column(name: impl Into<String>, numbers: Vec<f64>) -> OutputColumn {
    new_column(name, Arc::new(Float64Array::from(numbers)))
}

fn integer_column(name: impl Into<String>, numbers: impl Iterator<Item = i64>) -> OutputColumn {
    new_column(name, Arc::new(Int64Array::from_iter_values(numbers)))
}

/// The columns that identify rows in the output: those asked for, and a sequence's own.
pub fn kept(
    run: &Run,
    part: &Part<'_>,
    keep: &[String],
    long: bool,
) -> Result<Vec<OutputColumn>, Failure> {
    if let Some(table) = part.samples.table() {
        let mut names: Vec<&String> = vec![];
        if let Some(chain) = &run.chain {
            names.extend(chain.sequence.iter().chain(&chain.time));
        }
        for name in keep {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        return names
            .into_iter()
            .map(|name| {
                let column = column(table, name)?;
                Ok((column.field.clone(), column.cells.clone()))
            })
            .collect();
    }
    if let Some(name) = keep.first() {
        return Err(Failure::user(format!(
            "arrays have no column `{name}` to keep"
        )));
    }
    let samples = part.first as i64..(part.first + part.samples.len()) as i64;
    let steps = part.samples.room() as i64;
    Ok(if long && run.chain.is_some() {
        let of = samples.clone().flat_map(|n| (0..steps).map(move |_| n));
        let step = samples.clone().flat_map(|_| 1..=steps);
        vec![integer_column("sample", of), integer_column("step", step)]
    } else {
        vec![integer_column("sample", samples)]
    })
}

/// Columns of numbers for every latent, set out as rows of the output. `of(latent)` gives the numbers of one latent, column by
/// column: for every sample, of a chain for every step of every sample. Names end in `suffixes`.
pub fn numbers(
    part: &Part<'_>,
    long: bool,
    suffixes: &dyn Fn(usize) -> Vec<String>,
    of: &mut dyn FnMut(usize) -> Vec<Vec<f64>>,
) -> Vec<OutputColumn> {
    let tree = part.model.tree();
    let named = |name: &str, suffix: &str| match suffix {
        "" => name.to_string(),
        suffix => format!("{name}.{suffix}"),
    };
    let (Some(sequences), Some(time)) = (&part.samples.sequences, tree.time_axis()) else {
        return tree
            .latents()
            .iter()
            .enumerate()
            .flat_map(|(k, &v)| {
                suffixes(k)
                    .into_iter()
                    .zip(of(k))
                    .map(|(suffix, values)| number_column(named(tree.name(v), &suffix), values))
                    .collect::<Vec<_>>()
            })
            .collect();
    };
    let columns = of(0);
    let steps = time.steps();
    // An array may have room for steps that no sequence reaches.
    let value = |n: usize, t: usize, c: usize| match (t as u32) < sequences[n].length {
        true => columns[c][n * steps + t],
        false => f64::NAN,
    };
    if let Some(table) = part.samples.table() {
        // One row for every row that came in, in its place.
        return suffixes(0)
            .iter()
            .enumerate()
            .map(|(c, suffix)| {
                let mut values = vec![f64::NAN; table.num_rows()];
                for (n, sequence) in sequences.iter().enumerate() {
                    for (&item, &t) in sequence.items.iter().zip(&sequence.steps) {
                        values[item as usize] = value(n, t as usize, c);
                    }
                }
                number_column(named(TimeAxis::LATENT, suffix), values)
            })
            .collect();
    }
    // The same for every part of a file, however long its own sequences are.
    let length = part.samples.room();
    if long {
        return suffixes(0)
            .iter()
            .enumerate()
            .map(|(c, suffix)| {
                let values = (0..sequences.len())
                    .flat_map(|n| (0..length).map(move |t| (n, t)))
                    .map(|(n, t)| value(n, t, c))
                    .collect();
                number_column(named(TimeAxis::LATENT, suffix), values)
            })
            .collect();
    }
    (0..length)
        .flat_map(|t| {
            suffixes(0)
                .into_iter()
                .enumerate()
                .map(move |(c, suffix)| (t, c, suffix))
        })
        .map(|(t, c, suffix)| {
            let values = (0..sequences.len()).map(|n| value(n, t, c)).collect();
            let name = format!("{}{}", TimeAxis::LATENT, t + 1);
            number_column(named(&name, &suffix), values)
        })
        .collect()
}
