//! Initialisations of poses: the networks begin as a jointly Gaussian tree over what joints have in common, found without knowledge
//! of a body (`shared.rs`) or, informed, over limbs that are told apart.
//!
//! The informed one: what neighbours share is the limb between them, and its direction goes around a circle. Networks that begin at random write
//! it wherever there is room in six dimensions, on curves that wind and jump: it is there, but hard to read. And they seldom
//! find out that a line in a patch can be told from another only by what the other end says.
//!
//! So learning begins from linear maps. The ink of a patch times cosine and sine of its angle around the joint adds up the
//! directions of all limbs there. At a tip there is one limb; it looks the same from its other end, but for half a turn; so it
//! can be taken off there, and what is left is the next one. A joint's latent begins as the directions of its limbs that are
//! found in this way. Its patch begins to say of them what linear regression can tell, and the messages between joints are
//! those of a jointly Gaussian tree with the correlations that the directions have.

use super::PoseInit;
use super::data::{ALL_LIMBS, JOINTS, LIMBS, NAMES, PATCH, Pose, Poses, neighbours, patches};
use super::shared::Around;
use crate::error::LabError;
use crate::harness::last_layer::{before_last, fit_last, fit_network};
use crate::least_squares::LeastSquares;
use faer::linalg::solvers::DenseSolveCore;
use faer::{Mat, Scale, Side};
use ramp::family::Inputs;
use ramp::model::Model;
use ramp::network::NetworkSpec;
use rayon::prelude::*;

/// Poses that a start looks at, at most.
const LOOKED_AT: usize = 3000;
/// Cells on a side of a coarse patch.
const CELLS: usize = 8;
/// The same where it is asked what neighbours share.
const SHARED_CELLS: usize = 4;
/// The penalties of the regressions on cells, on convolutions and on the hidden units of message networks.
const CELLS_RIDGE: f64 = 2e-2;
const CONVOLUTIONS_RIDGE: f64 = 1e-4;
const MESSAGES_RIDGE: f64 = 1e-3;
/// The least variance of what a patch tells, and the largest correlation between neighbours.
const LEAST_SPREAD: f64 = 0.1;
const MOST_COMMON: f64 = 0.98;

/// Ink nearer to the joint than this, in pixels, has no clear angle.
const NEAR: f64 = 2.0;

/// Where all limbs lead to in the end.
const ROOT: usize = 12;
/// The other joints, tips first.
const INWARDS: [usize; JOINTS - 1] = [0, 5, 6, 11, 13, 1, 4, 7, 10, 2, 3, 8, 9];

/// The neighbour of a joint on the way to the root.
fn inner(joint: usize) -> usize {
    let place = |j: &usize| INWARDS.iter().position(|i| i == j).unwrap_or(JOINTS);
    neighbours(joint).max_by_key(place).unwrap_or(ROOT)
}

/// The neighbours of a joint on the way to tips.
fn outer(joint: usize) -> impl Iterator<Item = usize> {
    neighbours(joint).filter(move |&n| joint == ROOT || n != inner(joint))
}

fn singular() -> LabError {
    LabError::Singular {
        what: "a message between joints",
    }
}

pub(super) fn inverse(of: &Mat<f64>) -> Result<Mat<f64>, LabError> {
    Ok(of.llt(Side::Lower).map_err(|_| singular())?.inverse())
}

/// The eigenvectors of a symmetric matrix in columns, each times a function of its eigenvalue; the largest first.
pub(super) fn scaled_eigenvectors(
    of: &Mat<f64>,
    by: impl Fn(f64) -> f64,
) -> Result<Mat<f64>, LabError> {
    let eigen = of.self_adjoint_eigen(Side::Lower).map_err(|_| singular())?;
    let last = of.ncols() - 1;
    Ok(Mat::from_fn(of.nrows(), of.ncols(), |i, k| {
        eigen.U()[(i, last - k)] * by(eigen.S().column_vector()[last - k])
    }))
}

/// The mean product of columns.
pub(super) fn products(a: &Mat<f64>, b: &Mat<f64>) -> Mat<f64> {
    a.transpose() * b * Scale(1.0 / a.nrows().max(1) as f64)
}

