//! A report whose names try to break out of the page.

use super::questionnaire;
use ramp_cli::report::*;

/// Names that try to break out of wherever they are put.
pub const HOSTILE: [&str; 5] = [
    "</script><script>broken = 1//",
    "<img src=x onerror='broken = 2'>",
    "\"><svg onload=\"broken = 3\">",
    "<!--<script>\u{2028}@@script@@ ${broken = 4} `",
    "</title><b>&lt;</b>",
];

/// The questionnaire with such names everywhere.
pub fn hostile() -> Report {
    let mut report = questionnaire();
    let mut next = HOSTILE.iter().cycle().map(|name| name.to_string());
    let mut name = || next.next().unwrap_or_default();
    report.title = name();
    report.data = name();
    report.settings = name();
    report.variables.iter_mut().for_each(|v| v.name = name());
    for column in &mut report.columns {
        column.name = name();
        if let Values::Levels { levels, .. } = &mut column.values {
            levels.iter_mut().for_each(|level| *level = name());
        }
    }
    for latent in &mut report.latents {
        latent.family = name();
        latent.warnings = HOSTILE.map(String::from).to_vec();
        latent
            .contributions
            .iter_mut()
            .for_each(|b| b.from = name());
        latent.coordinates.iter_mut().for_each(|c| c.label = name());
    }
    for change in &mut report.changes {
        change.sentence = name();
    }
    report.facts = HOSTILE
        .iter()
        .map(|n| (n.to_string(), n.to_string()))
        .collect();
    report
}
