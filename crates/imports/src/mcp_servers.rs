//! MCP servers as other programs configure them: `mcpServers` in JSON, `[mcp_servers]` in Codex' TOML.
//!
//! The result has the fields of a server in our configuration. What cannot be had is dropped and named.

use serde_json::{Map, Value, json};

use crate::fields::quoted;

/// Longest file of servers, in bytes.
pub const MCP_FILE_BYTES_MAX: usize = 1024 * 1024;

/// A server of another program's file.
#[derive(Debug, Clone, PartialEq)]
pub struct ForeignServer {
    /// Its name there.
    pub name: String,
    /// Its fields in our configuration, or why it cannot be used.
    pub table: Result<Map<String, Value>, String>,
    /// What the file says and is not used, and why, one line each.
    pub dropped: Vec<String>,
}

/// The servers below `mcpServers` of a JSON file.
pub fn json_servers(text: &str) -> Result<Vec<ForeignServer>, String> {
    let file: Value =
        serde_json::from_str(text).map_err(|error| format!("it is no JSON: {error}"))?;
    match file.get("mcpServers") {
        None => Ok(Vec::new()),
        Some(Value::Object(servers)) => {
            Ok(servers.iter().map(|(name, table)| server(name, table)).collect())
        }
        Some(_) => Err("`mcpServers` is no object".to_owned()),
    }
}

/// The servers that Claude Code keeps for one project in `~/.claude.json`.
pub fn claude_project_servers(text: &str, root: &str) -> Result<Vec<ForeignServer>, String> {
    let file: Value =
        serde_json::from_str(text).map_err(|error| format!("it is no JSON: {error}"))?;
    let project = file.get("projects").and_then(|projects| projects.get(root));
    match project.and_then(|project| project.get("mcpServers")) {
        Some(Value::Object(servers)) => {
            Ok(servers.iter().map(|(name, table)| server(name, table)).collect())
        }
        Some(_) | None => Ok(Vec::new()),
    }
}

/// The servers below `[mcp_servers]` of Codex' `config.toml`.
pub fn codex_servers(text: &str) -> Result<Vec<ForeignServer>, String> {
    let file: toml::Table =
        toml::from_str(text).map_err(|error| format!("it is no TOML: {}", error.message()))?;
    let Some(servers) = file.get("mcp_servers") else { return Ok(Vec::new()) };
    let servers = serde_json::to_value(servers).map_err(|error| error.to_string())?;
    let Value::Object(servers) = servers else {
        return Err("`mcp_servers` is no table".to_owned());
    };
    Ok(servers.iter().map(|(name, table)| server(name, table)).collect())
}

fn server(name: &str, table: &Value) -> ForeignServer {
    let mut dropped = Vec::new();
    let table = match table {
        Value::Object(fields) => translated(fields, &mut dropped),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            Err("it is no object".to_owned())
        }
    };
    ForeignServer { name: name.to_owned(), table, dropped }
}

fn translated(
    fields: &Map<String, Value>,
    dropped: &mut Vec<String>,
) -> Result<Map<String, Value>, String> {
    check_transport(fields)?;
    let mut table = Map::new();
    for (name, value) in fields.iter().filter(|(_, value)| !value.is_null()) {
        match name.as_str() {
            "disabled" if *value == json!(true) => return Err("it is disabled".to_owned()),
            "enabled" if *value == json!(false) => return Err("it is disabled".to_owned()),
            "type" | "transport" | "disabled" | "enabled" => {}
            "command" | "args" | "env" | "cwd" | "url" | "headers" | "bearer_token_env" => {
                insert(&mut table, name, value);
            }
            "http_headers" => insert(&mut table, "headers", value),
            "bearer_token_env_var" => insert(&mut table, "bearer_token_env", value),
            "startup_timeout_sec" if value.is_u64() => insert(&mut table, "start_timeout_s", value),
            "tool_timeout_sec" if value.is_u64() => insert(&mut table, "timeout_s", value),
            "enabled_tools" => insert(&mut table, "allow", value),
            "disabled_tools" => insert(&mut table, "deny", value),
            "autoApprove" | "alwaysAllow" => {
                dropped.push(format!("`{name}`: calls are asked about as usual"));
            }
            other => dropped.push(format!("`{}`: has no effect here", quoted(other))),
        }
    }
    Ok(table)
}

fn insert(table: &mut Map<String, Value>, name: &str, value: &Value) {
    table.insert(name.to_owned(), value.clone());
}

/// Refuses transports by name that cannot be spoken.
fn check_transport(fields: &Map<String, Value>) -> Result<(), String> {
    let kind = fields.get("type").or_else(|| fields.get("transport")).and_then(Value::as_str);
    match kind {
        None
        | Some("stdio" | "http" | "streamable-http" | "streamable_http" | "streamableHttp") => {}
        Some("sse") => {
            return Err(
                "its transport `sse` is not supported: use its address for `http`, which has \
                        replaced it"
                    .to_owned(),
            );
        }
        Some(other) => {
            let other = quoted(other);
            return Err(format!("its transport `{other}` is not supported: use `stdio` or `http`"));
        }
    }
    match (fields.contains_key("command"), fields.contains_key("url")) {
        (true, false) | (false, true) => Ok(()),
        (true, true) => Err("it has a `command` and a `url`: remove one".to_owned()),
        (false, false) => Err("it has neither a `command` nor a `url`".to_owned()),
    }
}
