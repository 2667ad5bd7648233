//! The messages of a tree: who sends what to whom, and what each one is called.

use super::{FactorId, FactorTree, MessageId, VariableId};
use std::borrow::Cow;

/// Up to this many sources are spelled out in a message's name; a wide factor would make names of quadratic size.
const SPELLED_SOURCES: usize = 8;

/// One message for every factor and every latent in it, from the factor to the latent.
impl FactorTree {
    /// All messages, grouped by the latent that receives them.
    pub fn messages(
        &self,
    ) -> impl ExactSizeIterator<Item = MessageId> + DoubleEndedIterator + Clone + use<> {
        (0..self.message_count()).map(MessageId::new)
    }

    /// How many messages there are.
    pub fn message_count(&self) -> usize {
        self.message_factors().len()
    }

    /// The messages that a latent receives, one from each of [`factors_of`](Self::factors_of) and in that order;
    /// their ids are contiguous. An observation receives none.
    pub fn messages_into(
        &self,
        variable: VariableId,
    ) -> impl ExactSizeIterator<Item = MessageId> + DoubleEndedIterator + Clone + use<> {
        let starts = self.message_starts();
        (starts[variable.index()]..starts[variable.index() + 1]).map(MessageId::new)
    }

    /// The factor that sends a message.
    pub fn message_factor(&self, message: MessageId) -> FactorId {
        self.message_factors()[message.index()]
    }

    /// The latent that receives a message.
    pub fn message_target(&self, message: MessageId) -> VariableId {
        self.message_targets()[message.index()]
    }

    /// The message from a factor to a variable, if the variable is a latent of that factor.
    pub fn message(&self, factor: FactorId, variable: VariableId) -> Option<MessageId> {
        if !self.is_latent(variable) {
            return None;
        }
        let position = self.factors_of(variable).binary_search(&factor).ok()?;
        Some(MessageId::new(
            self.message_starts()[variable.index()] + position,
        ))
    }

    /// The variables that a message speaks for directly: the other variables of its factor, in order.
    pub fn sources(
        &self,
        message: MessageId,
    ) -> impl DoubleEndedIterator<Item = VariableId> + Clone {
        let target = self.message_target(message);
        let members = self.variables_of(self.message_factor(message));
        members
            .iter()
            .copied()
            .filter(move |&variable| variable != target)
    }

    /// What a message hears from one of its sources: the messages into that source from its other factors.
    /// Nothing for an observed source, which speaks from the data.
    ///
    /// ```
    /// use ramp::graph::FactorTree;
    ///
    /// let tree = FactorTree::chain(3)?;
    /// let message = tree.find_message("z2>z3")?;
    /// let heard: Vec<String> = tree
    ///     .sources(message)
    ///     .flat_map(|source| tree.inputs(message, source))
    ///     .map(|input| tree.message_name(input))
    ///     .collect();
    /// assert_eq!(heard, ["x.2>z2", "z1>z2"]);
    /// # Ok::<(), ramp::graph::GraphError>(())
    /// ```
    pub fn inputs(
        &self,
        message: MessageId,
        source: VariableId,
    ) -> impl Iterator<Item = MessageId> + Clone {
        let own = self.message_factor(message);
        self.messages_into(source)
            .filter(move |&input| self.message_factor(input) != own)
    }

    /// `x1>z4` for a factor of two variables, `(a,b)>c` for a larger one. No two messages share a name: names with
    /// punctuation are quoted as in Newick, and a list of many sources is cut in the middle.
    pub fn message_name(&self, message: MessageId) -> String {
        let label = |variable: VariableId| label(self.name(variable));
        let target = label(self.message_target(message));
        let source_count = self.variables_of(self.message_factor(message)).len() - 1;
        let mut sources = self.sources(message);
        if source_count == 1 {
            let source = sources.next().map(label).unwrap_or_default();
            return format!("{source}>{target}");
        }
        if source_count <= SPELLED_SOURCES {
            let names: Vec<Cow<str>> = sources.map(label).collect();
            return format!("({})>{target}", names.join(","));
        }
        // A source and the target together are in one factor only, so the ends of the list tell it apart.
        let first = sources.next().map(label).unwrap_or_default();
        let last = sources.next_back().map(label).unwrap_or_default();
        format!("({first},…{} more…,{last})>{target}", source_count - 2)
    }
}

/// A name as it stands in Newick and in message names: quoted if it has characters that mean something there.
pub(super) fn label(name: &str) -> Cow<'_, str> {
    let plain = |character: char| !character.is_whitespace() && !"()[]':;,>".contains(character);
    if !name.is_empty() && name.chars().all(plain) {
        Cow::Borrowed(name)
    } else {
        Cow::Owned(format!("'{}'", name.replace('\'', "''")))
    }
}
