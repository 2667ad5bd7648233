//! Frames to come: the training frames at their step, reweighted by how well each goes with what was seen.

use super::data::{Videos, wrapped};
use crate::error::LabError;
use ramp::data::Dataset;
use ramp::infer::{Imputer, SupportSet};
use ramp::model::Model;
use serde::{Deserialize, Serialize};

/// Errors of predicted angles, in radians, one for each step ahead: means of absolute values over videos.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Prediction {
    /// By the tree, from the frames before.
    pub ramp: Vec<f64>,
    /// If the pendulum stayed where it was seen last.
    pub stay: Vec<f64>,
    /// If it went on as between the last two frames seen.
    pub go_on: Vec<f64>,
}

/// Videos whose predictions are drawn.
const SHOWN: usize = 3;

/// What was predicted for one video: candidate angles and their chances, step by step.
pub(super) struct Predicted {
    pub angles: Vec<Vec<f64>>,
    pub chances: Vec<Vec<f64>>,
}

/// Predicts the last `ahead` frames of test videos from those before, two at least, and gives the predictions for the first
/// videos. Angles serve to judge, the model sees pictures.
pub(super) fn predict(
    model: &Model,
    (train, train_theta): (&Dataset, &[f64]),
    test: &Videos,
    ahead: usize,
) -> Result<(Prediction, Vec<Predicted>), LabError> {
    let steps = test.sizes.steps;
    let seen = steps - ahead;
    let support = SupportSet::new(model, train, train.rows())?;
    let imputer = Imputer::new(model, &support, train)?;
    let masked = test.clone().into_beginnings(seen)?;
    let conditionals = imputer.conditionals(model, &masked)?;
    let videos = test.sizes.sequences;
    let mut prediction = Prediction {
        ramp: vec![0.0; ahead],
        stay: vec![0.0; ahead],
        go_on: vec![0.0; ahead],
    };
    let mut predicted = vec![];
    for video in 0..videos {
        let theta = &test.theta[video * steps..][..steps];
        let (before, last) = (theta[seen - 2], theta[seen - 1]);
        let (mut angles, mut chances) = (vec![], vec![]);
        for k in 0..ahead {
            let t = seen + k;
            let weights = conditionals.weights(t, video);
            let candidates = imputer.candidates(t).iter();
            let shown: Vec<f64> = candidates
                .map(|&n| train_theta[n as usize * steps + t])
                .collect();
            let (mut x, mut y) = (0.0, 0.0);
            for (w, a) in weights.iter().zip(&shown) {
                (x, y) = (x + w * a.cos(), y + w * a.sin());
            }
            let off = |angle: f64| wrapped(angle - theta[t]).abs() / videos as f64;
            prediction.ramp[k] += off(y.atan2(x));
            prediction.stay[k] += off(last);
            prediction.go_on[k] += off(last + wrapped(last - before) * (k + 1) as f64);
            angles.push(shown);
            chances.push(weights);
        }
        if video < SHOWN {
            predicted.push(Predicted { angles, chances });
        }
    }
    Ok((prediction, predicted))
}
