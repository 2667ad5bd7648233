//! Columns that tell rows apart and not what they are like: identifiers, row numbers, dates.

use super::{ColumnSummary, Distinct, Kind};

/// Why a column looks as if it told rows apart: it says nothing about rows to come, and a tree cannot learn from it.
///
/// ```
/// use ramp_io::table::{Identifier, open_table, summarize};
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("people.csv");
/// std::fs::write(&path, "person_id,age,seen\n17,34,2024-01-05\n4,35,2024-02-01\n").unwrap();
/// let columns = summarize(open_table(&path)?.as_mut())?;
/// let of = |i: usize| Identifier::of(&columns[i]);
/// assert_eq!((of(0), of(1), of(2)), (Some(Identifier::Name), None, Some(Identifier::Dates)));
/// # Ok::<(), ramp_io::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Identifier {
    /// It is called like one.
    Name,
    /// Its whole numbers count the rows.
    RowNumber,
    /// Its numbers are codes of one length, each of which comes once.
    Code,
    /// Its texts are a word with a number behind it, many of them.
    Numbered,
    /// Its texts are dates or moments.
    Dates,
}

impl std::fmt::Display for Identifier {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Identifier::Name => "is called like an identifier",
            Identifier::RowNumber => "looks like a row number",
            Identifier::Code => "looks like an identifier: every number comes once",
            Identifier::Numbered => "looks like an identifier: a word with a number behind it",
            Identifier::Dates => "holds dates, which order the rows of a chain as its `time`",
        })
    }
}

impl Identifier {
    /// Fewer rows may rise or differ by chance.
    const FEW: u64 = 20;

    /// Whether a column looks like one, and why.
    pub fn of(column: &ColumnSummary) -> Option<Self> {
        if is_called_so(&column.name) {
            return Some(Identifier::Name);
        }
        let rows = column.rows - column.missing;
        match (&column.kind, column.numbers) {
            (Kind::Number, Some(numbers)) if numbers.all_integers && numbers.infinite == 0 => {
                let without_gaps = numbers.max - numbers.min + 1.0 == rows as f64;
                let each_once = match column.distinct {
                    Distinct::Exactly(n) => n as u64 == rows,
                    // Some repeat, or none: nobody counted.
                    Distinct::MoreThan(_) => true,
                };
                let digits = |x: f64| x.abs().log10().floor();
                let code = numbers.min >= 1e5 && digits(numbers.min) == digits(numbers.max);
                match rows {
                    0..10 => None,
                    _ if without_gaps && each_once => Some(Identifier::RowNumber),
                    _ if rows < Self::FEW => None,
                    _ if numbers.rising => Some(Identifier::RowNumber),
                    _ if code && each_once && matches!(column.distinct, Distinct::Exactly(_)) => {
                        Some(Identifier::Code)
                    }
                    _ => None,
                }
            }
            (Kind::Text, _) => {
                let texts = || column.levels.iter().map(|(text, _)| &text[..]);
                if texts().len() > 0 && texts().all(is_date) {
                    return Some(Identifier::Dates);
                }
                let words =
                    || texts().map(|text| text.trim_end_matches(|c: char| c.is_ascii_digit()));
                let first = words().next().unwrap_or_default();
                let same = words().all(|word| word == first) && texts().all(|text| text != first);
                (same && texts().len() >= 10).then_some(Identifier::Numbered)
            }
            _ => None,
        }
    }
}

/// Names that people and programs give to what tells rows apart.
fn is_called_so(name: &str) -> bool {
    const WHOLE: [&str; 9] = [
        "id",
        "index",
        "idx",
        "uuid",
        "guid",
        "rownames",
        "rowname",
        "unnamed: 0",
        "__index_level_0__",
    ];
    let lower = name.trim().to_lowercase();
    let part = |part: &str| matches!(part, "id" | "uuid" | "guid");
    WHOLE.contains(&lower.as_str())
        || lower.split(['_', '.', ' ', '-']).any(part)
        // `personId`, `PersonID`, but no `paid` and no `GRID`.
        || name.trim().strip_suffix("Id").or(name.trim().strip_suffix("ID")).is_some_and(|rest| {
            rest.ends_with(|c: char| c.is_lowercase())
        })
}

/// Whether a text begins with a day of the calendar, such as `2024-02-29T13:05`.
fn is_date(text: &str) -> bool {
    let bytes = text.trim().as_bytes();
    let digits = |range: std::ops::Range<usize>| {
        bytes
            .get(range)
            .is_some_and(|part| part.iter().all(u8::is_ascii_digit))
    };
    let mark = |at: usize| matches!(bytes.get(at), Some(b'-' | b'/'));
    digits(0..4) && mark(4) && digits(5..7) && mark(7) && digits(8..10)
}
