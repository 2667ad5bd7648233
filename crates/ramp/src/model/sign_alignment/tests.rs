//! A flipped latent differs in sign alone, to the last bit, whatever its networks look like.

use super::*;
use crate::data::Dataset;
use crate::family::Inputs;
use crate::graph::{FactorTree, Tying};
use crate::model::Workspace;
use crate::network::{
    Block, ConvLayer, ConvSpec, Layout, MlpSpec, Network, NetworkSpec, Parameter, WeightMatrix,
};
use crate::objective::{FreeEnergy, Mixture};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Noise for every observation of a tree, of its own width; some is missing.
fn noise(tree: &FactorTree, rows: usize, width: impl Fn(&str) -> usize) -> Dataset {
    let mut rng = ChaCha8Rng::seed_from_u64(6);
    tree.observations().iter().fold(Dataset::new(), |data, &v| {
        let width = width(tree.name(v));
        let mut values = vec![];
        for _ in 0..rows {
            let there = rng.random_bool(0.8);
            values.extend((0..width).map(|_| match there {
                true => rng.random_range(-1.0..1.0_f32),
                false => f32::NAN,
            }));
        }
        data.observe(tree.name(v), width, values).unwrap()
    })
}

fn energies(model: &Model, data: &Dataset) -> FreeEnergy {
    let bound = model.bind(data).unwrap();
    let samples: Vec<u32> = (0..data.rows() as u32).collect();
    let batch = model.batch(&bound, &samples, None);
    model
        .evaluate(&batch, Mixture::default(), None, &mut Workspace::default())
        .unwrap()
        .clone()
}

/// Flips and compares: the chosen latents' means change their signs, and nothing else changes.
fn check_flip(
    mut model: Model,
    data: &Dataset,
    flipped: &dyn Fn(usize) -> bool,
    flip: impl FnOnce(&mut Model) -> Result<(), ModelError>,
) {
    let before = model.posterior(data).unwrap();
    let before_energies = energies(&model, data);
    flip(&mut model).unwrap();
    let after = model.posterior(data).unwrap();
    let mut moved = 0.0_f64;
    for (k, (a, b)) in before.latents().iter().zip(after.latents()).enumerate() {
        let sign = if flipped(k) { -1.0 } else { 1.0 };
        let ((means, sds), (turned, same)) = (a.moments(), b.moments());
        assert_eq!(sds, same, "latent {k}");
        for (a, b) in means.values().iter().zip(turned.values()) {
            assert_eq!(*a, sign * b, "latent {k}");
            moved = moved.max((a - b).abs());
        }
    }
    assert!(moved > 1e-3, "the flip must show");
    assert_eq!(before_energies, energies(&model, data));
}

#[test]
fn a_flipped_latent_differs_in_sign_alone() {
    let tree = FactorTree::balanced(3, 2).unwrap();
    let factors = vec![
        vec!["a", "b", "x1"],
        vec!["a", "x2"],
        vec!["b", "x3"],
        vec!["b", "x4"],
    ];
    let crowded = FactorTree::from_factors(&factors, None).unwrap();
    for (tree, inputs) in [
        (tree.clone(), Inputs::Moments),
        (tree, Inputs::Natural),
        (crowded, Inputs::Moments),
    ] {
        let data = noise(&tree, 30, |_| 1);
        let builder = Model::builder(tree).inputs(inputs).seed(2);
        let model = builder.build(&data).unwrap();
        check_flip(model, &data, &|k| k == 1, |model| model.flip_sign(1));
    }
}

#[test]
fn a_chain_is_flipped_as_a_whole() {
    let tree = FactorTree::chain(3).unwrap();
    let mut rng = ChaCha8Rng::seed_from_u64(6);
    let values = (0..60).map(|_| match rng.random_bool(0.8) {
        true => rng.random_range(-1.0..1.0_f32),
        false => f32::NAN,
    });
    let data = Dataset::new()
        .observe_sequence("x", 3, 1, values.collect())
        .unwrap();
    let builder = Model::builder(tree).tying(Tying::Role);
    let mut model = builder.build(&data).unwrap();
    assert!(
        matches!(model.flip_sign(0), Err(ModelError::SharedSign { .. })),
        "a tied network serves other latents too"
    );
    check_flip(model, &data, &|_| true, Model::flip_chain_sign);
}

