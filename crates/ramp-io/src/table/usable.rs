//! What a column is good for: an observation of a model, or nothing.

use super::{ColumnSummary, Distinct, Identifier, Kind, is_comma_number};

/// What a column is good for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Use {
    /// It can be observed, as this kind.
    Observe(&'static str),
    /// It is better left out, for this reason: "as it …".
    Leave(String),
}

impl Use {
    /// Looks at the summary of a column.
    pub fn of(column: &ColumnSummary) -> Self {
        if let Some(why) = Identifier::of(column) {
            return Use::Leave(why.to_string());
        }
        let leave = |why: &str| Use::Leave(why.into());
        let commas = || {
            let numbers = |(text, _): &(String, u64)| is_comma_number(text);
            column.levels.iter().any(numbers)
        };
        match (&column.kind, column.distinct) {
            (Kind::Empty, _) => leave("has no values"),
            (Kind::Unread(kind), _) => {
                Use::Leave(format!("is of type {kind}, which cannot be read"))
            }
            (_, Distinct::Exactly(1)) => leave("is the same in every row"),
            (Kind::Number, _) if column.numbers.is_some_and(|n| n.infinite > 0) => {
                leave("has infinite values")
            }
            (Kind::Text, _) if commas() => {
                leave("has numbers with commas: write them with a decimal point")
            }
            (Kind::Number, _) => Use::Observe("number"),
            (Kind::Text, Distinct::Exactly(n)) if n <= 64 && (n as u64) < column.rows.max(3) => {
                Use::Observe("categorical")
            }
            (Kind::Text, _) => leave("holds free text or names"),
        }
    }
}
