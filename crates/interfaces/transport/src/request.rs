//! Parts of a request: its headers, parameters and body.

pub(crate) mod head;
pub(crate) mod headers;
pub mod idempotency;
pub(crate) mod json;
pub(crate) mod params;
pub(crate) mod request_id;
