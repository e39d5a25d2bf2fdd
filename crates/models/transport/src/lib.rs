//! HTTP and server-sent events, as model providers speak them.
//!
//! A provider brings a [`Dialect`]: pure code that turns one server-sent event into
//! [`Piece`](antiphon_core::Piece)s and an error response into a
//! [`ProviderError`](antiphon_core::ProviderError). [`Transport::stream`] does the rest:
//! connections, TLS, proxies, parsing, limits, and errors that say what to do.
//!
//! Nothing is sent before the stream is polled. Dropping it closes the request.

mod client;
mod dialect;
mod endpoint;
mod failure;
mod probe;
mod source;

pub use client::{Transport, TransportConfig, TransportError};
pub use dialect::Dialect;
pub use endpoint::{Endpoint, EndpointError, Post};
pub use failure::{ERROR_BODY_BYTES_MAX, HttpFailure};
pub use probe::DOCUMENT_BYTES_MAX;
pub use source::{EVENT_BYTES_MAX, refused};
