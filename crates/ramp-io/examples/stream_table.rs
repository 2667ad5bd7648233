//! Tables larger than memory: writes a CSV of so many rows and 8 columns, streams it into every other format and back, and
//! says how long it took and how much memory was ever used.
//!
//! `cargo run --release -p ramp-io --example stream_table -- 10000000 /some/folder`

use ramp_io::arrow::{ArrayRef, DataType, Field, Float64Array, Schema};
use ramp_io::table::{columns, create_table, open_table, rows_at_once, summarize, table};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

/// The most memory that the process ever used, where the system tells.
fn peak_memory() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    peak.map_or("unknown".into(), |peak| peak.trim().to_owned())
}

fn number_columns(names: impl Iterator<Item = String>) -> Schema {
    let field = |name| Field::new(name, DataType::Float64, true);
    Schema::new(names.map(field).collect::<Vec<_>>())
}

fn write_rows(path: &Path, rows: usize) -> ramp_io::Result<()> {
    let schema = number_columns((0..8).map(|i| format!("x{i}")));
    let mut writer = create_table(path, &schema)?;
    for first in (0..rows).step_by(10_000) {
        let column = |(i, field): (usize, &Arc<Field>)| {
            let cell = |row: usize| match (row + i) % 10 {
                0 => f64::NAN,
                _ => ((row * 8 + i) as f64 * 0.618).sin(),
            };
            let numbers = (first..rows.min(first + 10_000)).map(cell);
            let numbers: ArrayRef = Arc::new(Float64Array::from_iter_values(numbers));
            (field.name().clone(), numbers)
        };
        writer.write(&table(schema.fields().iter().enumerate().map(column))?)?;
    }
    writer.finish()
}

fn copy(from: &Path, to: &Path) -> ramp_io::Result<()> {
    let mut reader = open_table(from)?;
    let names = reader.schema();
    let schema = number_columns(names.fields().iter().map(|field| field.name().clone()));
    let mut writer = create_table(to, &schema)?;
    let mut first_row = 0;
    while let Some(rows) = reader.next(rows_at_once(schema.fields().len()))? {
        let numbers = columns(&rows).map(|column| -> ramp_io::Result<(&str, ArrayRef)> {
            let numbers = Float64Array::from(column.numbers(first_row)?);
            Ok((column.name(), Arc::new(numbers)))
        });
        writer.write(&table(numbers.collect::<ramp_io::Result<Vec<_>>>()?)?)?;
        first_row += rows.num_rows();
    }
    writer.finish()
}

fn main() -> ramp_io::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let rows = arguments
        .next()
        .and_then(|rows| rows.parse().ok())
        .unwrap_or(1_000_000);
    let folder = arguments
        .next()
        .map_or_else(std::env::temp_dir, PathBuf::from);
    let path = folder.join("ramp_stream.csv");
    let step = |what: &str, start: Instant| {
        println!(
            "{what:28} {:6.1} s, peak {}",
            start.elapsed().as_secs_f64(),
            peak_memory()
        );
    };
    let start = Instant::now();
    write_rows(&path, rows)?;
    step("write .csv", start);
    for ending in ["parquet", "arrow", "npz"] {
        let start = Instant::now();
        let other = path.with_extension(ending);
        copy(&path, &other)?;
        step(&format!(".csv to .{ending}"), start);
        let start = Instant::now();
        let columns = summarize(open_table(&other)?.as_mut())?;
        step(
            &format!("summarize .{ending}, {} rows", columns[0].rows),
            start,
        );
        std::fs::remove_file(&other).ok();
    }
    std::fs::remove_file(&path).ok();
    Ok(())
}
