//! `ramp infer` and `ramp score`: posteriors and free energies for every row.

use crate::rows::{self, ForModel};
use crate::{Ending, Failure};
use clap::Args;
use ramp_io::Run;
use ramp_io::stream::{PosteriorColumn, posterior_columns, posterior_values};
use ramp_io::table::table_of;
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
        let columns: Vec<Vec<PosteriorColumn>> =
            run.model.beliefs().map(posterior_columns).collect();
        let passage = rows::pass(&run, &self.data, &self.out, !self.keep.is_empty(), |part| {
            let posterior = part.model.posterior(part.data)?;
            let mut all = rows::kept(&run, part, &self.keep, self.long)?;
            all.extend(rows::numbers(
                part,
                self.long,
                &|k| columns[k].iter().map(|c| c.suffix.clone()).collect(),
                &mut |k| posterior_values(&columns[k], &posterior.latents()[k]),
            ));
            let (fields, cells): (Vec<_>, Vec<_>) = all.into_iter().unzip();
            Ok(table_of(fields, cells)?)
        })?;
        Ok(rows::say(passage, &self.out))
    }

    pub fn score(self) -> Result<Ending, Failure> {
        let run = Run::open(&self.run)?;
        let samples = run.support_samples()?;
        let mut support = ForModel::new();
        let passage = rows::pass(&run, &self.data, &self.out, !self.keep.is_empty(), |part| {
            let support =
                support.get(part.model, || Ok(run.support_set(part.model, &samples)?.1))?;
            let scores = support.scores(part.model, part.data)?;
            let mut all = rows::kept(&run, part, &self.keep, self.long)?;
            all.extend(rows::numbers(
                part,
                self.long,
                &|_| vec!["free_energy".into()],
                &mut |k| vec![scores.of(part.model, k)],
            ));
            let (fields, cells): (Vec<_>, Vec<_>) = all.into_iter().unzip();
            Ok(table_of(fields, cells)?)
        })?;
        Ok(rows::say(passage, &self.out))
    }
}
