//! Dynamics: one recipe on several systems, none of which it knows.

pub mod systems;
