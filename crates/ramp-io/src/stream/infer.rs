//! Posteriors, free energies and what is explained in all, of every latent for every sample.

use super::answers::{Answers, ForModel, SampleSource};
use super::layout::{OutputOptions, kept, latent_numbers, number_column, split};
use super::posterior_columns::{PosteriorColumn, posterior_columns, posterior_values};
use crate::Result;
use crate::run::Run;
use crate::table::table_of;

/// The column of a sample's total, and the ending of what each latent adds to it.
pub const TOTAL: &str = "nats";

impl Run {
    /// The posterior of every latent for every sample: means and standard deviations, or probabilities of levels.
    pub fn infer<S: SampleSource>(&self, samples: S, options: OutputOptions) -> Answers<'_, S> {
        let columns: Vec<Vec<PosteriorColumn>> =
            self.model.beliefs().map(posterior_columns).collect();
        Answers::new(self, samples, move |part| {
            let posterior = part.model.posterior(part.data)?;
            let mut all = kept(self, part, &options)?;
            all.extend(latent_numbers(
                part,
                options.long,
                &|k| columns[k].iter().map(|c| c.suffix.clone()).collect(),
                &mut |k| posterior_values(&columns[k], &posterior.latents()[k]),
            ));
            all.extend(split(part, &options));
            let (fields, cells): (Vec<_>, Vec<_>) = all.into_iter().unzip();
            Ok(table_of(fields, cells)?.into())
        })
    }

    /// The free energy of every latent for every sample, in nats, against the run's support set: how much better the sample's
    /// parts are explained together than apart.
    pub fn score<S: SampleSource>(
        &self,
        samples: S,
        options: OutputOptions,
    ) -> Result<Answers<'_, S>> {
        let support_samples = self.support_samples()?;
        let mut support = ForModel::new();
        Ok(Answers::new(self, samples, move |part| {
            let support = support.get(part.model, || {
                Ok(self.support_set(part.model, &support_samples)?.1)
            })?;
            let scores = support.scores(part.model, part.data)?;
            let mut all = kept(self, part, &options)?;
            all.extend(latent_numbers(
                part,
                options.long,
                &|_| vec!["free_energy".into()],
                &mut |k| vec![scores.of(part.model, k)],
            ));
            all.extend(split(part, &options));
            let (fields, cells): (Vec<_>, Vec<_>) = all.into_iter().unzip();
            Ok(table_of(fields, cells)?.into())
        }))
    }

    /// How much the whole tree explains of every sample against independent columns, in nats, beside the run's support set: a column
    /// `nats` where a row is a sample, and what each latent adds to it as seen from the tree's root. Unlike free energies, these add up, and compare between trees,
    /// families and dimensions.
    pub fn total<S: SampleSource>(
        &self,
        samples: S,
        options: OutputOptions,
    ) -> Result<Answers<'_, S>> {
        let support_samples = self.support_samples()?;
        let mut support = ForModel::new();
        Ok(Answers::new(self, samples, move |part| {
            let support = support.get(part.model, || {
                Ok(self.support_set(part.model, &support_samples)?.1)
            })?;
            let total = part.model.total(support, part.data)?;
            let mut all = kept(self, part, &options)?;
            let steps_are_rows =
                self.chain.is_some() && (options.long || part.samples.table().is_some());
            if !steps_are_rows {
                all.push(number_column(TOTAL, total.samples()));
            }
            all.extend(latent_numbers(
                part,
                options.long,
                &|_| vec![TOTAL.into()],
                &mut |k| vec![total.of(part.model, k)],
            ));
            all.extend(split(part, &options));
            let (fields, cells): (Vec<_>, Vec<_>) = all.into_iter().unzip();
            Ok(table_of(fields, cells)?.into())
        }))
    }
}
