//! Everything that can be wrong with a table, as a sentence that names the file or the column and the fix.

use ramp::names::{hint, list, shortened};
use std::path::PathBuf;

/// What is wrong with a table.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TableError {
    /// There is no such file.
    #[error("there is no data file `{}`", path.display())]
    NoFile {
        /// What was asked for.
        path: PathBuf,
    },
    /// A folder where a file to read is needed.
    #[error("`{}` is a folder; name a data file in it", path.display())]
    DataIsFolder {
        /// The folder.
        path: PathBuf,
    },
    /// A pipe or a device where a file to read is needed.
    #[error("`{}` is a pipe or a device, not a file; write the data into a file first", path.display())]
    NotAFile {
        /// The pipe.
        path: PathBuf,
    },
    /// A folder where a file is to be written.
    #[error("`{}` is a folder; name a file in it", path.display())]
    OutputIsFolder {
        /// The folder.
        path: PathBuf,
    },
    /// The file's ending says no format.
    #[error(
        "`{}` is not a kind of table that can be read or written: the name must end in .csv, .tsv, .txt, .parquet, .arrow, \
         .feather, .ipc, .npy or .npz",
        path.display()
    )]
    UnknownFormat {
        /// The file.
        path: PathBuf,
    },
    /// A table without columns cannot be written.
    #[error("there is no column to write to `{}`", path.display())]
    NothingToWrite {
        /// The file.
        path: PathBuf,
    },
    /// A table without columns is none.
    #[error("`{}` has no column", path.display())]
    NoColumns {
        /// The file.
        path: PathBuf,
    },
    /// A column without a name.
    #[error("column {place} of `{}` has no name: give it one", path.display())]
    Unnamed {
        /// The file.
        path: PathBuf,
        /// Which column, counted from 1.
        place: usize,
    },
    /// Columns that share a name.
    #[error(
        "`{}` has more than one column named {}: give each its own name",
        path.display(),
        list(names)
    )]
    Repeated {
        /// The file.
        path: PathBuf,
        /// The names.
        names: Vec<String>,
    },
    /// A column that the file does not have.
    #[error(
        "there is no column `{name}` in `{}`: {}",
        path.display(),
        hint(name, columns.iter().map(|c| &c[..]))
    )]
    NotInFile {
        /// The file.
        path: PathBuf,
        /// What was asked for.
        name: String,
        /// What there is.
        columns: Vec<String>,
    },
    /// A column that the table does not have.
    #[error(
        "there is no column `{name}` in the table: {}",
        hint(name, columns.iter().map(|c| &c[..]))
    )]
    NotInTable {
        /// What was asked for.
        name: String,
        /// What there is.
        columns: Vec<String>,
    },
    /// A column that is wished for twice.
    #[error("column `{name}` of `{}` is asked for twice: name it once", path.display())]
    AskedTwice {
        /// The file.
        path: PathBuf,
        /// The column.
        name: String,
    },
    /// No column is wished for.
    #[error("no column of `{}` is asked for: name at least one", path.display())]
    NoneAsked {
        /// The file.
        path: PathBuf,
    },
    /// A column of a type that has no reading.
    #[error(
        "column `{}` is of type {kind}, which is neither number nor text: leave it out or convert it",
        shortened(column)
    )]
    Unread {
        /// The column.
        column: String,
        /// Its type.
        kind: String,
    },
    /// A text where a number is needed.
    #[error(
        "column `{}` holds `{}` in data row {row}, which is not a number: {}",
        shortened(column),
        shortened(text),
        number_fix(text)
    )]
    NotANumber {
        /// The column.
        column: String,
        /// What it holds.
        text: String,
        /// Where, counted from 1 after the header.
        row: usize,
    },
    /// Two columns of a table in memory share a name.
    #[error("two columns of the table are named `{name}`: give them different names")]
    SameName {
        /// The name.
        name: String,
    },
    /// Columns of a table in memory differ in length.
    #[error("column `{column}` has {rows} rows but `{first}` has {first_rows}")]
    UnequalLengths {
        /// The column.
        column: String,
        /// Its rows.
        rows: usize,
        /// The first column.
        first: String,
        /// The rows of that.
        first_rows: usize,
    },
    /// Rows with more or fewer columns than the file was created with.
    #[error(
        "`{}` was begun with {expected} columns, but these rows have {found}",
        path.display()
    )]
    OtherCount {
        /// The file.
        path: PathBuf,
        /// Its columns.
        expected: usize,
        /// Those of the rows.
        found: usize,
    },
    /// Rows with another column than the file was created with.
    #[error(
        "`{}` was begun with a column `{name}` of type {kind}, but these rows have `{found}` of type {found_kind} there",
        path.display()
    )]
    OtherColumn {
        /// The file.
        path: PathBuf,
        /// The column's name.
        name: String,
        /// Its type.
        kind: Box<str>,
        /// The name in these rows.
        found: String,
        /// The type in these rows.
        found_kind: Box<str>,
    },
    /// A text file in another encoding.
    #[error("`{}` is in UTF-16: save it as UTF-8", path.display())]
    Utf16 {
        /// The file.
        path: PathBuf,
    },
    /// A text file with nothing in it.
    #[error("`{}` is empty: its first line must name the columns", path.display())]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// A line of a text file in another encoding.
    #[error("line {line} of `{}` is not UTF-8: save the file as UTF-8", path.display())]
    NotUtf8 {
        /// The file.
        path: PathBuf,
        /// Counted from 1.
        line: u64,
    },
    /// A row of a text file with more or fewer fields than the header.
    #[error(
        "line {line} of `{}` has {found} fields, but the header has {expected}{}",
        path.display(),
        if *commas && found > expected {
            "; put cells with commas in quotes, and separate columns by semicolons where numbers have decimal commas"
        } else {
            ""
        }
    )]
    FieldCount {
        /// The file.
        path: PathBuf,
        /// Counted from 1.
        line: u64,
        /// The row's fields.
        found: usize,
        /// The header's fields.
        expected: usize,
        /// Whether commas separate them.
        commas: bool,
    },
    /// A row of a text file that does not end.
    #[error(
        "the row that begins in line {line} of `{}` is longer than {megabytes} MB: is there a quote that is not closed?",
        path.display()
    )]
    EndlessRow {
        /// The file.
        path: PathBuf,
        /// Counted from 1.
        line: u64,
        /// The longest row that is read.
        megabytes: u64,
    },
    /// Arrays of different lengths are no table.
    #[error(
        "`{}` is no table: its array `{}` has {rows} rows, but `{}` has {first_rows}",
        path.display(),
        shortened(array),
        shortened(first)
    )]
    UnequalArrays {
        /// The file.
        path: PathBuf,
        /// An array.
        array: String,
        /// Its rows.
        rows: usize,
        /// The first array.
        first: String,
        /// The rows of that.
        first_rows: usize,
    },
    /// NumPy files hold numbers.
    #[error(
        "column `{column}` is text, but `{}` can only hold numbers: write .csv, .parquet or .arrow, or leave it out",
        path.display()
    )]
    TextInNumPy {
        /// The file.
        path: PathBuf,
        /// The column.
        column: String,
    },
    /// A file that is damaged or made to do harm.
    #[error("`{}` cannot be read: {why}", path.display())]
    Unusable {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        why: Damage,
    },
    /// Columns that cannot be brought together.
    #[error("the table does not fit together: {0}")]
    Arrow(#[from] arrow_schema::ArrowError),
}

