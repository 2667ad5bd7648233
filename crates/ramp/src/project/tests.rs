//! The project.
