//! What the benchmarks of the server share: a server to measure, a client that costs little, and what
//! a process takes.
//!
//! The benchmarks themselves are in `benches/`. What they measure is a release binary in a process of
//! its own, named by the variable `ANTIPHON`, as `make bench` sets it.

mod connection;
mod frames;
mod process;
mod served;
mod times;

pub use connection::{Address, Connection};
pub use frames::Frames;
pub use process::{Process, Usage, raise_files};
pub use served::{Project, Served};
pub use times::Times;

/// Whatever went wrong: a benchmark that cannot be measured says so and ends.
pub type Error = Box<dyn std::error::Error + Send + Sync>;
