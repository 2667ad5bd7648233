//! What is missing is filled, and only that, from how the rest of a sample reweights the run's support set.

use super::StreamError;
use super::answers::{AT_ONCE, Answered, Answers, FilledCells, ForModel, Part, SampleSource};
use super::candidates::Candidates;
use super::fill::{Filling, draw, interleave, put, replaced};
use crate::Result;
use crate::encode::Encoder;
use crate::readout::{Readout, has_numbers};
use crate::run::Run;
use crate::source::Samples;
use crate::table::{ColumnEditor, column, columns, concat_rows};
use arrow_array::RecordBatch;
use ramp::infer::{Imputer, SeriesSupport};
use ramp::model::Model;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;
use std::collections::BTreeMap;

/// What each sample of the support set weighs in a gap.
type Weights<'a> = dyn Fn(&Gap) -> Vec<f64> + Sync + 'a;

/// Gaps whose weights are computed together.
const GAPS_AT_ONCE: usize = 512;

/// The most cells of all copies that are in memory together.
const MOST_CELLS: usize = 1 << 28;

/// Multiple imputation: so many filled copies of every row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Draws {
    /// How many copies, at least 1.
    pub count: u16,
    /// The seed; the same gives the same draws, however the data is cut into batches.
    pub seed: u64,
}

impl Run {
    /// The rows of tables with what is missing filled: numbers by their conditional mean, categories by the likeliest level; or, with
    /// `draws`, several copies of every row filled with draws, told apart by a column in front.
    pub fn impute<S: SampleSource>(
        &self,
        mut samples: S,
        draws: Option<Draws>,
    ) -> Result<Answers<'_, S>> {
        // All copies of some samples are in memory together.
        if let Some(draws) = draws {
            samples.at_most((AT_ONCE / usize::from(draws.count.max(1))).max(1));
        }
        let support = self.support_series()?;
        if support.table().is_none() {
            return Err(StreamError::FittedToArrays.into());
        }
        let mut filler = ForModel::new();
        Ok(Answers::new(self, samples, move |part| {
            let filler = filler.get(part.model, || Filler::new(self, part.model, &support))?;
            filler.fill(self, part, draws)
        }))
    }
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

/// Everything that stays the same from part to part.
struct Filler {
    way: Way,
    /// For every observation, what each of its columns may be filled with.
    candidates: Vec<Vec<Candidates>>,
    /// How numbers are read off the tree and the rest of a row.
    readout: Option<Readout>,
    /// The tree's imputer at the temperature of cells that it fills alone.
    tempered: Option<Imputer>,
}

/// How weights come about.
enum Way {
    /// By what hangs on the same latent.
    Tree(Imputer),
    /// By the belief about a step, among the observations of all steps; with their rows in the support set's table, series by series.
    Chain(SeriesSupport, Vec<Vec<usize>>),
}

/// The most observations of a series that a gap is compared with.
pub(super) const CANDIDATES: usize = 4000;

impl Filler {
    fn new(run: &Run, model: &Model, support: &Samples) -> Result<Self> {
        let Some(table) = support.table() else {
            return Err(StreamError::FittedToArrays.into());
        };
        let (mut readout, mut tempered) = (None, None);
        let way = match &support.sequences {
            None => {
                let (data, set) = run.support_set(model, support)?;
                let imputer = Imputer::new(model, &set, &data)?;
                readout = run.readout(support, &data, &imputer)?;
                tempered = run.temperature.map(|temperature| {
                    let mut imputer = imputer.clone();
                    imputer.set_temperature(temperature);
                    imputer
                });
                Way::Tree(imputer)
            }
            Some(_) => {
                let (data, _) = run.encode(support)?;
                let series = SeriesSupport::new(&run.model, &data, CANDIDATES)?;
                let rows = support_rows(&series, support, run.encoder.observations.len());
                Way::Chain(series, rows)
            }
        };
        Ok(Filler {
            way,
            candidates: candidates(&run.encoder, support, table)?,
            readout,
            tempered,
        })
    }

