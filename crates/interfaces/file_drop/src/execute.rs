//! Executing requests and writing their responses.

pub(crate) mod pending_request;
pub(crate) mod queues;
pub(crate) mod worker;
