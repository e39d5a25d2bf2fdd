//! The contracts of the ports, as suites that any adapter runs from its own tests.
//!
//! | suite            | port                                                  | proves                               |
//! |------------------|-------------------------------------------------------|--------------------------------------|
//! | [`journal`]      | [`Journal`](antiphon_core::port::Journal)             | order, atomicity, fencing, keys      |
//! | [`journal::durable`] | the same, opened again                            | that nothing appended is lost        |
//! | [`bus`]          | [`Bus`](antiphon_core::port::Bus)                     | live events, leases, one worker each |
//! | [`vector_store`] | [`VectorStore`](antiphon_core::port::VectorStore)     | nearest first, filters, dimensions   |
//! | [`tool`]         | [`ToolExecutor`](antiphon_core::port::ToolExecutor)   | listing, arguments, cancellation     |
//! | [`provider`]     | [`Provider`](antiphon_core::port::Provider)           | the states of a stream, tool calls   |
//!
//! A suite is a list of named checks. It takes a function that makes a new, empty implementation, runs
//! each check against its own, and returns which checks [passed](Passed), or the
//! [violations](Violations), which print as a list. A check that does not end is a violation.
//!
//! ```
//! use antiphon_conformance::{journal, reference::MemoryJournal};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! journal::check(async || MemoryJournal::new()).await.unwrap();
//! # }
//! ```
//!
//! Some implementations cannot run some checks: a wire without thinking, a tool that is never slow.
//! Such checks are skipped, with a reason. A test should state which ones:
//! `assert_eq!(passed.skipped_checks(), ["a_signature_is_kept"])`.
//!
//! # Test doubles
//!
//! [`mod@reference`] holds the smallest correct implementation of each port: the executable
//! specification. This crate's own tests show that each model passes, and that each check
//! catches an implementation that is wrong in exactly one respect. A test that needs a journal with a
//! fault uses [`reference::DelegatingJournal`].
//!
//! # To add a check
//!
//! Write an async function whose name says what it checks, list it in its suite, and add a fault
//! to `tests/proof` that it alone catches. A test there fails until all three are done.

pub mod bus;
pub mod journal;
pub mod provider;
pub mod reference;
mod report;
mod suite;
pub mod tool;
pub mod vector_store;

pub use report::{Passed, Skipped, Violation, Violations};
