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
mod clock;
mod compaction;
mod crash;
mod cut_off;
mod dispatch;
mod drain;
mod external;
mod far_inbox;
mod follow;
mod history;
mod inbox_crash;
mod inbox_order;
mod interrupt;
mod limits;
mod matrix;
mod office;
mod one_at_a_time;
mod outage;
mod output;
mod politeness;
mod remote;
mod retirement;
mod rush;
mod schema;
mod side_by_side;
mod steering;
mod storage;
mod supervision;
mod supervisor;
mod task;
mod team;
mod tool_policy;
mod tree;
mod turns;
mod wait_cycle;
mod world;
