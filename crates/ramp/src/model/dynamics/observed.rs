//! What the steps of some sequences show, series beside series, and the slow components of it.

use super::super::Model;
use super::super::plan::Source;
use super::slow::{SlowComponents, along};
use crate::Result;
use crate::data::Dataset;
use rayon::prelude::*;
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

    /// All steps in principal components.
    pub fn principal_scores(&self) -> Vec<Vec<f64>> {
        let rows = self.rows.par_chunks_exact(self.width);
        rows.map(|row| self.found.principal_scores(row)).collect()
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
}

/// What steps show, in a few components.
pub(crate) struct Shown {
    /// The position of the sequence among those asked for, and the step.
    pub places: Vec<(usize, usize)>,
    /// The components at each of these places.
    pub components: Vec<Vec<f64>>,
}

/// The series of a chain, and how many numbers they have at a step.
struct Layout {
    series: Vec<Series>,
    width: usize,
}

impl Model {
    /// What a chain's observations show in some samples, with so many slow components; `None` where no two steps are whole.
    pub(crate) fn observed(
        &self,
        data: &Dataset,
        samples: &[u32],
        components: usize,
    ) -> Result<Option<Observed>> {
        let layout = self.series_layout();
        let (mut rows, mut next, mut places) = (vec![], vec![], vec![]);
        self.for_each_step(data, samples, &layout, |place, follows, row| {
            let here = places.len();
            if follows {
                next[here - 1] = Some(here as u32);
            }
            next.push(None);
            places.push(place);
            rows.extend_from_slice(row);
        })?;
        if places.len() < 2 {
            return Ok(None);
        }
        let Layout { series, width } = layout;
        let found = SlowComponents::of(&rows, width, &next, components, self.spec.seed);
        Ok(Some(Observed {
            series,
            width,
            rows,
            places,
            found,
        }))
    }

    /// The components that were found, at all whole steps of some samples.
    pub(crate) fn shown(
        &self,
        data: &Dataset,
        samples: &[u32],
        found: &SlowComponents,
    ) -> Result<Shown> {
        let mut shown = Shown {
            places: vec![],
            components: vec![],
        };
        self.for_each_step(data, samples, &self.series_layout(), |place, _, row| {
            let weights = found.weights.iter();
            shown.places.push(place);
            shown
                .components
                .push(weights.map(|w| along(row, &found.mean, w)).collect());
        })?;
        Ok(shown)
    }

    /// The principal components at the same steps as those of [`shown`](Self::shown).
    pub(crate) fn principal_scores(
        &self,
        data: &Dataset,
        samples: &[u32],
        found: &SlowComponents,
    ) -> Result<Vec<Vec<f64>>> {
        let mut scores = vec![];
        self.for_each_step(data, samples, &self.series_layout(), |_, _, row| {
            scores.push(found.principal_scores(row));
        })?;
        Ok(scores)
    }

    fn series_layout(&self) -> Layout {
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
        Layout { series, width }
    }

    /// Every step at which all series are there: its place, whether it follows the one before it directly, and its numbers.
    fn for_each_step(
        &self,
        data: &Dataset,
        samples: &[u32],
        Layout { series, width }: &Layout,
        mut each: impl FnMut((usize, usize), bool, &[f32]),
    ) -> Result<()> {
        let bound = self.bind(data)?;
        let steps = self.nodes.len();
        let mut row = vec![0.0; *width];
        for (position, &sample) in samples.iter().enumerate() {
            let sample = sample as usize;
            let length = bound.lengths().map_or(steps, |l| l[sample] as usize);
            let mut follows = false;
            for step in 0..length.min(steps) {
                let there = |s: &Series| {
                    let observation = s.of_step[step].map(|i| bound.observation(i));
                    observation.filter(|o| o.is_present(sample))
                };
                if *width == 0 || !series.iter().all(|s| there(s).is_some()) {
                    follows = false;
                    continue;
                }
                for s in series {
                    if let Some(observation) = there(s) {
                        row[s.span.clone()].fill(0.0);
                        observation.write(sample, &mut row[s.span.clone()], 1);
                    }
                }
                each((position, step), follows, &row);
                follows = true;
            }
        }
        Ok(())
    }
}
