//! A start for models of trees: networks that do the same begin alike, and speak softly.

use ramp::graph::Tying;
use ramp::model::Model;
use std::collections::HashMap;
use std::ops::Range;

/// How loud messages are at the start, as a share of what random weights make them.
const VOLUME: f32 = 0.2;

/// Gives every network of a model that starts apart the initial weights of the first one with its role, and its outputs a fifth of their size; they part
/// ways as they learn.
///
/// With heavy-tailed data it matters how learning starts. Loud messages sharpen at once around the bulk of the data: a
/// latent then codes little but a sign, and stays in that lower optimum. Starting softly, the strongest
/// dependence is found first, that of the tails. Networks that begin alike need not first agree on a sign.
pub(super) fn start_softly(model: &mut Model) {
    let tree = model.tree();
    let roles = Tying::Role.assign(tree);
    let role_of: HashMap<String, usize> = tree
        .messages()
        .map(|m| (tree.message_name(m), roles.of_message[m.index()]))
        .collect();
    let arrays: Vec<(usize, String, Vec<usize>, Range<usize>)> = model
        .named_parameters()
        .into_iter()
        .filter_map(|(name, shape, range)| {
            // `x1>z4/0.weight`: the network's key, then the array.
            let (key, array) = name.rsplit_once('/')?;
            Some((*role_of.get(key)?, array.to_owned(), shape, range))
        })
        .collect();
    let mut first: HashMap<(usize, &str, &[usize]), Range<usize>> = HashMap::new();
    let layer = |array: &str| {
        array
            .split('.')
            .next()
            .and_then(|n| n.parse::<usize>().ok())
    };
    for (role, array, shape, range) in &arrays {
        let known = (*role, array.as_str(), shape.as_slice());
        match first.get(&known) {
            Some(from) => model
                .parameters_mut()
                .copy_within(from.clone(), range.start),
            None => {
                let of_role = arrays.iter().filter(|other| other.0 == *role);
                if layer(array) == of_role.filter_map(|other| layer(&other.1)).max() {
                    for weight in &mut model.parameters_mut()[range.clone()] {
                        *weight *= VOLUME;
                    }
                }
                first.insert(known, range.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ramp::graph::FactorTree;

    #[test]
    fn networks_of_one_role_start_alike_and_softly() {
        let sample = crate::tree_data::LinearTree::default()
            .sample(10, 0, 0)
            .unwrap();
        let data = sample.dataset().unwrap();
        let build = || {
            Model::builder(FactorTree::balanced(4, 2).unwrap())
                .start(ramp::model::Start::Apart)
                .build(&data)
                .unwrap()
        };
        let (loud, mut soft) = (build(), build());
        start_softly(&mut soft);
        let of = |model: &Model, name: &str| -> Vec<f32> {
            let named = model.named_parameters();
            let (_, _, range) = named.iter().find(|(n, _, _)| n == name).unwrap();
            model.parameters()[range.clone()].to_vec()
        };
        assert_eq!(of(&soft, "x1>z4/0.weight"), of(&soft, "x8>z7/0.weight"));
        assert_eq!(of(&soft, "x1>z4/2.weight"), of(&soft, "x8>z7/2.weight"));
        assert_ne!(of(&loud, "x1>z4/0.weight"), of(&loud, "x8>z7/0.weight"));
        assert_eq!(of(&soft, "z2>z1/0.weight"), of(&soft, "z7>z3/0.weight"));
        assert_ne!(of(&soft, "z2>z1/1.weight"), of(&soft, "z1>z2/1.weight"));
        assert_eq!(of(&soft, "z2>z1/0.weight"), of(&loud, "z2>z1/0.weight"));
        let louder: Vec<f32> = of(&loud, "z2>z1/2.weight")
            .iter()
            .map(|w| w * VOLUME)
            .collect();
        assert_eq!(of(&soft, "z2>z1/2.weight"), louder);
    }
}