pub(super) fn rows_of(all: &Mat<f64>, rows: &[usize]) -> Mat<f64> {
    Mat::from_fn(rows.len(), all.ncols(), |i, k| all[(rows[i], k)])
}

/// A Gaussian message: `precision · mean` and precision, as ratios to a standard normal.
#[derive(Clone, Debug)]
struct Said {
    shift: Mat<f64>,
    precision: Mat<f64>,
}

impl Said {
    /// What makes a standard normal one with this mean and precision.
    fn of(mean: &Mat<f64>, precision: &Mat<f64>) -> Self {
        let dim = precision.nrows();
        Said {
            shift: precision * mean,
            precision: precision - Mat::<f64>::identity(dim, dim),
        }
    }

    fn nothing(dim: usize) -> Self {
        Said {
            shift: Mat::zeros(dim, 1),
            precision: Mat::zeros(dim, dim),
        }
    }

    fn add(&mut self, other: &Said) {
        self.shift += &other.shift;
        self.precision += &other.precision;
    }

    /// What it tells of a neighbour that has this covariance with the latent.
    fn passed_on(&self, common: &Mat<f64>) -> Result<Said, LabError> {
        let one = Mat::<f64>::identity(common.nrows(), common.nrows());
        let covariance = inverse(&(&self.precision + &one))?;
        let mean = common * (&covariance * &self.shift);
        let spread = &one - common * (&one - covariance) * common.transpose();
        Ok(Said::of(&mean, &inverse(&spread)?))
    }

    /// Natural parameters.
    fn natural(&self) -> Vec<f64> {
        self.packed(&self.precision)
    }

    /// The raw outputs of a network that says it.
    fn raw(&self) -> Result<Vec<f64>, LabError> {
        // The least that a message may say along any direction.
        const LEAST: f64 = 0.01;
        let dim = self.shift.nrows();
        let solid = &self.precision + Mat::<f64>::identity(dim, dim) * Scale(LEAST);
        let factor = solid.llt(Side::Lower).map_err(|_| singular())?;
        Ok(self.packed(&factor.L().to_owned()))
    }

    /// The shift, then the lower triangle of a matrix row by row.
    fn packed(&self, matrix: &Mat<f64>) -> Vec<f64> {
        let dim = self.shift.nrows();
        let shift = (0..dim).map(|i| self.shift[(i, 0)]);
        let below = (0..dim).flat_map(|i| (0..=i).map(move |j| matrix[(i, j)]));
        shift.chain(below).collect()
    }
}

/// The ink of a patch times cosine and sine of its angle around the joint, of twice the angle and so on.
fn turns(patch: &[u8], harmonics: usize) -> Vec<f64> {
    let mut sums = vec![0.0; 2 * harmonics];
    let half = (PATCH as f64 - 1.0) / 2.0;
    for (i, &v) in patch.iter().enumerate().filter(|(_, v)| **v != 0) {
        let (x, y) = ((i % PATCH) as f64 - half, (i / PATCH) as f64 - half);
        // A ring around the joint: all directions are alike.
        if !(NEAR..half).contains(&x.hypot(y)) {
            continue;
        }
        for k in 0..harmonics {
            let (sin, cos) = ((k + 1) as f64 * y.atan2(x)).sin_cos();
            sums[2 * k] += f64::from(v) / 255.0 * cos;
            sums[2 * k + 1] += f64::from(v) / 255.0 * sin;
        }
    }
    sums
}

/// What a patch by itself tells of a joint's code: a mean for each pose, and one precision.
struct Glance {
    means: Mat<f64>,
    precision: Mat<f64>,
}

/// What there is to see of some poses.
struct Looked<'a> {
    poses: &'a [Pose],
    dim: usize,
    /// The patches of each joint.
    patches: Vec<Vec<u8>>,
    /// For each joint what its latent is to tell, standardised and uncorrelated, a row per pose.
    codes: Vec<Mat<f64>>,
}

