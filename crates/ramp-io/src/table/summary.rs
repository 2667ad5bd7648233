//! What a table's columns hold: types inferred, counts and moments, in one pass and constant memory.

use super::column::{Column, parse_number, spell_number, strings, unread_kind};
use super::{ColumnKind, TableReader, columns, is_missing_text, rows_at_once};
use crate::Result;
use std::collections::{HashMap, HashSet};

/// Up to so many different values of a column are counted exactly.
const COUNTED: usize = 1000;

/// So many values are remembered in all columns together; very wide tables count fewer in each.
const REMEMBERED: usize = 4_000_000;

/// The most frequent levels that a summary names.
const LEVELS: usize = 20;

/// Longer texts are no levels; they would only fill the memory.
const LONGEST_LEVEL: usize = 1000;

/// What one column holds.
#[derive(Clone, Debug, PartialEq)]
pub struct ColumnSummary {
    /// Its name.
    pub name: String,
    /// Numbers, texts, or what cannot be read.
    pub kind: Kind,
    /// How many rows.
    pub rows: u64,
    /// How many of them are missing.
    pub missing: u64,
    /// How many different values there are among the others.
    pub distinct: Distinct,
    /// The most frequent values and how often they come, up to 20, ties in the order of the alphabet (numbers by size); none
    /// where there are more different values than are counted.
    pub levels: Vec<(String, u64)>,
    /// For numbers; `None` where there is none.
    pub numbers: Option<NumberSummary>,
}

/// What sort of values a column has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Every cell that is not missing is a number.
    Number,
    /// Some are not.
    Text,
    /// No cell has a value, so it may be either.
    Empty,
    /// A type with no reading as number or text, such as lists; its name in the file.
    Unread(String),
}

/// How many different values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Distinct {
    /// So many.
    Exactly(usize),
    /// More than so many.
    MoreThan(usize),
}

/// What a column's numbers are like. The moments are over the finite ones.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NumberSummary {
    /// The least finite number.
    pub min: f64,
    /// The greatest finite number.
    pub max: f64,
    /// Their mean.
    pub mean: f64,
    /// Their standard deviation (divided by n - 1); 0 for one number.
    pub sd: f64,
    /// Whether all are whole.
    pub all_integers: bool,
    /// Whether each is greater than the one before.
    pub rising: bool,
    /// How many are infinite.
    pub infinite: u64,
}

/// Reads a table to its end and says what its columns hold.
///
/// ```
/// use ramp_io::table::{Distinct, Kind, open_table, summarize};
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("people.csv");
/// std::fs::write(&path, "name,age\nAnn,34\nBo,NA\nCy,36\n").unwrap();
/// let columns = summarize(open_table(&path)?.as_mut())?;
/// assert_eq!((&columns[0].kind, &columns[1].kind), (&Kind::Text, &Kind::Number));
/// assert_eq!((columns[1].missing, columns[1].distinct), (1, Distinct::Exactly(2)));
/// assert_eq!(columns[1].numbers.unwrap().mean, 35.0);
/// # Ok::<(), ramp_io::Error>(())
/// ```
pub fn summarize(reader: &mut dyn TableReader) -> Result<Vec<ColumnSummary>> {
    let schema = reader.schema();
    let names: Vec<String> = schema.fields().iter().map(|f| f.name().clone()).collect();
    let limit = (REMEMBERED / names.len().max(1)).clamp(2 * LEVELS, COUNTED);
    let mut tallies: Vec<Tally> = names.iter().map(|_| Tally::new(limit)).collect();
    while let Some(table) = reader.next(rows_at_once(names.len()))? {
        for (tally, column) in tallies.iter_mut().zip(columns(&table)) {
            tally.add(column)?;
        }
    }
    let named = names.into_iter().zip(tallies);
    Ok(named.map(|(name, tally)| tally.finish(name)).collect())
}

/// One column on the way.
struct Tally {
    rows: u64,
    missing: u64,
    unread: Option<String>,
    /// A text that is no number has come.
    text: bool,
    moments: Moments,
    values: Values,
    limit: usize,
}

/// How often each value has come.
enum Values {
    Texts(HashMap<Box<str>, u64>),
    /// By their bits.
    Numbers(HashMap<u64, u64>),
    /// More than are counted.
    Many,
}

impl Tally {
    fn new(limit: usize) -> Self {
        Self {
            rows: 0,
            missing: 0,
            unread: None,
            text: false,
            moments: Moments::default(),
            values: Values::Texts(HashMap::new()),
            limit,
        }
    }

