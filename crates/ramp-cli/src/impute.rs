//! `ramp impute`: fill what is missing, and only that, from how the rest of a row reweights the training rows.

use crate::rows::{self, ForModel, Part};
use crate::{Ending, Failure};
use clap::Args;
use ramp::infer::Imputer;
use ramp::model::Model;
use ramp_io::Run;
use ramp_io::arrow::{Array, ArrayRef, Field, Int64Array, RecordBatch};
use ramp_io::encode::{Encoding, Levels};
use ramp_io::source::Samples;
use ramp_io::table::{Column, ColumnEditor, column, columns, concat_rows, select_rows, table_of};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

#[derive(Args)]
pub struct Impute {
    /// Run folder of a finished fit
    run: PathBuf,
    /// Rows with gaps: .csv, .tsv, .parquet, .arrow
    #[arg(long)]
    data: PathBuf,
    /// Where to write; the ending says the format
    #[arg(long)]
    out: PathBuf,
    /// Draw so many filled copies of every row, told apart by a column `draw`, in place of one best guess
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..))]
    draws: Option<u16>,
    /// Seed of the draws
    #[arg(long, default_value_t = 0)]
    seed: u64,
}

/// A gap: which observation of which sample at which step, and the row of the table.
struct Gap {
    /// Its place among the tree's observations.
    observation: usize,
    sample: usize,
    /// The step of a sequence.
    step: u32,
    row: usize,
}

/// What training rows may fill a column with, row by row of the support set.
struct Candidates {
    texts: Vec<Option<String>>,
    values: Values,
}

enum Values {
    Numbers(Vec<f64>),
    /// The place of each row's level among all of them.
    Levels {
        levels: Vec<String>,
        codes: Vec<Option<usize>>,
    },
}

/// Everything that stays the same from part to part.
struct Filler<'a> {
    run: &'a Run,
    imputer: Imputer,
    samples: &'a Samples,
    /// For every observation, those of each of its columns.
    candidates: Vec<Vec<Candidates>>,
}

impl Impute {
    pub fn run(self) -> Result<Ending, Failure> {
        let run = Run::open(&self.run)?;
        let samples = run.support_samples()?;
        let Some(table) = samples.table() else {
            return Err(Failure::user(
                "only tables can be imputed; this run was fitted to arrays",
            ));
        };
        let mut filler = ForModel::new();
        let passage = rows::pass(&run, &self.data, &self.out, true, |part| {
            let filler = filler.get(part.model, || {
                Filler::new(&run, part.model, &samples, table)
            })?;
            filler.fill(part, self.draws, self.seed)
        })?;
        Ok(rows::say(passage, &self.out))
    }
}

impl Candidates {
    fn new(column: Column<'_>, encoding: &Encoding) -> Result<Self, Failure> {
        let texts = column.texts();
        let values = match encoding {
            Encoding::Categorical { levels } => {
                let places = Levels::new(levels);
                let code = |text: &Option<String>| places.find(text.as_deref()?);
                Values::Levels {
                    codes: texts.iter().map(code).collect(),
                    levels: levels.clone(),
                }
            }
            _ => Values::Numbers(column.numbers(0)?),
        };
        Ok(Candidates { texts, values })
    }
}

impl<'a> Filler<'a> {
    fn new(
        run: &'a Run,
        model: &Model,
        samples: &'a Samples,
        table: &RecordBatch,
    ) -> Result<Self, Failure> {
        let (data, support) = run.support_set(model, samples)?;
        let candidates = run.encoder.observations.iter().map(|observation| {
            let columns = observation.columns.iter();
            columns
                .map(|name| Candidates::new(column(table, name)?, &observation.encoding))
                .collect()
        });
        Ok(Filler {
            run,
            imputer: Imputer::new(model, &support, &data)?,
            samples,
            candidates: candidates.collect::<Result<_, Failure>>()?,
        })
    }

