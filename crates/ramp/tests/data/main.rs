//! Tables and arrays in files: what is promised of every format, and of broken files.

mod csv;
mod formats;
