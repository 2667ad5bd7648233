//! Models in files and copies of models: what comes back is what went in, and what is damaged or missing is named.

use ramp::data::Dataset;
use ramp::graph::{FactorTree, Tying};
use ramp::model::{ArrayProblem, Model, ModelError, Registry};
use ramp::network::{Block, Network, NetworkSpec, Parameter};
use ramp::storage::{StorageError, read_tensors, write_tensors};
use ramp::train::{TrainSpec, Trainer};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::path::{Path, PathBuf};

/// `output = bias + slope · x`, from one number.
struct Line {
    outputs: usize,
}

impl Network for Line {
    fn inputs(&self) -> usize {
        1
    }
    fn outputs(&self) -> usize {
        self.outputs
    }
    fn parameters(&self) -> Vec<Parameter> {
        ["bias", "slope"]
            .map(|name| Parameter::new(name, &[self.outputs]))
            .to_vec()
    }
    fn initialize(&self, rng: &mut ChaCha8Rng, parameters: &mut [f32]) {
        parameters.fill_with(|| rng.random_range(0.2..0.8));
    }
    fn tape_len(&self, _rows: usize) -> usize {
        0
    }
    fn scratch_len(&self, _rows: usize) -> usize {
        0
    }
    fn forward(
        &self,
        parameters: &[f32],
        input: Block<'_>,
        output: &mut [f32],
        _tape: &mut [f32],
        _scratch: &mut [f32],
    ) {
        for (o, output) in output.chunks_exact_mut(input.rows()).enumerate() {
            for (row, y) in output.iter_mut().enumerate() {
                *y = parameters[o] + parameters[self.outputs + o] * input.get(0, row);
            }
        }
    }
    fn backward(
        &self,
        parameters: &[f32],
        input: Block<'_>,
        _tape: &[f32],
        grad_output: &[f32],
        grad_input: Option<&mut [f32]>,
        grad_parameters: &mut [f32],
        _scratch: &mut [f32],
    ) {
        let mut to_input = vec![0.0; input.rows()];
        for (o, grads) in grad_output.chunks_exact(input.rows()).enumerate() {
            for (row, &g) in grads.iter().enumerate() {
                grad_parameters[o] += g;
                grad_parameters[self.outputs + o] += g * input.get(0, row);
                to_input[row] += g * parameters[self.outputs + o];
            }
        }
        if let Some(grad_input) = grad_input {
            grad_input.copy_from_slice(&to_input);
        }
    }
}

fn data(names: &[&str]) -> Dataset {
    let mut rng = ChaCha8Rng::seed_from_u64(8);
    names.iter().fold(Dataset::new(), |data, name| {
        let values = (0..60).map(|_| rng.random_range(-1.0..1.0)).collect();
        data.observe(*name, 1, values).unwrap()
    })
}

fn star() -> FactorTree {
    FactorTree::from_newick("(x1,x2,x3)z;").unwrap()
}

fn train(model: &mut Model, data: &Dataset) {
    let settings = TrainSpec {
        iterations: 5,
        learning_rate: 0.05,
        ..Default::default()
    };
    Trainer::new(settings).unwrap().fit(model, data).unwrap();
}

fn means(model: &Model, data: &Dataset) -> Vec<f64> {
    let posterior = model.posterior(data).unwrap();
    let latents = posterior.latents().iter();
    latents.flat_map(|latent| latent.means(0)).collect()
}

fn place() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.safetensors");
    (folder, path)
}

fn error_of(result: ramp::Result<Model>) -> ModelError {
    match result {
        Err(ramp::Error::Model(error)) => error,
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("it should not load"),
    }
}

#[test]
fn a_stored_model_comes_back_as_it_was() {
    let data = data(&["x1", "x2", "x3"]);
    let conv = r#"{"kind": "mlp", "hidden": [5], "activation": "gelu", "layer_norm": true}"#;
    let mut model = Model::builder(star())
        .families("gaussian(2) x gamma")
        .unwrap()
        .network("x2>z", serde_json::from_str::<NetworkSpec>(conv).unwrap())
        .prior("z", vec![0.5, 0.0, 2.0, 0.1, 1.0, 3.0, 2.0])
        .unwrap()
        .seed(5)
        .build(&data)
        .unwrap();
    train(&mut model, &data);
    let (_folder, path) = place();
    model.save(&path).unwrap();
    let again = Model::load(&path).unwrap();
    assert_eq!(again.parameters(), model.parameters());
    assert_eq!(again.spec(), model.spec());
    assert_eq!(means(&again, &data), means(&model, &data));
    assert_eq!(again.named_parameters(), model.named_parameters());
}

#[test]
fn a_copy_has_weights_of_its_own() {
    let data = data(&["x1", "x2", "x3"]);
    let mut model = Model::builder(star())
        .own_network("x1>z", Box::new(Line { outputs: 2 }))
        .build(&data)
        .unwrap();
    let before = means(&model, &data);
    let copy = model.clone();
    train(&mut model, &data);
    assert_eq!(means(&copy, &data), before);
    assert_ne!(means(&model, &data), before);
    let mut same = copy.clone();
    train(&mut same, &data);
    assert_eq!(same.parameters(), model.parameters());
}

