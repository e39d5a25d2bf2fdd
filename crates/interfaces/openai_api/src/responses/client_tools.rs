//! The tools that a client offers, and its calls of them in the shape of their kind.
//!
//! A freeform tool (`custom`) becomes a function with one text, `input`; a tool of a namespace gets the name
//! `NAMESPACE__TOOL`, which ends in a hash when it is too long. Calls are turned back. Tools that only OpenAI's servers run are ignored.

use std::collections::BTreeMap;
use std::sync::Arc;

use antiphon_core::{RawJson, Tool, ToolCallBlock, ToolChoice};
use antiphon_interface_transport::answer::AnswerError;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::chat::completion_json::arguments;

/// Longest name of a tool, in bytes.
const NAME_BYTES_MAX: usize = 64;

/// Digits of the hash in a name that was too long.
const HASH_DIGITS: usize = 16;

/// Kinds of tools that are ignored: the server cannot run them.
const IGNORED: &[&str] = &[
    "apply_patch",
    "code_interpreter",
    "computer_use_preview",
    "file_search",
    "image_generation",
    "local_shell",
    "mcp",
    "shell",
    "tool_search",
    "web_search",
    "web_search_preview",
];

/// What a client calls a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
enum ClientName {
    Function { namespace: Option<String>, name: String },
    Freeform { namespace: Option<String>, name: String },
}

/// The tools of a client.
#[derive(Debug, Default)]
pub(crate) struct ClientTools {
    pub(crate) tools: Vec<Arc<Tool>>,
    names: BTreeMap<String, ClientName>,
}

impl ClientTools {
    pub(crate) fn read(wires: &[Value]) -> Result<Self, AnswerError> {
        let mut tools = Self::default();
        for (index, wire) in wires.iter().enumerate() {
            tools.add(&format!("tools[{index}]"), None, wire)?;
        }
        Ok(tools)
    }

    fn add(
        &mut self,
        field: &str,
        namespace: Option<&str>,
        wire: &Value,
    ) -> Result<(), AnswerError> {
        let kind = wire["type"].as_str().unwrap_or_default();
        if IGNORED.contains(&kind) || kind.starts_with("web_search") {
            return Ok(());
        }
        let Some(name) = wire["name"].as_str() else {
            return Err(AnswerError::field(format!("{field}.name"), "missing"));
        };
        let flat = flat_name(namespace, name);
        let own = || (namespace.map(str::to_owned), name.to_owned());
        let (parameters, known) = match kind {
            "function" => {
                let (namespace, name) = own();
                let schema = wire.get("parameters").filter(|schema| !schema.is_null()).cloned();
                let schema =
                    schema.unwrap_or_else(|| json!({ "type": "object", "properties": {} }));
                (schema, ClientName::Function { namespace, name })
            }
            "custom" => {
                let (namespace, name) = own();
                (freeform_parameters(), ClientName::Freeform { namespace, name })
            }
            "namespace" => {
                let tools = wire["tools"].as_array().map(Vec::as_slice).unwrap_or_default();
                for (index, tool) in tools.iter().enumerate() {
                    self.add(&format!("{field}.tools[{index}]"), Some(name), tool)?;
                }
                return Ok(());
            }
            other => {
                let message = format!("tools of type `{other}` are not supported; omit it");
                return Err(AnswerError::field(format!("{field}.type"), message));
            }
        };
        if !parameters.is_object() {
            return Err(AnswerError::field(field, "`parameters` must be a JSON Schema object"));
        }
        let parameters =
            RawJson::of(&parameters).map_err(|error| AnswerError::field(field, error))?;
        let description = wire["description"].as_str().unwrap_or_default().to_owned();
        self.names.insert(flat.clone(), known);
        self.tools.push(Arc::new(Tool { name: flat, description, parameters }));
        Ok(())
    }

    /// What `tool_choice` says.
    pub(crate) fn choice(&self, choice: &Value) -> Result<ToolChoice, AnswerError> {
        let refuse = |message: &str| Err(AnswerError::field("tool_choice", message));
        match choice {
            Value::Null => Ok(ToolChoice::Auto),
            Value::String(word) => match word.as_str() {
                "auto" => Ok(ToolChoice::Auto),
                "none" => Ok(ToolChoice::None),
                "required" if self.tools.is_empty() => refuse("there are no `tools`"),
                "required" => Ok(ToolChoice::Required),
                _ => refuse("expected `auto`, `none`, `required`, or a tool"),
            },
            Value::Object(_) => match (choice["type"].as_str(), choice["name"].as_str()) {
                (Some("function" | "custom"), Some(name)) => {
                    let name = flat_name(choice["namespace"].as_str(), name);
                    if self.names.contains_key(&name) {
                        Ok(ToolChoice::Named(name))
                    } else {
                        refuse("no such tool in `tools`")
                    }
                }
                _ => refuse("expected {\"type\": \"function\", \"name\": …}"),
            },
            Value::Bool(_) | Value::Number(_) | Value::Array(_) => {
                refuse("expected `auto`, `none`, `required`, or a tool")
            }
        }
    }

    /// A call as an item of the output.
    pub(crate) fn call_item(&self, id: &str, call: &ToolCallBlock) -> Value {
        let is_freeform = |input: &Option<String>| input.is_some();
        let input = freeform_input(call);
        match self.names.get(&call.name) {
            Some(ClientName::Freeform { namespace, name }) if is_freeform(&input) => {
                let mut item = json!({
                    "id": format!("ctc_{id}"), "type": "custom_tool_call", "status": "completed",
                    "call_id": call.id, "name": name, "input": input,
                });
                if let Some(namespace) = namespace {
                    item["namespace"] = json!(namespace);
                }
                item
            }
            known => {
                let mut item = json!({
                    "id": format!("fc_{id}"), "type": "function_call", "status": "completed",
                    "call_id": call.id, "name": call.name, "arguments": arguments(call),
                });
                if let Some(ClientName::Function { namespace: Some(namespace), name }) = known {
                    item["name"] = json!(name);
                    item["namespace"] = json!(namespace);
                }
                item
            }
        }
    }
}

/// The name of a tool of a namespace. Too long, its end is replaced by a hash of the whole.
pub(crate) fn flat_name(namespace: Option<&str>, name: &str) -> String {
    let Some(namespace) = namespace else { return name.to_owned() };
    let whole = format!("{namespace}__{name}");
    if whole.len() <= NAME_BYTES_MAX {
        return whole;
    }
    let hash = Uuid::new_v5(&Uuid::NAMESPACE_OID, whole.as_bytes()).simple().to_string();
    let start: String = whole.chars().take(NAME_BYTES_MAX - HASH_DIGITS - 1).collect();
    format!("{start}_{}", &hash[..HASH_DIGITS])
}

fn freeform_parameters() -> Value {
    let input = json!({ "type": "string", "description": "The whole input, as plain text." });
    json!({ "type": "object", "properties": { "input": input }, "required": ["input"] })
}

/// The arguments of a call of a freeform tool.
pub(crate) fn freeform_arguments(input: &str) -> String {
    json!({ "input": input }).to_string()
}

fn freeform_input(call: &ToolCallBlock) -> Option<String> {
    let arguments: Value = call.arguments.object()?.to().ok()?;
    arguments["input"].as_str().map(str::to_owned)
}
