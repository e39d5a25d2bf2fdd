//! Requests of clients, checked and turned into tasks and messages, without a wire format: who asks
//! ([`principal`]), what an agent's key may do ([`on_behalf`]), and what the orchestrator gets.

pub(crate) mod arrival;
pub mod control_orders;
pub(crate) mod images;
pub(crate) mod invocation;
pub(crate) mod invocation_target;
pub(crate) mod on_behalf;
pub(crate) mod principal;
pub mod request_drop;
pub(crate) mod request_error;
pub(crate) mod task_factory;
pub(crate) mod task_request;
pub(crate) mod tool_names;
pub(crate) mod user_input;
