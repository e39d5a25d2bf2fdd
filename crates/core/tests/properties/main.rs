//! What holds for any value, any sequence and any input.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod agent;
mod any_arrival;
mod any_conversation;
mod any_dispatch;
mod any_event;
mod any_exchange;
mod any_json;
mod history;
mod interaction;
mod parsing;
mod round_trip;
#[path = "../schema/mod.rs"]
mod schema;
mod summary;

use proptest::test_runner::Config;

/// Nothing is written beside the tests: a case that was found becomes a test with a name.
fn config() -> Config {
    Config { failure_persistence: None, ..Config::default() }
}
