//! Convolutional networks against finite differences, and the shapes they refuse.

use super::*;
use crate::network::check::Trial;

fn layer(channels: usize, kernel: usize, stride: usize, padding: usize) -> ConvLayer {
    ConvLayer {
        channels,
        kernel,
        stride,
        padding,
    }
}

#[test]
fn gradients_match_finite_differences() {
    let stacks: [(&[ConvLayer], &[usize]); 4] = [
        (&[layer(5, 3, 1, 0)], &[]),
        (&[layer(4, 3, 2, 1)], &[7]),
        (&[layer(4, 3, 1, 1), layer(6, 3, 2, 1)], &[]),
        (
            &[layer(3, 2, 1, 0), layer(4, 3, 2, 0), layer(5, 3, 1, 1)],
            &[9, 8],
        ),
    ];
    for (layers, dense) in stacks {
        for activation in [
            Activation::Tanh,
            Activation::Relu,
            Activation::Gelu,
            Activation::Silu,
        ] {
            let network = Conv::new([2, 8, 7], layers, dense, 3).unwrap();
            let network = network.with_activation(activation);
            for row_major in [false, true] {
                let what = format!("{layers:?} {dense:?} {activation:?}");
                // Relu has many kinks here; a short step crosses few.
                let step = if activation == Activation::Relu {
                    2e-4
                } else {
                    1e-3
                };
                Trial::new(&network, 32, row_major, 3).check_differences(step, &what);
            }
        }
    }
}

#[test]
fn layouts_agree_and_groups_do_not_mix() {
    let network = Conv::new([1, 6, 6], &[layer(4, 3, 1, 1), layer(2, 3, 2, 1)], &[], 2).unwrap();
    let by_row = Trial::new(&network, 32, true, 4);
    let (output, _) = by_row.forward(&by_row.parameters, &by_row.input);
    let mut by_feature = Trial::new(&network, 32, false, 4);
    for r in 0..32 {
        for f in 0..36 {
            by_feature.input[f * 32 + r] = by_row.input[r * 36 + f];
        }
    }
    let parameters = by_row.parameters.clone();
    assert_eq!(by_feature.forward(&parameters, &by_feature.input).0, output);
    let half = Trial::new(&network, 16, true, 4);
    let (first, _) = half.forward(&parameters, &by_row.input[16 * 36..]);
    for o in 0..2 {
        for r in 0..16 {
            let error = (first[o * 16 + r] - output[o * 32 + 16 + r]).abs();
            assert!(error < 1e-6, "row {r} depends on its group");
        }
    }
}

#[test]
fn arrays_lie_as_the_layout_says() {
    // 9 or 300 flattened features: a narrow and a wide head.
    for (channels, dense) in [(1, &[][..]), (34, &[]), (34, &[7])] {
        let layers = [layer(3, 3, 1, 1), layer(channels, 3, 2, 0)];
        let network = Conv::new([2, 7, 7], &layers, dense, 3).unwrap();
        for row_major in [false, true] {
            let what = format!("{channels} channels, {dense:?}");
            Trial::new(&network, 32, row_major, 4).check_layout(&what);
        }
    }
}

#[test]
fn padding_rows_do_not_change_parameter_gradients() {
    let network = Conv::new([1, 6, 6], &[layer(4, 3, 1, 1), layer(2, 3, 2, 1)], &[5], 2).unwrap();
    for activation in [Activation::Tanh, Activation::Gelu] {
        let network = network.clone().with_activation(activation);
        Trial::new(&network, 32, false, 8).check_padding(19, "conv");
    }
}

#[test]
fn shapes_that_do_not_fit_are_explained() {
    for (layers, parts) in [
        (
            vec![layer(4, 3, 1, 1), layer(4, 7, 1, 0)],
            ["convolution 2", "7×7"],
        ),
        (vec![layer(4, 3, 0, 1)], ["convolution 1", "stride"]),
        (vec![layer(0, 3, 1, 1)], ["convolution 1", "channels"]),
        (vec![layer(4, 0, 1, 1)], ["convolution 1", "kernel"]),
        (vec![], ["at least one convolution", "mlp"]),
    ] {
        let message = Conv::new([1, 6, 6], &layers, &[], 2)
            .unwrap_err()
            .to_string();
        assert!(parts.iter().all(|part| message.contains(part)), "{message}");
    }
    for huge in [
        layer(usize::MAX, 3, 1, 1),
        layer(1, 3, 1, usize::MAX),
        layer(1, usize::MAX, 1, usize::MAX / 2),
    ] {
        assert!(Conv::new([1, 6, 6], &[huge], &[], 2).is_err());
    }
    let far_apart = Conv::new([1, 6, 6], &[layer(1, 3, usize::MAX, 1)], &[], 2).unwrap();
    assert_eq!(far_apart.head.inputs(), 1);
    assert!(Conv::new([0, 6, 6], &[layer(1, 1, 1, 0)], &[], 2).is_err());
}

#[test]
fn parameters_are_named_by_their_part() {
    let network = Conv::new([1, 6, 6], &[layer(4, 3, 2, 1)], &[5], 2).unwrap();
    let names: Vec<_> = network.parameters().into_iter().map(|p| p.name).collect();
    assert_eq!(
        names,
        [
            "conv.0.weight",
            "conv.0.bias",
            "dense.0.weight",
            "dense.0.bias",
            "dense.1.weight",
            "dense.1.bias"
        ]
    );
}
