//! How well missing numbers are foretold, in words.

use super::Readout;
use crate::encode::Encoder;

impl Readout {
    /// In a sentence or two, how well numbers are foretold from the rest of their row, and whether the tree or a line says more; `None` where there are
    /// no readouts.
    pub fn describe(&self, encoder: &Encoder) -> Option<String> {
        /// A share of the variance that is worth a word.
        const MATTERS: f64 = 0.02;
        let [tree, linear, both] = self.explained()?;
        let percent = |share: f64| format!("{:.0} %", 100.0 * share.max(0.0));
        let mut text = format!(
            "numbers foretold from the rest of their row (cross-validated): the tree explains {} of their variance, a linear regression {}, both \
             together {}, which is what `ramp impute` uses",
            percent(tree),
            percent(linear),
            percent(both)
        );
        if linear - tree > MATTERS {
            let mut lacking: Vec<(f64, &str)> = self
                .measured()
                .map(|(o, c, m)| {
                    let name = &encoder.observations[o].columns[c][..];
                    ((m.tree - m.both) / m.variance, name)
                })
                .collect();
            lacking.sort_by(|a, b| b.0.total_cmp(&a.0));
            let names: Vec<String> = lacking
                .iter()
                .take(3)
                .map(|(_, n)| format!("`{n}`"))
                .collect();
            text += &format!(
                "; the tree leaves out what a linear regression has, of {} most: columns that hang together want a latent of their own or `dim = 2`",
                names.join(", ")
            );
        }
        Some(text)
    }
}
