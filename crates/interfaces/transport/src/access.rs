//! Who may ask for what: credentials, callers, host names, and the guard that checks them.

pub(crate) mod api_keys;
pub(crate) mod caller;
pub(crate) mod exposure;
pub(crate) mod hosts;
pub(crate) mod key_watch;
pub(crate) mod open_requests;
pub(crate) mod own_work;
pub(crate) mod request_guard;
pub(crate) mod route_access;
pub(crate) mod shared_limit;
pub(crate) mod token;
