//! Interactions of agents, and requests as files.

pub(crate) mod inbox;
pub(crate) mod reply;
pub(crate) mod request;
pub(crate) mod send;
