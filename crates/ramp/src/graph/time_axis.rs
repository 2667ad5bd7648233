//! The time axis of a chain: its series, its steps, and which variable stands where.

use super::{FactorTree, GraphError, VariableId, find};

/// The time axis of a [chain](FactorTree::sequence): the series that are observed and how many steps they go through.
///
/// Variables of a chain are addressed by series and step. They have names too, such as `heart.17`, but those are for people
/// to read: nothing is found by them.
///
/// ```
/// use ramp::graph::{FactorTree, Place};
///
/// let tree = FactorTree::sequence(30, &["heart", "sleep"])?;
/// let time = tree.time_axis().unwrap();
/// assert_eq!((time.steps(), time.series()), (30, &["heart".to_string(), "sleep".to_string()][..]));
/// let sleep = time.find("sleep")?;
/// let fifth = tree.observation_at(sleep, 4).unwrap();
/// assert_eq!(tree.place(fifth), Some(Place::Observation { series: sleep, step: 4 }));
/// # Ok::<(), ramp::graph::GraphError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimeAxis {
    series: Vec<String>,
    steps: usize,
}

/// Where a variable of a chain stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The latent of a step.
    Latent {
        /// Which step, from 0.
        step: usize,
    },
    /// An observation.
    Observation {
        /// Which series, in the order of [`TimeAxis::series`].
        series: usize,
        /// Which step, from 0.
        step: usize,
    },
}

impl Place {
    /// The step, from 0.
    pub fn step(self) -> usize {
        match self {
            Place::Latent { step } | Place::Observation { step, .. } => step,
        }
    }
}

impl TimeAxis {
    /// The name of a chain's latent over all steps.
    pub const LATENT: &'static str = "z";

    pub(super) fn new(series: Vec<String>, steps: usize) -> Self {
        TimeAxis { series, steps }
    }

    /// The names of the series, in order.
    pub fn series(&self) -> &[String] {
        &self.series
    }

    /// How many steps there are.
    pub fn steps(&self) -> usize {
        self.steps
    }

    /// The series of this name; the error suggests the nearest name.
    pub fn find(&self, name: &str) -> Result<usize, GraphError> {
        self.series
            .iter()
            .position(|series| series == name)
            .ok_or_else(|| find::unknown(name, self.series.iter().map(String::as_str)))
    }

    /// Where an observation stands among [all of the tree's](FactorTree::observations): they go step by step, and through
    /// the series at each.
    pub fn observation(&self, series: usize, step: usize) -> usize {
        step * self.series.len() + series
    }
}

impl FactorTree {
    /// The time axis, if the tree was made as a chain in time.
    pub fn time_axis(&self) -> Option<&TimeAxis> {
        self.time.as_ref()
    }

    /// The latent of a step of a chain, steps counted from 0.
    pub fn latent_at(&self, step: usize) -> Option<VariableId> {
        let time = self.time.as_ref()?;
        (step < time.steps).then(|| self.latents()[step])
    }

    /// A series' observation at a step of a chain, both counted from 0.
    pub fn observation_at(&self, series: usize, step: usize) -> Option<VariableId> {
        let time = self.time.as_ref()?;
        (series < time.series.len() && step < time.steps)
            .then(|| self.observations()[time.observation(series, step)])
    }

    /// Where a variable of a chain stands; `None` if the tree has no time axis.
    pub fn place(&self, variable: VariableId) -> Option<Place> {
        let time = self.time.as_ref()?;
        // A chain's latents are its first variables; then come the observations, step by step.
        Some(match variable.index().checked_sub(time.steps) {
            None => Place::Latent {
                step: variable.index(),
            },
            Some(observation) => Place::Observation {
                series: observation % time.series.len(),
                step: observation / time.series.len(),
            },
        })
    }
}
