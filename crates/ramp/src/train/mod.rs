//! Learning: the loop, and what plugs into it.

mod checkpoint;
mod observer;
mod optimizer;
mod spec;
mod start;
#[cfg(test)]
mod tests;
mod trainer;

pub use checkpoint::checkpoint_file;
pub use observer::{Control, Event, Observer};
pub use optimizer::Optimizer;
pub use spec::{Decay, TrainSpec};
pub use start::{TriedStart, start_chain};
pub use trainer::{Fit, Record, Stop, Trainer};
