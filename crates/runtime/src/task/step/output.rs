//! The result of a task: the model's final answer, or the arguments of `final`.

use antiphon_core::{RawJson, Tool, ToolCallBlock};
use serde_json::{Value, json};

/// Name of the tool that delivers the result.
pub(crate) const FINAL: &str = "final";

/// Maximum number of rejected results before the task fails.
pub(crate) const REPAIRS_MAX: u32 = 3;

/// Maximum number of faults that are reported for a result.
const FAULTS_MAX: usize = 8;

/// Maximum characters of one fault: it quotes the wrong value, which may be long.
const FAULT_CHARS_MAX: usize = 300;

/// The `final` tool for a result of this schema.
pub(crate) fn final_tool(schema: &RawJson) -> Option<Tool> {
    let result: Value = schema.to().ok()?;
    let parameters = json!({
        "type": "object",
        "properties": { "result": result },
        "required": ["result"],
        "additionalProperties": false,
    });
    Some(Tool {
        name: FINAL.to_owned(),
        description: "Delivers the result of your task and ends it. Call it once, when you are \
                      done, with a `result` that fits the schema."
            .to_owned(),
        parameters: RawJson::of(&parameters).ok()?,
    })
}

/// Whether a call delivers the result. A call with malformed arguments does not: it gets an error
/// result as any other.
pub(crate) fn is_final(call: &ToolCallBlock) -> bool {
    call.name == FINAL && call.arguments.object().is_some()
}

/// The result in a call of `final`: its `result`, or all of its arguments.
pub(crate) fn delivered(call: &ToolCallBlock) -> Value {
    let arguments = call.arguments.object().and_then(|json| json.to::<Value>().ok());
    match arguments {
        Some(Value::Object(mut map)) => match map.remove("result") {
            Some(result) => result,
            None => Value::Object(map),
        },
        Some(_) | None => Value::Null,
    }
}

/// Returns the result if it fits the schema, or what is wrong with it. A text that contains the
/// JSON, also in a code fence, counts as that JSON.
pub(crate) fn check(schema: Option<&RawJson>, word: Value) -> Result<Value, String> {
    let Some(schema) = schema else { return Ok(word) };
    let schema: Value = schema.to().map_err(|error| error.to_string())?;
    let validator = jsonschema::validator_for(&schema).map_err(|error| error.to_string())?;
    let read = word.as_str().and_then(|text| serde_json::from_str(unfenced(text)).ok());
    let candidates: Vec<Value> = [Some(word), read].into_iter().flatten().collect();
    if let Some(fits) = candidates.iter().find(|candidate| validator.is_valid(candidate)) {
        return Ok(fits.clone());
    }
    let best = candidates.last().unwrap_or(&Value::Null);
    let faults: Vec<String> = validator
        .iter_errors(best)
        .take(FAULTS_MAX)
        .map(|error| format!("at `{}`: {}", error.instance_path(), cut(&error.to_string())))
        .collect();
    Err(faults.join("; "))
}

fn cut(fault: &str) -> String {
    match fault.char_indices().nth(FAULT_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &fault[..end]),
        None => fault.to_owned(),
    }
}

/// Checks that a text is a JSON Schema that results can be checked against.
pub fn check_schema(schema: &RawJson) -> Result<(), String> {
    let schema: Value = schema.to().map_err(|error| error.to_string())?;
    jsonschema::validator_for(&schema).map(drop).map_err(|error| error.to_string())
}

/// The text inside a code fence, or the whole text.
fn unfenced(text: &str) -> &str {
    let text = text.trim();
    let inner = text.strip_prefix("```json").or_else(|| text.strip_prefix("```"));
    inner.and_then(|inner| inner.strip_suffix("```")).unwrap_or(text).trim()
}