impl TableError {
    /// Whether the sentence names the file, so that nobody else needs to.
    pub(crate) fn names_file(&self) -> bool {
        !matches!(
            self,
            TableError::NotInTable { .. }
                | TableError::Unread { .. }
                | TableError::NotANumber { .. }
                | TableError::SameName { .. }
                | TableError::UnequalLengths { .. }
                | TableError::Arrow(_)
        )
    }
}

fn number_fix(text: &str) -> &'static str {
    if super::column::parse_number(&text.replace(',', ".")).is_some() {
        "write decimals with a point"
    } else {
        "mend it, leave it empty if it is missing, or treat the column as categorical"
    }
}

/// What is wrong with a Parquet or Arrow file, as half a sentence.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Damage {
    /// The file ends too early.
    #[error("it is cut off")]
    CutOff,
    /// Something in it contradicts something else.
    #[error("it is damaged")]
    Damaged,
    /// The parser said why.
    #[error("it is damaged ({})", shortened(said))]
    Said {
        /// What it said.
        said: String,
    },
    /// Shorter than the smallest Parquet file.
    #[error("it is too short to be a Parquet file")]
    TooShort,
    /// No mark at the end.
    #[error("it does not end as a Parquet file: it is cut off or something else")]
    NotParquet,
    /// No mark at the beginning.
    #[error("it is not an Arrow IPC file")]
    NotArrow,
    /// Encrypted Parquet.
    #[error("it is encrypted")]
    Encrypted,
    /// Feather, version 1.
    #[error("it is in the old Feather format: write it as Feather version 2")]
    OldFeather,
    /// Arrow of the other byte order.
    #[error("it was written on a big-endian machine")]
    BigEndian,
    /// The footer contradicts itself.
    #[error("its footer is damaged")]
    Footer,
    /// The schema contradicts itself.
    #[error("its schema is damaged")]
    Schema,
    /// A schema that names fewer columns than it promises.
    #[error("its schema claims more columns than it has")]
    MissingColumns,
    /// A schema that is deeper than any table.
    #[error("its columns are nested more than {deepest} deep")]
    TooDeep {
        /// As deep as is read.
        deepest: usize,
    },
    /// A schema of nothing.
    #[error("it has no columns")]
    NoColumns,
    /// Row counts that no file can have.
    #[error("its number of rows is damaged")]
    Rows,
    /// A column that ends beyond the file.
    #[error("column `{}` is cut off", shortened(column))]
    ColumnCutOff {
        /// The column.
        column: String,
    },
    /// A way of packing that is not built in.
    #[error(
        "column `{}` is compressed with {codec}; write the file with Zstandard, Snappy, gzip or LZ4",
        shortened(column)
    )]
    Compression {
        /// The column.
        column: String,
        /// The way.
        codec: &'static str,
    },
    /// A column that ends before the others.
    #[error("column `{}` has fewer values than the file says", shortened(column))]
    FewerValues {
        /// The column.
        column: String,
    },
    /// Bytes that are said to be text and are not.
    #[error(
        "column `{}` in data row {row} holds `{}`, which is not text",
        shortened(column),
        shortened(start)
    )]
    NotText {
        /// The column.
        column: String,
        /// Counted from 1.
        row: usize,
        /// What it holds, as far as it can be shown.
        start: String,
    },
    /// Made to fill the memory.
    #[error("a part of it would unpack to {megabytes} MB, more than {ratio} times its size")]
    Bomb {
        /// The unpacked size.
        megabytes: u64,
        /// As many times as is believed.
        ratio: u64,
    },
    /// Few bytes that stand for very long texts.
    #[error(
        "column `{}`: its texts are longer than can be read at once",
        shortened(column)
    )]
    LongTexts {
        /// The column.
        column: String,
    },
    /// The system could not read it.
    #[error("{0}")]
    Io(#[from] std::io::Error),
}
