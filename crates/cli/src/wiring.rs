//! What this process gives to a project: the interface on its socket, its file drop, and work that goes on.

pub(crate) mod interface;
pub(crate) mod remaining_work;
pub(crate) mod request_drop;
