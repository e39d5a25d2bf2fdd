//! What a task delivers: the last word of its model, or what it hands to `final`.

use antiphon_core::{RawJson, Tool, ToolCallBlock};
use serde_json::{Value, json};

/// The tool by which an agent delivers its result.
pub(crate) const FINAL: &str = "final";

/// Tries to mend a result that does not fit its schema.
pub(crate) const REPAIRS_MAX: u32 = 3;

/// What is wrong with a result, at most.
const FAULTS_MAX: usize = 8;

/// Characters of one of these: it quotes what is wrong, which may be long.
const FAULT_CHARS_MAX: usize = 300;

/// The tool that delivers a result of this schema.
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

/// Whether a call delivers the result. One that was cut off does not: it is answered as any
/// other whose arguments are malformed.
pub(crate) fn is_final(call: &ToolCallBlock) -> bool {
    call.name == FINAL && call.arguments.object().is_some()
}

/// What a call of `final` delivers: its `result`, or all of its arguments.
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

/// The result as it is delivered, or what is wrong with it. A text that holds the JSON that was
/// asked for, also in a fence, is that JSON.
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

/// Whether a text is a schema that results can be checked against; an error says why not.
pub fn check_schema(schema: &RawJson) -> Result<(), String> {
    let schema: Value = schema.to().map_err(|error| error.to_string())?;
    jsonschema::validator_for(&schema).map(drop).map_err(|error| error.to_string())
}

/// What stands between the first and the last fence of a text, or all of it.
fn unfenced(text: &str) -> &str {
    let text = text.trim();
    let inner = text.strip_prefix("```json").or_else(|| text.strip_prefix("```"));
    inner.and_then(|inner| inner.strip_suffix("```")).unwrap_or(text).trim()
}
