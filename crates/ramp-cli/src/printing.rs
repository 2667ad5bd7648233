//! What commands print: tables in plain text, and a project in words.

use crate::Failure;
use ramp::storage::{PendingFile, StorageError, remove_leftovers};
use ramp::train::TriedStart;
use ramp_io::Project;
use ramp_io::items::Item;
use ramp_io::source::Windows;
use std::path::Path;

/// A table in plain text whose columns line up.
pub struct Table {
    rows: Vec<Vec<String>>,
    right: Vec<usize>,
}

impl Table {
    pub fn new(head: &[&str]) -> Self {
        Table {
            rows: vec![head.iter().map(|h| h.to_string()).collect()],
            right: vec![],
        }
    }

    /// Columns to set flush right.
    pub fn right(mut self, columns: &[usize]) -> Self {
        self.right = columns.to_vec();
        self
    }

    pub fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    pub fn text(&self) -> String {
        let columns = self.rows[0].len();
        let widths: Vec<usize> = (0..columns)
            .map(|c| {
                self.rows
                    .iter()
                    .map(|r| r[c].chars().count())
                    .max()
                    .unwrap_or(0)
            })
            .collect();
        let mut text = String::new();
        for row in &self.rows {
            let mut line = String::new();
            for (c, cell) in row.iter().enumerate().filter(|(c, _)| widths[*c] > 0) {
                let space = " ".repeat(widths[c] - cell.chars().count());
                line += &match self.right.contains(&c) {
                    true => format!("{space}{cell}   "),
                    false => format!("{cell}{space}   "),
                };
            }
            text += line.trim_end();
            text.push('\n');
        }
        text
    }
}

