//! budget.

pub(crate) mod allow;
pub(crate) mod spend_cache;
pub(crate) mod spend_limits;
pub(crate) mod tree;
