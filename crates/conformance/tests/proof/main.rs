//! Each suite is proved twice: its model passes, and for each check there is an
//! implementation that is wrong in one respect and that only this check catches.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod bus;
mod journal;
mod provider;
mod report;
mod tool;
mod vector_store;
mod verdict;
