//! Columns and tables in memory: names, cells, and what counts as missing.

use crate::{Error, Result};
use ramp::names::{hint, list, shortened};
use std::collections::HashSet;

/// Cells of one column; a missing cell is `NaN` or `None`.
#[derive(Clone, Debug, PartialEq)]
pub enum Cells {
    /// Floating-point numbers.
    Numbers(Vec<f64>),
    /// Whole numbers.
    Integers(Vec<Option<i64>>),
    /// Text as it stands in the file, also where it spells a number: so `007` and `1.50` are written back as they came.
    Texts(Vec<Option<String>>),
    /// Cells of a type that has no reading as a number or a text, such as lists.
    Unread {
        /// The type's name in the file.
        kind: String,
        /// How many cells.
        rows: usize,
    },
}

impl Cells {
    /// How many cells.
    pub fn len(&self) -> usize {
        match self {
            Cells::Numbers(cells) => cells.len(),
            Cells::Integers(cells) => cells.len(),
            Cells::Texts(cells) => cells.len(),
            Cells::Unread { rows, .. } => *rows,
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The type that these cells have.
    pub fn column_type(&self) -> ColumnType {
        match self {
            Cells::Numbers(_) => ColumnType::Number,
            Cells::Integers(_) => ColumnType::Integer,
            Cells::Texts(_) => ColumnType::Text,
            Cells::Unread { kind, .. } => ColumnType::Unread(kind.clone()),
        }
    }
}

/// What a column's cells are in its file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ColumnType {
    /// [`Cells::Numbers`].
    Number,
    /// [`Cells::Integers`].
    Integer,
    /// [`Cells::Texts`].
    Text,
    /// [`Cells::Unread`], with the type's name in the file.
    Unread(String),
}

/// A named column.
///
/// ```
/// use ramp_io::table::{Cells, Column};
/// let ages = Column::new("age", Cells::Texts(vec![Some(" 34".into()), None]));
/// assert_eq!(ages.numbers()?[0], 34.0);
/// assert!(ages.is_missing(1));
/// # Ok::<(), ramp_io::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// Its cells.
    pub cells: Cells,
    /// The place of the first cell in the file.
    first_row: usize,
    /// How missing cells were spelt where it was not by nothing, so that they can be written back as they came.
    pub(super) spelt: Vec<(usize, Box<str>)>,
}

impl Column {
    /// A column of these cells.
    pub fn new(name: impl Into<String>, cells: Cells) -> Self {
        Self {
            name: name.into(),
            cells,
            first_row: 0,
            spelt: Vec::new(),
        }
    }

    /// The cells as numbers, `NaN` where one is missing.
    ///
    /// Texts are parsed; the error for one that is no number says where it stands, with rows counted from 1 after the header.
    pub fn numbers(&self) -> Result<Vec<f64>> {
        match &self.cells {
            Cells::Numbers(cells) => Ok(cells.clone()),
            Cells::Integers(cells) => Ok(cells
                .iter()
                .map(|cell| cell.map_or(f64::NAN, |x| x as f64))
                .collect()),
            Cells::Texts(cells) => cells
                .iter()
                .enumerate()
                .map(|(row, cell)| match cell {
                    None => Ok(f64::NAN),
                    Some(text) if is_missing_text(text) => Ok(f64::NAN),
                    Some(text) => parse_number(text).ok_or_else(|| self.no_number(row, text)),
                })
                .collect(),
            Cells::Unread { kind, .. } => Err(unread(&self.name, kind)),
        }
    }

    fn no_number(&self, row: usize, text: &str) -> Error {
        let fix = if parse_number(&text.replace(',', ".")).is_some() {
            "write decimals with a point"
        } else {
            "mend it, leave it empty if it is missing, or treat the column as categorical"
        };
        Error::Invalid(format!(
            "column `{}` holds `{}` in data row {}, which is not a number: {fix}",
            shortened(&self.name),
            shortened(text),
            self.first_row + row + 1
        ))
    }

    /// The cells as texts, `None` where one is missing (and where it is [`Cells::Unread`]).
    pub fn texts(&self) -> Vec<Option<String>> {
        match &self.cells {
            Cells::Numbers(cells) => cells
                .iter()
                .map(|&x| (!x.is_nan()).then(|| spell_number(x)))
                .collect(),
            Cells::Integers(cells) => cells
                .iter()
                .map(|cell| cell.map(|x| x.to_string()))
                .collect(),
            Cells::Texts(cells) => cells
                .iter()
                .map(|cell| cell.clone().filter(|text| !is_missing_text(text)))
                .collect(),
            Cells::Unread { rows, .. } => vec![None; *rows],
        }
    }

    /// Whether a cell is missing.
    ///
    /// # Panics
    /// If there is no such row.
    pub fn is_missing(&self, row: usize) -> bool {
        match &self.cells {
            Cells::Numbers(cells) => cells[row].is_nan(),
            Cells::Integers(cells) => cells[row].is_none(),
            Cells::Texts(cells) => cells[row].as_deref().is_none_or(is_missing_text),
            Cells::Unread { .. } => true,
        }
    }

