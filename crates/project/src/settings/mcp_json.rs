//! `.mcp.json` in the root of a project: MCP servers as other programs share them. They take effect when the user trusts
//! the file, below every other setting.
//!
//! A variable of the user's environment is put into a server only if the user allows it by name (`mcp_json_env`); a
//! server that asks for another one is left out, with a warning that says so.

use std::fs;
use std::io::{self, Read};
use std::path::Path;

use antiphon_core::visible;
use antiphon_imports::{MCP_FILE_BYTES_MAX, VariableError, expand, json_servers};
use antiphon_mcp::{McpConfig, ServerConfig, ServerName};
use serde_json::{Map, Value};

use super::UserSettings;
use crate::error::ProjectError;

/// Its path below the project's root.
pub(crate) const PATH: &str = ".mcp.json";

/// The text of the file; `None` when there is none. A link, or a file that is too long, is an error.
pub(crate) fn read(root: &Path) -> Result<Option<String>, ProjectError> {
    let path = root.join(PATH);
    let refuse = |reason: String| {
        ProjectError::InvalidInput(format!("cannot read {}: {reason}", path.display()))
    };
    match fs::symlink_metadata(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(refuse(error.to_string())),
        Ok(about) if !about.is_file() => return Err(refuse("it is not a file".to_owned())),
        Ok(_) => {}
    }
    let mut text = String::new();
    let limit = MCP_FILE_BYTES_MAX as u64 + 1;
    let file = fs::File::open(&path).map_err(|error| refuse(error.to_string()))?;
    file.take(limit).read_to_string(&mut text).map_err(|error| refuse(error.to_string()))?;
    if text.len() > MCP_FILE_BYTES_MAX {
        return Err(refuse(format!("it has more than {MCP_FILE_BYTES_MAX} bytes")));
    }
    Ok(Some(text))
}

/// A server of the file, or why it is left out.
pub(crate) struct ReadServer {
    pub(crate) name: String,
    pub(crate) config: Result<(ServerName, ServerConfig), String>,
}

/// The servers as they are written, without any variable's value: to show what they would do.
pub(crate) fn as_written(text: &str) -> Result<Vec<ReadServer>, String> {
    servers(text, &|written| Ok(written.to_owned()))
}

/// The servers with the values of the variables that the user allows.
fn with_values(text: &str, user: &UserSettings) -> Result<Vec<ReadServer>, String> {
    let value = |name: &str| {
        if user.mcp_json_env.iter().any(|allowed| allowed == name) {
            return Ok(user.environment.text(name));
        }
        Err(VariableError::NotAllowed { name: visible(name) })
    };
    servers(text, &|written| expand(written, value).map_err(|error| error.to_string()))
}

fn servers(
    text: &str,
    expand: &dyn Fn(&str) -> Result<String, String>,
) -> Result<Vec<ReadServer>, String> {
    let server = |found: antiphon_imports::ForeignServer| {
        let config = found.table.and_then(|table| config(&found.name, table, expand));
        ReadServer { name: visible(&found.name), config }
    };
    Ok(json_servers(text)?.into_iter().map(server).collect())
}

fn config(
    name: &str,
    table: Map<String, Value>,
    expand: &dyn Fn(&str) -> Result<String, String>,
) -> Result<(ServerName, ServerConfig), String> {
    let name: ServerName = name.parse().map_err(|error| format!("{error}"))?;
    let mut table = Value::Object(table);
    expand_texts(&mut table, expand)?;
    // Fields that only the user may set do not come from a project.
    if let Value::Object(fields) = &table
        && fields.contains_key("bearer_token_env")
    {
        return Err(
            "`bearer_token_env` is yours alone to set: configure the server in your own settings"
                .to_owned(),
        );
    }
    let config: ServerConfig = serde_json::from_value(table).map_err(|error| error.to_string())?;
    Ok((name, config))
}

fn expand_texts(
    value: &mut Value,
    expand: &dyn Fn(&str) -> Result<String, String>,
) -> Result<(), String> {
    match value {
        Value::String(text) => *text = expand(text)?,
        Value::Array(items) => {
            for item in items {
                expand_texts(item, expand)?;
            }
        }
        Value::Object(fields) => {
            for (_, value) in fields.iter_mut() {
                expand_texts(value, expand)?;
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
    Ok(())
}

/// The servers that can be used, below the user's. What is left out is added to `unused`.
pub(crate) fn usable(text: &str, user: &UserSettings, unused: &mut Vec<String>) -> McpConfig {
    let mut warn = |reason: String| unused.push(visible(&reason));
    let found = match with_values(text, user) {
        Ok(found) => found,
        Err(reason) => {
            warn(format!("{PATH} has no effect: {reason}"));
            return McpConfig::default();
        }
    };
    let mut servers = McpConfig::default();
    for ReadServer { name, config } in found {
        match config {
            Ok((name, config)) => drop(servers.0.insert(name, config)),
            Err(reason) => warn(format!("the MCP server `{name}` of {PATH} is not used: {reason}")),
        }
    }
    servers
}
