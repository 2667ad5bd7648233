//! What the page of a fit shows, as plain structs, and the page itself.
//!
//! The page is one file: style, script and data are inside, and its content security policy forbids every request.
//! Rust only gathers numbers; all drawing is done by the small scripts beside this file.

use serde::{Serialize, Serializer};

/// Everything the page shows. Indices in `factors`, `latents` and `sequence` point into `variables`.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Report {
    /// What the run is called.
    pub title: String,
    /// The data file as the user named it.
    pub data: String,
    /// Rows in the data; sequences when there is a `sequence`.
    pub rows: usize,
    /// Those of `rows` that training never saw.
    pub held_out_rows: usize,
    /// Those of `rows` that chose the weights.
    pub validation_rows: usize,
    /// What each item does to its latent.
    pub items: Vec<ItemCurve>,
    /// The tree's variables; for a sequence those of one time step.
    pub variables: Vec<Variable>,
    /// Which variables hang together.
    pub factors: Vec<Vec<usize>>,
    /// Where the drawing starts; without it, at the latent in the middle.
    pub root: Option<usize>,
    /// What was learned about every latent.
    pub latents: Vec<Latent>,
    /// Training over its iterations.
    pub training: Vec<TrainingPoint>,
    /// Into how many parts a small sample was divided, each judged by a fit to the others; 0 where rows were held out.
    pub folds: usize,
    /// How many columns the model observes.
    pub observed_columns: usize,
    /// The fraction of their cells that is missing.
    pub missing_cells: f64,
    /// The data's columns, those that the model observes first.
    pub columns: Vec<DataColumn>,
    /// How many rows the values in `columns` and `latents` are of; a couple of thousand are plenty. For a sequence, its
    /// time steps.
    pub sampled_rows: usize,
    /// The most frequent sets of columns missing together.
    pub missing_patterns: Vec<MissingPattern>,
    /// The resolved model file.
    pub settings: String,
    /// Version, command, seed and whatever else it takes to run this again.
    pub facts: Vec<(String, String)>,
    /// Whether held-out cells rank evenly among what they may be.
    pub ranks: Option<HeldOutRanks>,
    /// For sequences: how the variables repeat over time.
    pub sequence: Option<Sequence>,
    /// For sequences: one of them, and what is foretold of it.
    pub over_time: Option<OverTime>,
    /// What changes of the tree gain, once they have been tried. The last of the fields: [`with_changes`] puts others in its place.
    pub changes: Vec<ChangeGain>,
}

/// What one change of the tree gains.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ChangeGain {
    /// The change, in words.
    pub sentence: String,
    /// Nats a held-out row more.
    pub gain: f64,
    /// The standard error of that.
    pub standard_error: f64,
    /// Corrected for how many were tried.
    pub p_value: f64,
    /// The tree after it.
    pub newick: String,
}

/// Ranks of held-out cells, each hidden in turn, among what they may be.
#[derive(Clone, Debug, Serialize)]
pub struct HeldOutRanks {
    /// How many ranks fall into each part from 0 to 1.
    pub histogram: Vec<usize>,
    /// Whether they are even, and what it means if not.
    pub verdict: String,
}

/// The mean of a latent by the answers to an item.
#[derive(Clone, Debug, Serialize)]
pub struct ItemCurve {
    /// The item.
    pub name: String,
    /// Its latent.
    pub latent: String,
    /// `+`, `−`, `not monotone` or `flat`.
    pub direction: String,
    /// Its answers, in their order.
    pub answers: Vec<String>,
    /// The latent's mean for each, if nothing else were known.
    pub means: Vec<f64>,
}

/// A node of the tree.
#[derive(Clone, Debug, Serialize)]
pub struct Variable {
    /// Its name in the model file.
    pub name: String,
    /// Whether nobody observes it.
    pub latent: bool,
}

/// What was learned about one latent.
#[derive(Clone, Debug, Serialize)]
pub struct Latent {
    /// Which variable it is.
    pub variable: usize,
    /// Its family as the model file writes it, such as `gaussian(2)`.
    pub family: String,
    /// Mean free energy per row, in nats.
    pub free_energy: FreeEnergy,
    /// The contribution of each neighbouring subtree (ablation gain).
    pub contributions: Vec<Contribution>,
    /// Posterior standard deviation relative to the prior's: 0 is certain, 1 is as before the data.
    pub spread: f64,
    /// Plain sentences about what is wrong with it.
    pub warnings: Vec<String>,
    /// Its posterior for the sampled rows.
    pub coordinates: Vec<Coordinate>,
}

/// Mean free energy per row, in nats.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct FreeEnergy {
    /// Over the rows that were learned from.
    pub train: f64,
    /// Over the others; `None` when none were held out.
    pub held_out: Option<f64>,
}

