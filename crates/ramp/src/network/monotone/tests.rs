//! What monotone networks promise, whatever their parameters are.

use super::*;
use crate::network::check::Trial;
use rand_chacha::rand_core::SeedableRng;

fn every_kind() -> Vec<(String, Monotone)> {
    let mut all = vec![];
    for dim in 1..=3 {
        all.push((format!("number, {dim}"), Monotone::number(7, dim).unwrap()));
        for levels in [2, 5] {
            let network = Monotone::levels(levels, dim).unwrap();
            all.push((format!("{levels} levels, {dim}"), network));
        }
    }
    all
}

#[test]
fn gradients_are_those_of_finite_differences() {
    for (what, network) in every_kind() {
        for row_major in [false, true] {
            Trial::new(&network, 16, row_major, 3).check_differences(1e-2, &what);
        }
        Trial::new(&network, 16, false, 4).check_padding(9, &what);
    }
}

/// The mean under a standard normal prior, for each answer in its order, along one dimension.
fn means_along(
    dimension: usize,
    network: &Monotone,
    parameters: &[f32],
    answers: &[Vec<f32>],
) -> Vec<f64> {
    let d = network.dim;
    let rows = answers.len().next_multiple_of(crate::network::ROW_UNIT);
    let mut input = vec![0.0; network.inputs() * rows];
    for (row, answer) in answers.iter().enumerate() {
        for (feature, x) in answer.iter().enumerate() {
            input[feature * rows + row] = *x;
        }
    }
    let mut output = vec![0.0; network.outputs() * rows];
    let mut tape = vec![0.0; network.tape_len(rows)];
    let mut scratch = vec![0.0; network.scratch_len(rows)];
    let block = Block::feature_major(&input, network.inputs(), rows);
    network.forward(parameters, block, &mut output, &mut tape, &mut scratch);
    (0..answers.len())
        .map(|row| {
            let raw = |o: usize| f64::from(output[o * rows + row]);
            // I + C Cᵀ, and the mean by Gaussian elimination.
            let entry = |i: usize, j: usize| if j > i { 0.0 } else { raw(d + at(i, j)) };
            let mut system: Vec<Vec<f64>> = (0..d)
                .map(|i| {
                    let cc = |j: usize| (0..d).map(|k| entry(i, k) * entry(j, k)).sum::<f64>();
                    let mut line: Vec<f64> = (0..d)
                        .map(|j| cc(j) + f64::from(u8::from(i == j)))
                        .collect();
                    line.push(raw(i));
                    line
                })
                .collect();
            for i in 0..d {
                let pivot = system[i].clone();
                for line in (0..d).filter(|&l| l != i).collect::<Vec<_>>() {
                    let share = system[line][i] / pivot[i];
                    (system[line].iter_mut().zip(&pivot)).for_each(|(a, b)| *a -= share * b);
                }
            }
            system[dimension][d] / system[dimension][dimension]
        })
        .collect()
}

fn means(network: &Monotone, parameters: &[f32], answers: &[Vec<f32>]) -> Vec<f64> {
    means_along(0, network, parameters, answers)
}

#[test]
fn means_are_monotone_whatever_the_parameters_are() {
    let rng = &mut ChaCha8Rng::seed_from_u64(5);
    let levels: Vec<Vec<f32>> = (0..6)
        .map(|l| (0..6).map(|i| f32::from(i == l)).collect())
        .collect();
    let numbers: Vec<Vec<f32>> = (-30..=30).map(|x| vec![x as f32 / 10.0]).collect();
    let (mut up, mut down) = (0, 0);
    for (network, answers) in [
        (Monotone::levels(6, 1).unwrap(), levels.clone()),
        (Monotone::number(9, 1).unwrap(), numbers.clone()),
        (Monotone::levels(6, 2).unwrap(), levels),
        (Monotone::number(9, 3).unwrap(), numbers),
    ] {
        let len = network.parameters().iter().map(Parameter::len).sum();
        for _ in 0..50 {
            let parameters = crate::network::check::normals(rng, len);
            let means = means(&network, &parameters, &answers);
            let rises = parameters[0] > 0.0;
            for pair in means.windows(2) {
                let step = if rises {
                    pair[1] - pair[0]
                } else {
                    pair[0] - pair[1]
                };
                let size = means.iter().fold(1.0, |m: f64, x| m.max(x.abs()));
                assert!(step > -1e-5 * size, "{means:?}");
            }
            *(if rises { &mut up } else { &mut down }) += 1;
        }
    }
    assert!(up > 20 && down > 20);
}

#[test]
fn beyond_the_first_dimension_both_ends_may_say_the_same() {
    let network = Monotone::levels(5, 2).unwrap();
    let len = network.parameters().iter().map(Parameter::len).sum();
    let mut parameters = vec![0.0; len];
    network.initialize(&mut ChaCha8Rng::seed_from_u64(0), &mut parameters);
    let [direction, .., free] = network.spans();
    parameters[direction.start + 1] = 0.0;
    let u_shape = [1.0, 0.0, -1.0, 0.0, 1.0];
    parameters[free.clone()][..5].copy_from_slice(&u_shape);
    parameters[free.end - 1] = 0.0;
    let answers: Vec<Vec<f32>> = (0..5)
        .map(|l| (0..5).map(|i| f32::from(i == l)).collect())
        .collect();
    let style = means_along(1, &network, &parameters, &answers);
    for (mean, expected) in style.iter().zip(u_shape) {
        assert!((mean - f64::from(expected)).abs() < 1e-4, "{style:?}");
    }
    let first = means(&network, &parameters, &answers);
    let rises = parameters[direction.start] > 0.0;
    assert!(
        first.windows(2).all(|w| (w[1] > w[0]) == rises),
        "{first:?}"
    );
}

#[test]
fn signs_turn_to_the_last_bit() {
    for (what, network) in every_kind().into_iter().filter(|(_, n)| n.dim == 1) {
        let trial = Trial::new(&network, 16, false, 6);
        let (plain, _) = trial.forward(&trial.parameters, &trial.input);
        let mut parameters = trial.parameters.clone();
        for place in network.negating_output(0).unwrap() {
            parameters[place] = -parameters[place];
        }
        let (turned, _) = trial.forward(&parameters, &trial.input);
        for (i, (plain, turned)) in plain.iter().zip(&turned).enumerate() {
            let sign = if i < 16 { -1.0 } else { 1.0 };
            assert_eq!(sign * plain, *turned, "{what}");
        }
    }
}

#[test]
fn an_item_begins_as_a_part_of_a_sum() {
    let network = Monotone::levels(5, 1).unwrap();
    let len = network.parameters().iter().map(Parameter::len).sum();
    let mut parameters = vec![0.0; len];
    network.initialize(&mut ChaCha8Rng::seed_from_u64(0), &mut parameters);
    let answers: Vec<Vec<f32>> = (0..5)
        .map(|l| (0..5).map(|i| f32::from(i == l)).collect())
        .collect();
    for (level, mean) in means(&network, &parameters, &answers).iter().enumerate() {
        let expected = f64::from(FIRST_RANGE) * (level as f64 / 4.0 - 0.5);
        assert!((mean - expected).abs() < 1e-5, "{mean} is not {expected}");
    }
}
