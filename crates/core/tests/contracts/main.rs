//! The contracts, example by example: what each JSON text means, what each value is written
//! as, and what each refusal says. One module per noun of the crate.

#![expect(clippy::panic, clippy::unwrap_used, reason = "a test fails by panicking")]

mod agent;
mod append;
mod approval;
mod arrival;
mod budget;
mod chat;
mod classification;
mod command;
mod definition;
mod enumeration;
mod error;
mod event;
mod event_schema;
mod golden;
mod handoff;
mod history;
mod id;
mod interaction;
mod invocation;
mod invocation_check;
mod message;
mod message_refusal;
mod model_ref;
mod name;
mod port;
mod price;
mod provider_json;
mod raw_json;
mod rendering;
mod request;
#[path = "../schema/mod.rs"]
mod schema;
mod session;
mod specimen;
mod spending;
mod summary;
mod task;
mod task_filter;
mod validation;

use std::fmt::Debug;

use chrono::{DateTime, Utc};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// A UUID for any purpose; the contracts use it throughout.
const UUID: &str = "123e4567-e89b-12d3-a456-426614174000";

/// A time from its JSON form.
fn at(text: &str) -> DateTime<Utc> {
    text.parse().unwrap()
}

/// Ten o'clock on the day of most examples.
fn ten() -> DateTime<Utc> {
    at("2025-01-20T10:00:00Z")
}

/// Reads a value from JSON text.
#[track_caller]
fn read<T: DeserializeOwned>(json: &str) -> T {
    serde_json::from_str(json).unwrap_or_else(|error| panic!("{json}\n{error}"))
}

/// Writes a value as JSON.
#[track_caller]
fn written<T: Serialize>(value: &T) -> Value {
    serde_json::to_value(value).unwrap()
}

/// The error for a JSON value that cannot be read as a `T`. Read from the value and not from
/// its text, so that no line and column is in the answer.
#[track_caller]
fn refusal<T: DeserializeOwned + Debug>(json: Value) -> String {
    match serde_json::from_value::<T>(json) {
        Ok(value) => panic!("read as {value:?}"),
        Err(error) => error.to_string(),
    }
}

/// Asserts that `json` is read as `value` and `value` written as `json`, whole, on every path.
#[track_caller]
fn both_ways<T: Serialize + DeserializeOwned + PartialEq + Debug>(value: &T, json: &Value) {
    assert_eq!(written(value), *json, "written");
    assert_eq!(read::<T>(&json.to_string()), *value, "read from text");
    let from_bytes: T = serde_json::from_slice(json.to_string().as_bytes()).unwrap();
    assert_eq!(from_bytes, *value, "read from bytes");
    let from_value: T = serde_json::from_value(json.clone()).unwrap();
    assert_eq!(from_value, *value, "read from a value");
}
