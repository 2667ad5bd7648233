//! Names for latents, from the items that hang on them.

use super::sketch::Sketch;
use std::collections::BTreeSet;

/// A name for every inner node, the root first: the inner node in the middle of the tree.
pub fn names(sketch: &Sketch, columns: &[String], taken: &[String]) -> Vec<(usize, String)> {
    let inner: Vec<usize> = sketch.inner().into_iter().collect();
    let root = inner
        .iter()
        .copied()
        .min_by_key(|&node| (reach(sketch, node), node))
        .unwrap_or(sketch.columns);
    let shared = prefix(&columns.iter().map(|c| &c[..]).collect::<Vec<_>>());
    let mut used: BTreeSet<String> = columns.iter().chain(taken).cloned().collect();
    let mut named: Vec<(usize, String)> = vec![];
    let mut order = vec![(root, usize::MAX)];
    let mut next = 0;
    while let Some(&(node, from)) = order.get(next) {
        next += 1;
        let mut items: Vec<&str> = sketch
            .neighbours(node)
            .filter(|&(n, e)| n < sketch.columns && e != from)
            .map(|(n, _)| &columns[n][..])
            .collect();
        let own = !items.is_empty();
        if !own {
            // No item of its own: the first item behind each branch.
            items = sketch
                .neighbours(node)
                .filter(|&(_, e)| e != from)
                .filter_map(|(n, e)| sketch.behind(n, e).into_iter().map(|b| b.0).min())
                .map(|c| &columns[c][..])
                .collect();
        }
        items.sort_unstable();
        let mut name = match node == root && !own {
            true => "general".to_owned(),
            false => of_items(&items, &shared),
        };
        while !used.insert(name.clone()) {
            name.push('_');
        }
        named.push((node, name));
        let onward = sketch
            .neighbours(node)
            .filter(|&(n, e)| n >= sketch.columns && e != from);
        order.extend(onward);
    }
    named
}

/// What items have in common, or the first and the last of them.
fn of_items(items: &[&str], shared: &str) -> String {
    let common = prefix(items);
    let common = common.trim_end_matches(|c: char| c.is_ascii_digit() || "_-. ".contains(c));
    if items.len() > 1 && !common.is_empty() && common.len() > shared.len() {
        return common.to_owned();
    }
    match items {
        [] => "latent".into(),
        [one] => format!("{one}_more"),
        [first, .., last] => format!("{first}_to_{last}"),
    }
}

/// The longest beginning that all have.
fn prefix(items: &[&str]) -> String {
    let Some(first) = items.first() else {
        return String::new();
    };
    let length = first
        .char_indices()
        .map(|(at, c)| at + c.len_utf8())
        .take_while(|&end| items.iter().all(|i| i.starts_with(&first[..end])))
        .last();
    first[..length.unwrap_or(0)].to_owned()
}

/// How many inner nodes lie between a node and the furthest one.
fn reach(sketch: &Sketch, node: usize) -> usize {
    let mut open = vec![(node, usize::MAX, 0)];
    let mut most = 0;
    while let Some((node, from, far)) = open.pop() {
        most = most.max(far);
        let onward = sketch
            .neighbours(node)
            .filter(|&(n, e)| n >= sketch.columns && e != from);
        open.extend(onward.map(|(n, e)| (n, e, far + 1)));
    }
    most
}

#[cfg(test)]
mod tests {
    use super::of_items;

    #[test]
    fn items_name_their_latent() {
        assert_eq!(of_items(&["anx1", "anx2", "anx7"], ""), "anx");
        assert_eq!(of_items(&["q1", "q12", "q3"], "q"), "q1_to_q3");
        assert_eq!(of_items(&["q1"], "q"), "q1_more");
    }
}
