//! Ranks that each hold some of the samples have the project of one process, to the bit.

use super::Project;
use super::learned_rows::LearnedRows;
use crate::array::{Array, ArrayValues, write_arrays};
use crate::report::{Shown, build, page};
use crate::table::{create_table, open_table};
use crate::{Findings, ModelFile};
use ramp::collective::{Collective, Single, Threads};
use ramp::data::Gather;
use ramp::train::{Control, Event, Fit};
use std::path::Path;
use std::sync::Arc;

fn model(data: &Path, text: &str) -> ModelFile {
    let mut file = ModelFile::parse(text).unwrap();
    file.data.file = Some(data.to_path_buf());
    file
}

/// What the two must have in common.
fn told(project: &Project) -> String {
    let Project {
        train,
        settings,
        encoder,
        model,
        training,
        validation,
        held_out,
        ..
    } = project;
    let weights: Vec<u32> = model.parameters().iter().map(|p| p.to_bits()).collect();
    let names = encoder.observations.iter().map(|o| &o.name);
    let missing: Vec<f64> = names.map(|name| project.missing(name)).collect();
    format!(
        "{train:?} {settings} {encoder:?} {training:?} {validation:?} {held_out:?} {weights:?} {missing:?} {} {:?} {}",
        project.rows(),
        project.steps(),
        project.data.fingerprint()
    )
}

/// Everything that is made of a project after training, by one process or by the rank that leads.
fn made(project: &mut Project, shown: &Shown) -> String {
    project.align_signs().unwrap();
    project.learn_readout().unwrap();
    let findings = Findings::of(project).unwrap();
    let report = build("name", project, shown, &[], &findings, vec![]).unwrap();
    let some = project.select(&[7, 3, 3, 90]).unwrap();
    format!(
        "{} {:?} {:?}",
        page(&report),
        project
            .readout
            .as_ref()
            .map(|r| r.describe(&project.encoder)),
        some.content
    )
}

fn compare(file: &ModelFile) {
    let mut alone = Project::prepare(file.clone()).unwrap();
    let told_alone = told(&alone);
    let shown = Shown::of(&alone).unwrap();
    let made_alone = made(&mut alone, &shown);
    for ranks in [2, 3, 5] {
        let parts: Vec<usize> = std::thread::scope(|scope| {
            let (told_alone, made_alone) = (&told_alone, &made_alone);
            let all: Vec<_> = Threads::group(ranks)
                .into_iter()
                .map(|own| {
                    scope.spawn(move || {
                        let rank = own.rank();
                        let mut project =
                            Project::prepare_among(file.clone(), Arc::new(own)).unwrap();
                        assert!(&told(&project) == told_alone, "rank {rank} of {ranks}");
                        let shown = Shown::of(&project).unwrap();
                        let held = project.samples.len();
                        if rank > 0 {
                            project.follow().unwrap();
                            return held;
                        }
                        project.lead();
                        assert!(&made(&mut project, &shown) == made_alone, "{ranks} ranks");
                        project.release().unwrap();
                        held
                    })
                })
                .collect();
            all.into_iter().map(|rank| rank.join().unwrap()).collect()
        });
        // Each holds its part alone.
        assert_eq!(parts.iter().sum::<usize>(), alone.rows());
        let most = parts.iter().max().unwrap();
        assert!(
            *most <= alone.rows() / ranks + alone.rows() / 10,
            "{parts:?}"
        );
    }
}

const TREE: &str = "[tree]\nnewick = \"((a,b,rank)y,(word,item)x)z;\"\n[observations.rank]\nscale = \"rank\"\n\
    [networks]\nmessage = { hidden = [3] }\nobservation = { hidden = [3] }\n[data]\nholdout = 0.2\n";

/// Columns of numbers, words and answers, with gaps, and one that the model does not see.
fn text(rows: usize) -> String {
    let mut text = String::from("a,b,rank,word,item,other\n");
    for row in 0..rows {
        let x = ((row * 37) % 101) as f64 / 10.0;
        let gap = |each: usize, cell: String| match row % each {
            0 => String::new(),
            _ => cell,
        };
        text += &format!(
            "{x:.1},{},{},\"{}\",{},\"note {}\n\"\n",
            gap(9, format!("{:.2}", 30.0 - x * 2.0)),
            gap(7, format!("{}", (x * x * 100.0).round())),
            ["low", "mid, or so", "high"][row % 3],
            gap(11, format!("{}", 1 + row * row % 5)),
            row % 13
        );
    }
    text
}

#[test]
fn tables_that_ranks_share_make_the_project_of_one_process() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data.csv");
    std::fs::write(&data, text(600)).unwrap();
    compare(&model(&data, TREE));
    for name in ["data.parquet", "data.arrow"] {
        let path = folder.path().join(name);
        let mut reader = open_table(&data).unwrap();
        let mut writer = create_table(&path, &reader.schema()).unwrap();
        while let Some(rows) = reader.next(128).unwrap() {
            writer.write(&rows).unwrap();
        }
        writer.finish().unwrap();
        compare(&model(&path, TREE));
    }
}