#[test]
fn wide_dense_layers_are_flipped_too() {
    // An observation network without hidden layers is wide and last at once; the message from `b` and `x1` to `a` has a
    // belief among its 301 inputs.
    let factors = vec![vec!["a", "x1", "b"], vec!["a", "x2"], vec!["b", "x3"]];
    let tree = FactorTree::from_factors(&factors, None).unwrap();
    let data = noise(&tree, 30, |name| if name == "x3" { 1 } else { 300 });
    for hidden in [vec![], vec![8], vec![300, 4]] {
        let network = NetworkSpec::Mlp(MlpSpec {
            hidden,
            ..MlpSpec::default()
        });
        for latent in [0, 1] {
            let builder = Model::builder(tree.clone())
                .message_network(network.clone())
                .observation_network(network.clone())
                .seed(3);
            let model = builder.build(&data).unwrap();
            check_flip(model, &data, &|k| k == latent, |m| m.flip_sign(latent));
        }
    }
}

fn conv(dense: Vec<usize>) -> NetworkSpec {
    let layer = |channels, stride| ConvLayer {
        channels,
        kernel: 3,
        stride,
        padding: 1,
    };
    NetworkSpec::Conv(ConvSpec {
        image: [1, 10, 10],
        layers: vec![layer(2, 1), layer(4, 1)],
        dense,
        activation: crate::network::Activation::Relu,
        initialization: None,
    })
}

#[test]
fn convolutions_are_flipped_too() {
    let tree = FactorTree::from_newick("(x1,x2,x3)z;").unwrap();
    let data = noise(&tree, 30, |_| 100);
    // 400 flattened features: a wide last layer, or a wide hidden one.
    for dense in [vec![], vec![5]] {
        let builder = Model::builder(tree.clone()).observation_network(conv(dense));
        let model = builder.build(&data).unwrap();
        check_flip(model, &data, &|_| true, |model| model.flip_sign(0));
    }
}

#[test]
fn flipping_what_all_neighbours_say_is_flipping_the_latent() {
    let tree = FactorTree::from_newick("(x1,x2,x3)z;").unwrap();
    let data = noise(&tree, 40, |_| 1);
    let model = Model::builder(tree).seed(3).build(&data).unwrap();
    check_flip(model, &data, &|_| true, |model| {
        ["x1>z", "x2>z", "x3>z"]
            .iter()
            .try_for_each(|network| model.flip_output_sign(network))
    });
}

#[test]
fn flipping_a_networks_inputs_is_flipping_the_data() {
    let tree = FactorTree::from_newick("(x1,x2,x3)z;").unwrap();
    let wide = NetworkSpec::default();
    for (network, width) in [(wide.clone(), 1), (wide, 300), (conv(vec![]), 100)] {
        let data = noise(&tree, 30, |_| width);
        let mut against = Dataset::new();
        for &v in tree.observations() {
            let name = tree.name(v);
            let observation = data.observation(name).unwrap();
            let mut values = vec![];
            for row in 0..data.rows() {
                let mut sample = vec![f32::NAN; width];
                if observation.is_present(row) {
                    observation.write(row, &mut sample, 1);
                }
                let sign = if name == "x2" { -1.0 } else { 1.0 };
                values.extend(sample.into_iter().map(|x| sign * x));
            }
            against = against.observe(name, width, values).unwrap();
        }
        let builder = Model::builder(tree.clone()).observation_network(network);
        let mut model = builder.build(&data).unwrap();
        let before = model.posterior(&against).unwrap();
        model.flip_input_sign("x2>z").unwrap();
        let after = model.posterior(&data).unwrap();
        for row in 0..data.rows() {
            let (a, b) = (&before.latents()[0], &after.latents()[0]);
            assert_eq!(a.describe(row), b.describe(row), "width {width}");
        }
        assert!(matches!(
            model.flip_input_sign("x9>z"),
            Err(ModelError::UnknownNetwork { .. })
        ));
    }
}

