//! MCP servers of the user's other programs, copied into the user's settings: those that Claude Code keeps in
//! `~/.claude.json`, for all projects and for this one, and those of Codex.
//!
//! They start programs outside of the sandbox, so that they are never used where they are. A server that the settings have
//! is not replaced, and a variable that only the other program would put in is a refusal.

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use antiphon_imports::{
    ForeignServer, MCP_FILE_BYTES_MAX, claude_project_servers, codex_servers, json_servers,
};
use antiphon_mcp::{ServerConfig, ServerName};
use serde_json::{Map, Value};

use super::{ImportAction, ImportStatus, ImportedFile};
use crate::error::ProjectError;
use crate::project::Project;
use crate::settings::{SettingsEdit, UserSettings, server_effect};

const CLAUDE: &str = "claude";
const CODEX: &str = "codex";

/// Imports the servers of the programs of `from`; of all when it is `None`.
pub(super) fn import_servers(
    project: &Project,
    settings: &UserSettings,
    from: Option<&str>,
    action: ImportAction,
) -> Result<Vec<ImportedFile>, ProjectError> {
    let mut report = Vec::new();
    let mut edit = SettingsEdit::open(&settings.environment)?;
    let own: Vec<String> = edit.all().into_iter().map(|setting| setting.key).collect();
    let mut taken: Vec<String> = Vec::new();
    for (program, path, servers) in found(project, settings) {
        if from.is_some_and(|from| from != program) {
            continue;
        }
        let file = |name: Option<&str>| ImportedFile {
            kind: "MCP server",
            program,
            source: path.display().to_string(),
            name: name.map(str::to_owned),
            status: ImportStatus::Refused,
            target: None,
            reason: None,
            needs_trust: false,
            effects: Vec::new(),
            dropped: Vec::new(),
        };
        let servers = match servers {
            Ok(servers) => servers,
            Err(reason) => {
                report.push(ImportedFile { reason: Some(reason), ..file(None) });
                continue;
            }
        };
        for server in servers {
            let mut row = file(Some(&server.name));
            row.dropped.clone_from(&server.dropped);
            let is_taken = taken.contains(&server.name)
                || own.iter().any(|key| key.starts_with(&format!("mcp.{}.", server.name)));
            match read(&server, is_taken) {
                Err(reason) => row.reason = Some(reason),
                Ok((table, config)) => {
                    row.effects = vec![server_effect(&server.name, &config)];
                    row.target = Some(format!("{}, [mcp.{}]", edit.path().display(), server.name));
                    row.status = match action {
                        ImportAction::DryRun => ImportStatus::WouldWrite,
                        ImportAction::Write => ImportStatus::Written,
                    };
                    edit.set_json(&["mcp", &server.name], &Value::Object(table))?;
                    taken.push(server.name);
                }
            }
            report.push(row);
        }
    }
    if action == ImportAction::Write && !taken.is_empty() {
        edit.save()?;
    }
    Ok(report)
}

type FoundServers = (&'static str, PathBuf, Result<Vec<ForeignServer>, String>);

/// The files that exist, with their servers.
fn found(project: &Project, settings: &UserSettings) -> Vec<FoundServers> {
    let Some(home) = settings.environment.home() else { return Vec::new() };
    let (claude, codex) = (home.join(".claude.json"), home.join(".codex/config.toml"));
    let root = project.root().to_string_lossy().into_owned();
    let of_claude = |text: &str| {
        let mut servers = claude_project_servers(text, &root)?;
        // What was set for this project comes first, as there.
        servers.extend(json_servers(text)?);
        Ok(servers)
    };
    let from_claude =
        text(&claude).map(|text| (CLAUDE, claude, text.and_then(|text| of_claude(&text))));
    let from_codex =
        text(&codex).map(|text| (CODEX, codex, text.and_then(|text| codex_servers(&text))));
    from_claude.into_iter().chain(from_codex).collect()
}

/// The text of a file; `None` when there is none.
fn text(path: &Path) -> Option<Result<String, String>> {
    let file = fs::File::open(path).ok()?;
    if !file.metadata().is_ok_and(|about| about.is_file()) {
        return None;
    }
    let mut text = String::new();
    let read = file.take(MCP_FILE_BYTES_MAX as u64 + 1).read_to_string(&mut text);
    Some(match read {
        Err(error) => Err(error.to_string()),
        Ok(length) if length > MCP_FILE_BYTES_MAX => {
            Err(format!("it has more than {MCP_FILE_BYTES_MAX} bytes"))
        }
        Ok(_) => Ok(text),
    })
}

/// The server as a table of the settings, and what it is there.
fn read(
    server: &ForeignServer,
    is_taken: bool,
) -> Result<(Map<String, Value>, ServerConfig), String> {
    let table = server.table.clone()?;
    let _: ServerName = server.name.parse().map_err(|error| format!("{error}"))?;
    if is_taken {
        return Err("your settings have a server of this name already".to_owned());
    }
    if let Some(text) = with_variable(&Value::Object(table.clone())) {
        return Err(format!(
            "`{text}` stays as it is in settings: add the server with `antiphon mcp add`, and name the variable in \
             its `inherit_env`"
        ));
    }
    let config = serde_json::from_value(Value::Object(table.clone()));
    let config: ServerConfig = config.map_err(|error| error.to_string())?;
    Ok((table, config))
}

/// The place of a text that the other program replaces by a variable, without anything around it.
fn with_variable(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => {
            let (_, rest) = text.split_once("${")?;
            let (name, _) = rest.split_once('}')?;
            Some(format!("${{{}}}", name.split(':').next().unwrap_or_default()))
        }
        Value::Array(items) => items.iter().find_map(with_variable),
        Value::Object(fields) => fields.values().find_map(with_variable),
        Value::Null | Value::Bool(_) | Value::Number(_) => None,
    }
}