impl<'a> Looked<'a> {
    fn at(poses: &'a [Pose], dim: usize, init: PoseInit) -> Result<Self, LabError> {
        let patches: Vec<Vec<u8>> = (0..JOINTS)
            .map(|joint| patches(poses, joint, |_| ALL_LIMBS))
            .collect();
        let mut looked = Looked {
            poses,
            dim,
            patches,
            codes: vec![],
        };
        looked.codes = match init {
            PoseInit::Limbs => looked.told_apart()?,
            PoseInit::Shared | PoseInit::Random => looked.shared()?,
        };
        Ok(looked)
    }

    /// The poses in which these joints and all their neighbours are seen.
    fn whole(&self, joints: &[usize]) -> Vec<usize> {
        let seen =
            |pose: &Pose, j: usize| pose[j].is_some() && neighbours(j).all(|n| pose[n].is_some());
        let all = self.poses.iter().enumerate();
        all.filter(|(_, pose)| joints.iter().all(|&j| seen(pose, j)))
            .map(|(i, _)| i)
            .collect()
    }

    /// What each joint has in common with its neighbours.
    fn shared(&self) -> Result<Vec<Mat<f64>>, LabError> {
        let cells: Vec<Mat<f64>> = (0..JOINTS).map(|joint| self.cells(joint)).collect();
        let around = Around {
            cells: &cells,
            seen: &|pose, joint| self.poses[pose][joint].is_some(),
            whole: &|joints| self.whole(joints),
        };
        let shared = around.shared(self.dim)?.into_iter().enumerate();
        shared
            .map(|(joint, columns)| self.standardised(joint, columns))
            .collect()
    }

    /// The coarse patches of a joint around their mean; nothing where it is not seen.
    fn cells(&self, joint: usize) -> Mat<f64> {
        let width = SHARED_CELLS * SHARED_CELLS;
        let rows: Vec<Vec<f64>> = self.patches[joint]
            .par_chunks(PATCH * PATCH)
            .map(|patch| coarse(patch, SHARED_CELLS))
            .collect();
        let seen: Vec<usize> = (0..rows.len())
            .filter(|&i| self.poses[i][joint].is_some())
            .collect();
        let mean =
            |k: usize| seen.iter().map(|&i| rows[i][k]).sum::<f64>() / seen.len().max(1) as f64;
        let means: Vec<f64> = (0..width).map(mean).collect();
        Mat::from_fn(rows.len(), width, |i, k| match self.poses[i][joint] {
            Some(_) => rows[i][k] - means[k],
            None => 0.0,
        })
    }

    /// The limbs of each joint.
    fn told_apart(&self) -> Result<Vec<Mat<f64>>, LabError> {
        let harmonics = self.dim.div_ceil(2).max(1);
        let sums: Vec<Mat<f64>> = self
            .patches
            .iter()
            .map(|patches| {
                let rows: Vec<Vec<f64>> = patches
                    .par_chunks(PATCH * PATCH)
                    .map(|patch| turns(patch, harmonics))
                    .collect();
                Mat::from_fn(rows.len(), 2 * harmonics, |i, k| rows[i][k])
            })
            .collect();
        // The direction of the limb from each joint inwards: what is there less the limbs outwards, seen from here.
        let mut inwards: Vec<Mat<f64>> = sums.iter().map(|s| s.subcols(0, 2).to_owned()).collect();
        for &joint in &INWARDS {
            for other in outer(joint) {
                let beyond = inwards[other].clone();
                inwards[joint] += beyond;
            }
        }
        (0..JOINTS)
            .map(|joint| {
                let own = (joint != ROOT).then_some(joint);
                let mut columns: Vec<(&Mat<f64>, usize)> = own
                    .into_iter()
                    .chain(outer(joint))
                    .flat_map(|j| [(&inwards[j], 0), (&inwards[j], 1)])
                    .collect();
                // The room that is left: what turns faster.
                let room = self.dim.saturating_sub(columns.len());
                columns.extend((2..2 + room).map(|k| (&sums[joint], k)));
                let all = Mat::from_fn(self.poses.len(), columns.len(), |i, k| {
                    columns[k].0[(i, columns[k].1)]
                });
                self.standardised(joint, all)
            })
            .collect()
    }

