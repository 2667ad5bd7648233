//! `ramp forecast`: the next steps of every sequence, into a file or onto the terminal.

use crate::output::say;
use crate::printing::Table;
use crate::stream::{open, write};
use crate::{Ending, Failure};
use clap::Args;
use ramp_io::Run;
use ramp_io::arrow::RecordBatch;
use ramp_io::stream::Horizon;
use ramp_io::table::{ColumnKind, columns};
use std::path::PathBuf;

/// Rows that are printed where no file is asked for.
const PRINTED: usize = 60;

#[derive(Args)]
pub struct Forecast {
    /// Run folder of a finished fit of sequences
    run: PathBuf,
    /// Steps after the end of every sequence
    #[arg(long)]
    steps: u32,
    /// Sequences: .csv, .tsv, .parquet, .arrow, .npy, .npz [default: those that the run was fitted to]
    #[arg(long)]
    data: Option<PathBuf>,
    /// Where to write; the ending says the format [default: the terminal]
    #[arg(long)]
    out: Option<PathBuf>,
    /// The chance that a value lies in its interval
    #[arg(long, default_value_t = 0.8)]
    interval: f64,
}

impl Forecast {
    pub fn run(self) -> Result<Ending, Failure> {
        let horizon = Horizon::new(self.steps).interval(self.interval);
        horizon.check().map_err(ramp_io::Error::from)?;
        let run = Run::open(&self.run)?;
        let reader = open(&run, self.data.as_deref(), self.out.as_deref(), false)?;
        let answers = run.forecast(reader, horizon)?;
        let Some(out) = &self.out else {
            let mut left = PRINTED;
            for batch in answers {
                let batch = batch?;
                say!("{}", text(&batch.slice(0, left.min(batch.num_rows()))));
                if batch.num_rows() > left {
                    say!("… and more; --out FILE writes all\n");
                    break;
                }
                left -= batch.num_rows();
            }
            return Ok(Ending::Done);
        };
        write(answers, out)
    }
}

/// Rows as a person reads them.
fn text(rows: &RecordBatch) -> String {
    let names: Vec<&str> = columns(rows).map(|column| column.name()).collect();
    let mut table = Table::new(&names);
    let numbers: Vec<usize> = (columns(rows).enumerate())
        .filter(|(_, column)| column.kind() != ColumnKind::Text)
        .map(|(at, _)| at)
        .collect();
    table = table.right(&numbers);
    let cells: Vec<Vec<Option<String>>> = columns(rows).map(|column| column.texts()).collect();
    for row in 0..rows.num_rows() {
        let cell = |column: &Vec<Option<String>>| match &column[row] {
            Some(text) => match (text.contains('.'), text.parse::<f64>()) {
                (true, Ok(number)) => short(number),
                _ => text.clone(),
            },
            None => String::new(),
        };
        table.row(cells.iter().map(cell).collect());
    }
    table.text()
}

/// Four digits.
fn short(number: f64) -> String {
    let digits = 3 - number.abs().log10().floor().clamp(-300.0, 300.0) as i32;
    match digits {
        0..=8 => format!("{number:.*}", digits as usize),
        _ => format!("{number:.3e}"),
    }
}
