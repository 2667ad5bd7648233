//! The numbers by which variables, factors and messages are known.

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(usize);

        impl $name {
            /// The id with this position; only a tree hands out ids, so that they are always in range.
            pub(crate) const fn new(index: usize) -> Self {
                Self(index)
            }

            /// The position among its kind, counted from 0 without gaps: made for indexing a `Vec`.
            pub const fn index(self) -> usize {
                self.0
            }
        }
    };
}

id! {
    /// A variable of one [`FactorTree`](super::FactorTree), latent or observed.
    VariableId
}
id! {
    /// A factor of one [`FactorTree`](super::FactorTree).
    FactorId
}
id! {
    /// A directed message of one [`FactorTree`](super::FactorTree): from a factor to a latent in it.
    MessageId
}