    /// Some of the rows, in this order, each as it stands in its file.
    ///
    /// ```
    /// use ramp_io::table::{Cells, Column};
    /// let ages = Column::new("age", Cells::Integers(vec![Some(34), None, Some(7)]));
    /// assert_eq!(ages.select(&[2, 0]).cells, Cells::Integers(vec![Some(7), Some(34)]));
    /// ```
    ///
    /// # Panics
    /// If there is no such row.
    pub fn select(&self, rows: &[u32]) -> Self {
        fn pick<T: Clone>(cells: &[T], rows: &[u32]) -> Vec<T> {
            rows.iter().map(|&r| cells[r as usize].clone()).collect()
        }
        let cells = match &self.cells {
            Cells::Numbers(cells) => Cells::Numbers(pick(cells, rows)),
            Cells::Integers(cells) => Cells::Integers(pick(cells, rows)),
            Cells::Texts(cells) => Cells::Texts(pick(cells, rows)),
            Cells::Unread { kind, .. } => Cells::Unread {
                kind: kind.clone(),
                rows: rows.len(),
            },
        };
        let mut column = Column::new(self.name.clone(), cells);
        if !self.spelt.is_empty() {
            for (to, &from) in rows.iter().enumerate() {
                match self.spelling(from as usize) {
                    "" => {}
                    text => column.spelt.push((to, text.into())),
                }
            }
        }
        column
    }

    /// Puts the rows of another column of the same type behind these.
    pub fn append(&mut self, other: Column) -> Result<()> {
        let rows = self.cells.len();
        match (&mut self.cells, other.cells) {
            (Cells::Numbers(a), Cells::Numbers(b)) => a.extend(b),
            (Cells::Integers(a), Cells::Integers(b)) => a.extend(b),
            (Cells::Texts(a), Cells::Texts(b)) => a.extend(b),
            (Cells::Unread { rows, .. }, Cells::Unread { rows: more, .. }) => *rows += more,
            (a, b) => {
                return Err(Error::Invalid(format!(
                    "column `{}` is of type {:?} in some rows and of type {:?} in others",
                    shortened(&self.name),
                    a.column_type(),
                    b.column_type()
                )));
            }
        }
        let spelt = other.spelt.into_iter();
        self.spelt
            .extend(spelt.map(|(row, text)| (rows + row, text)));
        Ok(())
    }

    /// How the file spells a missing cell.
    pub(super) fn spelling(&self, row: usize) -> &str {
        match self.spelt.binary_search_by_key(&row, |(at, _)| *at) {
            Ok(at) => &self.spelt[at].1,
            Err(_) => "",
        }
    }
}

/// Columns are the same if their names and cells are; a missing number is the same as another.
impl PartialEq for Column {
    fn eq(&self, other: &Self) -> bool {
        let same_cells = match (&self.cells, &other.cells) {
            (Cells::Numbers(a), Cells::Numbers(b)) => {
                let same = |(x, y): (&f64, &f64)| x == y || (x.is_nan() && y.is_nan());
                a.len() == b.len() && a.iter().zip(b).all(same)
            }
            (a, b) => a == b,
        };
        self.name == other.name && same_cells
    }
}

/// Columns of equal length with different names: some rows of a file, or all.
///
/// ```
/// use ramp_io::table::{Cells, Column, Table};
/// let table = Table::new(vec![
///     Column::new("name", Cells::Texts(vec![Some("Ann".into()), Some("Bo".into())])),
///     Column::new("height", Cells::Numbers(vec![1.7, f64::NAN])),
/// ])?;
/// assert_eq!(table.rows(), 2);
/// assert!(table.column("height")?.is_missing(1));
/// assert!(table.column("hight").unwrap_err().to_string().contains("did you mean `height`?"));
/// # Ok::<(), ramp_io::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    columns: Vec<Column>,
    first_row: usize,
}

impl Table {
    /// A table of these columns; the error names the columns whose names or lengths do not fit together.
    pub fn new(columns: Vec<Column>) -> Result<Self> {
        let mut names = HashSet::new();
        for column in &columns {
            if !names.insert(column.name.as_str()) {
                return Err(Error::Invalid(format!(
                    "two columns of the table are named `{}`: give them different names",
                    column.name
                )));
            }
            let (rows, first) = (column.cells.len(), &columns[0]);
            if rows != first.cells.len() {
                return Err(Error::Invalid(format!(
                    "column `{}` has {rows} rows but `{}` has {}",
                    column.name,
                    first.name,
                    first.cells.len()
                )));
            }
        }
        Ok(Self::of_checked(columns, 0))
    }

    /// The same table with its first row at another place of the file (0 is the first), for messages.
    pub fn starting_at(self, first_row: usize) -> Self {
        Self::of_checked(self.columns, first_row)
    }

