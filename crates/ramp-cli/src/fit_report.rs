//! `ramp report`: builds the page of a finished run again.

use crate::output::say;
use crate::{Ending, Failure};
use clap::Args;
use ramp::storage::StorageError;
use ramp::train::{Record, Records};
use ramp_io::report::{Shown, build, page, with_changes_of};
use ramp_io::run::RunFolder;
use ramp_io::{Findings, Project, Run};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

#[derive(Args)]
pub struct Rebuild {
    /// Run folder of a finished fit
    run: PathBuf,
    /// The data that it was fitted to, where it has moved
    #[arg(long)]
    data: Option<PathBuf>,
}

impl Rebuild {
    pub fn run(self) -> Result<Ending, Failure> {
        let run = Run::open(&self.run)?;
        let project = Project::reopen(&run, &self.run, self.data)?;
        let records = read_metrics(&run.metrics()?)?;
        let shown = Shown::of(&project)?;
        let findings = Findings::of(&project)?;
        let facts = vec![
            (
                "software".into(),
                format!("ramp {}", env!("CARGO_PKG_VERSION")),
            ),
            (
                "command".into(),
                format!("ramp report {}", self.run.display()),
            ),
            ("seed".into(), project.train.seed.to_string()),
        ];
        let name = self
            .run
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let report = build(&name, &project, &shown, &records, &findings, facts)?;
        let mut new = page(&report);
        // The data is the same, or it was refused: changes that were tried stay listed.
        if let Ok(old) = run.report()
            && let Ok(old) = std::fs::read_to_string(old)
        {
            new = with_changes_of(&new, &old);
        }
        RunFolder::claim_finished(&self.run)?.replace_report(&new)?;
        say!("report: {}\n", self.run.join("report.html").display());
        Ok(Ending::Done)
    }
}

fn read_metrics(path: &Path) -> Result<Vec<Record>, Failure> {
    let failed = |source| StorageError::File {
        action: "read",
        path: path.to_path_buf(),
        source,
    };
    let file = std::fs::File::open(path).map_err(failed)?;
    let mut records = Records::default();
    for (i, line) in BufReader::new(file).split(b'\n').enumerate() {
        let record = serde_json::from_slice(&line.map_err(failed)?);
        records.push(record.map_err(|e| {
            let (path, line) = (path.display(), i + 1);
            Failure::user(format!("`{path}` is damaged in line {line}: {e}"))
        })?);
    }
    Ok(records.into_vec())
}
