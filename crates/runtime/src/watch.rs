//! watch.

pub(crate) mod delta;
pub(crate) mod follower;
pub(crate) mod recent_events;