    fn add(&mut self, column: Column<'_>) -> Result<()> {
        self.rows += column.cells.len() as u64;
        let mut texts = |text: Option<&str>| match text {
            Some(text) if !is_missing_text(text) => self.add_text(text),
            _ => self.missing += 1,
        };
        match (column.kind(), strings(column.cells)) {
            (ColumnKind::Unread, _) => {
                self.unread = unread_kind(column.field).map(str::to_owned);
                self.missing += column.cells.len() as u64;
            }
            (_, Some(cells)) => cells.for_each(&mut texts),
            (ColumnKind::Text, None) => {
                column
                    .texts()
                    .iter()
                    .for_each(|cell| texts(cell.as_deref()));
            }
            _ => {
                let numbers = column.numbers(0)?;
                numbers.into_iter().for_each(|x| self.add_number(x));
            }
        }
        Ok(())
    }

    fn add_number(&mut self, x: f64) {
        if x.is_nan() {
            self.missing += 1;
            return;
        }
        self.moments.add(x);
        if matches!(&self.values, Values::Texts(texts) if texts.is_empty()) {
            self.values = Values::Numbers(HashMap::new());
        }
        if let Values::Numbers(counts) = &mut self.values {
            // Zero has two signs but is one number.
            *counts.entry((x + 0.0).to_bits()).or_insert(0) += 1;
            if counts.len() > self.limit {
                self.values = Values::Many;
            }
        }
    }

    fn add_text(&mut self, text: &str) {
        if !self.text {
            match parse_number(text) {
                Some(x) => self.moments.add(x),
                None => self.text = true,
            }
        }
        if let Values::Texts(counts) = &mut self.values {
            let text = text.trim();
            let full = counts.len() == self.limit || text.len() > LONGEST_LEVEL;
            match counts.get_mut(text) {
                Some(count) => *count += 1,
                None if full => self.values = Values::Many,
                None => {
                    counts.insert(text.into(), 1);
                }
            }
        }
    }

    fn finish(self, name: String) -> ColumnSummary {
        let kind = match self.unread {
            Some(kind) => Kind::Unread(kind),
            None if self.missing == self.rows => Kind::Empty,
            None if self.text => Kind::Text,
            None => Kind::Number,
        };
        let (distinct, levels) = self.values.finish(kind == Kind::Number, self.limit);
        ColumnSummary {
            numbers: (kind == Kind::Number).then(|| self.moments.finish()),
            name,
            kind,
            rows: self.rows,
            missing: self.missing,
            distinct,
            levels,
        }
    }
}

impl Values {
    fn finish(self, numbers: bool, limit: usize) -> (Distinct, Vec<(String, u64)>) {
        let mut levels: Vec<(String, u64)> = match self {
            Values::Many => return (Distinct::MoreThan(limit), Vec::new()),
            Values::Texts(counts) => counts
                .into_iter()
                .map(|(text, n)| (text.into(), n))
                .collect(),
            Values::Numbers(counts) => counts
                .into_iter()
                .map(|(bits, n)| (spell_number(f64::from_bits(bits)), n))
                .collect(),
        };
        let size = |(text, _): &(String, u64)| parse_number(text).unwrap_or(f64::INFINITY);
        let distinct = if numbers {
            // 1 and 1.0 are two texts but one number.
            let sizes: HashSet<u64> = levels
                .iter()
                .map(|level| (size(level) + 0.0).to_bits())
                .collect();
            sizes.len()
        } else {
            levels.len()
        };
        levels.sort_by(|a, b| {
            let by_value = if numbers {
                size(a).total_cmp(&size(b))
            } else {
                a.0.cmp(&b.0)
            };
            b.1.cmp(&a.1).then(by_value).then_with(|| a.0.cmp(&b.0))
        });
        levels.truncate(LEVELS);
        (Distinct::Exactly(distinct), levels)
    }
}

/// Running moments by Welford's update, which keeps its digits where the mean is large against the spread.
struct Moments {
    count: u64,
    mean: f64,
    squares: f64,
    min: f64,
    max: f64,
    last: f64,
    rising: bool,
    all_integers: bool,
    infinite: u64,
}

impl Default for Moments {
    fn default() -> Self {
        Self {
            count: 0,
            mean: 0.0,
            squares: 0.0,
            min: f64::INFINITY,
            max: f64::NEG_INFINITY,
            last: f64::NEG_INFINITY,
            rising: true,
            all_integers: true,
            infinite: 0,
        }
    }
}

impl Moments {
    fn add(&mut self, x: f64) {
        if x.is_infinite() {
            self.infinite += 1;
            self.all_integers = false;
            return;
        }
        self.rising &= x > self.last;
        self.last = x;
        self.count += 1;
        let from_mean = x - self.mean;
        self.mean += from_mean / self.count as f64;
        self.squares += from_mean * (x - self.mean);
        self.min = self.min.min(x);
        self.max = self.max.max(x);
        self.all_integers &= x.fract() == 0.0;
    }

