//! `ramp check`: everything that can be wrong with a model file and its data, before any training; the tree and its partitions.

use crate::output::say;
use crate::printing::{self, Table};
use crate::{Ending, Failure};
use clap::Args;
use ramp::graph::FactorTree;
use ramp_io::table::{BatchReader, Identifier, summarize};
use ramp_io::{ModelFile, Project};
use std::path::PathBuf;
use std::time::Instant;

/// Latents whose partitions are listed.
const LISTED: usize = 40;

#[derive(Args)]
pub struct Check {
    /// The model file
    model: PathBuf,
    /// Data, in place of the model file's
    #[arg(long)]
    data: Option<PathBuf>,
}

impl Check {
    pub fn run(self) -> Result<Ending, Failure> {
        let mut file = ModelFile::read(&self.model)?;
        if let Some(data) = self.data {
            file.data.file = Some(data);
        }
        if file.data.file.is_some() {
            let project = Project::prepare(file)?;
            say!("{}", printing::describe(&project));
            say!(
                "\n{} parameters in {} networks; {} iterations in batches of {}, learning rate {}, seed {}\n",
                project.model.parameters().len(),
                project.model.network_count(),
                project.train.iterations,
                project.train.batch.unwrap_or(project.training.len()),
                project.train.learning_rate,
                project.train.seed
            );
            let begun = Instant::now();
            let estimate = project.estimate(|| begun.elapsed().as_secs_f64())?;
            say!("{}\n", estimate.sentence());
            if project.file.chain().is_none() {
                say!("{}", partitions(project.model.tree()));
            }
            for warning in identifiers(&project)? {
                say!("\nwarning: {warning}\n");
            }
        } else {
            if file.chain().is_none() {
                let tree = file.build_tree(2)?;
                say!("{}{}", tree.draw(), partitions(&tree));
            }
            say!("no data is named, so only the model file was checked\n");
        }
        say!("\nall is well: ramp fit {}\n", self.model.display());
        Ok(Ending::Done)
    }
}

/// Observed columns that tell rows apart: nothing can be learned from them about others.
fn identifiers(project: &Project) -> Result<Vec<String>, Failure> {
    let Some(table) = project.samples.table() else {
        return Ok(vec![]);
    };
    let used = project.encoder.columns();
    let mut reader = BatchReader::new(table.schema(), [Ok(table.clone())]);
    let columns = summarize(&mut reader)?;
    Ok(columns
        .iter()
        .filter(|column| used.contains(&column.name))
        .filter_map(|column| Some((column, Identifier::of(column)?)))
        .map(|(column, why)| {
            format!(
                "column `{}` {why}; if it tells rows apart and not what they are like, take it out of the tree",
                column.name
            )
        })
        .collect())
}

/// How every latent divides the observations, and which latents these cannot tell apart.
fn partitions(tree: &FactorTree) -> String {
    let mut table = Table::new(&["latent", "divides the observations into"]);
    for &latent in tree.latents().iter().take(LISTED) {
        let groups: Vec<String> = tree
            .partition(latent)
            .iter()
            .map(|group| {
                let names: Vec<&str> = group.iter().map(|&v| tree.name(v)).collect();
                format!("{{{}}}", printing::shortened(&names.join(" "), 40))
            })
            .collect();
        table.row(vec![
            tree.name(latent).to_string(),
            printing::shortened(&groups.join(" "), 160),
        ]);
    }
    let mut text = format!("\n{}", table.text());
    if tree.latents().len() > LISTED {
        text += &format!("… and {} more\n", tree.latents().len() - LISTED);
    }
    let pairs = tree.weak_pairs().take(LISTED);
    for (i, pair) in pairs.enumerate() {
        if i == 0 {
            text += "\nAssumption 1, which makes latents identifiable, does not hold for every pair; such trees train well all the \
                     same:\n";
        }
        text += &format!("  {}\n", pair.sentence(tree));
    }
    text
}
