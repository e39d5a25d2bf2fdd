//! Connections: where the server listens, how it accepts them, and how it drains them.

pub(crate) mod listeners;
pub(crate) mod serve;
pub(crate) mod tls;
pub(crate) mod waiting;
mod write_timeout;
