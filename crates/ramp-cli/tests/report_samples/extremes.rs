//! Reports of the most and the least that there may be to show.

use super::{latent, questionnaire, variable};
use ramp_cli::report::*;

/// Sixty leaves in pairs on thirty latents, with long names: the largest tree that must be readable at a glance.
pub fn sixty() -> Report {
    let mut report = questionnaire();
    let sampled = report.latents.remove(0);
    report.title = "sixty leaves".into();
    report.variables = vec![variable("life", true)];
    report.factors.clear();
    let hang = |report: &mut Report, parent: usize, name: String, latent: bool| {
        report.variables.push(Variable { name, latent });
        report
            .factors
            .push(vec![parent, report.variables.len() - 1]);
        report.variables.len() - 1
    };
    for group in 0..6 {
        let above = hang(&mut report, 0, format!("order number {group}"), true);
        for pair in 0..5 {
            let parent = hang(&mut report, above, format!("g{group}{pair}"), true);
            hang(&mut report, parent, format!("left_{group}_{pair}"), false);
            let long = "a_rather_long_name_of_a_column_in_a_table";
            hang(&mut report, parent, format!("{long}_{group}_{pair}"), false);
        }
    }
    let one = |variable: usize| {
        let part = variable as f64 / 97.0;
        let mut latent = latent(variable, "gaussian(1)", 0.5 + part, 0.4 + part, 0.6);
        latent.coordinates = sampled.coordinates.clone();
        latent.coordinates[0].label = report.variables[variable].name.clone();
        latent.coordinates[0].mean.rotate_left(variable);
        latent
    };
    let latents = (0..report.variables.len()).filter(|v| report.variables[*v].latent);
    report.latents = latents.map(one).collect();
    report
}

/// Next to nothing is known: a latent never sampled, no training, no rows held out.
pub fn sparse() -> Report {
    let mut only = latent(0, "gaussian(1)", 0.1, 0.0, f64::NAN);
    only.free_energy.held_out = None;
    Report {
        title: "sparse".into(),
        variables: vec![variable("z", true)],
        latents: vec![only],
        ..Report::default()
    }
}