    /// The principal components of columns over the poses that show a joint whole, of mean zero and variance one.
    fn standardised(&self, joint: usize, mut all: Mat<f64>) -> Result<Mat<f64>, LabError> {
        let rows = self.whole(&[joint]);
        for k in 0..all.ncols() {
            let mean = rows.iter().map(|&i| all[(i, k)]).sum::<f64>() / rows.len().max(1) as f64;
            all.col_mut(k).iter_mut().for_each(|x| *x -= mean);
        }
        let some = rows_of(&all, &rows);
        let along = scaled_eigenvectors(&products(&some, &some), |square| {
            square.max(1e-6).sqrt().recip()
        })?;
        Ok(all * along.subcols(0, self.dim))
    }

    /// What the patches of a joint tell of its limbs.
    fn glance(&self, joint: usize) -> Result<Glance, LabError> {
        let cells: Vec<f64> = self.patches[joint]
            .par_chunks(PATCH * PATCH)
            .flat_map_iter(|patch| coarse(patch, CELLS))
            .collect();
        let width = CELLS * CELLS;
        let rows = self.whole(&[joint]);
        if rows.is_empty() {
            return Err(LabError::Invalid(format!(
                "no pose shows {} and its neighbours, so there is nothing to begin with; give more poses, or begin at random",
                NAMES[joint]
            )));
        }
        let seen: Vec<f64> = rows
            .iter()
            .flat_map(|&i| &cells[i * width..][..width])
            .copied()
            .collect();
        let meant = rows_of(&self.codes[joint], &rows);
        let targets: Vec<Vec<f64>> = meant
            .col_iter()
            .map(|c| c.iter().copied().collect())
            .collect();
        let fit = LeastSquares::penalised(&seen, width, &targets, CELLS_RIDGE)?;
        let told = fit.predict(&cells);
        let means = Mat::from_fn(self.poses.len(), self.dim, |i, k| told[k][i]);
        let off = meant - rows_of(&means, &rows);
        // No surer than is good for a start, no less sure than before the look.
        let root = scaled_eigenvectors(&products(&off, &off), |spread| {
            spread.clamp(LEAST_SPREAD, 0.99).sqrt().recip()
        })?;
        Ok(Glance {
            means,
            precision: &root * root.transpose(),
        })
    }

    /// The covariance of a joint's limbs with those of another.
    fn common(&self, joint: usize, other: usize) -> Result<Mat<f64>, LabError> {
        let rows = self.whole(&[joint, other]);
        let common = products(
            &rows_of(&self.codes[joint], &rows),
            &rows_of(&self.codes[other], &rows),
        );
        let largest = common.singular_values().map_err(|_| singular())?[0];
        Ok(common * Scale((MOST_COMMON / largest.max(1e-9)).min(1.0)))
    }
}

/// A message between joints: from where, to where, and the covariance of there with here.
struct Way {
    from: usize,
    to: usize,
    common: Mat<f64>,
}

/// What is known at the start of each way, the patch there and what came from elsewhere, and what is passed on.
fn passed(ways: &[Way], patch: impl Fn(usize) -> Said) -> Result<Vec<(Said, Said)>, LabError> {
    let mut said: Vec<Option<(Said, Said)>> = vec![None; ways.len()];
    while let Some(next) = ways.iter().enumerate().position(|(w, way)| {
        let mut before = ways.iter().zip(&said);
        said[w].is_none()
            && before.all(|(v, s)| v.to != way.from || v.from == way.to || s.is_some())
    }) {
        let way = &ways[next];
        let mut known = patch(way.from);
        for (other, heard) in ways.iter().zip(&said) {
            if let (true, Some((_, message))) =
                (other.to == way.from && other.from != way.to, heard)
            {
                known.add(message);
            }
        }
        let message = known.passed_on(&way.common)?;
        said[next] = Some((known, message));
    }
    said.into_iter().map(|s| s.ok_or_else(singular)).collect()
}

