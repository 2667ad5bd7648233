//! `ramp init`: a model file to start from, written from a table's columns.

use crate::output::say;
use crate::{Ending, Failure};
use clap::Args;
use ramp::storage::{same_file, write_atomically};
use ramp_io::table::{ColumnSummary, Kind, Use, open_table, summarize};
use std::path::PathBuf;

#[derive(Args)]
pub struct Init {
    /// A table: .csv, .tsv, .parquet, .arrow
    data: PathBuf,
    /// Where to write the model file [default: the table's name with .toml, beside it]
    #[arg(long)]
    out: Option<PathBuf>,
    /// Write over a file that is there
    #[arg(long)]
    overwrite: bool,
}

impl Init {
    pub fn run(self) -> Result<Ending, Failure> {
        let user = |sentence: String| Failure::user(sentence);
        let out = self.out.unwrap_or_else(|| self.data.with_extension("toml"));
        if same_file(&out, &self.data) {
            return Err(user(format!(
                "`{}` is the data, which the model file would write over; --out takes another name",
                out.display()
            )));
        }
        if out.exists() && !self.overwrite {
            return Err(user(format!(
                "`{}` is there already; --overwrite replaces it, --out takes another name",
                out.display()
            )));
        }
        let is_model = out.extension().is_some_and(|ending| ending == "toml");
        if out.exists() && !is_model {
            return Err(user(format!(
                "`{}` does not end in .toml, and --overwrite replaces model files only; --out takes another name",
                out.display()
            )));
        }
        let ending = self
            .data
            .extension()
            .unwrap_or_default()
            .to_ascii_lowercase();
        if ending == "npy" || ending == "npz" {
            return Err(user(format!(
                "`{}` holds arrays, which have no columns to start from; the book's chapter on the model file shows how to \
                 observe them",
                self.data.display()
            )));
        }
        let mut reader = open_table(&self.data)?;
        let columns = summarize(reader.as_mut())?;
        let text = model_file(&self.data, &out, &columns).map_err(user)?;
        write_atomically(&out, text.as_bytes())?;
        say!(
            "wrote {}; say in it what hangs together, then: ramp fit {}\n",
            out.display(),
            out.display()
        );
        Ok(Ending::Done)
    }
}

/// A name as Newick writes it.
fn newick_name(name: &str) -> String {
    let plain = name
        .chars()
        .all(|c| c.is_alphanumeric() || matches!(c, '_' | '.' | '-' | '+' | '/'));
    match plain && !name.is_empty() {
        true => name.into(),
        false => format!("'{}'", name.replace('\'', "''")),
    }
}

/// Text as TOML writes it.
fn quoted(text: &str) -> String {
    toml::Value::from(text).to_string()
}

fn model_file(
    data: &std::path::Path,
    out: &std::path::Path,
    columns: &[ColumnSummary],
) -> Result<String, String> {
    let observed: Vec<&ColumnSummary> = columns
        .iter()
        .filter(|c| matches!(Use::of(c), Use::Observe(_)))
        .collect();
    if observed.len() < 2 {
        return Err(format!(
            "`{}` has {} column that could be observed; at least two must hang together",
            data.display(),
            observed.len()
        ));
    }
    let same_folder = data.parent() == out.parent();
    let file = match (same_folder, data.file_name()) {
        (true, Some(name)) => name.to_string_lossy().into_owned(),
        _ => data
            .canonicalize()
            .unwrap_or_else(|_| data.to_path_buf())
            .display()
            .to_string(),
    };
    let mut root = String::from("general");
    while columns.iter().any(|c| c.name == root) {
        root.push('_');
    }
    let leaves: Vec<String> = observed.iter().map(|c| newick_name(&c.name)).collect();
    let rows = columns.first().map_or(0, |c| c.rows);
    let mut text = format!(
        "# A model for {name}: {rows} rows, {count} columns.\n\
         # Every setting with a # in front shows its default.\n\
         version = 1\n\n\
         [data]\n\
         file = {file}\n\
         # holdout = 0.1          # the fraction of rows that is kept apart to judge the model\n\
         # validation = 0.1       # the fraction that chooses the weights\n\n\
         [tree]\n\
         # Who hangs together, in brackets, with the latent's name behind them. One latent over everything is a start; put\n\
         # columns that belong together into brackets of their own: ((a,b,c)first,(d,e,f)second){root};\n\
         newick = {newick}\n",
        name = data.file_name().unwrap_or_default().to_string_lossy(),
        count = columns.len(),
        file = quoted(&file),
        newick = quoted(&format!("({}){};", leaves.join(","), newick_name(&root))),
    );
    text += "\n[latents]\n\
             # family = \"gaussian\"    # or diagonal_gaussian, beta, gamma, categorical, dirichlet, von_mises, and products\n\
             # dim = 1                # how many numbers a latent is; for categorical: levels = 3\n\n";
    text += "# What the columns look like:\n";
    for column in columns {
        let about = match (&column.numbers, &column.kind) {
            (Some(n), Kind::Number) => format!("{} to {}", n.min, n.max),
            _ => column
                .levels
                .iter()
                .take(4)
                .map(|(level, _)| one_line(level))
                .collect::<Vec<_>>()
                .join(", "),
        };
        let missing = match column.missing {
            0 => String::new(),
            m => format!(
                ", {:.1} % missing",
                100.0 * m as f64 / column.rows.max(1) as f64
            ),
        };
        text += &match Use::of(column) {
            Use::Observe(kind) => {
                format!("#   {}: {kind}, {about}{missing}\n", one_line(&column.name))
            }
            Use::Leave(why) => format!("#   {}: left out, as it {why}\n", one_line(&column.name)),
        };
    }
    text += "# To say otherwise:\n# [observations.NAME]\n# kind = \"categorical\"   # number, categorical, vector (with columns = [\"a\", \"b\"]), image\n\n";
    text += "[networks]\n\
             # message = { hidden = [32, 32], activation = \"tanh\" }\n\
             # observation = { hidden = [32, 32] }\n\n\
             [train]\n\
             # iterations = 2000\n\
             # batch = 1000\n\
             # learning_rate = 0.01\n\
             seed = 0\n";
    Ok(text)
}

/// A text that cannot leave its comment.
fn one_line(text: &str) -> String {
    crate::printing::shortened(&text.replace(|c: char| c.is_control(), " "), 60)
}
