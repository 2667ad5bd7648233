//! `ramp compare`: which of some runs explains more of rows that none has learned from.

use crate::output::say;
use crate::printing::Table;
use crate::{Ending, Failure};
use clap::Args;
use ramp_io::compare::Comparison;
use std::path::PathBuf;

#[derive(Args)]
pub struct Compare {
    /// Run folders of finished fits of the same data; each is compared with the first
    #[arg(required = true, num_args = 2..)]
    runs: Vec<PathBuf>,
    /// The data that they were fitted to, where it has moved
    #[arg(long)]
    data: Option<PathBuf>,
}

impl Compare {
    pub fn run(self) -> Result<Ending, Failure> {
        let comparison = Comparison::of(&self.runs, self.data.as_deref())?;
        say!("{}", table(&comparison));
        for sentence in comparison.sentences() {
            say!("{sentence}\n");
        }
        Ok(Ending::Done)
    }
}

fn table(comparison: &Comparison) -> String {
    let first = comparison.runs[0].folder.display();
    let mut table = Table::new(&[
        "run",
        "latents",
        "nats",
        "± error",
        "more than the first",
        "± error",
        "under each latent that they share",
    ])
    .right(&[1, 2, 3, 4, 5]);
    for run in &comparison.runs {
        let (mut more, mut error, mut under) = (String::new(), String::new(), String::new());
        if let Some(difference) = &run.difference {
            more = format!("{:+.3}", difference.mean);
            error = format!("{:.3}", difference.standard_error);
            let latents = difference.latents.iter();
            let latents = latents.map(|(name, mean, se)| format!("{name} {mean:+.3} ± {se:.3}"));
            under = crate::printing::shortened(&latents.collect::<Vec<_>>().join(", "), 120);
        }
        table.row(vec![
            run.folder.display().to_string(),
            run.latents.to_string(),
            format!("{:.3}", run.mean),
            format!("{:.3}", run.standard_error),
            more,
            error,
            under,
        ]);
    }
    let what = if comparison.chain { "sequence" } else { "row" };
    format!(
        "nats a {what} more than independent columns, on the {} {what}s that none of them learned from; compared with {first}\n{}",
        comparison.rows,
        table.text()
    )
}