/// How far a latent's held-out free energy falls when the messages from one subtree are left out.
#[derive(Clone, Debug, Serialize)]
pub struct Contribution {
    /// The neighbour that the subtree starts with.
    pub from: String,
    /// The fall, in nats.
    pub nats: f64,
}

/// One number of a latent's posterior, for every sampled row.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Coordinate {
    /// Its name, such as `anxiety` or `place.2`.
    pub label: String,
    /// Whether the values are angles in radians.
    pub circular: bool,
    /// The least and greatest possible value, where they exist.
    pub range: Option<(f32, f32)>,
    /// The prior, where its outline is easy to draw.
    pub prior: Option<Prior>,
    /// Posterior means.
    #[serde(serialize_with = "short")]
    pub mean: Vec<f32>,
    /// Posterior standard deviations.
    #[serde(serialize_with = "short")]
    pub sd: Vec<f32>,
}

/// The density that a coordinate's histogram is set against.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Prior {
    /// A bell.
    Normal {
        /// Its centre.
        mean: f32,
        /// Its standard deviation.
        sd: f32,
    },
    /// The same everywhere between two values.
    Uniform {
        /// The least value.
        low: f32,
        /// The greatest value.
        high: f32,
    },
    /// Any other, as points of value and density.
    Curve(Vec<(f32, f32)>),
}

/// The objective at one iteration: mean free energy per row and latent, in nats.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct TrainingPoint {
    /// Steps taken so far.
    pub iteration: usize,
    /// On the rows that were learned from; not a number where training had ended.
    pub free_energy: f64,
    /// On the rows that choose the weights, at the iterations where it was measured; in a small sample by cross-validation.
    pub held_out: Option<f64>,
}

/// A column of the data.
#[derive(Clone, Debug, Serialize)]
pub struct DataColumn {
    /// Its name in the file.
    pub name: String,
    /// Whether the model observes it.
    pub observed: bool,
    /// The fraction of all rows in which it is missing.
    pub missing: f64,
    /// Its values in the sampled rows.
    pub values: Values,
}

/// A column's values in the sampled rows; `None` is missing.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Values {
    /// A number column.
    Numbers(Vec<Option<f32>>),
    /// A column of text.
    Levels {
        /// The different texts.
        levels: Vec<String>,
        /// Indices into `levels`.
        codes: Vec<Option<u32>>,
    },
}

/// A set of columns missing together.
#[derive(Clone, Debug, Serialize)]
pub struct MissingPattern {
    /// For every column, whether it is missing.
    pub missing: Vec<bool>,
    /// How many rows look like this.
    pub rows: usize,
}

/// How the variables of one time step repeat.
#[derive(Clone, Debug, Serialize)]
pub struct Sequence {
    /// The column that tells sequences apart.
    pub id: String,
    /// The column that orders them.
    pub time: String,
    /// Steps of the longest sequence.
    pub steps: usize,
    /// Latents tied over time: the first at a step hangs together with the second at the next.
    pub links: Vec<(usize, usize)>,
    /// For every sampled row, the number of its sequence.
    pub of: Vec<u32>,
    /// For every sampled row, its step from 1.
    pub step: Vec<u32>,
    /// Free energy at every step, per latent.
    pub curves: Vec<StepCurve>,
}

/// One sequence at its last steps, and steps that nobody has seen.
#[derive(Clone, Debug, Serialize)]
pub struct OverTime {
    /// Which one it is; empty where there is one.
    pub name: String,
    /// Its steps; those to come follow them.
    pub steps: usize,
    /// The time of every step.
    pub times: Vec<String>,
    /// The chance that a value lies within its interval.
    pub interval: f64,
    /// What is drawn, each over all steps.
    pub bands: Vec<Band>,
}

/// A latent or a column over time; NaN where nothing is known.
#[derive(Clone, Debug, Serialize)]
pub struct Band {
    /// The latent, or the column.
    pub label: String,
    /// What was observed.
    #[serde(serialize_with = "short")]
    pub observed: Vec<f32>,
    /// What is expected.
    #[serde(serialize_with = "short")]
    pub middle: Vec<f32>,
    /// The lower end of the band.
    #[serde(serialize_with = "short")]
    pub low: Vec<f32>,
    /// Its upper end.
    #[serde(serialize_with = "short")]
    pub high: Vec<f32>,
}

/// A latent's mean free energy at every step of a sequence, in nats; NaN where nothing is known.
#[derive(Clone, Debug, Serialize)]
pub struct StepCurve {
    /// Which variable it is.
    pub variable: usize,
    /// Over the rows that were learned from.
    pub train: Vec<f64>,
    /// Over the held-out rows; may be empty.
    pub held_out: Vec<f64>,
}

