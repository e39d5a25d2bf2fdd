//! The orchestrator through its handle, on a journal in memory and a scripted model.

#![expect(clippy::expect_used, reason = "a test fails by panicking")]

mod approval;
mod cancel;
mod compaction;
mod crash;
mod dispatch;
mod external;
mod follow;
mod history;
mod limits;
mod matrix;
mod output;
mod remote;
mod schema;
mod steering;
mod supervision;
mod supervisor;
mod task;
mod team;
mod tree;
mod world;
