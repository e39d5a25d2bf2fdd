//! A call of a tool, parsed into what rules match.

use antiphon_core::port::GateRequest;
use antiphon_hosts::{HostRule, requested_hosts, url_host};
use serde_json::Value;

use crate::commands::{Item, StartFolder, analyze};
use crate::normalized_path::NormalizedPath;
use crate::repository::only_git;
use crate::rule::{Arguments, ExactScript};

/// Tools whose calls take one path.
pub(crate) const FILE_TOOLS: [&str; 5] = ["read", "write", "edit", "grep", "glob"];

/// The argument of `bash` that holds its script.
const SCRIPT_ARGUMENT: &str = "command";

/// The argument of `bash` that holds the folder to run it in.
const FOLDER_ARGUMENT: &str = "workdir";

/// The argument of `bash` that asks to run without the sandbox.
const UNSANDBOXED_ARGUMENT: &str = "without_sandbox";

/// The argument of `bash` that holds the hosts it asks for.
const HOSTS_ARGUMENT: &str = "hosts";

/// The tool that gets a page.
const WEB_TOOL: &str = "web_fetch";

/// The argument of `web_fetch` that holds the address of the page.
const URL_ARGUMENT: &str = "url";

/// The argument of a tool for files that holds its path.
const PATH_ARGUMENT: &str = "path";

/// A parsed call.
#[derive(Debug)]
pub(crate) struct Call<'a> {
    pub(crate) tool: &'a str,
    pub(crate) arguments: Arguments,
    pub(crate) subject: Subject,
}

/// What rules match in a call.
#[derive(Debug)]
pub(crate) enum Subject {
    /// A script for bash.
    Script {
        script: ExactScript,
        items: Vec<Item>,
        /// Hosts that it asks for.
        hosts: Vec<HostRule>,
        /// It runs in a sandbox that lets git change the repository.
        repository: bool,
        /// It asks to run without the sandbox.
        unsandboxed: bool,
    },
    /// A file or folder.
    File { resolved: NormalizedPath, writes: bool },
    /// A page of a host.
    Page { hosts: Vec<HostRule> },
    /// Arguments of a tool this crate does not know.
    Other,
    /// The arguments are invalid, for this reason.
    Malformed(String),
}

impl<'a> Call<'a> {
    /// Parses a call; `root` is the workspace.
    pub(crate) fn of(request: &GateRequest<'a>, root: &str) -> Self {
        let arguments = Arguments::read(request.arguments);
        let subject = if request.tool == "bash" {
            script(&arguments, root)
        } else if FILE_TOOLS.contains(&request.tool) {
            file(request.tool, &arguments, root)
        } else if request.tool == WEB_TOOL {
            page(&arguments)
        } else {
            Ok(Subject::Other)
        };
        Self { tool: request.tool, subject: subject.unwrap_or_else(Subject::Malformed), arguments }
    }
}

fn script(arguments: &Arguments, root: &str) -> Result<Subject, String> {
    let script = text(arguments, SCRIPT_ARGUMENT)?.ok_or_else(|| missing(SCRIPT_ARGUMENT))?;
    let folder = text(arguments, FOLDER_ARGUMENT)?.unwrap_or_default();
    let resolved = NormalizedPath::of(root, "", folder);
    let from =
        if resolved.relative.is_some() { StartFolder::In(folder) } else { StartFolder::Outside };
    let items = analyze(script, from);
    let elsewhere =
        (resolved.relative.as_deref() != Some(".")).then(|| resolved.shown().to_owned());
    let script = ExactScript { folder: elsewhere, text: script.to_owned() };
    let unsandboxed = flag(arguments, UNSANDBOXED_ARGUMENT)?;
    let repository = !unsandboxed && only_git(&items);
    Ok(Subject::Script { script, items, hosts: hosts(arguments)?, repository, unsandboxed })
}

/// The hosts that a call of `bash` asks for.
fn hosts(arguments: &Arguments) -> Result<Vec<HostRule>, String> {
    let named = match argument(arguments, HOSTS_ARGUMENT)? {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Array(named)) => named,
        Some(_) => return Err(format!("`{HOSTS_ARGUMENT}` is not a list")),
    };
    let texts: Option<Vec<&str>> = named.iter().map(Value::as_str).collect();
    let texts = texts.ok_or_else(|| format!("`{HOSTS_ARGUMENT}` has a value that is no text"))?;
    requested_hosts(texts).map_err(|error| format!("`{HOSTS_ARGUMENT}`: {error}"))
}

/// The host of the page that a call of `web_fetch` gets.
fn page(arguments: &Arguments) -> Result<Subject, String> {
    let url = text(arguments, URL_ARGUMENT)?.ok_or_else(|| missing(URL_ARGUMENT))?;
    let wrong = |error: antiphon_hosts::HostError| format!("`{URL_ARGUMENT}`: {error}");
    let host = url_host(url).map_err(wrong)?;
    Ok(Subject::Page { hosts: requested_hosts([host.as_str()]).map_err(wrong)? })
}

fn file(tool: &str, arguments: &Arguments, root: &str) -> Result<Subject, String> {
    let path = text(arguments, PATH_ARGUMENT)?;
    let path = match (tool, path) {
        (_, Some(path)) if path.contains('\0') => {
            return Err(format!("`{PATH_ARGUMENT}` has a NUL in it"));
        }
        (_, Some(path)) => path,
        ("grep" | "glob", None) => ".",
        (_, None) => return Err(missing(PATH_ARGUMENT)),
    };
    let mut resolved = NormalizedPath::of(root, "", path);
    if tool == "glob"
        && let Some(pattern) = text(arguments, "pattern")?
        && (pattern.starts_with('/') || pattern.split('/').any(|part| part == ".."))
    {
        // The pattern selects files outside of `path`.
        resolved = NormalizedPath::of(root, path, pattern);
    }
    Ok(Subject::File { resolved, writes: matches!(tool, "write" | "edit") })
}

/// The argument `name`, if present. An error if it is not a string or present twice.
fn text<'a>(arguments: &'a Arguments, name: &str) -> Result<Option<&'a str>, String> {
    match argument(arguments, name)? {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(format!("`{name}` is not a text")),
    }
}

/// The argument `name`, if present. An error if it is present twice.
fn argument<'a>(arguments: &'a Arguments, name: &str) -> Result<Option<&'a Value>, String> {
    let Some(arguments) = &arguments.0 else {
        return Err("they are not a JSON object".to_owned());
    };
    let mut found = arguments.iter().filter(|(key, _)| key == name).map(|(_, value)| value);
    match (found.next(), found.next()) {
        (_, Some(_)) => Err(format!("`{name}` is there twice")),
        (found, None) => Ok(found),
    }
}

/// Whether the argument `name` is true. An error if it is not a boolean or present twice.
fn flag(arguments: &Arguments, name: &str) -> Result<bool, String> {
    let given = arguments.0.iter().flatten().filter(|(key, _)| key == name).map(|(_, value)| value);
    let mut given = given.fuse();
    match (given.next(), given.next()) {
        (None | Some(Value::Null), None) => Ok(false),
        (Some(Value::Bool(value)), None) => Ok(*value),
        (_, Some(_)) => Err(format!("`{name}` is there twice")),
        (Some(_), None) => Err(format!("`{name}` is neither true nor false")),
    }
}

fn missing(name: &str) -> String {
    format!("`{name}` is missing")
}
