//! Promises of the ways from files to samples, for any input: model files, scales, sequences.

use crate::Error;
use crate::encode::{Scale, ScaleKind};
use crate::model_file::{Chain, ModelFile, NetworkSettings};
use crate::source::{SampleReader, Samples};
use crate::table::column;
use proptest::collection::vec;
use proptest::prelude::*;
use std::path::PathBuf;

/// The model files that tests and fuzzing start from.
fn corpus() -> Vec<(String, String)> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/corpus/model");
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            (name, std::fs::read_to_string(path).unwrap())
        })
        .collect();
    files.sort();
    files
}

/// Reads a model file and, where that works, writes it resolved and reads it again: nothing may get lost.
fn round_trip(text: &str) -> Result<(), TestCaseError> {
    let file = match ModelFile::parse(text) {
        Ok(file) => file,
        Err(error) => {
            let sentence = error.to_string();
            let ours = matches!(error, Error::File { .. });
            prop_assert!(!ours && !sentence.is_empty());
            prop_assert_eq!(sentence.lines().count(), 1, "{}", sentence);
            return Ok(());
        }
    };
    for samples in [1, 500, 5000] {
        let train = file.train_spec(samples).unwrap();
        let resolved = file.resolved(&train).unwrap();
        let again = ModelFile::parse(&resolved).map_err(|e| {
            TestCaseError::fail(format!("{e}\nin the resolved form of\n{text}\n{resolved}"))
        })?;
        prop_assert_eq!(&again.train_spec(samples).unwrap(), &train);
        prop_assert_eq!(again.resolved(&train).unwrap(), resolved);
        // What was left to defaults is said.
        let expected = ModelFile {
            train: again.train.clone(),
            networks: NetworkSettings {
                message: Some(file.message_network()),
                init: Some(file.init()),
                ..file.networks.clone()
            },
            ..file.clone()
        };
        prop_assert_eq!(again, expected);
    }
    Ok(())
}

#[test]
fn model_files_of_the_corpus_are_read_or_refused_and_come_back() {
    let files = corpus();
    let good = |name: &str| {
        ["questionnaire", "everything", "chain", "factors", "edges"]
            .iter()
            .any(|good| name.starts_with(good))
    };
    assert!(files.iter().filter(|(name, _)| good(name)).count() == 5);
    for (name, text) in &files {
        let read = ModelFile::parse(text);
        assert_eq!(read.is_ok(), good(name), "{name}: {read:?}");
        round_trip(text).unwrap();
    }
}

/// Text with the words of model files in any order.
fn like_toml() -> impl Strategy<Value = String> {
    let word = prop_oneof![
        Just("version = 1\n".to_string()),
        "\\[(data|tree|latents|observations|networks|train|latents\\.a|observations\\.é)\\]\n",
        "(file|holdout|newick|edges|factors|chain|family|dim|levels|kind|columns|scale|message|view|tying|seed|batch) = ",
        "(1|-1|0\\.5|nan|1e400|true|\"a\"|\"\\(a,b\\)c;\"|\\[\"a\",\"b\"\\]|\\{ hidden = \\[4\\] \\}|1979-05-27)\n",
        "(\\[|\\]|\\{|\\}|\"|'''|=|,|#|é|\\\\u12|\n)",
    ];
    vec(word, 0..24).prop_map(|words| words.concat())
}

