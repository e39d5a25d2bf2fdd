//! The file of the journal: its owner, and faults.

#![expect(clippy::expect_used, reason = "a test fails by panicking")]

mod backup;
mod checkpoint;
mod damage;
mod flat_cost;
mod full_disk;
mod killed;
mod limits;
mod maintenance;
mod migration;
mod owner;
mod pages;
mod quick_check;
mod read_only;
mod replaced;
mod restore;
mod schema_3;
mod schema_4;
mod schema_6;
mod schema_7;
mod schema_8;
mod schema_9;
mod settled;
mod world;
