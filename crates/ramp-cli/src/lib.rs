//! The parts of the command `ramp` that stand on their own, so that tests and other tools can use them.

pub use ramp_io::report;
