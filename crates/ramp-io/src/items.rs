//! What each item does to its latent: the mean that every answer by itself would give it, and which way that runs.

use crate::Result;
use crate::encode::{Encoded, Encoder, Encoding};
use crate::run::{Project, Run};
use crate::source::Samples;
use ramp::data::Dataset;
use ramp::graph::VariableId;
use ramp::model::Model;
use ramp::network::NetworkSpec;
use std::borrow::Cow;
use std::collections::HashSet;

/// Items that are looked at: every answer of each takes a row with all columns.
const MOST: usize = 120;
/// Points of a number's curve, at evenly spaced ranks.
const POINTS: usize = 9;
/// A curve of which this share of all movement goes the other way is not monotone.
const WAYWARD: f64 = 0.15;
/// Curves that move the mean by less than this, in standard deviations of the prior, say nothing.
const FLAT: f64 = 0.1;

/// The curve of one item.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Item {
    /// The observation.
    pub name: String,
    /// The latent that it hangs on.
    pub latent: String,
    /// Answers as they stand in the data, and the latent's mean if nothing else were known, in their order.
    pub curve: Vec<(String, f64)>,
}

/// Which way a curve runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Direction {
    /// Higher answers, higher means.
    Up,
    /// Higher answers, lower means.
    Down,
    /// Some of both.
    NotMonotone,
    /// Hardly at all.
    Flat,
}

impl Direction {
    /// In a sign or two words.
    pub fn sign(self) -> &'static str {
        match self {
            Direction::Up => "+",
            Direction::Down => "−",
            Direction::NotMonotone => "not monotone",
            Direction::Flat => "flat",
        }
    }
}

impl Item {
    /// Which way it runs.
    pub fn direction(&self) -> Direction {
        let steps = || self.curve.windows(2).map(|w| w[1].1 - w[0].1);
        let (mut up, mut down) = (0.0, 0.0);
        for step in steps() {
            *(if step > 0.0 { &mut up } else { &mut down }) += f64::abs(step);
        }
        let (more, less) = (f64::max(up, down), f64::min(up, down));
        match () {
            _ if up + down < FLAT => Direction::Flat,
            _ if less > WAYWARD * (up + down) && less > FLAT => Direction::NotMonotone,
            _ if more == up => Direction::Up,
            _ => Direction::Down,
        }
    }
}

/// A model and the samples whose answers its curves run through.
struct Looked<'a> {
    model: &'a Model,
    encoder: &'a Encoder,
    answers: Answers<'a>,
    /// Those of the samples that count.
    rows: &'a [u32],
}

/// Where the answers are.
enum Answers<'a> {
    /// A project's, which ranks may hold together.
    Learned(&'a Project),
    /// Those that a run keeps, as they stand in its file and as observations.
    Kept(&'a Samples, &'a Dataset),
}

impl Answers<'_> {
    fn are_a_table(&self) -> bool {
        match self {
            Answers::Learned(project) => project.samples.table().is_some(),
            Answers::Kept(samples, _) => samples.table().is_some(),
        }
    }

    /// One observation of all samples.
    fn column(&self, name: &str) -> Result<Cow<'_, Dataset>> {
        Ok(match self {
            Answers::Learned(project) => Cow::Owned(project.observed_column(name)?),
            Answers::Kept(_, data) => Cow::Borrowed(*data),
        })
    }

    /// Some samples as they stand in their file.
    fn select(&self, rows: &[u32]) -> Result<Samples> {
        match self {
            Answers::Learned(project) => project.select(rows),
            Answers::Kept(samples, _) => samples.select(rows),
        }
    }
}

/// The curves of a trained project's items.
pub(crate) fn items_of(project: &Project) -> Result<Vec<Item>> {
    curves(&Looked {
        model: &project.model,
        encoder: &project.encoder,
        answers: Answers::Learned(project),
        rows: &project.training,
    })
}

impl Run {
    /// What each item with an order does to its latent, by the training samples that the run keeps.
    pub fn items(&self) -> Result<Vec<Item>> {
        if self.encoder.chain {
            return Ok(vec![]);
        }
        let samples = self.support_samples()?;
        let (data, _) = self.encode(&samples)?;
        let rows: Vec<u32> = (0..samples.len() as u32).collect();
        curves(&Looked {
            model: &self.model,
            encoder: &self.encoder,
            answers: Answers::Kept(&samples, &data),
            rows: &rows,
        })
    }
}