#[test]
fn networks_of_ones_own_are_asked_for_by_name() {
    let data = data(&["x1", "x2", "x3"]);
    let mut model = Model::builder(star())
        .own_network("x1>z", Box::new(Line { outputs: 2 }))
        .build(&data)
        .unwrap();
    train(&mut model, &data);
    let (_folder, path) = place();
    model.save(&path).unwrap();

    let error = error_of(Model::load(&path));
    assert!(matches!(&error, ModelError::MissingNetwork { key } if key == "x1>z"));
    assert!(error.to_string().contains("registry"), "{error}");
    // One of another shape does not fit its place.
    let other = Registry::new().network("x1>z", Box::new(Line { outputs: 3 }));
    let error = error_of(Model::load_with(&path, other));
    assert!(
        matches!(error, ModelError::NetworkShape { to: 3, .. }),
        "{error}"
    );

    let registry = Registry::new().network("x1>z", Box::new(Line { outputs: 2 }));
    let again = Model::load_with(&path, registry).unwrap();
    assert_eq!(means(&again, &data), means(&model, &data));
}

#[test]
fn a_chain_with_a_network_of_ones_own_is_unrolled_with_it() {
    let data = Dataset::new()
        .observe_sequence("x", 3, 1, vec![0.5; 12])
        .unwrap();
    let build = || Model::builder(FactorTree::chain(3).unwrap()).tying(Tying::Role);
    let names = build().build(&data).unwrap().named_parameters();
    let key = names
        .iter()
        .find_map(|(name, shape, _)| (shape[..] == [32, 1]).then(|| name.split('/').next()))
        .flatten()
        .expect("a network from one number");
    let own = Box::new(Line { outputs: 2 });
    let model = build().own_network(key, own).build(&data).unwrap();
    let longer = model.unrolled(5).unwrap();
    assert_eq!(longer.parameters(), model.parameters());
    assert_eq!(longer.spec().own_networks, [key]);
}

/// A stored model with some of its parts changed.
fn changed(
    path: &Path,
    change: impl FnOnce(&mut serde_json::Value, &mut Vec<(String, Vec<f32>)>),
) -> PathBuf {
    let stored = read_tensors(path).unwrap().unwrap();
    let text = stored.text.clone();
    let arrays = stored.arrays().unwrap().single;
    let mut header = serde_json::from_str(&text).unwrap();
    let mut arrays: Vec<_> = arrays.into_iter().collect();
    arrays.sort_by(|a, b| a.0.cmp(&b.0));
    change(&mut header, &mut arrays);
    let to = path.with_file_name("changed.safetensors");
    let tensors = arrays
        .iter()
        .map(|(name, values)| (name.clone(), vec![values.len()], (&values[..]).into()))
        .collect();
    write_tensors(&to, tensors, &header.to_string()).unwrap();
    to
}

#[test]
fn what_is_damaged_or_missing_is_named() {
    let data = data(&["x1", "x2", "x3"]);
    let model = Model::builder(star()).build(&data).unwrap();
    let (folder, path) = place();
    let error = error_of(Model::load(&path));
    assert!(matches!(error, ModelError::NoFile { .. }), "{error}");
    model.save(&path).unwrap();

    std::fs::write(folder.path().join("text"), "no weights at all").unwrap();
    let error = Model::load(folder.path().join("text")).unwrap_err();
    assert!(matches!(
        error,
        ramp::Error::Storage(StorageError::Damaged { .. })
    ));
    let error = model.save(folder.path()).unwrap_err();
    assert!(matches!(
        error,
        ramp::Error::Storage(StorageError::Folder { .. })
    ));

    let array = |path: PathBuf| match error_of(Model::load(path)) {
        ModelError::Array { problem, array, .. } => (problem, array),
        other => panic!("{other}"),
    };
    let bias = "x1>z/0.bias";
    let place = |arrays: &[(String, Vec<f32>)]| arrays.iter().position(|(n, _)| n == bias).unwrap();
    let found = array(changed(&path, |_, arrays| {
        arrays.remove(place(arrays));
    }));
    assert_eq!(found, (ArrayProblem::Missing, bias.into()));
    let found = array(changed(&path, |_, arrays| {
        let at = place(arrays);
        arrays[at].1.pop();
    }));
    assert_eq!(found, (ArrayProblem::Length, bias.into()));
    let found = array(changed(&path, |_, arrays| {
        let at = place(arrays);
        arrays[at].1[3] = f32::NAN;
    }));
    assert_eq!(found, (ArrayProblem::NotFinite, bias.into()));
    let found = array(changed(&path, |_, arrays| {
        arrays.push(("x9>z/0.bias".into(), vec![1.0]))
    }));
    assert_eq!(found, (ArrayProblem::Unknown, "x9>z/0.bias".into()));

    let newer = changed(&path, |header, _| header["version"] = 99.into());
    assert!(matches!(
        error_of(Model::load(newer)),
        ModelError::Newer { found: 99, .. }
    ));
    for version in [1, 99] {
        let other = changed(&path, |header, _| {
            header["model"]["version"] = version.into();
        });
        let error = error_of(Model::load(other));
        assert!(
            matches!(error, ModelError::Older { .. } | ModelError::Newer { .. }),
            "{error}"
        );
    }
    for spoil in [
        |header: &mut serde_json::Value| header["model"]["families"] = "gaussian".into(),
        |header: &mut serde_json::Value| header["model"]["features"] = "many".into(),
        |header: &mut serde_json::Value| header["model"]["version"] = "two".into(),
        |header: &mut serde_json::Value| header["model"]["tree"] = 7.into(),
        |header: &mut serde_json::Value| *header = serde_json::json!({}),
        |header: &mut serde_json::Value| header["model"] = serde_json::Value::Null,
    ] {
        let path = changed(&path, |header, _| spoil(header));
        let error = error_of(Model::load(path));
        assert!(matches!(error, ModelError::NoModel { .. }), "{error}");
    }
    let fewer = changed(&path, |header, _| {
        header["model"]["families"] = serde_json::json!(["gaussian(1)", "gaussian(1)"]);
    });
    assert!(matches!(
        error_of(Model::load(fewer)),
        ModelError::Sizes { families: 2, .. }
    ));
}