    fn fill(&self, part: &Part<'_>, draws: Option<u16>, seed: u64) -> Result<RecordBatch, Failure> {
        let Some(table) = part.samples.table() else {
            return Err(Failure::user("only tables can be imputed, not arrays"));
        };
        let first_row = part.samples.first_row;
        // The columns that change, for each copy.
        let mut filled = vec![BTreeMap::new(); usize::from(draws.unwrap_or(1))];
        let conditionals = self.imputer.conditionals(part.model, part.data)?;
        for (o, encoded) in self.run.encoder.observations.iter().enumerate() {
            let places: Vec<usize> = encoded
                .columns
                .iter()
                .filter_map(|name| columns(table).position(|c| c.name() == name))
                .collect();
            let missing: Vec<Vec<bool>> = places
                .iter()
                .filter_map(|&at| columns(table).nth(at))
                .map(|column| column.missing())
                .collect();
            let gaps = self.gaps(part, o, &missing);
            if gaps.is_empty() {
                continue;
            }
            for copy in &mut filled {
                for &at in &places {
                    if let Some(column) = columns(table).nth(at) {
                        copy.entry(at).or_insert_with(|| ColumnEditor::new(&column));
                    }
                }
            }
            // Weights in parallel, some gaps at a time; then cells in order.
            for gaps in gaps.chunks(512) {
                let weights: Vec<Vec<f64>> = gaps
                    .par_iter()
                    .map(|gap| conditionals.weights(gap.observation, gap.sample))
                    .collect();
                for (gap, weights) in gaps.iter().zip(&weights) {
                    if weights.is_empty() {
                        continue;
                    }
                    let chosen = self.imputer.candidates(gap.observation);
                    for (d, filled) in filled.iter_mut().enumerate() {
                        let drawn = draws.map(|_| {
                            let mut rng = ChaCha8Rng::seed_from_u64(seed);
                            rng.set_stream((first_row + gap.row) as u64);
                            // A place of its own for every draw of every cell in the row.
                            let series = self.run.encoder.observations.len();
                            rng.set_word_pos((d * series + o) as u128 * 64);
                            draw(weights, &mut rng)
                        });
                        let columns = places.iter().zip(&missing).zip(&self.candidates[o]);
                        for ((at, missing), values) in columns {
                            let item = |i: usize| self.item(chosen[i], gap);
                            if let (true, Some(editor)) = (missing[gap.row], filled.get_mut(at)) {
                                put(editor, gap.row, values, weights, drawn, &item);
                            }
                        }
                    }
                }
            }
        }
        let copies = filled
            .into_iter()
            .map(|edited| replaced(table, edited))
            .collect::<Result<Vec<_>, Failure>>()?;
        match draws {
            None => Ok(concat_rows(&copies)?),
            Some(_) => interleave(&copies, table.num_rows()),
        }
    }

    /// Every gap of one observation in these samples.
    fn gaps(&self, part: &Part<'_>, o: usize, missing: &[Vec<bool>]) -> Vec<Gap> {
        let lacks = |row: usize| missing.iter().any(|column| column[row]);
        let rows = missing.first().map_or(0, Vec::len);
        match (&part.samples.sequences, part.model.tree().time_axis()) {
            (Some(sequences), Some(time)) => sequences
                .iter()
                .enumerate()
                .flat_map(|(n, s)| {
                    s.items
                        .iter()
                        .zip(&s.steps)
                        .map(move |(&row, &t)| (n, row, t))
                })
                .filter(|&(_, row, _)| lacks(row as usize))
                .map(|(sample, row, step)| Gap {
                    observation: time.observation(o, step as usize),
                    sample,
                    step,
                    row: row as usize,
                })
                .collect(),
            _ => (0..rows)
                .filter(|&row| lacks(row))
                .map(|row| Gap {
                    observation: o,
                    sample: row,
                    step: 0,
                    row,
                })
                .collect(),
        }
    }

    /// The row of the support set's table that a candidate stands for.
    fn item(&self, candidate: u32, gap: &Gap) -> usize {
        match &self.samples.sequences {
            Some(sequences) => {
                let sequence = &sequences[candidate as usize];
                let at = sequence.steps.binary_search(&gap.step).unwrap_or(0);
                sequence.items[at] as usize
            }
            None => candidate as usize,
        }
    }
}

