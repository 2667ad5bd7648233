//! The experiments, each with its figures drawn from plain numbers.

pub mod linear_tree_figures;
