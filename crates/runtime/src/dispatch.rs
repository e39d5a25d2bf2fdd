//! dispatch.

pub(crate) mod call_agent;
pub(crate) mod children;
pub(crate) mod dispatch_call;
pub(crate) mod external_tools;
pub(crate) mod pending_call;
pub(crate) mod plan;
pub(crate) mod refusal;
pub(crate) mod supervisor_tools;
pub(crate) mod waiters;
