//! `ramp infer` and `ramp score`: posteriors and free energies for every row.

use crate::rows::{self, Part};
use crate::{Ending, Failure};
use clap::Args;
use ramp::data::table::Table;
use ramp::infer::Reference;
use ramp::project::source::Samples;
use ramp::project::{PosteriorColumn, Run, posterior_columns, posterior_values};
use std::path::PathBuf;

#[derive(Args)]
pub struct Passing {
    /// Run folder of a finished fit
    run: PathBuf,
    /// Rows to work on: .csv, .tsv, .parquet, .arrow, .npy, .npz
    #[arg(long)]
    data: PathBuf,
    /// Where to write; the ending says the format
    #[arg(long)]
    out: PathBuf,
    /// Columns of the data to keep in the output
    #[arg(long, value_delimiter = ',')]
    keep: Vec<String>,
    /// For sequences in arrays: one row for every time step
    #[arg(long)]
    long: bool,
}

impl Passing {
    pub fn infer(self) -> Result<Ending, Failure> {
        let run = Run::open(&self.run)?;
        let columns: Vec<Vec<PosteriorColumn>> = run
            .model
            .spec()
            .families
            .iter()
            .map(posterior_columns)
            .collect();
        let of = |k: usize| &columns[k.min(columns.len() - 1)];
        let passage = rows::pass(&run, &self.data, &self.out, !self.keep.is_empty(), |part| {
            let posterior = part.model.posterior(part.data)?;
            let mut all = rows::kept(&run, part, &self.keep, self.long)?;
            all.extend(rows::numbers(
                part,
                self.long,
                &|k| of(k).iter().map(|c| c.suffix.clone()).collect(),
                &mut |k| posterior_values(of(k), &posterior.latents()[k], posterior.rows()),
            ));
            Ok(Table::new(all)?)
        })?;
        Ok(rows::say(passage, &self.out))
    }

    pub fn score(self) -> Result<Ending, Failure> {
        let run = Run::open(&self.run)?;
        let samples = run.reference_samples()?;
        let mut reference = Against::new(samples);
        let passage = rows::pass(&run, &self.data, &self.out, !self.keep.is_empty(), |part| {
            let scores = reference.of(&run, part)?.scores(part.model, part.data)?;
            let mut all = rows::kept(&run, part, &self.keep, self.long)?;
            all.extend(rows::numbers(
                part,
                self.long,
                &|_| vec!["free_energy".into()],
                &mut |k| vec![scores.latent(k).to_vec()],
            ));
            Ok(Table::new(all)?)
        })?;
        Ok(rows::say(passage, &self.out))
    }
}

/// The reference under the model at hand: a chain's length may change from part to part.
struct Against {
    samples: Samples,
    steps: usize,
    reference: Option<Reference>,
}

impl Against {
    fn new(samples: Samples) -> Self {
        Against {
            samples,
            steps: 0,
            reference: None,
        }
    }

    fn of(&mut self, run: &Run, part: &Part<'_>) -> Result<&Reference, Failure> {
        let steps = part.model.tree().latents().len();
        if self.reference.is_none() || self.steps != steps {
            self.reference = Some(run.reference(part.model, &self.samples)?.1);
            self.steps = steps;
        }
        self.reference.as_ref().ok_or_else(|| Failure {
            sentence: "the reference was lost".into(),
            user: false,
        })
    }
}
