//! Finding a variable or message by its name, with a suggestion when the name is misspelt.

use super::error::list;
use super::{FactorTree, GraphError, MessageId, VariableId};

impl FactorTree {
    /// The variable of this name; the error suggests the nearest name.
    ///
    /// ```
    /// use ramp::graph::FactorTree;
    ///
    /// let tree = FactorTree::from_edges(&[("hip", "knee"), ("hip", "shoulder")])?;
    /// assert_eq!(tree.find("hip")?, tree.latents()[0]);
    /// let error = tree.find("shulder").unwrap_err();
    /// assert_eq!(error.to_string(), "there is no variable `shulder`: did you mean `shoulder`?");
    /// # Ok::<(), ramp::graph::GraphError>(())
    /// ```
    pub fn find(&self, name: &str) -> Result<VariableId, GraphError> {
        let sorted = self.sorted_by_name();
        match sorted.binary_search_by(|&variable| self.name(variable).cmp(name)) {
            Ok(position) => Ok(sorted[position]),
            Err(_) => Err(unknown(
                name,
                self.variables().map(|variable| self.name(variable)),
            )),
        }
    }

    /// The message of this [name](Self::message_name); the error suggests the nearest name.
    ///
    /// It looks through all messages: for files and tests, not for loops.
    pub fn find_message(&self, name: &str) -> Result<MessageId, GraphError> {
        self.messages()
            .find(|&message| self.message_name(message) == name)
            .ok_or_else(|| {
                let names: Vec<String> = self
                    .messages()
                    .map(|message| self.message_name(message))
                    .collect();
                let hint = hint(name, names.iter().map(String::as_str));
                GraphError::UnknownMessage {
                    name: name.to_owned(),
                    hint,
                }
            })
    }
}

/// The error for a name that is none of the names there are.
pub(super) fn unknown<'a>(name: &str, names: impl Iterator<Item = &'a str> + Clone) -> GraphError {
    GraphError::Unknown {
        name: name.to_owned(),
        hint: hint(name, names),
    }
}

/// As many names may be equally near before the list of all names says more.
const SUGGESTED: usize = 3;

/// The nearest name if one is near enough to be a slip of the keyboard, else what there is to choose from.
fn hint<'a>(name: &str, names: impl Iterator<Item = &'a str> + Clone) -> String {
    let length = name.chars().count();
    let mut least = (length / 3).max(1);
    let mut nearest: Vec<String> = Vec::new();
    for candidate in names.clone() {
        if candidate.chars().count().abs_diff(length) > least {
            continue;
        }
        let distance = edit_distance(name, candidate);
        if distance < least {
            least = distance;
            nearest.clear();
        }
        if distance == least {
            nearest.push(format!("`{candidate}`"));
        }
    }
    if (1..=SUGGESTED).contains(&nearest.len()) {
        format!("did you mean {}?", nearest.join(" or "))
    } else {
        format!(
            "there are {}",
            list(&names.map(str::to_owned).collect::<Vec<_>>())
        )
    }
}

/// How many characters must be put in, taken out, changed or swapped with their neighbour to turn `a` into `b`;
/// a change of case counts nothing.
fn edit_distance(a: &str, b: &str) -> usize {
    let lower = |text: &str| {
        text.chars()
            .flat_map(char::to_lowercase)
            .collect::<Vec<_>>()
    };
    let (a, b) = (lower(a), lower(b));
    let mut before: Vec<usize> = Vec::new();
    let mut above: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = Vec::with_capacity(b.len() + 1);
        row.push(i);
        for j in 1..=b.len() {
            let changed = above[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut best = changed.min(above[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(before[j - 2] + 1);
            }
            row.push(best);
        }
        before = std::mem::replace(&mut above, row);
    }
    above[b.len()]
}