    /// For readers, which have checked the names once for the file and build columns of equal length.
    pub(super) fn of_checked(mut columns: Vec<Column>, first_row: usize) -> Self {
        for column in &mut columns {
            column.first_row = first_row;
        }
        Self { columns, first_row }
    }

    /// How many rows.
    pub fn rows(&self) -> usize {
        self.columns.first().map_or(0, |column| column.cells.len())
    }

    /// The place of the first row in the file, counted from 0.
    pub fn first_row(&self) -> usize {
        self.first_row
    }

    /// All columns, in the order of the file or of the wish.
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// All columns, to keep.
    pub fn into_columns(self) -> Vec<Column> {
        self.columns
    }

    /// A column by its name; the error says what there is and suggests the nearest name.
    ///
    /// It looks through all columns: in a loop over many, take them by their place from [`columns`](Self::columns).
    pub fn column(&self, name: &str) -> Result<&Column> {
        self.columns
            .iter()
            .find(|column| column.name == name)
            .ok_or_else(|| {
                let names = self.columns.iter().map(|column| column.name.as_str());
                Error::Invalid(format!(
                    "there is no column `{name}` in the table: {}",
                    hint(name, names)
                ))
            })
    }
}

/// Whether a text stands for a missing value: nothing, NA, NaN or null, in any case and between blanks.
///
/// ```
/// use ramp_io::table::is_missing_text;
/// assert!(["", "  ", "NA", " nan ", "NULL", "-nan"].into_iter().all(is_missing_text));
/// assert!(!["0", "n", "nano", "none"].into_iter().any(is_missing_text));
/// ```
pub fn is_missing_text(text: &str) -> bool {
    let text = text.trim();
    match text.len() {
        0 => true,
        2 => text.eq_ignore_ascii_case("na"),
        3 => text.eq_ignore_ascii_case("nan"),
        // C libraries print a sign.
        4 => text.eq_ignore_ascii_case("null") || text.eq_ignore_ascii_case("-nan"),
        _ => false,
    }
}

/// The number that a text spells, blanks around it aside.
pub(super) fn parse_number(text: &str) -> Option<f64> {
    text.trim().parse().ok().filter(|x: &f64| !x.is_nan())
}

/// The shortest spelling that reads back as the same number.
pub(super) fn spell_number(x: f64) -> String {
    let size = x.abs();
    if x == 0.0 || (1e-5..1e16).contains(&size) || x.is_infinite() {
        format!("{x}")
    } else {
        format!("{x:e}")
    }
}

/// The error for asking for a column whose type has no reading.
pub(super) fn unread(name: &str, kind: &str) -> Error {
    Error::Invalid(format!(
        "column `{}` is of type {kind}, which is neither number nor text: leave it out or convert it",
        shortened(name)
    ))
}

/// Checks the names of a file's columns: each has one, no two the same.
pub(super) fn check_names(file: &str, names: &[String]) -> Result<()> {
    if let Some(at) = names.iter().position(|name| name.trim().is_empty()) {
        return Err(Error::Invalid(format!(
            "column {} of `{file}` has no name: give it one",
            at + 1
        )));
    }
    let mut seen = HashSet::new();
    let mut twice: Vec<String> = names
        .iter()
        .filter(|name| !seen.insert(name.as_str()))
        .cloned()
        .collect();
    twice.dedup();
    if !twice.is_empty() {
        return Err(Error::Invalid(format!(
            "`{file}` has more than one column named {}: give each its own name",
            list(&twice)
        )));
    }
    Ok(())
}

/// The places of the wanted columns among those that a file has; all of them where nothing is wished.
pub(super) fn pick(
    file: &str,
    columns: &[(String, ColumnType)],
    wanted: Option<&[String]>,
) -> Result<Vec<usize>> {
    let Some(wanted) = wanted else {
        return Ok((0..columns.len()).collect());
    };
    check_wanted(file, wanted)?;
    let places: std::collections::HashMap<&str, usize> = columns
        .iter()
        .enumerate()
        .map(|(place, (name, _))| (name.as_str(), place))
        .collect();
    wanted
        .iter()
        .map(|name| match places.get(name.as_str()) {
            Some(&place) => match &columns[place].1 {
                ColumnType::Unread(kind) => Err(unread(name, kind)),
                _ => Ok(place),
            },
            None => {
                let names = columns.iter().map(|(name, _)| name.as_str());
                Err(Error::Invalid(format!(
                    "there is no column `{name}` in `{file}`: {}",
                    hint(name, names)
                )))
            }
        })
        .collect()
}

fn check_wanted(file: &str, wanted: &[String]) -> Result<()> {
    let mut seen = HashSet::new();
    match wanted.iter().find(|name| !seen.insert(name.as_str())) {
        Some(name) => Err(Error::Invalid(format!(
            "column `{name}` of `{file}` is asked for twice: name it once"
        ))),
        None if wanted.is_empty() => Err(Error::Invalid(format!(
            "no column of `{file}` is asked for: name at least one"
        ))),
        None => Ok(()),
    }
}
