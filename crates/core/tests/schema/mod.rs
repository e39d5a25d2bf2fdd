//! `docs/events.schema.json`, and what it says of a line.

use std::sync::LazyLock;

use jsonschema::Validator;
use serde_json::Value;

static VALIDATOR: LazyLock<Validator> =
    LazyLock::new(|| jsonschema::validator_for(&schema()).unwrap());

/// The schema itself.
pub(crate) fn schema() -> Value {
    serde_json::from_str(include_str!("../../../../docs/events.schema.json")).unwrap()
}

/// What is wrong with a line, and where. Nothing, if it fits.
pub(crate) fn faults(line: &Value) -> Vec<String> {
    let fault = |error: jsonschema::ValidationError<'_>| {
        format!("{}: {error}", error.instance_path().as_str())
    };
    VALIDATOR.iter_errors(line).map(fault).collect()
}