/// One weight matrix, output by output, no bias: `layout` says so or does not.
struct Linear {
    outputs: usize,
    says: bool,
}

impl Network for Linear {
    fn inputs(&self) -> usize {
        1
    }
    fn outputs(&self) -> usize {
        self.outputs
    }
    fn parameters(&self) -> Vec<Parameter> {
        vec![
            Parameter::new("weight", &[self.outputs, 1]),
            Parameter::new("bias", &[self.outputs]),
        ]
    }
    fn initialize(&self, rng: &mut ChaCha8Rng, parameters: &mut [f32]) {
        parameters.fill_with(|| rng.random_range(0.5..1.0));
    }
    fn layout(&self) -> Option<Layout> {
        let weights = WeightMatrix::by_output(0, self.outputs, 1);
        let bias = self.outputs..2 * self.outputs;
        self.says
            .then(|| Layout::new(weights.span(), Some(weights), weights, bias))
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
                *y = parameters[o] * input.get(0, row) + parameters[self.outputs + o];
            }
        }
    }
    fn backward(
        &self,
        _parameters: &[f32],
        _input: Block<'_>,
        _tape: &[f32],
        _grad_output: &[f32],
        _grad_input: Option<&mut [f32]>,
        _grad_parameters: &mut [f32],
        _scratch: &mut [f32],
    ) {
        unreachable!("nothing is trained here");
    }
}

#[test]
fn a_network_of_ones_own_is_asked_and_named_where_it_does_not_say() {
    use crate::model::Initialisation;
    let tree = FactorTree::from_newick("(x1,x2,x3)z;").unwrap();
    let data = noise(&tree, 30, |_| 1);
    let build = |says: bool, init: Initialisation| {
        Model::builder(tree.clone())
            .own_network("x1>z", Box::new(Linear { outputs: 2, says }))
            .init(init)
            .build(&data)
            .unwrap()
    };
    let flip = |model: &mut Model| model.flip_sign(0);
    check_flip(build(true, Initialisation::Shared), &data, &|_| true, flip);

    let mut silent = build(false, Initialisation::Shared);
    let before = silent.parameters().to_vec();
    for error in [
        silent.flip_sign(0).unwrap_err(),
        silent.flip_input_sign("x1>z").unwrap_err(),
        silent.layout("x1>z").unwrap_err(),
    ] {
        assert!(matches!(&error, ModelError::NoLayout { network } if network == "x1>z"));
        assert!(error.to_string().contains("Network::layout"), "{error}");
    }
    assert_eq!(before, silent.parameters(), "an error changes nothing");
    silent.flip_input_sign("x2>z").unwrap();

    // Scaling down: the last weights where the network says which they are; else it stays as it began.
    let own = |model: &Model| model.parameters()[model.networks[0].span.clone()].to_vec();
    let full = own(&build(true, Initialisation::Shared));
    let scaled = own(&build(true, Initialisation::ScaledDown));
    assert_eq!(scaled[..2], [full[0] * 0.2, full[1] * 0.2]);
    assert_eq!(scaled[2..], full[2..]);
    assert_eq!(own(&build(false, Initialisation::ScaledDown)), full);
}

#[test]
fn a_sign_with_a_meaning_stays() {
    let tree = FactorTree::from_newick("(x1,x2,x3)z;").unwrap();
    let data = noise(&tree, 10, |_| 1);
    let build = |family: &str| {
        let builder = Model::builder(tree.clone()).families(family).unwrap();
        builder.build(&data).unwrap()
    };
    for family in ["gaussian(2)", "gamma", "von_mises"] {
        let error = build(family).flip_sign(0).unwrap_err();
        assert!(matches!(error, ModelError::NotSymmetric { .. }), "{family}");
    }
    let tree = FactorTree::from_newick("((x1,x2)a,(x3,x4)b,(x5,x6)c)z;").unwrap();
    let data = noise(&tree, 10, |_| 1);
    let mut model = Model::builder(tree).build(&data).unwrap();
    assert!(matches!(
        model.flip_chain_sign(),
        Err(ModelError::NotAChain)
    ));
}
