//! The file of the journal: its owner, and faults.

#![expect(clippy::expect_used, reason = "a test fails by panicking")]

mod backup;
mod damage;
mod full_disk;
mod killed;
mod limits;
mod migration;
mod owner;
mod read_only;
mod restore;
mod schema_3;
mod schema_4;
mod settled;
mod world;
