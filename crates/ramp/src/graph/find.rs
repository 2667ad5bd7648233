//! Finding a variable or message by its name, with a suggestion when the name is misspelt.

use super::{FactorTree, GraphError, MessageId, VariableId};
use crate::names::hint;

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
