//! The runner `sandbox`, with real processes.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod bash;
mod bench;
mod checking;
mod completing;
mod ending;
mod hostile;
mod killing;
mod model;
mod orchestrated;
mod running_out;
mod sandboxed;
mod tools;
mod waiting;
