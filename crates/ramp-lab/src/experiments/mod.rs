//! The experiments: each trains, measures, writes `results.json` and its figures into one folder.

pub mod linear_tree;
pub mod linear_tree_figures;
mod run;

pub use run::{Scale, Watch, peak_rss_mb};
