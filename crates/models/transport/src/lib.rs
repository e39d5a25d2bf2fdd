//! HTTP and server-sent events of model providers.
//!
//! A provider implements a [`Dialect`]: pure code that turns a server-sent event into
//! [`Piece`](antiphon_core::Piece)s and an error response into a
//! [`ProviderError`](antiphon_core::ProviderError). [`Transport::stream`] does the rest:
//! connections, TLS, proxies, parsing, limits and errors.
//!
//! Nothing is sent before the stream is polled. Dropping the stream closes the request.

mod answer_stream;
mod client;
mod dialect;
mod encoded_parts;
mod endpoint;
mod event_error;
mod failure;
mod history_cache;
mod probe;
mod request_body;
mod settled_items;
mod tool_list_cache;

pub use answer_stream::{EVENT_BYTES_MAX, failed_source};
pub use client::{Transport, TransportConfig, TransportError};
pub use dialect::Dialect;
pub use encoded_parts::EncodedParts;
pub use endpoint::{Endpoint, EndpointError, Post};
pub use event_error::{malformed_event, missing_field};
pub use failure::{ERROR_BODY_BYTES_MAX, HttpFailure};
pub use history_cache::{HISTORY_BYTES_MAX, History, HistoryCache, HistoryPart, write_items};
pub use probe::DOCUMENT_BYTES_MAX;
pub use request_body::RequestBody;
pub use tool_list_cache::{TOOL_LIST_BYTES_MAX, ToolListCache};
