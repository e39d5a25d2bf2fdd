//! The definition of a tool for the model, and the arguments of its calls.
//!
//! Both come from one type: its JSON Schema goes out, its values come in. Arguments that do not fit
//! are refused before the tool runs; the error names the field and what it expects.

use antiphon_core::{RawJson, Tool, ToolError};
use schemars::generate::SchemaSettings;
use schemars::transform::{RecursiveTransform, Transform};
use schemars::{JsonSchema, Schema};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, de};
use serde_json::Value;

/// Longest reason why arguments are invalid, in bytes: it may quote them.
const REASON_BYTES_MAX: usize = 1_000;

/// The definition of a tool whose arguments are an `A`.
pub fn definition<A: JsonSchema>(name: &str, description: &str) -> Tool {
    let mut settings = SchemaSettings::draft2020_12();
    settings.meta_schema = None;
    settings.inline_subschemas = true;
    let mut schema = settings.into_generator().into_root_schema_for::<A>();
    RecursiveTransform(plain).transform(&mut schema);
    for unneeded in ["title", "description"] {
        schema.remove(unneeded);
    }
    Tool {
        name: name.to_owned(),
        description: description.to_owned(),
        parameters: RawJson::of(&schema).unwrap_or_else(|_| RawJson::empty_object()),
    }
}

/// Parses the arguments of a call of `tool`. Fails with [`ToolError::InvalidArguments`].
pub fn arguments<A: DeserializeOwned>(tool: &str, arguments: &RawJson) -> Result<A, ToolError> {
    let invalid = |reason: String| ToolError::InvalidArguments { tool: tool.to_owned(), reason };
    if !arguments.is_object() {
        return Err(invalid("expected a JSON object with named arguments".to_owned()));
    }
    let mut json = serde_json::Deserializer::from_str(arguments.as_str());
    serde_path_to_error::deserialize(&mut json).map_err(|error| {
        let field = error.path().to_string();
        let reason = error.into_inner().to_string();
        // Line and column mean nothing to the model: it does not see its arguments as lines.
        let reason = reason.split(" at line ").next().unwrap_or_default();
        let (field, reason) = (cut(&field), cut(reason));
        if field == "." {
            invalid(reason.to_owned())
        } else {
            invalid(format!("`{field}`: {reason}"))
        }
    })
}

/// A parse error may quote arguments of any length.
fn cut(text: &str) -> &str {
    &text[..text.floor_char_boundary(REASON_BYTES_MAX)]
}

/// Parses a count that may be absent, null, or a number in quotes: models write all of these.
pub fn count<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    let value = Value::deserialize(deserializer)?;
    let number = match &value {
        Value::Null => return Ok(None),
        Value::Number(number) => number.as_u64().or_else(|| whole(number.as_f64()?)),
        Value::String(text) => text.trim().parse().ok(),
        Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    };
    match number {
        Some(number) => Ok(Some(number)),
        None => {
            Err(de::Error::custom(format!("expected a whole number of 0 or more, not {value}")))
        }
    }
}

/// Parses a count of at least one, in the forms that [`count`] accepts.
pub fn at_least_one<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    match count(deserializer)? {
        Some(0) => Err(de::Error::custom("expected 1 or more, not 0")),
        number => Ok(number),
    }
}

/// `5.0` is 5.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "only whole numbers within 32 bits are let through"
)]
fn whole(number: f64) -> Option<u64> {
    let fits = number.fract() == 0.0 && (0.0..=f64::from(u32::MAX)).contains(&number);
    fits.then_some(number as u64)
}

/// Removes what models and providers do not need: number formats such as `uint64`, lower bounds of 0 and 1, `null` and
/// `false` as the default of an optional field, `null` as a further type of one, and that there are no other
/// arguments: one that a model makes up is refused by its name.
fn plain(schema: &mut Schema) {
    schema.remove("format");
    if matches!(schema.get("minimum").and_then(Value::as_u64), Some(0 | 1)) {
        schema.remove("minimum");
    }
    if schema.get("additionalProperties") == Some(&Value::Bool(false)) {
        schema.remove("additionalProperties");
    }
    if matches!(schema.get("default"), Some(Value::Null | Value::Bool(false))) {
        schema.remove("default");
    }
    if let Some(Value::Array(types)) = schema.get_mut("type") {
        types.retain(|one| one != "null");
        if let [only] = types.as_slice() {
            let only = only.clone();
            schema.insert("type".to_owned(), only);
        }
    }
}
