//! Connections: where the server listens, how it accepts them, and how it drains them.

pub(crate) mod listeners;
pub(crate) mod serve;
pub(crate) mod tls;
mod write_timeout;
