//! What a grown tree stands beside: neighbour joining alone, and hierarchical clustering of the columns.

use ramp_io::grow::{Associations, ColumnScores, Sketch, neighbour_joining};

/// The tree of neighbour joining alone, on the same distances that growing begins with.
pub(super) fn joined(columns: &[Vec<f32>]) -> Sketch {
    neighbour_joining(&distances(columns), columns.len(), &[])
}

/// Average linkage of columns, the higher their association the nearer: the way of most programs.
pub(super) fn clustered(columns: &[Vec<f32>]) -> Sketch {
    let count = columns.len();
    let far: Vec<f64> = distances(columns)
        .iter()
        .map(|d| 1.0 - (-d).exp())
        .collect();
    let mut clusters: Vec<(usize, Vec<usize>)> = (0..count).map(|c| (c, vec![c])).collect();
    let mut sketch = Sketch {
        columns: count,
        edges: vec![],
    };
    let mut next = count;
    // The last three hang on one node: an unrooted tree has no first division.
    while clusters.len() > 3 {
        let mut best = (f64::INFINITY, 0, 1);
        for a in 0..clusters.len() {
            for b in a + 1..clusters.len() {
                let (one, other) = (&clusters[a].1, &clusters[b].1);
                let sum: f64 = one
                    .iter()
                    .flat_map(|&i| other.iter().map(move |&j| (i, j)))
                    .map(|(i, j)| far[i * count + j])
                    .sum();
                let mean = sum / (one.len() * other.len()) as f64;
                if mean < best.0 {
                    best = (mean, a, b);
                }
            }
        }
        let (_, a, b) = best;
        let (other, members) = clusters.remove(b);
        sketch.edges.push((next, clusters[a].0, 1.0));
        sketch.edges.push((next, other, 1.0));
        clusters[a].0 = next;
        clusters[a].1.extend(members);
        next += 1;
    }
    sketch
        .edges
        .extend(clusters.iter().map(|(node, _)| (next, *node, 1.0)));
    sketch
}

fn distances(columns: &[Vec<f32>]) -> Vec<f64> {
    let scores = columns.iter().map(|values| ColumnScores {
        width: 1,
        values: values.clone(),
    });
    let rows = columns.first().map_or(0, Vec::len);
    Associations::new(scores.collect()).distances(&vec![1.0; rows])
}
