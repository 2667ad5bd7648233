//! `ramp infer`, `ramp score` and `ramp impute`: arguments in, a progress bar on the way, a sentence at the end.

use crate::output::{note, say};
use crate::progress::Passing;
use crate::{Ending, Failure, interrupt, printing};
use clap::Args;
use ramp_io::Run;
use ramp_io::source::SampleReader;
use ramp_io::stream::{
    Answers, Draws, FilledCells, OutputOptions, StreamError, Written, check_output,
};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

#[derive(Args)]
pub struct About {
    /// Run folder of a finished fit
    run: PathBuf,
    /// Rows to work on: .csv, .tsv, .parquet, .arrow, .npy, .npz [default: those that the run was fitted to]
    #[arg(long)]
    data: Option<PathBuf>,
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

#[derive(Args)]
pub struct Impute {
    /// Run folder of a finished fit
    run: PathBuf,
    /// Rows with gaps: .csv, .tsv, .parquet, .arrow [default: those that the run was fitted to]
    #[arg(long)]
    data: Option<PathBuf>,
    /// Where to write; the ending says the format
    #[arg(long)]
    out: PathBuf,
    /// Draw so many filled copies of every row, told apart by a column `draw`, in place of one best guess
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=1000))]
    draws: Option<u16>,
    /// Seed of the draws
    #[arg(long, default_value_t = 0)]
    seed: u64,
}

impl About {
    pub fn infer(self) -> Result<Ending, Failure> {
        let run = Run::open(&self.run)?;
        let (reader, options) = self.open(&run)?;
        write(run.infer(reader, options), &self.out)
    }

    pub fn score(self) -> Result<Ending, Failure> {
        let run = Run::open(&self.run)?;
        let (reader, options) = self.open(&run)?;
        write(run.score(reader, options)?, &self.out)
    }

    fn open(&self, run: &Run) -> Result<(SampleReader, OutputOptions), Failure> {
        let options = OutputOptions::default()
            .keep(self.keep.clone())
            .long(self.long);
        let reader = open(
            run,
            self.data.as_deref(),
            Some(&self.out),
            options.needs_all_columns(),
        )?;
        Ok((reader, options))
    }
}

impl Impute {
    pub fn run(self) -> Result<Ending, Failure> {
        let run = Run::open(&self.run)?;
        let reader = open(&run, self.data.as_deref(), Some(&self.out), true)?;
        let draws = self.draws.map(|count| Draws {
            count,
            seed: self.seed,
        });
        write_with(run.impute(reader, draws)?, &self.out, |written| {
            let FilledCells { filled, empty, .. } = written.cells;
            let mut text = match draws {
                Some(Draws { count, .. }) => format!("filled {filled} cells in {count} draws"),
                None => format!("filled {filled} cells"),
            };
            if empty > 0 {
                text += &format!(
                    ", left {empty} empty where no training sample has anything to fill them with"
                );
            }
            text + "; "
        })
    }
}

/// Opens the data, or that of the run, once it is clear that the answers can be written where they are to go.
pub fn open(
    run: &Run,
    data: Option<&Path>,
    out: Option<&Path>,
    all_columns: bool,
) -> Result<SampleReader, Failure> {
    let data = match data {
        Some(data) => data.to_path_buf(),
        None => run.data_file()?,
    };
    let Some(out) = out else {
        return Ok(run.read(&data, all_columns)?);
    };
    check_output(run, &data, out)?;
    let reader = run.read(&data, all_columns)?;
    let folder = out
        .parent()
        .filter(|p| !p.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    printing::check_writable(folder)?;
    Ok(reader)
}

/// Writes answers with a progress bar, and says how it ended.
pub fn write(answers: Answers<'_, SampleReader>, out: &Path) -> Result<Ending, Failure> {
    write_with(answers, out, |_| String::new())
}

/// The same with more to say in front.
fn write_with(
    answers: Answers<'_, SampleReader>,
    out: &Path,
    about: impl FnOnce(&Written) -> String,
) -> Result<Ending, Failure> {
    let written = {
        // The bar is gone before anything is printed.
        let mut bar = Passing::new();
        answers.write(out, |at| {
            bar.at(at.rows, at.fraction);
            match interrupt::wished() {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        })
    };
    match written {
        Ok(written) => {
            if written.unseen_levels > 0 {
                note!(
                    "note: {} cells hold levels that training never saw; they count as missing",
                    written.unseen_levels
                );
            }
            let about = about(&written);
            say!("{about}wrote {} rows to {}\n", written.rows, out.display());
            Ok(Ending::Done)
        }
        Err(ramp_io::Error::Stream(StreamError::Interrupted { .. })) => {
            note!("stopped; nothing was written to {}", out.display());
            Ok(Ending::Interrupted)
        }
        Err(error) => Err(error.into()),
    }
}