/// What deserves a word of items, latent by latent.
pub fn item_warnings(items: &[Item]) -> Vec<String> {
    let mut latents: Vec<&str> = items.iter().map(|i| &i.latent[..]).collect();
    let mut seen = HashSet::new();
    latents.retain(|l| seen.insert(*l));
    latents.iter().flat_map(|l| warnings(l, items)).collect()
}

/// The curves of items with an order, of the first [`MOST`]. Chains have none: what an item says depends on its time.
fn curves(project: &Looked<'_>) -> Result<Vec<Item>> {
    let tree = project.model.tree();
    if !project.answers.are_a_table() || project.encoder.chain {
        return Ok(vec![]);
    }
    let mut asked: Vec<Asked<'_>> = vec![];
    for observation in &project.encoder.observations {
        let Some(latent) = tree.latent_of(tree.find(&observation.name)?) else {
            continue;
        };
        let answers = match &observation.encoding {
            Encoding::Ordinal { levels } => (0..levels.len())
                .map(|l| {
                    let one = (0..levels.len()).map(|i| f32::from(u8::from(i == l)));
                    (levels[l].clone(), one.collect())
                })
                .collect(),
            Encoding::Number { .. } => {
                let points = ranks(project, observation)?;
                let rows: Vec<u32> = points.iter().map(|&(row, _)| row as u32).collect();
                let few = project.answers.select(&rows)?;
                let texts = match few.table() {
                    Some(table) => crate::table::column(table, &observation.columns[0])?.texts(),
                    None => vec![None; rows.len()],
                };
                (points.into_iter().zip(texts))
                    .map(|((_, x), text)| (text.unwrap_or_default(), vec![x]))
                    .collect()
            }
            _ => continue,
        };
        asked.push(Asked {
            observation,
            latent,
            answers,
        });
        if asked.len() == MOST {
            break;
        }
    }
    let rows: usize = asked.iter().map(|a| a.answers.len()).sum();
    if rows == 0 {
        return Ok(vec![]);
    }
    let posterior = project
        .model
        .posterior(&one_at_a_time(project, &asked, rows)?)?;
    let mut items = vec![];
    let mut first = 0;
    for Asked {
        observation,
        latent,
        answers,
    } in asked
    {
        let k = tree.latents().iter().position(|&v| v == latent);
        let latents = posterior.latents();
        let Some(belief) = k.and_then(|k| latents.get(k)) else {
            continue;
        };
        let span = first..first + answers.len();
        first = span.end;
        // In several dimensions, the first where the item's order is bound to it, as it is what the item measures; else the coordinate that the item moves most.
        let means = belief.mean_array();
        let key = format!("{}>{}", observation.name, tree.name(latent));
        let networks = &project.model.spec().networks;
        let bound = matches!(networks.get(&key), Some(NetworkSpec::Monotone(_)));
        let curve = |c: usize| -> Vec<f64> { span.clone().map(|row| means.row(row)[c]).collect() };
        let seen = if bound { 1 } else { means.shape()[1] };
        let curves = (0..seen).map(curve);
        let range = |c: &Vec<f64>| {
            c.iter().copied().fold(f64::NEG_INFINITY, f64::max)
                - c.iter().copied().fold(f64::INFINITY, f64::min)
        };
        let Some(curve) = curves.max_by(|a, b| range(a).total_cmp(&range(b))) else {
            continue;
        };
        items.push(Item {
            name: observation.name.clone(),
            latent: tree.name(latent).to_string(),
            curve: answers
                .into_iter()
                .map(|(text, _)| text)
                .zip(curve)
                .collect(),
        });
    }
    Ok(items)
}

/// An item, its latent, and its answers as they are spelled and as the network sees them.
struct Asked<'a> {
    observation: &'a Encoded,
    latent: VariableId,
    answers: Vec<(String, Vec<f32>)>,
}