/// The networks of a body begin as a jointly Gaussian tree over what their joints are to tell.
pub(super) fn init_linear(
    model: &mut Model,
    init: PoseInit,
    recognition: &NetworkSpec,
    inputs: Inputs,
    poses: &Poses,
) -> Result<(), LabError> {
    let poses = poses.part(0..LOOKED_AT).poses;
    let belief = model.beliefs().next().cloned();
    let belief = belief.ok_or_else(|| LabError::Invalid("a body has latents".into()))?;
    let prior = belief.prior();
    let dim = belief.describe(&prior).mean.len();
    let looked = Looked::at(&poses, dim, init)?;
    let glances: Vec<Glance> = (0..JOINTS)
        .map(|joint| looked.glance(joint))
        .collect::<Result<_, _>>()?;
    let patch = |joint: usize, pose: usize| match poses[pose][joint] {
        None => Said::nothing(dim),
        Some(_) => {
            let Glance { means, precision } = &glances[joint];
            Said::of(&Mat::from_fn(dim, 1, |k, _| means[(pose, k)]), precision)
        }
    };
    for (joint, name) in NAMES.iter().enumerate() {
        let shown: Vec<usize> = (0..poses.len())
            .filter(|&pose| poses[pose][joint].is_some())
            .collect();
        let told = shown
            .iter()
            .map(|&pose| patch(joint, pose).raw())
            .collect::<Result<Vec<_>, _>>()?;
        let name = format!("{name}_patch>{name}");
        let (inputs, patches) = (PATCH * PATCH, &looked.patches[joint]);
        let network = (recognition, inputs);
        let units = before_last(model, &name, network, shown.len(), |i, to| {
            for (to, &v) in to.iter_mut().zip(&patches[shown[i] * inputs..]) {
                *to = f32::from(v) / 255.0;
            }
        })?;
        fit_last(model, &name, &units, &told, CONVOLUTIONS_RIDGE)?;
    }
    let ways = LIMBS
        .iter()
        .flat_map(|&(a, b)| [(a, b), (b, a)])
        .map(|(from, to)| {
            let common = looked.common(to, from)?;
            Ok(Way { from, to, common })
        })
        .collect::<Result<Vec<_>, LabError>>()?;
    let heard: Vec<Vec<(Said, Said)>> = (0..poses.len())
        .into_par_iter()
        .map(|pose| passed(&ways, |joint| patch(joint, pose)))
        .collect::<Result<_, _>>()?;
    for (w, way) in ways.iter().enumerate() {
        let (mut seen, mut told) = (vec![], vec![]);
        for said in &heard {
            let (known, message) = (said[w].0.natural(), &said[w].1);
            let mut view_of = vec![0.0; belief.input_dim(inputs)];
            let mut space = vec![0.0; known.len()];
            belief.inputs(inputs, &prior, &known, &mut space, &mut view_of);
            seen.push(view_of.iter().map(|&x| x as f32).collect());
            told.push(message.raw()?);
        }
        let name = format!("{}>{}", NAMES[way.from], NAMES[way.to]);
        fit_network(model, &name, &seen, &told, MESSAGES_RIDGE)?;
    }
    Ok(())
}

