//! Repairs messages of a server that do not fit the protocol, part by part.
//!
//! `rmcp` parses a message as a whole or rejects it: one tool with an invalid schema would lose the
//! whole list, and one block of an unknown kind the whole result. An invalid part is replaced by a
//! text that describes it, or omitted and logged.

use rmcp::model::{ContentBlock, Tool};
use serde::Deserialize;
use serde_json::{Map, Value, json};

/// Longest content kind that is quoted, in characters.
const KIND_CHARS_MAX: usize = 40;

/// Repairs the result of a message, if it is a list of tools or the result of a call.
pub(crate) fn repair(message: &mut Value) {
    let Some(result) = message.get_mut("result").and_then(Value::as_object_mut) else {
        return;
    };
    if result.contains_key("tools") {
        repair_list(result);
    } else if ["content", "structuredContent", "isError"]
        .iter()
        .any(|key| result.contains_key(*key))
    {
        repair_call(result);
    }
}

fn repair_list(result: &mut Map<String, Value>) {
    drop_unless(result, "nextCursor", Value::is_string);
    drop_unless(result, "_meta", Value::is_object);
    let tools = match result.get_mut("tools").map(Value::take) {
        Some(Value::Array(tools)) => tools,
        Some(_) | None => Vec::new(),
    };
    let repaired: Vec<Value> = tools.into_iter().filter_map(repair_tool).collect();
    result.insert("tools".to_owned(), Value::Array(repaired));
}

/// The tool in a valid form, or nothing.
fn repair_tool(tool: Value) -> Option<Value> {
    if Tool::deserialize(&tool).is_ok() {
        return Some(tool);
    }
    let Some(name) = tool.get("name").and_then(Value::as_str) else {
        tracing::warn!("an MCP server lists a tool without a name: it is left out");
        return None;
    };
    let mut plain = json!({
        "name": name,
        // Not the schema of an object: the catalog rejects the tool and logs its name.
        "inputSchema": tool.get("inputSchema").filter(|schema| schema.is_object())
            .cloned().unwrap_or_else(|| json!({"type": "unknown"})),
    });
    if let Some(description) = tool.get("description").filter(|text| text.is_string()) {
        plain["description"] = description.clone();
    }
    Some(plain)
}

fn repair_call(result: &mut Map<String, Value>) {
    drop_unless(result, "_meta", Value::is_object);
    if let Some(flag) = result.get_mut("isError") {
        // Any value but `false` or `null` counts as a failure.
        let failed = !matches!(flag, Value::Null | Value::Bool(false));
        *flag = Value::Bool(failed);
    }
    let blocks = match result.get_mut("content").map(Value::take) {
        Some(Value::Array(blocks)) => blocks,
        None | Some(Value::Null) => Vec::new(),
        Some(other) => vec![other],
    };
    let repaired: Vec<Value> = blocks.into_iter().map(repair_block).collect();
    result.insert("content".to_owned(), Value::Array(repaired));
}

/// The block if it is valid, otherwise a text that describes it.
fn repair_block(mut block: Value) -> Value {
    if ContentBlock::deserialize(&block).is_ok() {
        return block;
    }
    if let Some(fields) = block.as_object_mut() {
        // These fields are not used.
        let _ = (fields.shift_remove("annotations"), fields.shift_remove("_meta"));
        if ContentBlock::deserialize(&block).is_ok() {
            return block;
        }
    }
    if let Value::String(text) = &block {
        return json!({"type": "text", "text": text});
    }
    let kind = block.get("type").and_then(Value::as_str).unwrap_or("no kind at all");
    let kind: String = kind.chars().take(KIND_CHARS_MAX).collect();
    let bytes = block.to_string().len();
    let text = match kind.as_str() {
        "text" | "image" | "audio" | "resource" | "resource_link" => {
            format!("[content of kind `{kind}`, {bytes} bytes, that is not as it should be]")
        }
        _ => format!("[content of kind `{kind}`, {bytes} bytes, which cannot be shown]"),
    };
    json!({"type": "text", "text": text})
}

fn drop_unless(fields: &mut Map<String, Value>, name: &str, good: fn(&Value) -> bool) {
    if fields.get(name).is_some_and(|value| !good(value)) {
        fields.shift_remove(name);
    }
}

#[cfg(test)]
mod tests {
    use rmcp::model::{ServerJsonRpcMessage, ServerResult};

    use super::*;

    fn read(result: Value) -> ServerResult {
        let mut message = json!({"jsonrpc": "2.0", "id": 1, "result": result});
        repair(&mut message);
        let read: ServerJsonRpcMessage = serde_json::from_value(message).unwrap();
        read.into_response().unwrap().0
    }

    #[test]
    fn one_strange_tool_does_not_lose_the_others() {
        let ServerResult::ListToolsResult(list) = read(json!({
            "tools": [
                {"name": "good", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": true}},
                {"name": "no schema"},
                {"name": "text schema", "inputSchema": "object", "description": 7},
                {"name": "bad hints", "inputSchema": {"type": "object"}, "annotations": "yes"},
                {"inputSchema": {}},
                "not a tool",
            ],
            "nextCursor": 17,
            "resultType": "complete",
            "_meta": [],
        })) else {
            panic!("not a list")
        };
        let names: Vec<&str> = list.tools.iter().map(|tool| tool.name.as_ref()).collect();
        assert_eq!(names, ["good", "no schema", "text schema", "bad hints"]);
        assert!(list.tools[0].annotations.is_some());
        assert_eq!(list.next_cursor, None);
    }

    #[test]
    fn blocks_of_unknown_kinds_are_described_and_the_others_kept() {
        let ServerResult::CallToolResult(result) = read(json!({
            "content": [
                {"type": "text", "text": "hello", "annotations": "none"},
                {"type": "hologram", "data": "…"},
                {"type": "image", "data": 7},
                "bare",
                17,
            ],
            "isError": "no",
            "resultType": "complete",
        })) else {
            panic!("not a result")
        };
        let texts: Vec<&str> = result
            .content
            .iter()
            .filter_map(|block| Some(block.as_text()?.text.as_str()))
            .collect();
        assert_eq!(texts.len(), 5);
        assert!(texts[1].contains("`hologram`") && texts[2].contains("`image`"), "{texts:?}");
        assert_eq!((texts[0], texts[3]), ("hello", "bare"));
        assert_eq!(result.is_error, Some(true));
    }

    #[test]
    fn content_that_is_no_list_is_taken_as_one_block() {
        let ServerResult::CallToolResult(result) = read(json!({"content": "just text"})) else {
            panic!("not a result")
        };
        assert_eq!(result.content[0].as_text().unwrap().text, "just text");
    }

    #[test]
    fn other_messages_are_left_alone() {
        for message in
            [json!({"jsonrpc": "2.0", "method": "ping", "id": 1}), json!([1]), json!("x")]
        {
            let mut repaired = message.clone();
            repair(&mut repaired);
            assert_eq!(repaired, message);
        }
    }
}
