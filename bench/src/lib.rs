//! Shared parts of the server benchmarks: a server to measure, a cheap client, and process
//! statistics.
//!
//! The benchmarks themselves are in `benches/`. They measure a release binary in its own process,
//! named by the variable `ANTIPHON`, which `make bench` sets.

mod connection;
mod curve;
mod frames;
mod heading;
mod model_process;
mod process;
mod served;
mod times;

pub use connection::{Address, Connection};
pub use curve::Curve;
pub use frames::Frames;
pub use heading::heading;
pub use model_process::ModelProcess;
pub use process::{Process, Usage, raise_files};
pub use served::{Project, Served};
pub use times::Times;

/// Any error: a benchmark that cannot measure reports it and ends.
pub type Error = Box<dyn std::error::Error + Send + Sync>;
