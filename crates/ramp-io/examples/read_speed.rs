//! How long it takes to read a table into numbers in memory, and how much memory at most; prints one line of JSON.
//!
//! `cargo run --release -p ramp-io --example read_speed -- make 1000000 /some/folder` writes `read_speed.csv` and
//! `read_speed.parquet`: a row number, twelve columns of numbers with gaps, and a category.
//! `… read_speed -- read /some/folder/read_speed.csv 2` reads one of them on two threads.

use ramp_io::Result;
use ramp_io::arrow::{Array, ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray};
use ramp_io::table::{Column, columns, create_table, open_table, rows_at_once, table};
use rayon::prelude::*;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

const NUMBERS: usize = 12;

/// A number from 0 to 1 for every place.
fn noise(row: usize, column: usize) -> f64 {
    let mixed = (row as u64 * 1_000_003 + column as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    ((mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 11) as f64
        / (1_u64 << 53) as f64
}

fn some_rows(rows: std::ops::Range<usize>) -> Result<RecordBatch> {
    let ids = rows.clone().map(|row| row as i64);
    let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(ids));
    let mut all = vec![("id".to_owned(), ids)];
    for column in 0..NUMBERS {
        let number = |row: usize| {
            let known = !(row + 7 * column).is_multiple_of(23);
            known.then(|| 10.0 * noise(row, column) - 5.0)
        };
        let numbers: Float64Array = rows.clone().map(number).collect();
        all.push((format!("x{}", column + 1), Arc::new(numbers)));
    }
    let levels = ["low", "middle", "high"];
    let level = |row| levels[(3.0 * noise(row, NUMBERS)) as usize];
    let levels = StringArray::from_iter_values(rows.map(level));
    all.push(("level".into(), Arc::new(levels)));
    table(all)
}

fn make(rows: usize, folder: &Path) -> Result<()> {
    for ending in ["csv", "parquet"] {
        let path = folder.join("read_speed").with_extension(ending);
        let mut writer = create_table(&path, some_rows(0..0)?.schema_ref())?;
        for first in (0..rows).step_by(10_000) {
            writer.write(&some_rows(first..rows.min(first + 10_000))?)?;
        }
        writer.finish()?;
    }
    Ok(())
}

/// A column on its way into memory.
enum Whole {
    Numbers(Vec<f64>),
    Texts(Vec<ArrayRef>),
}

impl Whole {
    fn of(name: &str) -> Self {
        match name {
            "level" => Whole::Texts(Vec::new()),
            _ => Whole::Numbers(Vec::new()),
        }
    }

    fn add(&mut self, column: Column<'_>, first_row: usize) -> Result<()> {
        match self {
            Whole::Numbers(numbers) => numbers.extend(column.numbers(first_row)?),
            Whole::Texts(parts) => parts.push(column.cells.clone()),
        }
        Ok(())
    }
}

fn read(path: &Path) -> Result<(usize, f64)> {
    let mut reader = open_table(path)?;
    let schema = reader.schema();
    let names = schema.fields().iter().map(|field| field.name());
    let mut wholes: Vec<Whole> = names.map(|name| Whole::of(name)).collect();
    let mut rows = 0;
    while let Some(some) = reader.next(rows_at_once(schema.fields().len()))? {
        let columns: Vec<Column<'_>> = columns(&some).collect();
        let pairs = wholes.par_iter_mut().zip(columns);
        pairs.try_for_each(|(whole, column)| whole.add(column, rows))?;
        rows += some.num_rows();
    }
    let mut sum = 0.0;
    for whole in &wholes {
        match whole {
            Whole::Numbers(numbers) => sum += numbers.iter().filter(|x| !x.is_nan()).sum::<f64>(),
            Whole::Texts(parts) => assert_eq!(parts.iter().map(|p| p.len()).sum::<usize>(), rows),
        }
    }
    Ok((rows, sum))
}

/// The most memory that the process ever used, in megabytes, where the system tells.
fn peak_memory() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let peak = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kilobytes: f64 = peak.trim().trim_end_matches(" kB").parse().ok()?;
    Some((kilobytes / 102.4).round() / 10.0)
}

fn main() -> Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        ["make", rows, folder] => {
            let rows = rows.parse().expect("a number of rows");
            make(rows, &PathBuf::from(folder))?;
            println!("{{\"rows\": {rows}}}");
        }
        ["read", file, threads] => {
            let threads = threads.parse().expect("a number of threads");
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
            pool.build_global().expect("threads");
            let start = Instant::now();
            let (rows, sum) = read(Path::new(file))?;
            let ms = start.elapsed().as_secs_f64() * 1e3;
            let peak = peak_memory().map_or("null".into(), |peak| peak.to_string());
            println!("{{\"ms\": {ms:.1}, \"peak_mb\": {peak}, \"rows\": {rows}, \"sum\": {sum}}}");
        }
        _ => eprintln!("read_speed make ROWS FOLDER, or read_speed read FILE THREADS"),
    }
    Ok(())
}
