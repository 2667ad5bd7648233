//! Who depends on whom.
