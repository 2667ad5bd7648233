//! Posteriors as columns of a table, with names that a person can read.

use ramp::family::{AnyFamily, Belief};
use ramp::infer::LatentPosterior;

/// One number of a posterior.
#[derive(Clone, Debug, PartialEq)]
pub struct PosteriorColumn {
    /// Its name after the latent's: `mean`, `sd`, `mean2`, `sd2`, `p1` ….
    pub suffix: String,
    /// Which coordinate of the description it is.
    pub coordinate: usize,
    /// Whether it is the standard deviation and not the mean.
    pub sd: bool,
    /// Whether it is an angle.
    pub circular: bool,
    /// Whether it is the probability of a level.
    pub probability: bool,
}

/// The numbers that describe beliefs of a family: mean and standard deviation of every coordinate, and the probability of
/// every level.
///
/// ```
/// use ramp_io::stream::posterior_columns;
/// let names = |family: &str| -> Vec<String> {
///     posterior_columns(&family.parse().unwrap()).into_iter().map(|c| c.suffix).collect()
/// };
/// assert_eq!(names("gaussian"), ["mean", "sd"]);
/// assert_eq!(names("categorical(3)"), ["p1", "p2", "p3"]);
/// assert_eq!(names("von_mises x gaussian"), ["mean1", "sd1", "mean2", "sd2"]);
/// ```
pub fn posterior_columns(belief: &Belief) -> Vec<PosteriorColumn> {
    let sizes: Vec<usize> = belief
        .parts()
        .iter()
        .map(|part| part.size().value)
        .collect();
    let is_levels = |part: &AnyFamily| matches!(part, AnyFamily::Categorical(_));
    let numbers: usize = belief
        .parts()
        .iter()
        .zip(&sizes)
        .filter(|(part, _)| !is_levels(part))
        .map(|(_, n)| n)
        .sum();
    let mut columns = vec![];
    let (mut coordinate, mut number, mut level) = (0, 0, 0);
    for (part, &size) in belief.parts().iter().zip(&sizes) {
        for _ in 0..size {
            let mut push = |suffix: String, sd: bool| {
                columns.push(PosteriorColumn {
                    suffix,
                    coordinate,
                    sd,
                    circular: matches!(part, AnyFamily::VonMises(_)),
                    probability: is_levels(part),
                });
            };
            if is_levels(part) {
                level += 1;
                push(format!("p{level}"), false);
            } else {
                number += 1;
                let place = if numbers > 1 {
                    number.to_string()
                } else {
                    String::new()
                };
                push(format!("mean{place}"), false);
                push(format!("sd{place}"), true);
            }
            coordinate += 1;
        }
    }
    columns
}

/// The values of these columns, column by column: for every sample, of a chain for every step of every sample.
pub fn posterior_values(columns: &[PosteriorColumn], posterior: &LatentPosterior) -> Vec<Vec<f64>> {
    let (means, sds) = posterior.moments();
    let of = |column: &PosteriorColumn| {
        let from = if column.sd { &sds } else { &means };
        from.column(column.coordinate).collect()
    };
    columns.iter().map(of).collect()
}