    fn finish(&self) -> NumberSummary {
        let none = self.count == 0;
        NumberSummary {
            min: if none { f64::NAN } else { self.min },
            max: if none { f64::NAN } else { self.max },
            mean: if none { f64::NAN } else { self.mean },
            sd: (self.squares / (self.count.max(2) - 1) as f64)
                .max(0.0)
                .sqrt(),
            all_integers: self.all_integers,
            rising: self.rising && !none,
            infinite: self.infinite,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::table;
    use arrow_array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray};
    use arrow_schema::{Schema, SchemaRef};
    use std::sync::Arc;

    struct Parts(Vec<RecordBatch>);

    impl TableReader for Parts {
        fn schema(&self) -> SchemaRef {
            let first = self.0.first().map(|part| part.schema());
            first.unwrap_or_else(|| {
                let field = arrow_schema::Field::new("a", arrow_schema::DataType::Utf8, true);
                Arc::new(Schema::new(vec![field]))
            })
        }

        fn next(&mut self, _: usize) -> Result<Option<RecordBatch>> {
            Ok((!self.0.is_empty()).then(|| self.0.remove(0)))
        }
    }

    fn summary(parts: Vec<ArrayRef>) -> ColumnSummary {
        let tables = parts
            .into_iter()
            .map(|cells| table([("a", cells)]).unwrap());
        summarize(&mut Parts(tables.collect())).unwrap().remove(0)
    }

    fn texts(texts: &[&str]) -> ArrayRef {
        Arc::new(StringArray::from(texts.to_vec()))
    }

    #[test]
    fn numbers_in_text_have_the_moments_of_the_textbook() {
        let found = summary(vec![texts(&["1", "1.0", "NA"]), texts(&["", " 4 ", "-2"])]);
        assert_eq!(
            (found.kind, found.rows, found.missing),
            (Kind::Number, 6, 2)
        );
        assert_eq!(found.distinct, Distinct::Exactly(3));
        let numbers = found.numbers.unwrap();
        assert_eq!((numbers.min, numbers.max, numbers.mean), (-2.0, 4.0, 1.0));
        assert!((numbers.sd - 6.0_f64.sqrt()).abs() < 1e-12);
        assert!(numbers.all_integers && numbers.infinite == 0);
    }

    #[test]
    fn one_word_makes_a_column_text_and_its_numbers_levels() {
        let found = summary(vec![texts(&["1", "b", "1"]), texts(&["a", "01"])]);
        assert_eq!(found.kind, Kind::Text);
        assert_eq!(found.numbers, None);
        let levels = [("1", 2), ("01", 1), ("a", 1), ("b", 1)].map(|(t, n)| (t.to_owned(), n));
        assert_eq!(found.levels, levels);
    }

    #[test]
    fn infinite_values_are_counted_and_kept_out_of_the_moments() {
        let found = summary(vec![Arc::new(Float64Array::from(vec![
            1.0,
            f64::INFINITY,
            3.0,
            f64::NAN,
        ]))]);
        let numbers = found.numbers.unwrap();
        assert_eq!((numbers.infinite, numbers.mean, numbers.max), (1, 2.0, 3.0));
        assert_eq!(found.distinct, Distinct::Exactly(3));
    }

    #[test]
    fn a_thousand_values_are_counted_and_one_more_is_not() {
        let column =
            |n: i64| -> ArrayRef { Arc::new(Int64Array::from_iter_values((0..n).chain(0..n))) };
        assert_eq!(
            summary(vec![column(1000)]).distinct,
            Distinct::Exactly(1000)
        );
        assert_eq!(
            summary(vec![column(1001)]).distinct,
            Distinct::MoreThan(1000)
        );
        let words = |n: usize| -> ArrayRef {
            let words = (0..2 * n).map(|i| format!("w{}", i % n));
            Arc::new(StringArray::from_iter_values(words))
        };
        assert_eq!(summary(vec![words(1000)]).distinct, Distinct::Exactly(1000));
        let many = summary(vec![words(1001)]);
        assert_eq!(
            (many.distinct, many.levels.len()),
            (Distinct::MoreThan(1000), 0)
        );
    }

    #[test]
    fn nothing_but_missing_is_of_no_kind() {
        assert_eq!(summary(vec![texts(&["", "null"])]).kind, Kind::Empty);
        assert_eq!(summary(vec![]).kind, Kind::Empty);
    }
}
