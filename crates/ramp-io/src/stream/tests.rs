//! Answers are those of the model itself, whatever way the samples come: from a file, or from tables in memory cut anywhere.

use super::{Draws, OutputOptions, StreamError};
use crate::run::{Intent, RunFolder};
use crate::source::SampleReader;
use crate::table::{BatchReader, column, columns, concat_rows, open_table};
use crate::{Error, ModelFile, Project, Run};
use arrow_array::RecordBatch;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::ops::ControlFlow;
use std::path::PathBuf;
use tempfile::TempDir;

struct Scene {
    folder: TempDir,
    run: Run,
}

impl Scene {
    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn reader(&self, all_columns: bool) -> SampleReader {
        self.run.read(&self.path("data.csv"), all_columns).unwrap()
    }

    fn whole(&self) -> RecordBatch {
        let mut reader = open_table(&self.path("data.csv")).unwrap();
        let mut batches = vec![];
        while let Some(batch) = reader.next(1000).unwrap() {
            batches.push(batch);
        }
        concat_rows(&batches).unwrap()
    }

    /// The file's rows from memory, in pieces of these sizes, over and over.
    fn in_memory(&self, sizes: &[usize]) -> SampleReader {
        let whole = self.whole();
        let (mut at, mut pieces) = (0, vec![]);
        for size in sizes.iter().cycle() {
            let size = (*size).min(whole.num_rows() - at);
            pieces.push(Ok(whole.slice(at, size)));
            at += size;
            if at == whole.num_rows() {
                break;
            }
        }
        let reader = BatchReader::new(whole.schema(), pieces);
        self.run.read_table(Box::new(reader)).unwrap()
    }
}

/// A run on made-up rows with gaps: numbers that share a cause, and a colour that follows it. Nothing is trained: the promises
/// here hold for any weights.
fn scene(tree: &str) -> Scene {
    let folder = tempfile::tempdir().unwrap();
    let mut rng = ChaCha8Rng::seed_from_u64(3);
    let mut text = String::from("id,day,a,b,c,colour\n");
    for n in 0..240 {
        let cause: f64 = rng.random_range(-1.0..1.0);
        let mut cell = |gap: f64, text: String| match rng.random_bool(gap) {
            true => String::new(),
            false => text,
        };
        let colour = ["red", "green", "blue"][((cause + 1.0) * 1.49) as usize];
        let row = [
            format!("p{}", n / 6),
            format!("{}", n % 6),
            cell(0.1, format!("{:.3}", cause + 0.1)),
            cell(0.2, format!("{:.2}", 3.0 * cause)),
            cell(0.1, format!("{:.1}", -cause)),
            cell(0.1, colour.into()),
        ];
        text += &format!("{}\n", row.join(","));
    }
    let data = folder.path().join("data.csv");
    std::fs::write(&data, text).unwrap();
    let mut file = ModelFile::parse(tree).unwrap();
    file.data.file = Some(data);
    let project = Project::prepare(file).unwrap();
    let place = RunFolder::claim(folder.path(), Intent::New, &[]).unwrap();
    place.finish(&project, "").unwrap();
    drop(place);
    let run = Run::open(folder.path()).unwrap();
    Scene { folder, run }
}

const TREE: &str = "[tree]\nnewick = \"((a,b)x,(c,colour)y)z;\"";
const CHAIN: &str =
    "[tree]\nchain = { sequence = \"id\", time = \"day\", observe = [\"a\", \"b\", \"colour\"] }";

fn all(answers: impl Iterator<Item = crate::Result<RecordBatch>>) -> RecordBatch {
    let batches: Vec<RecordBatch> = answers.map(Result::unwrap).collect();
    concat_rows(&batches).unwrap()
}

#[test]
fn answers_do_not_depend_on_where_samples_come_from() {
    for tree in [TREE, CHAIN] {
        let scene = scene(tree);
        let options = || OutputOptions::default().keep(["c"]);
        let infer = all(scene.run.infer(scene.reader(true), options()));
        let score = all(scene.run.score(scene.reader(true), options()).unwrap());
        let impute = all(scene.run.impute(scene.reader(true), None).unwrap());
        assert_eq!(infer.num_rows(), 240);
        for sizes in [&[240][..], &[1, 7, 50]] {
            let memory = || scene.in_memory(sizes);
            assert_eq!(all(scene.run.infer(memory(), options())), infer);
            assert_eq!(all(scene.run.score(memory(), options()).unwrap()), score);
            assert_eq!(all(scene.run.impute(memory(), None).unwrap()), impute);
        }
    }
}

