//! Which branches of a latent may want a latent of their own: those that still go together when what the latent explains is taken out.

use super::region::{Surroundings, correlation};
use crate::Result;
use ramp::graph::{Change, VariableId};

/// Splits of one latent that are worth a try, the most promising first: its branches are clustered by what they share beyond it.
pub fn split_candidates(
    around: &Surroundings<'_>,
    latent: VariableId,
    most: usize,
) -> Result<Vec<Change>> {
    let tree = around.model().tree();
    let branches: Vec<VariableId> = tree.neighbours(latent).collect();
    if branches.len() < 4 {
        return Ok(vec![]);
    }
    let mean = around.means_of(latent);
    let mut residuals = vec![];
    for &branch in &branches {
        let (features, values) = around.branch(latent, branch)?;
        residuals.push(residual(features, &values, mean));
    }
    let count = branches.len();
    let mut shared = vec![vec![0.0; count]; count];
    for i in 0..count {
        for j in 0..i {
            let r = correlation(&residuals[i], &residuals[j]);
            shared[i][j] = if r.is_finite() { r } else { 0.0 };
            shared[j][i] = shared[i][j];
        }
    }
    // Average linkage; a cluster is worth a try if it is neither all nor all but one.
    let mut clusters: Vec<Vec<usize>> = (0..count).map(|i| vec![i]).collect();
    let mut found: Vec<(f64, Vec<usize>)> = vec![];
    while clusters.len() > 1 {
        let mut best = (f64::NEG_INFINITY, 0, 1);
        for a in 0..clusters.len() {
            for b in a + 1..clusters.len() {
                let pairs = clusters[a]
                    .iter()
                    .flat_map(|&i| clusters[b].iter().map(move |&j| (i, j)));
                let sum: f64 = pairs.map(|(i, j)| shared[i][j]).sum();
                let link = sum / (clusters[a].len() * clusters[b].len()) as f64;
                if link > best.0 {
                    best = (link, a, b);
                }
            }
        }
        let (link, a, b) = best;
        let other = clusters.remove(b);
        clusters[a].extend(other);
        if link > 0.0 && clusters[a].len() + 2 <= count {
            found.push((link, clusters[a].clone()));
        }
    }
    found.sort_by(|a, b| b.0.total_cmp(&a.0));
    let mut name = format!("{}_2", tree.name(latent));
    while tree.find(&name).is_ok() {
        name.push('_');
    }
    let mut changes: Vec<Change> = vec![];
    let mut seen = std::collections::BTreeSet::from([tree.splits()]);
    for (_, mut cluster) in found {
        cluster.sort_unstable();
        let change = Change::Split {
            latent,
            branches: cluster.iter().map(|&i| branches[i]).collect(),
            name: name.clone(),
        };
        if seen.insert(tree.changed(&change)?.splits()) {
            changes.push(change);
        }
        if changes.len() == most {
            break;
        }
    }
    Ok(changes)
}

/// What a branch says beyond a latent: its numbers along the direction that goes with the latent, less what the latent tells of them,
/// oriented as the latent. Zero where it is missing.
fn residual(features: usize, values: &[f32], mean: &[f64]) -> Vec<f64> {
    let there: Vec<bool> = values
        .chunks_exact(features.max(1))
        .map(|v| v.iter().all(|x| x.is_finite()))
        .collect();
    let known = || (0..mean.len()).filter(|&r| there[r]);
    let count = known().count().max(2) as f64;
    let centre = known().map(|r| mean[r]).sum::<f64>() / count;
    let mut score = vec![0.0; mean.len()];
    for f in 0..features {
        let value = |r: usize| f64::from(values[r * features + f]);
        let middle = known().map(value).sum::<f64>() / count;
        let size = known().map(|r| (value(r) - middle).powi(2)).sum::<f64>() / count;
        let with: f64 = known()
            .map(|r| (value(r) - middle) * (mean[r] - centre))
            .sum();
        let weight = with / count / size.max(1e-12);
        known().for_each(|r| score[r] += weight * (value(r) - middle));
    }
    let variance = known().map(|r| (mean[r] - centre).powi(2)).sum::<f64>();
    let slope: f64 =
        known().map(|r| score[r] * (mean[r] - centre)).sum::<f64>() / variance.max(1e-12);
    known().for_each(|r| score[r] -= slope * (mean[r] - centre));
    score
}