/// An index with the chance that its weight says.
fn draw(weights: &[f64], rng: &mut ChaCha8Rng) -> usize {
    let mut left: f64 = rng.random();
    for (i, w) in weights.iter().enumerate() {
        left -= w;
        if left < 0.0 {
            return i;
        }
    }
    weights.len() - 1
}

/// Fills one cell: by a draw, or by the mean of numbers and the likeliest of levels.
fn put(
    column: &mut ColumnEditor,
    row: usize,
    candidates: &Candidates,
    weights: &[f64],
    drawn: Option<usize>,
    item: &dyn Fn(usize) -> usize,
) {
    let numbers = match &candidates.values {
        Values::Numbers(numbers) => numbers,
        Values::Levels { levels, codes } => {
            let level = match drawn {
                Some(i) => candidates.texts[item(i)].clone(),
                None => {
                    let mut chance = vec![0.0; levels.len()];
                    for (i, w) in weights.iter().enumerate() {
                        if let Some(at) = codes[item(i)] {
                            chance[at] += w;
                        }
                    }
                    let best = (0..levels.len()).max_by(|&a, &b| chance[a].total_cmp(&chance[b]));
                    best.map(|b| levels[b].clone())
                }
            };
            return column.set_text(row, level.as_deref());
        }
    };
    let value = match drawn {
        Some(i) => numbers[item(i)],
        None => weights
            .iter()
            .enumerate()
            .map(|(i, w)| w * numbers[item(i)])
            .sum(),
    };
    column.set_number(row, value, |value| match drawn {
        // As it stood in its own row.
        Some(i) => candidates.texts[item(i)].clone().unwrap_or_default(),
        // Six digits: more would pretend to a precision that is not there.
        None => significant(value),
    });
}

/// A table with other cells in some of its columns.
fn replaced(
    table: &RecordBatch,
    mut edited: BTreeMap<usize, ColumnEditor>,
) -> Result<RecordBatch, Failure> {
    let cells = table.columns().iter().enumerate().map(|(at, cells)| {
        let edited = edited.remove(&at);
        edited.map_or(Ok(cells.clone()), ColumnEditor::finish)
    });
    let cells = cells.collect::<Result<Vec<_>, _>>()?;
    Ok(table_of(
        table.schema_ref().fields().iter().cloned(),
        cells,
    )?)
}

/// A number with six significant digits and no trailing zeros.
fn significant(value: f64) -> String {
    let digits = 5 - value.abs().log10().floor().clamp(-300.0, 300.0) as i32;
    match value {
        0.0 => "0".into(),
        v if (0..=12).contains(&digits) => {
            let text = format!("{v:.*}", digits as usize);
            match text.contains('.') {
                true => text.trim_end_matches('0').trim_end_matches('.').into(),
                false => text,
            }
        }
        v => format!("{v:e}"),
    }
}

/// All copies of a row together, with the number of the draw in front.
fn interleave(copies: &[RecordBatch], rows: usize) -> Result<RecordBatch, Failure> {
    let mut name = String::from("draw");
    while columns(&copies[0]).any(|c| c.name() == name) {
        name.push('_');
    }
    let draws = copies.len();
    let numbers = (0..rows).flat_map(|_| 1..=draws as i64);
    let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(numbers));
    // The copies stand one behind the other; their rows are taken in turn.
    let order: Vec<u32> = (0..rows)
        .flat_map(|row| (0..draws).map(move |d| (d * rows + row) as u32))
        .collect();
    let all = select_rows(&concat_rows(copies)?, &order)?;
    let mut fields = vec![Arc::new(Field::new(
        name,
        numbers.data_type().clone(),
        false,
    ))];
    fields.extend(all.schema_ref().fields().iter().cloned());
    let mut cells = vec![numbers];
    cells.extend(all.columns().iter().cloned());
    Ok(table_of(fields, cells)?)
}
