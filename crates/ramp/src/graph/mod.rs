//! Who depends on whom: the factor tree, its messages, and what can be read off its shape alone.
//!
//! A [`FactorTree`] that exists is connected and acyclic, has its observations on leaves, and every latent in it is
//! reached by observations from at least two sides. Families, shapes and networks belong to the model.
//!
//! ```
//! use ramp::graph::{FactorTree, Schedule, Tying};
//!
//! let tree = FactorTree::from_newick("((x1,x2),(x3,x4));")?;
//! let networks = Tying::Role.assign(&tree);
//! assert_eq!(networks.keys, ["inward", "outward", "observation"]);
//!
//! let schedule = Schedule::plan(&tree, &networks.of_message);
//! assert_eq!(schedule.levels(), 3);
//! # Ok::<(), ramp::graph::GraphError>(())
//! ```

mod builder;
mod change;
mod check;
mod comparison;
mod drawing;
mod error;
mod find;
mod id;
mod message;
mod newick;
mod nni;
mod partition;
mod rooted;
mod schedule;
mod shapes;
mod time_axis;
mod tree;
mod tying;
mod unchecked;

pub use builder::FactorTreeBuilder;
pub use change::Change;
pub use comparison::Match;
pub use error::GraphError;
pub use id::{FactorId, MessageId, VariableId};
pub use nni::Interchange;
pub use partition::WeakPair;
pub use rooted::Rooted;
pub use schedule::{Schedule, Stage};
pub use shapes::MAX_VARIABLES;
pub use time_axis::{Place, TimeAxis};
pub use tree::{FactorTree, Kind};
pub use tying::{NetworkAssignment, Tying};