    fn fill(&self, run: &Run, part: &Part<'_>, draws: Option<Draws>) -> Result<Answered> {
        let Some(table) = part.samples.table() else {
            return Err(StreamError::ImputeArrays.into());
        };
        let first_row = part.samples.first_row;
        let copies = draws.map_or(1, |draws| usize::from(draws.count.max(1)));
        let all = copies * table.num_rows() * table.num_columns();
        if draws.is_some() && all > MOST_CELLS {
            return Err(StreamError::TooManyDraws {
                draws: copies,
                rows: table.num_rows(),
            }
            .into());
        }
        // The columns that change, for each copy.
        let mut filled = vec![BTreeMap::new(); copies];
        let mut cells = FilledCells::default();
        let (mut signals, mut holes) = (vec![], vec![]);
        let weights: Box<Weights<'_>> = match &self.way {
            Way::Tree(imputer) => {
                let conditionals = imputer.conditionals(part.model, part.data)?;
                if let Some(readout) = &self.readout {
                    let (samples, data) = (part.samples, part.data);
                    (signals, holes) = readout.signals_of(
                        &run.encoder,
                        samples,
                        data,
                        imputer,
                        &conditionals,
                        2,
                    )?;
                }
                let alone = (self.tempered.as_ref()).map(|imputer| conditionals.by(imputer));
                Box::new(move |gap| {
                    let numbers = has_numbers(&run.encoder.observations[gap.observation]);
                    let by = alone.as_ref().filter(|_| !numbers).unwrap_or(&conditionals);
                    by.weights(gap.observation, gap.sample)
                })
            }
            Way::Chain(series, _) => {
                let posterior = part.model.posterior(part.data)?;
                let count = run.encoder.observations.len();
                Box::new(move |gap| {
                    let belief = posterior.latents()[0].natural_at(gap.sample, gap.step as usize);
                    series.weights(gap.observation % count, belief)
                })
            }
        };
        for (o, encoded) in run.encoder.observations.iter().enumerate() {
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
            let gaps = gaps(part, o, &missing);
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
            for gaps in gaps.chunks(GAPS_AT_ONCE) {
                let weighted: Vec<Vec<f64>> = gaps.par_iter().map(&weights).collect();
                for (gap, weights) in gaps.iter().zip(&weighted) {
                    let lacking = missing.iter().filter(|column| column[gap.row]).count() as u64;
                    if weights.is_empty() {
                        cells.empty += lacking;
                        continue;
                    }
                    cells.filled += lacking;
                    let item = |i: usize| match &self.way {
                        Way::Tree(imputer) => imputer.candidates(gap.observation)[i] as usize,
                        Way::Chain(_, rows) => rows[o][i],
                    };
                    let moment = run.moment(part.samples, gap.sample, gap.step);
                    // What the tree and the readout say of each column, the same for all draws.
                    let (seen, row) = ((&signals[..], &holes[..]), gap.sample);
                    let said: Vec<Option<(f64, (f64, f64))>> = (self.candidates[o].iter())
                        .enumerate()
                        .map(|(c, values)| {
                            let readout = self.readout.as_ref()?;
                            let column = readout.column(o, c)?;
                            missing.get(c)?[gap.row].then_some(())?;
                            let tree = values.moments(weights, &item)?;
                            Some((readout.predict(column, tree.0, seen.0, row), tree))
                        })
                        .collect();
                    for (d, filled) in filled.iter_mut().enumerate() {
                        let mut drawn = draws.map(|draws| {
                            let mut rng = ChaCha8Rng::seed_from_u64(draws.seed);
                            rng.set_stream((first_row + gap.row) as u64);
                            // A place of its own for every draw of every cell in the row.
                            let series = run.encoder.observations.len();
                            rng.set_word_pos((d * series + o) as u128 * 64);
                            (draw(weights, &mut rng), rng)
                        });
                        let columns = places.iter().zip(&missing).zip(&self.candidates[o]);
                        for (c, ((at, missing), values)) in columns.enumerate() {
                            let at_moment = |row: usize| {
                                values.at(row, encoded, run.encoder.season.as_ref(), moment)
                            };
                            if let (true, Some(editor)) = (missing[gap.row], filled.get_mut(at)) {
                                let read = said[c].and_then(|said| {
                                    let Some((i, rng)) = &mut drawn else {
                                        return Some(said.0);
                                    };
                                    let readout = self.readout.as_ref()?;
                                    let column = readout.column(o, c)?;
                                    let given = (values.number(item(*i))?, item(*i) as u32);
                                    Some(readout.draw(column, said, seen, row, given, rng))
                                });
                                let with = Filling {
                                    candidates: values,
                                    weights,
                                    drawn: drawn.as_ref().map(|(i, _)| *i),
                                    read,
                                };
                                put(editor, gap.row, with, &item, &at_moment);
                            }
                        }
                    }
                }
            }
        }
        let copies = filled
            .into_iter()
            .map(|edited| replaced(table, edited))
            .collect::<Result<Vec<_>>>()?;
        let table = match draws {
            None => concat_rows(&copies),
            Some(_) => interleave(&copies, table.num_rows()),
        }?;
        Ok(Answered { table, cells })
    }
}

/// Every gap of one observation in these samples.
fn gaps(part: &Part<'_>, o: usize, missing: &[Vec<bool>]) -> Vec<Gap> {
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

/// The rows of the support set's table in which observations stand, series by series.
pub(super) fn support_rows(
    series: &SeriesSupport,
    support: &Samples,
    count: usize,
) -> Vec<Vec<usize>> {
    let sequences = support.sequences.as_deref().unwrap_or_default();
    let row = |&(sample, step): &(u32, u32)| {
        let sequence = &sequences[sample as usize];
        let at = sequence.steps.binary_search(&step).unwrap_or(0);
        sequence.items[at] as usize
    };
    (0..count)
        .map(|s| series.places(s).iter().map(row).collect())
        .collect()
}

/// What the columns of every observation may be filled with.
pub(super) fn candidates(
    encoder: &Encoder,
    support: &Samples,
    table: &RecordBatch,
) -> Result<Vec<Vec<Candidates>>> {
    let observations = encoder.observations.iter();
    observations
        .map(|observation| {
            let columns = observation.columns.iter().enumerate();
            columns
                .map(|(feature, name)| {
                    let encoded = encoder.numbers(support, observation, feature)?;
                    let column = column(table, name)?;
                    Candidates::new(column, observation, feature, encoded.as_deref())
                })
                .collect()
        })
        .collect()
}
