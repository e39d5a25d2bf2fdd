//! A call as rules see it.

use antiphon_core::port::GateRequest;
use serde_json::Value;

use crate::commands::{Item, Start, look};
use crate::place::Place;
use crate::rule::Arguments;

/// Tools whose calls are about one path.
pub(crate) const FILE_TOOLS: [&str; 5] = ["read", "write", "edit", "grep", "glob"];

/// The argument of `bash` that holds its script.
const SCRIPT_ARGUMENT: &str = "command";

/// The argument of `bash` that holds the folder to run it in.
const FOLDER_ARGUMENT: &str = "workdir";

/// The argument of a tool for files that holds its path.
const PATH_ARGUMENT: &str = "path";

/// What is called.
#[derive(Debug)]
pub(crate) struct Call<'a> {
    pub(crate) tool: &'a str,
    pub(crate) arguments: Arguments,
    pub(crate) subject: Subject,
}

/// What a call is about.
#[derive(Debug)]
pub(crate) enum Subject {
    /// A script.
    Script { text: String, items: Vec<Item> },
    /// A file.
    File { place: Place, writes: bool },
    /// Nothing that is known here.
    Other,
    /// It cannot be made sense of, for this reason.
    Malformed(String),
}

impl<'a> Call<'a> {
    /// Reads a call; `root` is the workspace.
    pub(crate) fn of(asked: &GateRequest<'a>, root: &str) -> Self {
        let arguments = Arguments::read(asked.arguments);
        let subject = if asked.tool == "bash" {
            script(&arguments, root)
        } else if FILE_TOOLS.contains(&asked.tool) {
            file(asked.tool, &arguments, root)
        } else {
            Ok(Subject::Other)
        };
        Self { tool: asked.tool, subject: subject.unwrap_or_else(Subject::Malformed), arguments }
    }
}

fn script(arguments: &Arguments, root: &str) -> Result<Subject, String> {
    let script = text(arguments, SCRIPT_ARGUMENT)?.ok_or_else(|| missing(SCRIPT_ARGUMENT))?;
    let folder = text(arguments, FOLDER_ARGUMENT)?.unwrap_or_default();
    let place = Place::of(root, "", folder);
    let from = if place.relative.is_some() { Start::In(folder) } else { Start::Outside };
    Ok(Subject::Script { text: script.to_owned(), items: look(script, from) })
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
    let mut place = Place::of(root, "", path);
    if tool == "glob"
        && let Some(pattern) = text(arguments, "pattern")?
        && (pattern.starts_with('/') || pattern.split('/').any(|part| part == ".."))
    {
        // The pattern leads elsewhere than the path says.
        place = Place::of(root, path, pattern);
    }
    Ok(Subject::File { place, writes: matches!(tool, "write" | "edit") })
}

/// The argument `name`, if it is there; an error if it is no text, or there twice.
fn text<'a>(arguments: &'a Arguments, name: &str) -> Result<Option<&'a str>, String> {
    let Some(arguments) = &arguments.0 else {
        return Err("they are not an object".to_owned());
    };
    let mut found = arguments.iter().filter(|(key, _)| key == name).map(|(_, value)| value);
    match (found.next(), found.next()) {
        (None | Some(Value::Null), None) => Ok(None),
        (Some(Value::String(text)), None) => Ok(Some(text)),
        (_, Some(_)) => Err(format!("`{name}` is there twice")),
        (Some(_), None) => Err(format!("`{name}` is not a text")),
    }
}

fn missing(name: &str) -> String {
    format!("`{name}` is missing")
}