/// A place and what happens there: so many characters go, and these come.
fn edits() -> impl Strategy<Value = Vec<(prop::sample::Index, usize, String)>> {
    let put = prop_oneof![
        Just(String::new()),
        "[0-9]{1,3}",
        "[a-z\"\\[\\]{}(),;='.\n é-]{1,3}",
    ];
    vec((any::<prop::sample::Index>(), 0..6_usize, put), 1..5)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text_is_read_or_refused_in_a_sentence(text in any::<String>(), words in like_toml()) {
        round_trip(&text)?;
        round_trip(&words)?;
    }

    #[test]
    fn a_model_file_with_slips_is_read_or_refused_in_a_sentence(
        which in any::<prop::sample::Index>(),
        edits in edits(),
    ) {
        let files = corpus();
        let mut text: Vec<char> = which.get(&files).1.chars().collect();
        for (at, gone, come) in edits {
            let at = at.index(text.len() + 1);
            let end = (at + gone).min(text.len());
            text.splice(at..end, come.chars());
        }
        round_trip(&text.into_iter().collect::<String>())?;
    }

    #[test]
    fn a_scale_is_sound_and_never_turns_an_order_around(
        values in vec(prop_oneof![
            -100.0..100.0,
            (-9..9_i32).prop_map(f64::from),
            any::<f64>().prop_filter("finite", |x| x.is_finite()),
            Just(f64::NAN),
        ], 0..80),
        news in vec(prop_oneof![-200.0..200.0, any::<f64>()], 2..20),
    ) {
        for kind in [ScaleKind::Rank, ScaleKind::Standard, ScaleKind::None] {
            let Some(scale) = Scale::learn(kind, &values) else {
                continue;
            };
            prop_assert!(scale.is_sound(), "{:?}", scale);
            let text = serde_json::to_string(&scale).unwrap();
            prop_assert_eq!(&serde_json::from_str::<Scale>(&text).unwrap(), &scale);
            prop_assert!(scale.apply(f64::NAN).is_nan());
            let mut all: Vec<f64> = values.iter().chain(&news).copied().filter(|x| !x.is_nan()).collect();
            all.sort_by(f64::total_cmp);
            let scaled: Vec<f64> = all.iter().map(|&x| scale.apply(x)).collect();
            prop_assert!(scaled.iter().all(|x| !x.is_nan()), "{:?} {:?}", scale, scaled);
            prop_assert!(scaled.windows(2).all(|w| w[0] <= w[1]), "{:?} {:?} {:?}", scale, all, scaled);
            if kind == ScaleKind::Rank {
                prop_assert!(scaled.iter().all(|x| x.abs() < 1e3));
            }
        }
    }

    #[test]
    fn a_scale_by_rank_does_not_see_monotone_distortions(
        hundredths in vec(-2000..2000_i32, 2..300),
        news in vec(any::<prop::sample::Index>(), 1..20),
    ) {
        let values: Vec<f64> = hundredths.iter().map(|&x| f64::from(x) / 100.0).collect();
        let Some(plain) = Scale::learn(ScaleKind::Rank, &values) else {
            prop_assert!(values.iter().all(|x| x == &values[0]));
            return Ok(());
        };
        let distortions: [fn(f64) -> f64; 4] = [f64::exp, |x| x * x * x, |x| 7.0 - 3.0 / (x + 21.0), |x| 1e6 * x - 5.0];
        for distort in distortions {
            let distorted: Vec<f64> = values.iter().map(|&x| distort(x)).collect();
            let scale = Scale::learn(ScaleKind::Rank, &distorted).unwrap();
            for new in &news {
                let x = *new.get(&values);
                prop_assert_eq!(scale.apply(distort(x)), plain.apply(x));
            }
        }
        // Turned around, it is turned around.
        let turned: Vec<f64> = values.iter().map(|x| -x).collect();
        let turned = Scale::learn(ScaleKind::Rank, &turned).unwrap();
        for &x in &values {
            prop_assert!((turned.apply(-x) + plain.apply(x)).abs() < 1e-6);
        }
    }
}

/// What a long table says of each sequence: its name, and times with values in order.
type Sequences = Vec<(String, Vec<(f64, f64)>)>;

fn sequences_of(samples: &Samples) -> Sequences {
    let table = samples.table().unwrap();
    let names = column(table, "who").unwrap().texts();
    let times = column(table, "day").unwrap().numbers(0).unwrap();
    let values = column(table, "x").unwrap().numbers(0).unwrap();
    let sequences = samples.sequences.as_ref().unwrap();
    sequences
        .iter()
        .map(|s| {
            let rows = || s.items.iter().map(|&i| i as usize);
            let name = names[rows().next().unwrap()].clone().unwrap();
            assert!(rows().all(|r| names[r].as_ref() == Some(&name)));
            (name, rows().map(|r| (times[r], values[r])).collect())
        })
        .collect()
}

