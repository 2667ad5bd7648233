//! What the steps of some sequences show, series beside series, and the slow components of it.

use super::super::Model;
use super::super::plan::Source;
use super::slow::{SlowComponents, along};
use crate::Result;
use crate::data::Dataset;
use std::ops::Range;

/// One series of a chain and the network that recognises it.
pub(crate) struct Series {
    pub network: usize,
    /// Where its numbers lie in a row.
    span: Range<usize>,
    /// Which of the tree's observations it is at every step.
    of_step: Vec<Option<usize>>,
}

/// Steps at which all series are there.
pub(crate) struct Observed {
    pub series: Vec<Series>,
    width: usize,
    rows: Vec<f32>,
    /// The position of the sequence among those asked for, and the step, of every row.
    pub places: Vec<(usize, usize)>,
    pub found: SlowComponents,
}

impl Observed {
    /// How many steps.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// What a series shows at a step.
    pub fn row(&self, series: &Series, i: usize) -> &[f32] {
        &self.rows[i * self.width..][..self.width][series.span.clone()]
    }

    /// The part of the components at a step that comes from one series.
    pub fn part(&self, series: &Series, i: usize) -> Vec<f64> {
        let span = &series.span;
        let (row, mean) = (self.row(series, i), &self.found.mean[span.clone()]);
        let weights = self.found.weights.iter();
        weights
            .map(|w| along(row, mean, &w[span.clone()]))
            .collect()
    }

    /// The components at a step.
    pub fn components(&self, i: usize) -> Vec<f64> {
        let row = &self.rows[i * self.width..][..self.width];
        let weights = self.found.weights.iter();
        weights.map(|w| along(row, &self.found.mean, w)).collect()
    }
}

impl Model {
    /// What a chain's observations show in some samples, with so many slow components; `None` where no two steps are whole.
    pub(crate) fn observed(
        &self,
        data: &Dataset,
        samples: &[u32],
        components: usize,
    ) -> Result<Option<Observed>> {
        let bound = self.bind(data)?;
        let steps = self.nodes.len();
        let mut series: Vec<Series> = vec![];
        let mut width = 0;
        for stage in &self.plan.stages {
            for &m in &stage.messages {
                let [Source::Observation { index, .. }] = self.plan.sources[m as usize][..] else {
                    continue;
                };
                let network = stage.network;
                let known = series.iter().position(|s| s.network == network);
                let at = known.unwrap_or_else(|| {
                    let own = self.networks[network].network.inputs();
                    series.push(Series {
                        network,
                        span: width..width + own,
                        of_step: vec![None; steps],
                    });
                    width += own;
                    series.len() - 1
                });
                series[at].of_step[self.plan.target[m as usize]] = Some(index);
            }
        }
        let (mut rows, mut next, mut places) = (vec![], vec![], vec![]);
        for (position, &sample) in samples.iter().enumerate() {
            let sample = sample as usize;
            let length = bound.lengths().map_or(steps, |l| l[sample] as usize);
            let mut before: Option<usize> = None;
            for step in 0..length.min(steps) {
                let there = |s: &Series| {
                    let observation = s.of_step[step].map(|i| bound.observation(i));
                    observation.filter(|o| o.is_present(sample))
                };
                if width == 0 || !series.iter().all(|s| there(s).is_some()) {
                    before = None;
                    continue;
                }
                let here = places.len();
                if let Some(before) = before.replace(here) {
                    next[before] = Some(here as u32);
                }
                next.push(None);
                places.push((position, step));
                let start = rows.len();
                rows.resize(start + width, 0.0);
                for s in &series {
                    if let Some(observation) = there(s) {
                        let to = start + s.span.start..start + s.span.end;
                        observation.write(sample, &mut rows[to], 1);
                    }
                }
            }
        }
        if places.len() < 2 {
            return Ok(None);
        }
        let found = SlowComponents::of(&rows, width, &next, components, self.spec.seed);
        Ok(Some(Observed {
            series,
            width,
            rows,
            places,
            found,
        }))
    }
}
