//! Streams of server-sent events.

mod delta_order;
pub(crate) mod event_filter;
pub(crate) mod event_stream;
pub(crate) mod live_task;
pub(crate) mod needed_approval;
