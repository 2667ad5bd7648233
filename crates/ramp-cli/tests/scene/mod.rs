//! A folder with small data and a model that trains at once, and the command run in it as a person would.

// Every test program uses its own part.
#![allow(dead_code)]

use ramp_io::arrow::RecordBatch;
use ramp_io::table::{column, concat_rows, create_table, open_table};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

#[path = "../signals/mod.rs"]
mod signals;

/// Networks and training that a test has time for.
pub const TINY: &str = "[networks]\nmessage = { hidden = [4] }\nobservation = { hidden = [4] }\n\
                        [train]\niterations = 5\n";

/// Two groups of columns, one of them with a category; some cells are missing.
pub const TREE: &str = "[tree]\nnewick = \"((a,b,c)left,(d,e,word)right)top;\"\n";

pub struct Scene {
    folder: tempfile::TempDir,
}

impl Scene {
    /// `data.csv` and `model.toml`.
    pub fn new() -> Self {
        signals::heed();
        let scene = Scene {
            folder: tempfile::tempdir().unwrap(),
        };
        scene.write("data.csv", table(60));
        scene.write("model.toml", model("data.csv", TREE));
        scene
    }

    /// The same with a finished run in `run`.
    pub fn with_run() -> Self {
        let scene = Scene::new();
        scene.does(&["fit", "model.toml", "--out", "run"]);
        scene
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn write(&self, name: &str, contents: impl AsRef<[u8]>) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, contents).unwrap();
    }

    pub fn read(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path(name)).unwrap()
    }

    pub fn text(&self, name: &str) -> String {
        String::from_utf8(self.read(name)).unwrap()
    }

    /// Changes a text file.
    pub fn mend(&self, name: &str, from: &str, to: &str) {
        let text = self.text(name);
        assert!(text.contains(from), "{name} has no `{from}`");
        self.write(name, text.replace(from, to));
    }

    pub fn command(&self) -> Command {
        let mut command = Command::new(assert_cmd::cargo::cargo_bin!("ramp"));
        command.current_dir(self.folder.path());
        command
    }

    pub fn run(&self, words: &[&str]) -> Output {
        self.command().args(words).output().unwrap()
    }

    /// Runs the command, which must work; what it printed, and what it noted.
    pub fn does(&self, words: &[&str]) -> (String, String) {
        let output = self.run(words);
        assert!(output.status.success(), "{words:?}: {}", said(&output));
        (
            String::from_utf8(output.stdout.clone()).unwrap(),
            said(&output),
        )
    }

    /// Runs the command, which must fail with exit code 2 and one sentence with these words in it, and leave every file
    /// as it was.
    pub fn fails(&self, words: &[&str], sentence: &[&str]) {
        let before = self.files();
        let output = self.run(words);
        let error = said(&output);
        assert_eq!(output.status.code(), Some(2), "{words:?}: {error}");
        assert_eq!(error.lines().count(), 1, "{words:?}: {error}");
        assert!(error.starts_with("ramp: "), "{words:?}: {error}");
        for part in sentence {
            assert!(error.contains(part), "{words:?}: no `{part}` in: {error}");
        }
        let after = self.files();
        let changed: Vec<_> = before
            .keys()
            .chain(after.keys())
            .filter(|name| before.get(*name) != after.get(*name))
            .collect();
        assert!(changed.is_empty(), "{words:?} touched {changed:?}");
    }

    /// Every file with its contents.
    pub fn files(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        fn walk(folder: &Path, into: &mut BTreeMap<PathBuf, Vec<u8>>) {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                match path.is_dir() {
                    true => walk(&path, into),
                    false => {
                        into.insert(path.clone(), std::fs::read(&path).unwrap());
                    }
                }
            }
        }
        let mut files = BTreeMap::new();
        walk(self.folder.path(), &mut files);
        files
    }

    /// All rows of a table.
    pub fn table(&self, name: &str) -> RecordBatch {
        let mut reader = open_table(&self.path(name)).unwrap();
        let parts: Vec<_> = std::iter::from_fn(|| reader.next(1 << 20).unwrap()).collect();
        concat_rows(&parts).unwrap()
    }

    /// A table in a file, by its ending.
    pub fn store(&self, name: &str, table: &RecordBatch) {
        let mut writer = create_table(&self.path(name), table.schema_ref()).unwrap();
        writer.write(table).unwrap();
        writer.finish().unwrap();
    }
}

pub fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A model file.
pub fn model(data: &str, tree: &str) -> String {
    format!("version = 1\n[data]\nfile = \"{data}\"\n{tree}{TINY}")
}

/// A number from 0 to 1 for every place: the same ever after, and like no other.
pub fn noise(row: usize, column: usize) -> f64 {
    let mixed = (row as u64 * 1_000_003 + column as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    ((mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 40) as f64 / (1u64 << 24) as f64
}

/// Rows of an identifier, five numbers and a word.
pub fn table(rows: usize) -> String {
    let mut text = String::from("id,a,b,c,d,e,word\n");
    for row in 0..rows {
        let (left, right) = (noise(row, 0), noise(row, 1));
        text += &format!("{row:03}");
        for column in 0..5 {
            let z = if column < 3 { left } else { right };
            match (row + 3 * column) % 13 {
                5 => text += ",",
                _ => text += &format!(",{:.2}", 3.0 * z + noise(row, 2 + column)),
            }
        }
        text += match (row % 11, (right * 3.0) as usize) {
            (7, _) => ",NA\n",
            (_, 0) => ",low\n",
            (_, 1) => ",mid\n",
            _ => ",high\n",
        };
    }
    text
}

/// A long table of sequences of unequal lengths.
pub fn long_table(sequences: usize) -> String {
    let mut text = String::from("who,day,heart,sleep,note\n");
    for n in 0..sequences {
        for t in 0..3 + n % 4 {
            let z = noise(n, 0) + noise(n, t);
            text += &format!("s{n},{t},{:.2},", z + noise(n, 100 + t));
            text += &match (n + t) % 7 {
                3 => "NA,x\n".to_string(),
                _ => format!("{:.2},NA\n", z - noise(n, 200 + t)),
            };
        }
    }
    text
}

/// The tree of [`long_table`].
pub const CHAIN: &str =
    "[tree]\nchain = { sequence = \"who\", time = \"day\", observe = [\"heart\", \"sleep\"] }\n";

/// The numbers of a column.
pub fn numbers(table: &RecordBatch, name: &str) -> Vec<f64> {
    column(table, name).unwrap().numbers(0).unwrap()
}

/// The names of all columns.
pub fn names(table: &RecordBatch) -> Vec<&str> {
    let fields = table.schema_ref().fields().iter();
    fields.map(|field| &field.name()[..]).collect()
}
