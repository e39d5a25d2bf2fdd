//! inbox.

pub(crate) mod admission;
pub(crate) mod arrival;
pub(crate) mod lifecycle;
pub(crate) mod open_requests;
pub(crate) mod peer_tools;
pub(crate) mod quotas;
pub(crate) mod reading_order;
pub(crate) mod requests;
pub(crate) mod residents;
pub(crate) mod task_message;
