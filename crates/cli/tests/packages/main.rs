//! The packages of `scripts/packaging`: each is installed in an empty root, works there, and leaves nothing when it is
//! removed. Completions and manual pages are those of a package.
//!
//! The packages hold the binary of the tests, or the one that `ANTIPHON_PACKAGED` names (`make dist`).

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

#[path = "../support/pty.rs"]
mod pty;

mod installed;
mod managers;
mod pages;
mod shells;
mod world;
