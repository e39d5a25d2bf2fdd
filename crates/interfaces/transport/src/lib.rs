//! Parts that every HTTP interface shares: listeners and TLS, authentication, limits, event streams, the error
//! shape and the `OpenAPI` document.
//!
//! An interface is a crate that offers an [`Interface`]: described routes, and how each may be reached. The
//! binary collects the interfaces in a [`ServerConfig`] and gives it to [`serve()`] with [`Listeners`] and a
//! shutdown signal. Interfaces know this crate and not each other.
//!
//! Every request passes these checks, in this order:
//!
//! | check                                                                              | otherwise                                   |
//! |------------------------------------------------------------------------------------|---------------------------------------------|
//! | the head is within its limits                                                      | 431                                         |
//! | `Host`, and the target if it names a host, are names of this server                | 403                                         |
//! | `Origin`, if present, is this server                                               | 403                                         |
//! | the token or an API key, compared in constant time; not for open and signed routes | 401; 429 after many wrong ones; 503 when the keys cannot be read |
//! | the key is within its rate limit                                                   | 429                                         |
//! | the level of the key: `read` to look, `write` to change, `admin` and no agent's key to decide | 403                              |
//! | the key has fewer open requests and streams than its limit                         | 429                                         |
//! | the body is within its limit                                                       | 413; 503 when all bodies need too much memory |
//!
//! What a client has open with an API key ends within a second when the key is revoked, expires or is downgraded.
//!
//! A client that sends slowly, reads slowly or opens too many connections costs a bounded amount of time and
//! memory. The bounds are [`ServerLimits`].

mod access;
pub mod answer;
mod api_error;
mod connection;
mod error_text;
mod interface;
mod limits;
pub mod openapi;
mod request;
mod request_log;
mod router;
mod server_config;
mod state;
mod stream;

pub use access::api_keys::{Keys, RATE_PER_MINUTE_DEFAULT};
pub use access::caller::{Caller, Decider, OwnProcess};
pub use access::exposure::ExposedAgents;
pub use access::own_work::{OwnWork, no_session};
pub use access::request_guard::set_rate_limit_headers;
pub use access::shared_limit::Reservation;
pub use access::token::{TOKEN_BYTES_MIN, Token, TokenError};
pub use api_error::{ApiError, RETRY_AFTER_S, budget_details, budget_retry_after_s};
pub use connection::listeners::{Listeners, UnixSocket};
pub use connection::serve::{serve, serve_on_demand};
pub use connection::tls::{Tls, TlsError};
pub use connection::waiting::serve_waiting;
pub use error_text::ERROR_TEXT_BYTES_MAX;
pub use interface::{ErrorShape, Interface, RouteBuilder, ShapeError};
pub use limits::ServerLimits;
pub use request::head::{HEAD_BYTES_MAX, HEADERS_MAX};
pub use request::headers::single_header;
pub use request::idempotency;
pub use request::idempotency::KEY_BYTES_MAX;
pub use request::json::{Json, ReceivedBody, check_content_type, read_body};
pub use request::params::{PathId, QueryParams};
pub use server_config::{ServerConfig, ServerDeps};
pub use state::AppState;
pub use stream::event_filter::EventFilter;
pub use stream::event_stream::{Deltas, LAG_EVENTS_MAX, StreamScope, event_stream, stream_slot};
pub use stream::live_task::{LiveItem, LiveTask};
pub use stream::needed_approval::needed_approval;
