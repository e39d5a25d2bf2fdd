//! The file-drop interface: requests and responses are files.
//!
//! A client puts `NAME.json` into `.antiphon/requests/REQUESTER/`. The order in it is executed
//! once, and `NAME.response.json` appears next to it once, also after crashes in between. The
//! interface contains no logic: it parses, checks, and passes an [`Order`](antiphon_core::Order) to an
//! implementation of [`OrderExecutor`](antiphon_core::port::OrderExecutor).
//!
//! | module          | holds                                                                  |
//! |-----------------|------------------------------------------------------------------------|
//! | `folder/`       | the folders and their files: requests are read and responses written in `requester_folder` |
//! | `scan/`         | which files changed, and what is to be done about each                 |
//! | `parse_request` | the content of a request as an order                                   |
//! | `execute/`      | runs orders in their turn, once                                        |
//! | `response`      | what a response says                                                   |
//! | `service`       | watches the folders until it is stopped                                |
//! | `client`        | drops a request and waits for its response                             |
//!
//! ```
//! use std::sync::Arc;
//! use std::time::Duration;
//!
//! use antiphon_core::port::OrderExecutor;
//! use antiphon_core::{Order, OrderError, OrderResult, OrderStatus};
//! use antiphon_file_drop::{FileDropSettings, drop_and_wait, watch};
//! use tokio_util::sync::CancellationToken;
//!
//! struct StopsEveryAgent;
//!
//! #[async_trait::async_trait]
//! impl OrderExecutor for StopsEveryAgent {
//!     async fn execute(&self, _: Order, _: &str, _: &str) -> Result<OrderResult, OrderError> {
//!         Ok(OrderResult::new(OrderStatus::Stopped))
//!     }
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let project = tempfile::tempdir()?;
//! # let project = project.path();
//! # tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(async {
//! let stop = CancellationToken::new();
//! let service = watch(project, FileDropSettings::default(), Arc::new(StopsEveryAgent), stop.clone());
//! let client = async {
//!     let request = br#"{"action":"stop_agent","name":"reviewer"}"#.to_vec();
//!     let folder = project.join(".antiphon/requests");
//!     let response = drop_and_wait(folder, "me", request, Duration::from_secs(10)).await;
//!     stop.cancel();
//!     response
//! };
//! let (service, response) = tokio::join!(service, client);
//! service?;
//! assert_eq!(response?.status, Some(OrderStatus::Stopped));
//! # Ok(())
//! # })
//! # }
//! ```
//!
//! `docs/file-drop.md` documents the guarantees for authors of requests, and what is refused.

mod client;
mod digest;
mod execute;
mod fault;
mod folder;
mod folder_trust;
mod parse_request;
mod response;
mod scan;
mod service;
mod settings;

pub use client::{DropError, drop_and_wait};
pub use execute::queues::WAITS_MAX;
pub use folder::name::NAME_BYTES_MAX;
pub use folder::request_root::ENTRIES_MAX;
pub use folder::waiting::count_waiting;
pub use folder_trust::FolderTrust;
pub use parse_request::ID_BYTES_MAX;
pub use response::{RESULT_BYTES_MAX, Response, ResponseError};
pub use scan::scanner::REQUESTERS_MAX;
pub use service::{PassCounts, answer_waiting, watch};
pub use settings::{
    FOLDERS_MAX, FileDropSettings, ORDERS_MAX, PAUSE_MAX, REQUEST_BYTES_MAX, RequestFolder,
    SettingsError, WhenAbsent,
};
