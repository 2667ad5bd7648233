//! Tables larger than memory: writes a CSV of so many rows and 8 columns, streams it into every other format and back, and
//! says how long it took and how much memory was ever used.
//!
//! `cargo run --release -p ramp-ml --example stream_table -- 10000000 /some/folder`

use ramp_io::table::{
    Cells, Column, ColumnType, Table, create_table, open_table, rows_at_once, summarize,
};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// The most memory that the process ever used, where the system tells.
fn peak_memory() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    peak.map_or("unknown".into(), |peak| peak.trim().to_owned())
}

fn write_rows(path: &Path, rows: usize) -> ramp_io::Result<()> {
    let columns: Vec<_> = (0..8)
        .map(|i| (format!("x{i}"), ColumnType::Number))
        .collect();
    let mut writer = create_table(path, &columns)?;
    for first in (0..rows).step_by(10_000) {
        let column = |(i, (name, _)): (usize, &(String, ColumnType))| {
            let cell = |row: usize| match (row + i) % 10 {
                0 => f64::NAN,
                _ => ((row * 8 + i) as f64 * 0.618).sin(),
            };
            let numbers = (first..rows.min(first + 10_000)).map(cell).collect();
            Column::new(name.clone(), Cells::Numbers(numbers))
        };
        writer.write(&Table::new(
            columns.iter().enumerate().map(column).collect(),
        )?)?;
    }
    writer.finish()
}

fn copy(from: &Path, to: &Path) -> ramp_io::Result<()> {
    let mut reader = open_table(from)?;
    let numbers: Vec<_> = reader
        .names()
        .iter()
        .map(|name| (name.clone(), ColumnType::Number))
        .collect();
    let mut writer = create_table(to, &numbers)?;
    while let Some(table) = reader.next(rows_at_once(numbers.len()))? {
        let columns = table.columns().iter();
        let columns =
            columns.map(|c| Ok(Column::new(c.name.clone(), Cells::Numbers(c.numbers()?))));
        writer.write(&Table::new(columns.collect::<ramp_io::Result<_>>()?)?)?;
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