/// Five digits are more than a screen can show, and halve the page.
fn short<S: Serializer>(values: &[f32], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(values.iter().map(|x| {
        let text = format!("{x:.4e}");
        text.parse::<f32>().unwrap_or(*x)
    }))
}

/// In the order in which the page runs them: each uses only what stands before it, and `start.js` calls them all.
const SCRIPTS: [&str; 11] = [
    include_str!("page.js"),
    include_str!("summary.js"),
    include_str!("tree.js"),
    include_str!("curves.js"),
    include_str!("items.js"),
    include_str!("ranks.js"),
    include_str!("changes.js"),
    include_str!("over_time.js"),
    include_str!("scatter.js"),
    include_str!("missing.js"),
    include_str!("start.js"),
];

/// The report as one HTML page that opens offline.
///
/// ```
/// use ramp_io::report::{Report, page};
///
/// let html = page(&Report { title: "mood & <sleep>".into(), ..Report::default() });
/// assert!(html.contains("<title>mood &amp; &lt;sleep&gt;"));
/// ```
pub fn page(report: &Report) -> String {
    let script = SCRIPTS.concat();
    let data = json(report);
    let title = text(&report.title);
    let mut page = String::with_capacity(data.len() + script.len() + 32_768);
    // One pass over the template, so that a mark inside the data is never taken for one of ours.
    for (i, part) in include_str!("page.html").split("@@").enumerate() {
        page.push_str(match (i % 2, part) {
            (0, markup) => markup,
            (_, "title") => &title,
            (_, "style") => include_str!("page.css"),
            (_, "data") => &data,
            (_, "script") => &script,
            (_, other) => unreachable!("page.html has a mark @@{other}@@ that nothing fills"),
        });
    }
    page
}

/// What marks the data in a page.
const DATA_MARK: &str = r#"<script type="application/json" id="report">"#;

/// The data of a page, as JSON: what programs read in place of the page.
///
/// ```
/// use ramp_io::report::{Report, data_of, page};
///
/// let html = page(&Report { title: "mood".into(), ..Report::default() });
/// assert!(data_of(&html).unwrap().starts_with(r#"{"title":"mood""#));
/// assert!(data_of("<p>another page").is_none());
/// ```
pub fn data_of(page: &str) -> Option<&str> {
    let data = page.split_once(DATA_MARK)?.1;
    // No character of the data can end the element.
    Some(data.split_once("</script")?.0.trim())
}

/// Where the changes stand: at the end, and no text inside the data can look like it, as quotes in texts are escaped.
const CHANGES_MARK: &str = "\"changes\":[";

/// A page with other changes in its list; `None` for a page that has no room for one.
///
/// ```
/// use ramp_io::report::{ChangeGain, Report, data_of, page, with_changes};
///
/// let html = page(&Report::default());
/// let change = ChangeGain {
///     sentence: "q7 belongs to anger rather than anxiety".into(),
///     gain: 0.031,
///     standard_error: 0.004,
///     p_value: 0.001,
///     newick: "((q1,q2)anxiety,(q3,q7)anger)distress;".into(),
/// };
/// let listed = with_changes(&html, &[change]).unwrap();
/// assert!(data_of(&listed).unwrap().contains("q7 belongs to anger"));
/// assert_eq!(with_changes(&listed, &[]).unwrap(), html);
/// ```
pub fn with_changes(page: &str, changes: &[ChangeGain]) -> Option<String> {
    put_changes(page, &json(&changes))
}

/// A page with the changes that are listed in another; as it is where that lists none.
pub fn with_changes_of(page: &str, other: &str) -> String {
    let listed = data_of(other).and_then(|data| {
        let start = data.rfind(CHANGES_MARK)? + CHANGES_MARK.len() - 1;
        data[start..].strip_suffix('}')
    });
    let put = listed.and_then(|listed| put_changes(page, listed));
    put.unwrap_or_else(|| page.into())
}

fn put_changes(page: &str, list: &str) -> Option<String> {
    let data = data_of(page)?;
    let start = data.as_ptr() as usize - page.as_ptr() as usize;
    let mark = start + data.rfind(CHANGES_MARK)? + CHANGES_MARK.len() - 1;
    let end = start + data.strip_suffix('}')?.len();
    Some([&page[..mark], list, &page[end..]].concat())
}

/// The report, or a part of it, as JSON in which no character can end a script element or start a comment; JSON allows all of these only
/// within strings, where an escape means the same.
fn json(report: &impl Serialize) -> String {
    let plain =
        serde_json::to_string(report).expect("structs of text and numbers always serialise");
    let mut safe = String::with_capacity(plain.len());
    for c in plain.chars() {
        match c {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                safe.push_str(&format!("\\u{:04x}", c as u32));
            }
            _ => safe.push(c),
        }
    }
    safe
}

/// Text as HTML.
fn text(plain: &str) -> String {
    plain
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}