#[test]
fn posteriors_and_scores_are_the_models_own() {
    let scene = scene(TREE);
    let run = &scene.run;
    let samples = scene.reader(false).rest().unwrap();
    let (data, _) = run.encode(&samples).unwrap();
    let posterior = run.model.posterior(&data).unwrap();
    let (_, support) = run
        .support_set(&run.model, &run.support_samples().unwrap())
        .unwrap();
    let scores = support.scores(&run.model, &data).unwrap();
    let options = OutputOptions::default;
    let infer = all(run.infer(scene.reader(false), options()));
    let score = all(run.score(scene.reader(false), options()).unwrap());
    for (k, name) in ["x", "y", "z"].into_iter().enumerate() {
        let numbers = |table: &RecordBatch, suffix: &str| {
            let name = format!("{name}.{suffix}");
            column(table, &name).unwrap().numbers(0).unwrap()
        };
        let latent = posterior.latent(name).unwrap();
        assert_eq!(numbers(&infer, "mean"), latent.means(0));
        assert_eq!(numbers(&infer, "sd"), latent.sds(0));
        let k = (0..3)
            .find(|&k| run.model.tree().name(run.model.tree().latents()[k]) == name)
            .unwrap_or(k);
        assert_eq!(numbers(&score, "free_energy"), scores.of(&run.model, k));
    }
}

#[test]
fn imputing_fills_gaps_of_observations_and_nothing_else() {
    for tree in [TREE, CHAIN] {
        let scene = scene(tree);
        let whole = scene.whole();
        let observed = scene.run.encoder.columns();
        let filled = all(scene.run.impute(scene.reader(true), None).unwrap());
        let draws = Draws { count: 3, seed: 5 };
        let drawn = all(scene.run.impute(scene.reader(true), Some(draws)).unwrap());
        assert_eq!(drawn.num_rows(), 3 * whole.num_rows());
        let mut gaps = 0;
        for before in columns(&whole) {
            let (old, missing) = (before.texts(), before.missing());
            let new = column(&filled, before.name()).unwrap().texts();
            let copies = column(&drawn, before.name()).unwrap().texts();
            for row in 0..whole.num_rows() {
                let fills = missing[row] && observed.iter().any(|o| o == before.name());
                gaps += usize::from(fills);
                for copy in copies[3 * row..3 * row + 3].iter().chain([&new[row]]) {
                    assert_eq!(copy.is_some(), fills || !missing[row]);
                    assert!(fills || *copy == old[row]);
                }
                // A draw is a value that the column has somewhere.
                for copy in &copies[3 * row..3 * row + 3] {
                    assert!(!fills || old.contains(copy));
                }
            }
        }
        assert!(gaps > 50, "{gaps}");
        let again = all(scene
            .run
            .impute(scene.in_memory(&[11]), Some(draws))
            .unwrap());
        assert_eq!(again, drawn, "draws follow from the seed and the row");
        let other = Draws { seed: 6, ..draws };
        let other = all(scene.run.impute(scene.reader(true), Some(other)).unwrap());
        assert_ne!(other, drawn);
    }
}

#[test]
fn a_file_is_written_whole_or_not_at_all() {
    let scene = scene(TREE);
    let out = scene.path("latents.csv");
    let answers = scene
        .run
        .infer(scene.reader(false), OutputOptions::default());
    let stopped = answers.write(&out, |_| ControlFlow::Break(())).unwrap_err();
    assert!(matches!(
        stopped,
        Error::Stream(StreamError::Interrupted { .. })
    ));
    assert!(!out.exists());
    let answers = scene
        .run
        .infer(scene.reader(false), OutputOptions::default());
    let mut rows = 0;
    let written = answers.write(&out, |at| {
        rows = at.rows;
        ControlFlow::Continue(())
    });
    assert_eq!(written.unwrap().rows, 240);
    assert!(rows == 240 && out.exists());

    let nothing = BatchReader::new(scene.whole().schema(), []);
    let nothing = scene.run.read_table(Box::new(nothing)).unwrap();
    let error = scene
        .run
        .infer(nothing, OutputOptions::default())
        .write(&out, |_| ControlFlow::Continue(()));
    assert!(error.unwrap_err().to_string().contains("has no rows"));

    let few = scene.whole().project(&[2, 3]).unwrap();
    let few = BatchReader::new(few.schema(), [Ok(few)]);
    let error = scene
        .run
        .read_table(Box::new(few))
        .err()
        .unwrap()
        .to_string();
    assert!(
        error.contains("column `c`, which the model needs, is not in the table"),
        "{error}"
    );
}
