//! `ramp impute`: fill what is missing, and only that, from how the rest of a row reweights the training rows.

use crate::rows::{self, ForModel, Part};
use crate::{Ending, Failure};
use clap::Args;
use ramp::infer::Imputer;
use ramp::model::Model;
use ramp_io::Run;
use ramp_io::encode::{Encoding, Levels};
use ramp_io::source::Samples;
use ramp_io::table::{Cells, Column, Table};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;
use std::path::PathBuf;

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
    fn new(column: &Column, encoding: &Encoding) -> Result<Self, Failure> {
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
            _ => Values::Numbers(column.numbers()?),
        };
        Ok(Candidates { texts, values })
    }
}

impl<'a> Filler<'a> {
    fn new(
        run: &'a Run,
        model: &Model,
        samples: &'a Samples,
        table: &Table,
    ) -> Result<Self, Failure> {
        let (data, support) = run.support_set(model, samples)?;
        let candidates = run.encoder.observations.iter().map(|observation| {
            let columns = observation.columns.iter();
            columns
                .map(|name| Candidates::new(table.column(name)?, &observation.encoding))
                .collect()
        });
        Ok(Filler {
            run,
            imputer: Imputer::new(model, &support, &data)?,
            samples,
            candidates: candidates.collect::<Result<_, Failure>>()?,
        })
    }

    fn fill(&self, part: &Part<'_>, draws: Option<u16>, seed: u64) -> Result<Table, Failure> {
        let Some(table) = part.samples.table() else {
            return Err(Failure::user("only tables can be imputed, not arrays"));
        };
        let mut filled: Vec<Vec<Column>> =
            vec![table.columns().to_vec(); usize::from(draws.unwrap_or(1))];
        let conditionals = self.imputer.conditionals(part.model, part.data)?;
        for (o, encoded) in self.run.encoder.observations.iter().enumerate() {
            let columns: Vec<usize> = encoded
                .columns
                .iter()
                .filter_map(|name| table.columns().iter().position(|c| c.name == *name))
                .collect();
            let gaps = self.gaps(part, table, o, &columns);
            if gaps.is_empty() {
                continue;
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
                            rng.set_stream((table.first_row() + gap.row) as u64);
                            // A place of its own for every draw of every cell in the row.
                            let series = self.run.encoder.observations.len();
                            rng.set_word_pos((d * series + o) as u128 * 64);
                            draw(weights, &mut rng)
                        });
                        for (&at, values) in columns.iter().zip(&self.candidates[o]) {
                            let item = |i: usize| self.item(chosen[i], gap);
                            if table.columns()[at].is_missing(gap.row) {
                                put(&mut filled[at], gap.row, values, weights, drawn, &item);
                            }
                        }
                    }
                }
            }
        }
        let Some(draws) = draws else {
            return Ok(Table::new(filled.swap_remove(0))?.starting_at(table.first_row()));
        };
        interleave(&filled, usize::from(draws), table.rows())
    }

    /// Every gap of one observation in these samples.
    fn gaps(&self, part: &Part<'_>, table: &Table, o: usize, columns: &[usize]) -> Vec<Gap> {
        let lacks = |row: usize| columns.iter().any(|&c| table.columns()[c].is_missing(row));
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
            _ => (0..table.rows())
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
    column: &mut Column,
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
            return put_level(column, row, level);
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
    match &mut column.cells {
        Cells::Numbers(cells) => cells[row] = value,
        Cells::Integers(cells) => cells[row] = Some(value.round() as i64),
        Cells::Texts(cells) => {
            cells[row] = match drawn {
                // As it stood in its own row.
                Some(i) => candidates.texts[item(i)].clone(),
                // Six digits: more would pretend to a precision that is not there.
                None => Some(significant(value)),
            };
        }
        Cells::Unread { .. } => {}
    }
}

/// Fills one cell of a category.
fn put_level(column: &mut Column, row: usize, level: Option<String>) {
    match &mut column.cells {
        Cells::Texts(cells) => cells[row] = level,
        Cells::Integers(cells) => {
            // One format spells a level `1`, another `1.0`.
            let number = level.and_then(|l| l.trim().parse::<f64>().ok());
            cells[row] = number.map(|x| x.round() as i64);
        }
        Cells::Numbers(cells) => {
            cells[row] = level
                .and_then(|l| l.trim().parse().ok())
                .unwrap_or(f64::NAN)
        }
        Cells::Unread { .. } => {}
    }
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
fn interleave(filled: &[Vec<Column>], draws: usize, rows: usize) -> Result<Table, Failure> {
    let mut name = String::from("draw");
    while filled[0].iter().any(|c| c.name == name) {
        name.push('_');
    }
    let numbers = (0..rows)
        .flat_map(|_| (1..=draws as i64).map(Some))
        .collect();
    let mut columns = vec![Column::new(name, Cells::Integers(numbers))];
    // The copies stand one behind the other; their rows are taken in turn.
    let order: Vec<u32> = (0..rows)
        .flat_map(|row| (0..draws).map(move |d| (d * rows + row) as u32))
        .collect();
    for (at, first) in filled[0].iter().enumerate() {
        let mut all = first.clone();
        for copy in &filled[1..] {
            all.append(copy[at].clone())?;
        }
        columns.push(all.select(&order));
    }
    Ok(Table::new(columns)?)
}
