//! The orchestrator through its handle, on a journal in memory and a scripted model.

#![expect(clippy::expect_used, reason = "a test fails by panicking")]

mod admission;
mod answering;
mod approval;
mod asking;
mod budget;
mod budget_clock;
mod budget_tree;
mod cancel;
mod compaction;
mod crash;
mod dispatch;
mod external;
mod far_inbox;
mod follow;
mod history;
mod inbox_crash;
mod inbox_order;
mod limits;
mod matrix;
mod office;
mod one_at_a_time;
mod output;
mod politeness;
mod remote;
mod retirement;
mod rush;
mod schema;
mod steering;
mod supervision;
mod supervisor;
mod task;
mod team;
mod tree;
mod turns;
mod world;
