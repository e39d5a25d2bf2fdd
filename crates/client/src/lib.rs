//! The typed client of the HTTP API and its event stream.
//!
//! A [`Client`] talks to one server at an [`Endpoint`]: an `http` or `https` URL, or a Unix
//! socket. Each method is one route; its body and its answer are types of `antiphon-api` or
//! `antiphon-core`. Every wait and every body has a limit ([`Timeouts`],
//! [`RESPONSE_BYTES_MAX`], [`EVENT_BYTES_MAX`]). The token is sent in the clear to this machine
//! only, and never to a server that a redirect names.
//!
//! An [`EventStream`] delivers each event once and in order. When the connection breaks, it
//! connects again with `Last-Event-ID` and continues after the last event it delivered, as
//! often as its [`RetryPolicy`] allows.
//!
//! A [`LiveStream`] delivers live deltas too. A [`ServerJournal`] reads the journal of a server through the
//! port that every other journal implements.
//!
//! [`ClientError`] says what the caller does next: retry, change the token, report the
//! refusal, or give up.

mod agents;
mod approvals;
mod budget;
mod client;
mod endpoint;
mod error;
mod event_stream;
mod health;
mod inbox;
mod invocations;
mod journal;
mod live_delta;
mod live_stream;
mod models;
mod response;
mod retry_policy;
mod server_journal;
mod sessions;
mod socket_path;
mod tasks;
mod usage;

pub use client::{Client, ClientConfig, ConfigError, Timeouts};
pub use endpoint::Endpoint;
pub use error::ClientError;
pub use event_stream::{EVENT_BYTES_MAX, EventStream};
pub use live_delta::{DeltaNotice, DeltaPiece, LiveDelta, StreamItem};
pub use live_stream::LiveStream;
pub use response::RESPONSE_BYTES_MAX;
pub use retry_policy::RetryPolicy;
pub use server_journal::ServerJournal;
pub use socket_path::SocketPath;
pub use tasks::TASK_WAIT_S;
