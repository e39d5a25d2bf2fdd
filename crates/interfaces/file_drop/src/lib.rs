//! The file-drop door: requests as files, answered by files beside them.
//!
//! Somebody puts `NAME.json` into `.antiphon/requests/REQUESTER/`; what it asks for is carried out,
//! once, and `NAME.response.json` appears beside it, once, whatever happens to us in between. There
//! is no logic behind this door: it reads, checks, and hands an [`Order`] to whoever implements
//! [`Orders`].
//!
//! ```
//! use std::sync::Arc;
//! use std::time::Duration;
//!
//! use antiphon_file_drop::{
//!     Done, DoneStatus, Order, OrderError, Orders, Settings, drop_and_wait, watch,
//! };
//! use tokio_util::sync::CancellationToken;
//!
//! struct Yes;
//!
//! #[async_trait::async_trait]
//! impl Orders for Yes {
//!     async fn carry_out(&self, _: Order, _: &str, _: &str) -> Result<Done, OrderError> {
//!         Ok(Done::new(DoneStatus::Stopped))
//!     }
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let project = tempfile::tempdir()?;
//! # let project = project.path();
//! # tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(async {
//! let stop = CancellationToken::new();
//! let door = watch(project, Settings::default(), Arc::new(Yes), stop.clone());
//! let asked = async {
//!     let request = br#"{"action":"stop_agent","name":"reviewer"}"#.to_vec();
//!     let folder = project.join(".antiphon/requests");
//!     let response = drop_and_wait(folder, "me", request, Duration::from_secs(10)).await;
//!     stop.cancel();
//!     response
//! };
//! let (door, response) = tokio::join!(door, asked);
//! door?;
//! assert_eq!(response?.status, Some(DoneStatus::Stopped));
//! # Ok(())
//! # })
//! # }
//! ```
//!
//! What is promised to those who write such files, and what is refused, is in `docs/file-drop.md`.

mod base;
mod desk;
mod digest;
mod door;
mod drawer;
mod dropping;
mod eyes;
mod fault;
mod job;
mod lanes;
mod name;
mod orders;
mod rejected;
mod request;
mod response;
mod settings;
mod stamp;
mod tray;
mod whole;
mod worker;

pub use base::ENTRIES_MAX;
pub use desk::REQUESTERS_MAX;
pub use door::{Tally, answer_waiting, watch};
pub use dropping::{DropError, drop_and_wait};
pub use lanes::WAITS_MAX;
pub use name::NAME_BYTES_MAX;
pub use orders::{Done, DoneStatus, Order, OrderError, Orders, Wait, Wake};
pub use request::ID_BYTES_MAX;
pub use response::{RESULT_BYTES_MAX, Response, ResponseError};
pub use settings::{
    Absent, Exposed, FOLDERS_MAX, ORDERS_MAX, PAUSE_MAX, REQUEST_BYTES_MAX, RequestFolder,
    Settings, SettingsError,
};