/// Every answer of every item in a row of its own, in which all else is missing.
fn one_at_a_time(project: &Looked<'_>, asked: &[Asked<'_>], rows: usize) -> Result<Dataset> {
    let mut data = Dataset::new();
    for observation in &project.encoder.observations {
        let features = observation.encoding.features();
        let mut values = vec![f32::NAN; rows * features];
        let mut first = 0;
        for one in asked {
            if one.observation.name == observation.name {
                for (i, (_, x)) in one.answers.iter().enumerate() {
                    values[(first + i) * features..][..features].copy_from_slice(x);
                }
            }
            first += one.answers.len();
        }
        data = match observation.encoding {
            Encoding::Image { .. } => data.observe_bytes(
                &observation.name,
                features,
                vec![0; rows * features],
                Some(vec![false; rows]),
            )?,
            _ => data.observe(&observation.name, features, values)?,
        };
    }
    Ok(data)
}

/// Training rows at evenly spaced ranks of a number, each with the number.
fn ranks(project: &Looked<'_>, observation: &Encoded) -> Result<Vec<(usize, f32)>> {
    let all = project.answers.column(&observation.name)?;
    let seen = all.observation(&observation.name)?;
    let mut known: Vec<(usize, f32)> = project
        .rows
        .iter()
        .map(|&n| n as usize)
        .filter(|&n| seen.is_present(n))
        .map(|n| (n, seen.numbers(n)[0]))
        .collect();
    known.sort_by(|a, b| a.1.total_cmp(&b.1));
    let Some(last) = known.len().checked_sub(1) else {
        return Ok(vec![]);
    };
    // The tails are left out: a curve is read by its middle.
    let mut points: Vec<(usize, f32)> = (1..=POINTS)
        .map(|i| known[last * i / (POINTS + 1)])
        .collect();
    points.dedup_by(|a, b| a.1 == b.1);
    Ok(points)
}

/// What of a latent's items deserves a word.
pub(crate) fn warnings(latent: &str, items: &[Item]) -> Vec<String> {
    let of = |direction| -> Vec<&str> {
        items
            .iter()
            .filter(|i| i.latent == latent && i.direction() == direction)
            .map(|i| &i.name[..])
            .collect()
    };
    let mut warnings = vec![];
    let wayward = of(Direction::NotMonotone);
    if !wayward.is_empty() {
        warnings.push(format!(
            "`{latent}` is not monotone in {}: low and high answers push it the same way, so it may measure something else than \
             they ask for; `monotone = true` in [observations] forbids it",
            list(&wayward)
        ));
    }
    let (up, down) = (of(Direction::Up), of(Direction::Down));
    let fewer = if up.len() < down.len() { &up } else { &down };
    if !fewer.is_empty() && up.len() != down.len() {
        let runs = if fewer.len() == 1 { "runs" } else { "run" };
        warnings.push(format!(
            "{} {runs} against the others of `{latent}`; right where they are worded the other way round, else look at the data",
            list(fewer)
        ));
    }
    warnings
}

fn list(names: &[&str]) -> String {
    const LISTED: usize = 8;
    let mut text: Vec<String> = names
        .iter()
        .take(LISTED)
        .map(|n| format!("`{n}`"))
        .collect();
    if names.len() > LISTED {
        text.push(format!("{} more", names.len() - LISTED));
    }
    text.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(name: &str, means: &[f64]) -> Item {
        Item {
            name: name.into(),
            latent: "z".into(),
            curve: means.iter().map(|&m| (String::new(), m)).collect(),
        }
    }

    #[test]
    fn directions_are_told_apart() {
        for (means, direction) in [
            (&[-1.0, 0.0, 0.9][..], Direction::Up),
            (&[1.0, 0.2, -0.9], Direction::Down),
            (&[1.0, -0.5, 0.9], Direction::NotMonotone),
            (&[0.01, 0.0, 0.02], Direction::Flat),
            (&[-1.0, 0.3, 0.25, 1.0], Direction::Up),
        ] {
            assert_eq!(item("a", means).direction(), direction, "{means:?}");
        }
    }

    #[test]
    fn items_that_fold_or_run_against_the_others_are_named() {
        let items = [
            item("a", &[-1.0, 1.0]),
            item("b", &[-1.0, 1.0]),
            item("c", &[1.0, -1.0]),
            item("d", &[1.0, -1.0, 1.0]),
        ];
        let warnings = warnings("z", &items);
        assert_eq!(warnings.len(), 2);
        assert!(warnings[0].contains("not monotone in `d`"), "{warnings:?}");
        assert!(
            warnings[1].starts_with("`c` runs against the others of `z`"),
            "{warnings:?}"
        );
        assert!(super::warnings("other", &items).is_empty());
    }
}
