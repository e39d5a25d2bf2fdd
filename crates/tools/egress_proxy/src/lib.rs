//! The HTTP proxy through which sandboxed commands reach allowed hosts, and no others.
//!
//! A sandbox has a network of its own with nothing in it but a loopback interface. A listening
//! socket in that network is passed out of the sandbox to [`Egress::serve`], which accepts `CONNECT`
//! and absolute-form HTTP requests and makes the connections from outside. It is the only way out,
//! so a command that ignores the proxy reaches nothing.
//!
//! | case                                               | outcome                                 |
//! |----------------------------------------------------|-----------------------------------------|
//! | no rule allows the host                            | 403, and a [`Refusal`] in [`Traffic`]   |
//! | the host is allowed, its address is not            | 403, and no packet is sent              |
//! | the `Host` header differs from the URL             | 400                                     |
//! | the host cannot be resolved or reached             | 502, and the reason in [`Traffic`]      |
//! | a redirect                                         | goes to the client; following it is a new request |
//! | too many connections                               | further ones wait                       |
//! | nothing moves for [`IDLE_MAX`], or too many bytes  | the connection ends                     |
//!
//! A name is resolved once for each connection, and the connection goes to an address that was
//! checked. A tunnel is not opened: what a client does inside TLS is not seen.

mod connection;
mod egress;
mod forward;
mod metered;
mod resolver;
mod traffic;
mod upstream;

pub use egress::{CALL_CONNECTIONS_MAX, CONNECTIONS_MAX, Egress};
pub use metered::{IDLE_MAX, TRANSFER_BYTES_MAX};
pub use resolver::{Resolve, SystemResolver};
pub use traffic::{HostTraffic, Refusal, Traffic, TrafficReport};