/// Sums over the cells of a coarse grid, so many on a side.
fn coarse(picture: &[u8], cells: usize) -> Vec<f64> {
    let side = picture.len().isqrt().max(1);
    let mut sums = vec![0.0; cells * cells];
    for (i, &v) in picture.iter().enumerate().filter(|(_, v)| **v != 0) {
        let cell = |at: usize| (at * cells / side).min(cells - 1);
        sums[cell(i / side) * cells + cell(i % side)] += f64::from(v) / 255.0;
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::super::PoseRun;
    use super::super::data::{Body, direction};
    use super::super::probe::{Means, Seen, probes};
    use super::*;
    use crate::harness::{Recipe, Scale};
    use crate::metrics::{mean, r_squared};

    #[test]
    fn every_way_inwards_ends_at_the_neck() {
        for joint in INWARDS {
            let mut at = joint;
            for _ in 0..3 {
                at = if at == ROOT { ROOT } else { inner(at) };
            }
            assert_eq!(at, ROOT, "{}", NAMES[joint]);
        }
        assert_eq!(outer(ROOT).count(), 5);
        assert_eq!(outer(1).collect::<Vec<_>>(), [0]);
    }

    #[test]
    fn a_message_is_what_a_joint_gaussian_says() {
        // A latent seen with noise of variance 0.5 at 1.2, and a neighbour with correlation 0.6.
        let (noise, seen, common) = (0.5, 1.2, 0.6);
        let said = Said {
            shift: Mat::from_fn(1, 1, |_, _| seen / noise),
            precision: Mat::from_fn(1, 1, |_, _| 1.0 / noise),
        };
        let message = said.passed_on(&Mat::from_fn(1, 1, |_, _| common)).unwrap();
        // The neighbour given what was seen, from their covariance.
        let (mean, variance) = (
            common * seen / (1.0 + noise),
            1.0 - common * common / (1.0 + noise),
        );
        assert!((message.precision[(0, 0)] - (1.0 / variance - 1.0)).abs() < 1e-12);
        assert!((message.shift[(0, 0)] - mean / variance).abs() < 1e-12);
    }

    #[test]
    fn limbs_are_told_apart() {
        let body = Body {
            covered: 0.0,
            ..Body::default()
        };
        let poses = body.poses(1500, 1).poses;
        let looked = Looked::at(&poses, 6, PoseInit::Limbs).unwrap();
        for (joint, neighbour) in [(0, 1), (1, 0), (1, 2), (7, 6), (7, 8)] {
            let angles = poses.iter().filter_map(|p| direction(p, joint, neighbour));
            let (cos, sin): (Vec<f64>, Vec<f64>) = angles.map(|a| (a.cos(), a.sin())).unzip();
            let truth = [cos, sin];
            let read_off = |points: &[f64]| {
                let fit = LeastSquares::fit(points, 6, &truth).unwrap();
                let told = fit.predict(points);
                mean(&[0, 1].map(|k| r_squared(&truth[k], &told[k])))
            };
            let limbs = looked.codes[joint].row_iter();
            let limbs: Vec<f64> = limbs.flat_map(|row| row.iter()).copied().collect();
            let own = looked.patches[joint].chunks(PATCH * PATCH);
            let own: Vec<f64> = own.flat_map(|patch| turns(patch, 3)).collect();
            let (apart, alone) = (read_off(&limbs), read_off(&own));
            let tip = outer(joint).next().is_none();
            let gain = if tip { -0.01 } else { 0.1 };
            assert!(
                apart > 0.3 && apart > alone + gain,
                "{joint} {neighbour}: {apart} told apart, {alone} in the patch"
            );
        }
    }

    #[test]
    fn networks_init_with_limbs_that_can_be_read() {
        let run = PoseRun::new(Scale::Quick, Recipe::Ours, 3);
        let body = Body {
            covered: 0.05,
            ..Body::default()
        };
        let (train, test) = (body.poses(500, 1), body.poses(200, 2));
        let (data, fresh) = (train.dataset().unwrap(), test.dataset().unwrap());
        let r2 = |model: &Model| {
            let means = (
                Means::of(model, &data).unwrap(),
                Means::of(model, &fresh).unwrap(),
            );
            let seen = |poses, means| Seen { poses, means };
            let found = probes(&seen(&train, &means.0), &seen(&test, &means.1), 500).unwrap();
            mean(&found.iter().map(|p| p.limb.kernel.test).collect::<Vec<_>>())
        };
        let model = run.model(&data).unwrap();
        let before = r2(&model);
        let begun = |init| {
            let (mut model, network) = (model.clone(), PoseRun::recognition());
            init_linear(&mut model, init, &network, run.core.inputs, &train).unwrap();
            r2(&model)
        };
        let (shared, limbs) = (begun(PoseInit::Shared), begun(PoseInit::Limbs));
        assert!(before < 0.3 && limbs > 0.6, "{before} {limbs}");
        // Without a word about limbs, and from few poses: more than nothing.
        assert!(shared > before + 0.1, "{before} {shared} {limbs}");
    }
}