fn chain(step: Option<f64>) -> Chain {
    Chain {
        sequence: Some("who".into()),
        time: Some("day".into()),
        step: step.map(Into::into),
        observe: vec!["x".into()],
        ..Chain::default()
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn rows_of_sequences_may_stand_in_any_order(
        days in vec(prop::collection::btree_set(0..40_u32, 1..8), 1..9),
        order in vec(any::<u32>(), 64),
    ) {
        let mut rows: Vec<(usize, u32)> = days.iter().enumerate().flat_map(|(n, d)| d.iter().map(move |&d| (n, d))).collect();
        let straight = rows.clone();
        let mut key = order.iter().cycle();
        rows.sort_by_cached_key(|_| *key.next().unwrap());
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("long.csv");
        let mut results = vec![];
        for rows in [straight, rows] {
            let cell = |(n, d): &(usize, u32)| format!("{d},{},s{n}\n", *n as u32 * 100 + d);
            let text: String = rows.iter().map(cell).collect();
            std::fs::write(&path, format!("day,x,who\n{text}")).unwrap();
            let samples = SampleReader::open(&path, Some(&chain(None)), None).unwrap().rest().unwrap();
            let mut all = sequences_of(&samples);
            // Sequences come in the order in which they are first met.
            let mut met: Vec<String> = rows.iter().map(|(n, _)| format!("s{n}")).collect();
            let mut seen = std::collections::HashSet::new();
            met.retain(|name| seen.insert(name.clone()));
            prop_assert_eq!(all.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>(), met);
            all.sort_by(|a, b| a.0.cmp(&b.0));

            // With a step, days that nobody wrote down are gaps.
            let gaps = SampleReader::open(&path, Some(&chain(Some(1.0))), None).unwrap().rest().unwrap();
            for (s, (_, rows)) in gaps.sequences.as_ref().unwrap().iter().zip(sequences_of(&gaps)) {
                let first = rows[0].0;
                let expected: Vec<u32> = rows.iter().map(|(day, _)| (day - first) as u32).collect();
                prop_assert_eq!(&s.steps, &expected);
                prop_assert_eq!(s.length, expected.last().unwrap() + 1);
            }
            results.push(all);
        }
        let expected: Sequences = {
            let of = |(n, days): (usize, &std::collections::BTreeSet<u32>)| {
                let rows = days.iter().map(|&d| (f64::from(d), f64::from(n as u32 * 100 + d)));
                (format!("s{n}"), rows.collect())
            };
            days.iter().enumerate().map(of).collect()
        };
        prop_assert_eq!(&results[0], &expected);
        prop_assert_eq!(&results[1], &expected);
    }
}

#[test]
fn a_long_table_in_pieces_says_the_same_as_in_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("long.csv");
    let mut text = String::from("who,day,x,note\n");
    for n in 0..9000 {
        for day in 0..1 + n % 8 {
            text += &format!("s{n},{day},{},NA\n", n * 10 + day);
        }
    }
    std::fs::write(&path, &text).unwrap();
    let open = || SampleReader::open(&path, Some(&chain(None)), None).unwrap();
    let whole = sequences_of(&open().rest().unwrap());
    let mut reader = open();
    reader.read_in_pieces();
    let (mut pieces, mut rows, mut parts) = (vec![], 0, 0);
    while let Some(samples) = reader.next(100).unwrap() {
        let table = samples.table().unwrap();
        assert_eq!(
            samples.first_row, rows,
            "rows keep their places in the file"
        );
        rows += table.num_rows();
        parts += 1;
        pieces.extend(sequences_of(&samples));
    }
    assert!(parts > 1 && pieces == whole, "{parts} parts");

    // A sequence that comes back later cannot be put together any more.
    std::fs::write(&path, text + "s0,99,1,\n").unwrap();
    let mut reader = open();
    reader.read_in_pieces();
    let error = loop {
        match reader.next(100) {
            Ok(Some(_)) => {}
            Ok(None) => panic!("nothing was said"),
            Err(error) => break error.to_string(),
        }
    };
    assert!(
        error.contains("sequence `s0` do not stand together; sort the file by `who`"),
        "{error}"
    );
}

/// Results travel everywhere; a large error would make all of them large.
#[test]
fn errors_are_small() {
    assert!(size_of::<Error>() < 128, "{}", size_of::<Error>());
}
