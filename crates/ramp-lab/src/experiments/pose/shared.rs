//! What neighbouring joints share, found by canonical correlations of what is seen around them.
//!
//! The tree says which joints are neighbours; nothing else is known of a body. Of what a patch shows, some is shown by the patch of a
//! neighbour too, in its own way; what the other neighbours show of it belongs to them and is taken off first. The directions in
//! which the rests of two patches go together most, weighed by how much they do, are what the two joints have in common (probabilistic
//! canonical correlations); a joint's latent begins as what it has in common with all of its neighbours.

use super::data::{JOINTS, neighbours};
use super::init::{products, rows_of, scaled_eigenvectors};
use crate::error::LabError;
use faer::linalg::solvers::Solve;
use faer::{Mat, Scale, Side};

/// The penalty of all regressions, as a part of the mean variance of a cell.
const PENALTY: f64 = 0.03;

/// Numbers seen around every joint, a row per pose with mean zero, and which poses show a joint and all its neighbours.
pub(super) struct Around<'a> {
    pub cells: &'a [Mat<f64>],
    pub whole: &'a dyn Fn(&[usize]) -> Vec<usize>,
}

/// Two joints, and in columns what they have in common, as each of them shows it.
struct Common {
    joints: [usize; 2],
    shown: [Mat<f64>; 2],
    correlations: Vec<f64>,
}

impl Around<'_> {
    /// For every joint, in columns, what it has in common with each of its neighbours in at most so many directions.
    pub fn shared(&self, directions: usize) -> Result<Vec<Mat<f64>>, LabError> {
        let pairs: Vec<Common> = (0..JOINTS)
            .flat_map(|joint| neighbours(joint).map(move |n| (joint, n)))
            .filter(|(a, b)| a < b)
            .map(|(a, b)| self.common(a, b, directions))
            .collect::<Result<_, _>>()?;
        let of = |joint: usize| {
            let own = pairs.iter().filter(|p| p.joints.contains(&joint));
            let columns: Vec<Vec<f64>> = own.flat_map(Common::columns).collect();
            let rows = columns.first().map_or(0, Vec::len);
            Mat::from_fn(rows, columns.len(), |i, k| columns[k][i])
        };
        Ok((0..JOINTS).map(of).collect())
    }

    /// What a joint shows that its neighbours but one do not.
    fn own(&self, joint: usize, but: usize) -> Result<Mat<f64>, LabError> {
        let others: Vec<usize> = neighbours(joint).filter(|&n| n != but).collect();
        let cells = &self.cells[joint];
        if others.is_empty() {
            return Ok(cells.clone());
        }
        let width = cells.ncols();
        let beside = Mat::from_fn(cells.nrows(), width * others.len(), |i, k| {
            self.cells[others[k / width]][(i, k % width)]
        });
        let rows = (self.whole)(&[joint]);
        let (given, shown) = (rows_of(&beside, &rows), rows_of(cells, &rows));
        let square = penalised(&products(&given, &given));
        let factor = square.llt(Side::Lower).map_err(|_| LabError::Singular {
            what: "what neighbouring joints show",
        })?;
        Ok(cells - beside * factor.solve(products(&given, &shown)))
    }

    fn common(&self, a: usize, b: usize, directions: usize) -> Result<Common, LabError> {
        let (of_a, of_b) = (self.own(a, b)?, self.own(b, a)?);
        let rows = (self.whole)(&[a, b]);
        let (some_a, some_b) = (rows_of(&of_a, &rows), rows_of(&of_b, &rows));
        let whiten = |some: &Mat<f64>| {
            scaled_eigenvectors(&penalised(&products(some, some)), |square| {
                square.max(1e-9).sqrt().recip()
            })
        };
        let (to_a, to_b) = (whiten(&some_a)?, whiten(&some_b)?);
        let across = to_a.transpose() * products(&some_a, &some_b) * &to_b;
        let squares = &across * across.transpose();
        let count = directions.min(squares.ncols());
        let left = scaled_eigenvectors(&squares, |_| 1.0)?;
        let left = left.subcols(0, count).to_owned();
        let right = across.transpose() * &left;
        let correlations: Vec<f64> = (0..count).map(|k| right.col(k).norm_l2()).collect();
        let right = Mat::from_fn(right.nrows(), count, |i, k| {
            right[(i, k)] / correlations[k].max(1e-9)
        });
        Ok(Common {
            joints: [a, b],
            shown: [of_a * (to_a * left), of_b * (to_b * right)],
            correlations,
        })
    }
}

impl Common {
    /// What both show of it together, weighed by how much it is the same.
    fn columns(&self) -> Vec<Vec<f64>> {
        let [a, b] = &self.shown;
        let column = |(k, weight): (usize, &f64)| {
            (0..a.nrows())
                .map(|i| weight * (a[(i, k)] + b[(i, k)]))
                .collect()
        };
        self.correlations.iter().enumerate().map(column).collect()
    }
}

/// A covariance with a part of its mean variance added to the diagonal.
fn penalised(covariance: &Mat<f64>) -> Mat<f64> {
    let n = covariance.nrows();
    let mean = (0..n).map(|i| covariance[(i, i)]).sum::<f64>() / n.max(1) as f64;
    covariance + Mat::<f64>::identity(n, n) * Scale((PENALTY * mean).max(1e-12))
}