fn array(name: &str, shape: &[usize], values: ArrayValues) -> Array {
    Array {
        name: name.into(),
        shape: shape.to_vec(),
        values,
    }
}

#[test]
fn arrays_that_ranks_share_make_the_project_of_one_process() {
    let folder = tempfile::tempdir().unwrap();
    let rows = 200;
    let number = |i: usize| ((i * 7919) % 1000) as f32 / 100.0;
    let numbers = |count: usize| -> ArrayValues {
        let gap = |i: usize| if i % 50 < 2 { f32::NAN } else { number(i) };
        ArrayValues::Numbers((0..count).map(gap).collect())
    };
    let data = folder.path().join("tree.npz");
    let pixels = (0..rows * 16).map(|i| (number(i) * 25.0) as u8).collect();
    let arrays = [
        array("v", &[rows, 3], numbers(rows * 3)),
        array("w", &[rows], numbers(rows)),
        array("image", &[rows, 4, 4], ArrayValues::Bytes(pixels)),
    ];
    write_arrays(&data, &arrays, false).unwrap();
    compare(&model(
        &data,
        "[tree]\nnewick = \"(v,w,image)z;\"\n[networks]\nmessage = { hidden = [3] }\nobservation = { hidden = [3] }\n",
    ));
    // Sequences, the longest of them at the end.
    let steps = 8;
    let walk = |i: usize| {
        let (n, t) = (i / 2 / steps, i / 2 % steps);
        match t > 3 + n * 5 / rows {
            true => f32::NAN,
            false => number(i),
        }
    };
    let walks = ArrayValues::Numbers((0..rows * steps * 2).map(walk).collect());
    let data = folder.path().join("chain.npz");
    write_arrays(&data, &[array("x", &[rows, steps, 2], walks)], true).unwrap();
    compare(&model(
        &data,
        "[tree]\nchain = { observe = [\"x\"] }\n[latents]\nfamily = \"gaussian(2)\"\n[networks]\nmessage = { hidden = [3] }\nobservation = { hidden = [3] }\n",
    ));
}

/// A rank that fails alone ends the others, and only it says why.
#[test]
fn a_part_that_cannot_be_read_is_named_by_its_rank() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data.csv");
    let broken = text(600);
    let last = broken.rfind("\n7.").unwrap();
    let broken = format!("{}\n1,2{}", &broken[..last], &broken[last..]);
    std::fs::write(&data, broken).unwrap();
    let file = model(&data, TREE);
    std::thread::scope(|scope| {
        for own in Threads::group(3) {
            let file = file.clone();
            scope.spawn(move || {
                let rank = own.rank();
                let said = Project::prepare_among(file, Arc::new(own)).unwrap_err();
                match rank {
                    2 => assert!(said.to_string().contains("data.csv"), "{said}"),
                    _ => assert!(said.to_string().contains("another rank"), "{said}"),
                }
            });
        }
    });
}

/// What training makes of a project, after cross-validation where the sample is small.
fn learned(project: &mut Project, ranks: &dyn Collective) -> String {
    let mut nobody = |_: &Event<'_>| Control::Continue;
    project.cross_validate(Some(1), &mut nobody).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let fit = project
        .train_among(ranks, folder.path(), Some(1), nobody)
        .unwrap();
    let (judged, gain) = (&project.cross_validation, project.beyond_linear.unwrap());
    let weights: Vec<u32> = (project.model.parameters().iter())
        .map(|p| p.to_bits())
        .collect();
    let Fit {
        iteration,
        held_out,
        start,
        ..
    } = fit;
    format!("{judged:?} {gain:?} {iteration} {held_out:?} {start:?} {weights:?}")
}

/// A sample that is cross-validated, and one in which validation rows judge.
#[test]
fn ranks_learn_what_one_process_does_and_know_its_rows() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data.csv");
    for rows in [300, 1500] {
        std::fs::write(&data, text(rows)).unwrap();
        let file = &model(&data, &format!("{TREE}[train]\niterations = 12\n"));
        let mut alone = Project::prepare(file.clone()).unwrap();
        let wanted = &learned(&mut alone, &Single);
        assert_eq!(alone.cross_validation.is_some(), rows == 300);
        let known = &LearnedRows::of(&alone).unwrap();
        for ranks in [2, 3] {
            std::thread::scope(|scope| {
                for own in Threads::group(ranks) {
                    scope.spawn(move || {
                        let own: Arc<dyn Collective> = Arc::new(own);
                        let mut project =
                            Project::prepare_among(file.clone(), own.clone()).unwrap();
                        assert!(project.samples.len() < rows);
                        assert_eq!(&learned(&mut project, &*own), wanted);
                        // Rank 0 writes it down.
                        if own.rank() == 0 {
                            assert_eq!(&LearnedRows::of(&project).unwrap(), known);
                        }
                    });
                }
            });
        }
    }
}
