//! `ramp infer`, `ramp score` and `ramp impute`: arguments in, a progress bar on the way, a sentence at the end.

use crate::output::{note, say};
use crate::progress::Passing;
use crate::{Ending, Failure, interrupt, printing};
use clap::Args;
use ramp::storage::same_file;
use ramp_io::Run;
use ramp_io::items::item_warnings;
use ramp_io::run::RowUse;
use ramp_io::source::SampleReader;
use ramp_io::stream::{
    Answers, Draws, FilledCells, OutputOptions, Progress, StreamError, Written, check_output,
};
use ramp_io::table::read_stream;
use std::io::{ErrorKind, IsTerminal};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

/// Standard input or output, by their usual sign.
const DASH: &str = "-";
const STDOUT: &str = "standard output";

#[derive(Args)]
pub struct About {
    /// Run folder of a finished fit
    run: PathBuf,
    /// Within a pipeline: an Arrow stream from standard input to standard output, as `--data - --out -`
    #[arg(value_name = "-", value_parser = [DASH], conflicts_with_all = ["data", "out"])]
    pipe: Option<String>,
    /// Rows to work on: .csv, .tsv, .parquet, .arrow, .npy, .npz, or - for an Arrow stream from standard input [default: those that the run was fitted to]
    #[arg(long)]
    data: Option<PathBuf>,
    /// Where to write; the ending says the format, - is an Arrow stream to standard output
    #[arg(long, required_unless_present = "pipe")]
    out: Option<PathBuf>,
    /// Columns of the data to keep in the output
    #[arg(long, value_delimiter = ',')]
    keep: Vec<String>,
    /// For sequences in arrays: one row for every time step
    #[arg(long)]
    long: bool,
}

#[derive(Args)]
pub struct Score {
    #[command(flatten)]
    about: About,
    /// Write nats that add up: how much the whole tree explains of a row against independent columns, and what each latent adds to that
    #[arg(long)]
    total: bool,
}

#[derive(Args)]
pub struct Impute {
    /// Run folder of a finished fit
    run: PathBuf,
    /// Rows with gaps: .csv, .tsv, .parquet, .arrow, or - for an Arrow stream from standard input [default: those that the run was fitted to]
    #[arg(long)]
    data: Option<PathBuf>,
    /// Where to write; the ending says the format, - is an Arrow stream to standard output
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
        let (reader, options, out) = self.open(&run)?;
        let ended = write(run.infer(reader, options), &out)?;
        // A pipeline is left alone.
        if matches!(ended, Ending::Done) && !is_dash(&out) {
            self.notes(&run)?;
        }
        Ok(ended)
    }

    /// What a reader of the latents should know: which way their items run.
    fn notes(&self, run: &Run) -> Result<(), Failure> {
        let items = run.items()?;
        let mut text = printing::items(&items);
        for warning in item_warnings(&items) {
            text += &format!("warning: {warning}\n");
        }
        say!("{text}");
        Ok(())
    }

    /// What every row was to the fit, where the data are those of the fit.
    fn uses(&self, run: &Run) -> Result<Option<Vec<RowUse>>, Failure> {
        if self.pipe.is_some() || self.data.as_deref().is_some_and(is_dash) {
            return Ok(None);
        }
        let own = run.data_file();
        let data = match (&self.data, &own) {
            (Some(data), _) => data,
            (None, Ok(own)) => own,
            (None, Err(_)) => return Ok(None),
        };
        let uses = run.row_uses(data)?;
        let is_own = own.as_deref().is_ok_and(|own| same_file(own, data));
        if uses.is_none() && is_own && run.knows_its_rows() {
            note!(
                "note: {} is not what it was when the run was fitted, so which of its rows were learned from is not known",
                data.display()
            );
        }
        Ok(uses)
    }

    fn open(&self, run: &Run) -> Result<(SampleReader, OutputOptions, PathBuf), Failure> {
        let options = OutputOptions::default()
            .keep(self.keep.clone())
            .long(self.long);
        let dash = || PathBuf::from(DASH);
        // One of the two is there, or the arguments were refused.
        let out = self.out.clone().unwrap_or_else(dash);
        let data = self
            .data
            .clone()
            .or_else(|| self.pipe.as_ref().map(|_| dash()));
        let reader = open(
            run,
            data.as_deref(),
            Some(&out),
            options.needs_all_columns(),
        )?;
        // What rows were is said in words, and arrays hold numbers.
        let uses = match is_array(&out) {
            true => None,
            false => self.uses(run)?,
        };
        Ok((reader, options.uses(uses), out))
    }
}

impl Score {
    pub fn run(self) -> Result<Ending, Failure> {
        let run = Run::open(&self.about.run)?;
        let (reader, options, out) = self.about.open(&run)?;
        match self.total {
            true => write(run.total(reader, options)?, &out),
            false => write(run.score(reader, options)?, &out),
        }
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
    let piped = data.is_some_and(is_dash);
    let data = match data {
        Some(data) => data.to_path_buf(),
        None => run.data_file()?,
    };
    let read = || match piped {
        true => from_standard_input(run),
        false => Ok(run.read(&data, all_columns)?),
    };
    let Some(out) = out else {
        return read();
    };
    if is_dash(out) {
        if std::io::stdout().is_terminal() {
            return Err(Failure::user(
                "standard output is a terminal, and an Arrow stream is not for people to read; pipe it into a program or a file, or name a file with --out",
            ));
        }
        return read();
    }
    check_output(run, &data, out)?;
    let reader = read()?;
    let folder = out
        .parent()
        .filter(|p| !p.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    printing::check_writable(folder)?;
    Ok(reader)
}

/// Whether a file holds arrays of numbers and no text.
fn is_array(path: &Path) -> bool {
    path.extension().is_some_and(|e| e == "npy" || e == "npz")
}

fn is_dash(path: &Path) -> bool {
    path.as_os_str() == DASH
}

fn from_standard_input(run: &Run) -> Result<SampleReader, Failure> {
    let stdin = std::io::stdin();
    if stdin.is_terminal() {
        return Err(Failure::user(
            "standard input is a terminal, and an Arrow stream is wanted; pipe one in, or name a file with --data",
        ));
    }
    let table = read_stream(Path::new("standard input"), stdin)?;
    Ok(run.read_stream(table)?)
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
        let progress = |at: Progress| {
            bar.at(at.rows, at.fraction);
            match interrupt::wished() {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        };
        match is_dash(out) {
            true => answers.write_stream(Path::new(STDOUT), std::io::stdout(), progress),
            false => answers.write(out, progress),
        }
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
            // Where the rows themselves go to standard output, nothing else does.
            match is_dash(out) {
                true => note!("{about}wrote {} rows to {STDOUT}", written.rows),
                false => say!("{about}wrote {} rows to {}\n", written.rows, out.display()),
            }
            Ok(Ending::Done)
        }
        // Whoever reads has had enough.
        Err(ramp_io::Error::File { source, .. })
            if is_dash(out) && source.kind() == ErrorKind::BrokenPipe =>
        {
            Ok(Ending::Done)
        }
        Err(ramp_io::Error::Stream(StreamError::Interrupted { .. })) => {
            match is_dash(out) {
                true => note!("stopped; the stream ends in the middle"),
                false => note!("stopped; nothing was written to {}", out.display()),
            }
            Ok(Ending::Interrupted)
        }
        Err(error) => Err(error.into()),
    }
}
