//! Everything that can be wrong with arrays in files.

use ramp::names::{hint, shortened};
use std::path::PathBuf;

/// What is wrong with an array, or with the file that it is in.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ArrayError {
    /// The ending says another format.
    #[error("`{}` is not a NumPy file: the name must end in .npy or .npz", path.display())]
    UnknownFormat {
        /// The file.
        path: PathBuf,
    },
    /// There is no array of this name.
    #[error(
        "there is no array `{name}` in `{}`: {}",
        path.display(),
        hint(name, names.iter().map(|n| &n[..]))
    )]
    NotInFile {
        /// The file.
        path: PathBuf,
        /// What was asked for.
        name: String,
        /// What there is.
        names: Vec<String>,
    },
    /// Several arrays and no word which.
    #[error(
        "`{}` has more than one array: say which, {}",
        path.display(),
        hint("", names.iter().map(|n| &n[..]))
    )]
    Several {
        /// The file.
        path: PathBuf,
        /// What there is.
        names: Vec<String>,
    },
    /// Rows beyond the last.
    #[error(
        "array `{name}` of `{}` has {rows} rows, so there are no rows {from} to {to}",
        path.display()
    )]
    NoSuchRows {
        /// The file.
        path: PathBuf,
        /// The array.
        name: String,
        /// Its rows.
        rows: usize,
        /// The first that was asked for.
        from: usize,
        /// The one after the last.
        to: usize,
    },
    /// An archive that cannot be read.
    #[error("`{}` cannot be read: {why}", path.display())]
    Archive {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        why: ArchiveDamage,
    },
    /// An array that cannot be read.
    #[error("array `{}` of `{}` cannot be read: {why}", shortened(name), path.display())]
    Unusable {
        /// The file.
        path: PathBuf,
        /// The array.
        name: String,
        /// What is wrong.
        why: ArrayDamage,
    },
    /// An array to be written whose shape is not that of its elements.
    #[error("array `{name}` has {count} elements, which is not what its shape {shape:?} holds")]
    OtherShape {
        /// The array.
        name: String,
        /// How many elements it has.
        count: usize,
        /// What its shape says.
        shape: Vec<usize>,
    },
    /// An array to be written into an archive without a usable name.
    #[error("array {place} for `{}` needs a name of at most 1000 letters", path.display())]
    Unnamed {
        /// The file.
        path: PathBuf,
        /// Which array, counted from 1.
        place: usize,
    },
    /// A name that would lead out of the folder that an archive is unpacked in.
    #[error(
        "an array for `{}` is named `{}`, which as a file in an archive would lead elsewhere: give it a name without `..`, `\\` and a leading `/`",
        path.display(), shortened(&name.escape_debug().to_string())
    )]
    Leads {
        /// The file.
        path: PathBuf,
        /// The name.
        name: String,
    },
    /// Two arrays to be written share a name.
    #[error("two arrays for `{}` are named `{name}`: give them different names", path.display())]
    SameName {
        /// The file.
        path: PathBuf,
        /// The name.
        name: String,
    },
    /// A file for one array.
    #[error("`{}` holds one array, not {count}: write them to an .npz file", path.display())]
    NotOne {
        /// The file.
        path: PathBuf,
        /// How many there are.
        count: usize,
    },
}

impl ArrayError {
    /// Whether the sentence names the file, so that nobody else needs to.
    pub(crate) fn names_file(&self) -> bool {
        !matches!(self, ArrayError::OtherShape { .. })
    }
}

/// What is wrong with an archive, as half a sentence.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ArchiveDamage {
    /// The ZIP parser said why.
    #[error(
        "it is not a zip archive, or it is cut off or damaged ({})",
        shortened(said)
    )]
    Said {
        /// What it said.
        said: String,
    },
    /// A directory of more members than any archive of arrays has.
    #[error("its directory is damaged")]
    Directory,
    /// No array among the members.
    #[error("it has no array")]
    NoArray,
    /// Two arrays share a name.
    #[error("it has two arrays named `{}`", shortened(name))]
    SameName {
        /// The name.
        name: String,
    },
    /// A member that ends beyond the file.
    #[error("its member `{}` is cut off", shortened(member))]
    CutOff {
        /// The member.
        member: String,
    },
    /// A member that contradicts itself.
    #[error("its member `{}` is damaged", shortened(member))]
    Damaged {
        /// The member.
        member: String,
    },
    /// An encrypted member.
    #[error("its member `{}` is encrypted", shortened(member))]
    Encrypted {
        /// The member.
        member: String,
    },
    /// A member that is packed in another way.
    #[error(
        "its member `{}` is packed by {method}: pack it with deflate or not at all",
        shortened(member)
    )]
    Method {
        /// The member.
        member: String,
        /// How it is packed.
        method: String,
    },
    /// Made to fill the memory.
    #[error("it would unpack to {megabytes} MB, more than {ratio} times its size")]
    Bomb {
        /// The unpacked size.
        megabytes: u64,
        /// As many times as is believed.
        ratio: u64,
    },
}

/// What is wrong with an array in the NPY format, as half a sentence.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ArrayDamage {
    /// The file ends too early.
    #[error("it ends within its header")]
    HeaderCut,
    /// Another format.
    #[error("it does not begin as an NPY file")]
    NotNpy,
    /// A version that is not known.
    #[error("it is of the unknown NPY version {version}")]
    Version {
        /// The version.
        version: u8,
    },
    /// A header that no array has.
    #[error("its header claims to have {length} bytes")]
    LongHeader {
        /// The claim.
        length: usize,
    },
    /// A header in bytes that are no text.
    #[error("its header is not text")]
    HeaderNotText,
    /// A header that cannot be taken apart.
    #[error("its header is not one that NumPy writes")]
    Header,
    /// More elements than any file holds.
    #[error("its shape is larger than any file")]
    Shape,
    /// Elements that can execute on load.
    #[error("it holds Python objects, which are not safe to read: save plain numbers")]
    Objects,
    /// Elements that are texts.
    #[error("it holds texts: save plain numbers, or a table as .csv or .parquet")]
    Texts,
    /// Elements of two numbers.
    #[error("it holds complex numbers: save real and imaginary parts as two arrays")]
    Complex,
    /// Elements of several fields.
    #[error("its elements are records: save one array per field")]
    Records,
    /// Another type.
    #[error("its type `{}` is not a plain number", shortened(code))]
    Type {
        /// NumPy's code for it.
        code: String,
    },
    /// A number of another width.
    #[error("its type `{}` is not a number of 8 to 64 bits", shortened(code))]
    Width {
        /// NumPy's code for it.
        code: String,
    },
    /// Another number of bytes than the shape takes.
    #[error("its shape {shape:?} takes {expected} bytes, but it has {found}")]
    Size {
        /// The shape.
        shape: Vec<usize>,
        /// The bytes that it takes.
        expected: u64,
        /// The bytes that there are.
        found: u64,
    },
    /// More elements than there is memory for.
    #[error("its {count} elements do not fit into memory")]
    Memory {
        /// How many.
        count: usize,
    },
    /// Bytes that cannot be unpacked.
    #[error("it is damaged ({said})")]
    Damaged {
        /// What the unpacker said.
        said: String,
    },
}