/// A text cut where it is too long for a line.
pub fn shortened(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        None => text.into(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}

/// What a chain began from.
pub fn chosen_start(start: &TriedStart) -> String {
    let circles = match start.rings {
        0 => None,
        1 => Some("a place on a circle with its velocity, which messages find from a twist".into()),
        n => Some(format!(
            "{n} places on circles with their velocities, which messages find from twists"
        )),
    };
    let lines = match start.places {
        0 => None,
        1 => Some("one place and its rate of change, which messages were pretrained on".into()),
        n => Some(format!(
            "{n} places and rates of change, which messages were pretrained on"
        )),
    };
    let parts: Vec<String> = circles.into_iter().chain(lines).collect();
    let way = parts.join("; ");
    format!(
        "\nestimated states: {way} (they tell {:.0} % of what is observed 3 to 8 steps earlier and later)",
        100.0 * start.told.max(0.0)
    )
}

/// A project before training: its tree, what is observed, what is missing.
pub fn describe(project: &Project) -> String {
    let mut text = String::new();
    let samples = project.rows();
    let (what, extra) = match &project.samples.sequences {
        None => ("rows", String::new()),
        Some(_) => {
            let (shortest, longest) = project.steps();
            ("sequences", format!(" of {shortest} to {longest} steps"))
        }
    };
    if let Some(file) = &project.file.data.file {
        let (training, validation, held_out) = (
            project.training.len(),
            project.validation.len(),
            project.held_out.len(),
        );
        text += &match (&project.windows, project.folds()) {
            (None, 0) => format!(
                "{}: {samples} {what}{extra}; {training} to learn from, {validation} to choose the weights, {held_out} to judge\n",
                file.display(),
            ),
            (None, folds) => format!(
                "{}: {samples} {what}{extra}; {training} to learn from, cross-validated in {folds} parts together with {validation} others; {held_out} held out\n",
                file.display(),
            ),
            (Some(windows), _) => format!("{}: {}\n", file.display(), cut(windows)),
        };
    }
    if let Some(season) = &project.encoder.season {
        let periods: Vec<String> = season.periods.iter().map(|p| p.to_string()).collect();
        text += &format!(
            "seasons of {}: what is usual at a time of them is learned first, the chain explains the rest\n",
            periods.join(" and ")
        );
    }
    text.push('\n');
    text += &drawing(project);
    let mut table = Table::new(&["observation", "kind", "missing"]).right(&[2]);
    const LISTED: usize = 40;
    for observation in project.encoder.observations.iter().take(LISTED) {
        let missing = project.missing(&observation.name);
        table.row(vec![
            observation.name.clone(),
            observation.encoding.describe(),
            match missing {
                0.0 => "none".into(),
                m => format!("{:.1} %", 100.0 * m),
            },
        ]);
    }
    text += "\n";
    text += &table.text();
    if let Some(more @ 1..) = project.encoder.observations.len().checked_sub(LISTED) {
        text += &format!("… and {more} more\n");
    }
    text
}

/// How long sequences were cut, in one line.
fn cut(windows: &Windows) -> String {
    let of = match windows.sequences {
        1 => format!("one series of {} steps", windows.steps),
        n => format!("{n} sequences of {} steps together", windows.steps),
    };
    let held_out = match windows.held_out {
        0 => String::new(),
        n => format!(", {n} windows of the time that comes last are held out"),
    };
    format!(
        "{of}, cut into {} overlapping windows of {} steps to learn from{held_out}",
        windows.training, windows.length
    )
}

/// The tree, cut where it is large; a chain by its first step.
fn drawing(project: &Project) -> String {
    const LINES: usize = 60;
    if let Some(chain) = project.file.chain() {
        let leaves = chain.observe.join(", ");
        return format!(
            "z1 ─ z2 ─ … ─ z{}   each with {leaves}\n",
            project.steps().1
        );
    }
    let drawn = project.model.tree().draw();
    let lines: Vec<&str> = drawn.lines().collect();
    let mut text = lines[..lines.len().min(LINES)].join("\n");
    text.push('\n');
    if lines.len() > LINES {
        text += &format!("… and {} lines more\n", lines.len() - LINES);
    }
    text
}

/// Whether files can be written into a folder, which is made if it is not there. What killed commands left there is removed.
pub fn check_writable(folder: &Path) -> Result<(), Failure> {
    let failed = |source: std::io::Error| {
        Failure::user(format!(
            "cannot write into `{}`: {source}; choose another folder with --out",
            folder.display()
        ))
    };
    std::fs::create_dir_all(folder).map_err(failed)?;
    remove_leftovers(folder);
    match PendingFile::create(&folder.join(".ramp-trial")) {
        Ok(_) => Ok(()),
        Err(StorageError::File { source, .. }) => Err(failed(source)),
        Err(error) => Err(error.into()),
    }
}

/// What each item does to its latent: which way it runs, and its curve.
pub fn items(items: &[Item]) -> String {
    const LISTED: usize = 60;
    if items.is_empty() {
        return String::new();
    }
    let mut table = Table::new(&[
        "item",
        "latent",
        "direction",
        "mean of the latent by answer",
    ]);
    for item in items.iter().take(LISTED) {
        let means: Vec<f64> = item.curve.iter().map(|(_, mean)| *mean).collect();
        let ends = match &item.curve[..] {
            [first, .., last] => format!(
                "{:+.2} at {} to {:+.2} at {}",
                first.1, first.0, last.1, last.0
            ),
            _ => String::new(),
        };
        table.row(vec![
            item.name.clone(),
            item.latent.clone(),
            item.direction().sign().into(),
            shortened(&format!("{}  {ends}", sparkline(&means)), 60),
        ]);
    }
    let more = match items.len().saturating_sub(LISTED) {
        0 => String::new(),
        n => format!("and {n} more\n"),
    };
    format!("\nwhat each item does\n{}{more}", table.text())
}

/// A curve in one line of blocks.
fn sparkline(values: &[f64]) -> String {
    const BLOCKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let low = values.iter().copied().fold(f64::INFINITY, f64::min);
    let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let block = |&v: &f64| {
        let place = (v - low) / (high - low).max(1e-9) * (BLOCKS.len() - 1) as f64;
        BLOCKS[(place.round() as usize).min(BLOCKS.len() - 1)]
    };
    values.iter().map(block).collect()
}
