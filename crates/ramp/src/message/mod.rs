//! Messages and what they make: where they lie, which samples have them, and the beliefs of the nodes they go to.

mod messages;
mod node;
mod presence;

pub use messages::Messages;
pub use node::Node;
pub use presence::Presence;
