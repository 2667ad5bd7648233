//! Neighbour joining (Saitou and Nei): the tree whose path lengths come close to given distances.

use super::sketch::{Sketch, Split};

/// Joins columns by their distances, `[column, column]`. Groups that must stay together are joined first, in the order given: each
/// before those that hold it.
pub fn neighbour_joining(distances: &[f64], count: usize, together: &[Split]) -> Sketch {
    let mut sketch = Sketch {
        columns: count,
        edges: vec![],
    };
    if count < 4 {
        return Sketch::star(count);
    }
    let mut matrix: Vec<Vec<f64>> = distances.chunks(count).map(<[f64]>::to_vec).collect();
    let mut alive: Vec<usize> = (0..count).collect();
    // The columns below every node.
    let mut below: Vec<Vec<usize>> = (0..count).map(|c| vec![c]).collect();
    let mut groups: Vec<&Split> = together.iter().collect();
    groups.sort_by_key(|g| g.len());
    for group in groups {
        let parts: Vec<usize> = alive
            .iter()
            .copied()
            .filter(|&n| below[n].iter().all(|c| group.contains(c)))
            .collect();
        if parts.len() < 2 || parts.len() == alive.len() {
            continue;
        }
        join(&mut sketch, &mut matrix, &mut alive, &mut below, &parts);
    }
    while alive.len() > 3 {
        let n = alive.len();
        let sums: Vec<f64> = alive
            .iter()
            .map(|&i| alive.iter().map(|&j| matrix[i][j]).sum())
            .collect();
        let mut best = (f64::INFINITY, 0, 1);
        for a in 0..n {
            for b in a + 1..n {
                let q = (n - 2) as f64 * matrix[alive[a]][alive[b]] - sums[a] - sums[b];
                if q < best.0 {
                    best = (q, a, b);
                }
            }
        }
        let pair = [alive[best.1], alive[best.2]];
        join(&mut sketch, &mut matrix, &mut alive, &mut below, &pair);
    }
    let centre = matrix.len();
    for (place, &i) in alive.iter().enumerate() {
        let [j, k] = [
            alive[(place + 1) % alive.len()],
            alive[(place + 2) % alive.len()],
        ];
        let length = match alive.len() {
            3 => 0.5 * (matrix[i][j] + matrix[i][k] - matrix[j][k]),
            _ => 0.5 * matrix[i][j],
        };
        sketch.edges.push((centre, i, length));
    }
    if let [a, b] = alive[..] {
        // Two are left where groups were given: one edge is enough.
        sketch.edges.truncate(sketch.edges.len() - 2);
        sketch.edges.push((a, b, matrix[a][b]));
    }
    sketch
}

/// Puts some nodes under a new one.
fn join(
    sketch: &mut Sketch,
    matrix: &mut Vec<Vec<f64>>,
    alive: &mut Vec<usize>,
    below: &mut Vec<Vec<usize>>,
    parts: &[usize],
) {
    let new = matrix.len();
    let others: Vec<usize> = alive
        .iter()
        .copied()
        .filter(|n| !parts.contains(n))
        .collect();
    let k = parts.len() as f64;
    // How far the parts are from the new node, from their distances to one another and to the rest.
    let mean = |i: usize, set: &[usize]| -> f64 {
        let far: Vec<f64> = set
            .iter()
            .filter(|&&j| j != i)
            .map(|&j| matrix[i][j])
            .collect();
        far.iter().sum::<f64>() / far.len().max(1) as f64
    };
    let inside = parts.iter().map(|&i| mean(i, parts)).sum::<f64>() / k;
    let outside: Vec<f64> = parts.iter().map(|&i| mean(i, &others)).collect();
    let middle = outside.iter().sum::<f64>() / k;
    let lengths: Vec<f64> = outside
        .iter()
        .map(|o| inside / 2.0 + (o - middle))
        .collect();
    let mut row: Vec<f64> = vec![0.0; new + 1];
    for &other in &others {
        let far: f64 = parts
            .iter()
            .zip(&lengths)
            .map(|(&i, l)| matrix[i][other] - l)
            .sum();
        row[other] = far / k;
    }
    for (i, line) in matrix.iter_mut().enumerate() {
        line.push(row[i]);
    }
    matrix.push(row);
    for (&part, length) in parts.iter().zip(&lengths) {
        sketch.edges.push((new, part, *length));
    }
    below.push(parts.iter().flat_map(|&p| below[p].clone()).collect());
    alive.retain(|n| !parts.contains(n));
    alive.push(new);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn path_lengths_of_a_tree_give_the_tree() {
        // ((0,1),(2,3),(4,5)) with inner edges of 0.3 and leaves of 0.1 to 0.6.
        let leaf = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6];
        let count = 6;
        let mut d = vec![0.0; count * count];
        for i in 0..count {
            for j in (0..count).filter(|&j| j != i) {
                d[i * count + j] = leaf[i] + leaf[j] + if i / 2 == j / 2 { 0.0 } else { 0.6 };
            }
        }
        let tree = neighbour_joining(&d, count, &[]);
        let splits: Vec<Split> = tree.splits().into_iter().collect();
        assert_eq!(splits, [vec![2, 3], vec![2, 3, 4, 5], vec![4, 5]]);
        for (a, b, length) in &tree.edges {
            let expected = match (*a).min(*b) {
                column if column < count => leaf[column],
                _ => 0.3,
            };
            assert!((length - expected).abs() < 1e-9, "{a}–{b}: {length}");
        }
        // What must stay together does, against the distances.
        let kept = neighbour_joining(&d, count, &[vec![1, 2]]);
        assert!(kept.splits().contains(&vec![1, 2]));
    }
}
