//! Tables and arrays in files: what is promised of every format, and of broken files.

mod arrays;
mod broken;
mod csv;
mod foreign;
mod formats;
mod libraries;
