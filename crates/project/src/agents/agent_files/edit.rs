//! Creates and changes agent files for clients. Each file is written whole or not at all. Refuses a text
//! that is not a valid agent, and a change that would alter more than the named fields and the context.

use std::fs::{self, DirBuilder, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Component, Path, PathBuf};

use antiphon_agent_files::{AgentFileError, FILE_BYTES_MAX, Folder, SCHEMA_BYTES_MAX, parse};
use antiphon_core::{AgentDefinition, AgentName};
use antiphon_private_file::{Durability, write_atomic};
use serde_json::{Value, json};

use super::front_matter;

/// The line before and after front matter.
pub(super) const FENCE: &str = "---";

/// Why an agent file was not written.
#[derive(Debug)]
pub enum EditError {
    /// The result would not be the requested agent. The text says why.
    Refused(String),
    /// Another file of that name exists.
    Exists(PathBuf),
    /// The file or its folder cannot be read or written.
    Unwritable(String),
}

/// A checked write of an agent file.
#[derive(Debug)]
pub(crate) struct AgentFileWrite {
    pub(crate) path: PathBuf,
    pub(crate) text: String,
    replaces: Replaces,
}

/// What a write replaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Replaces {
    /// Nothing: another file of that name is an error.
    Nothing,
    /// The file of that name.
    File,
    /// The same text: nothing has to be written.
    Same,
}

impl AgentFileWrite {
    /// Writes the file, and creates its folder if it is missing.
    pub(crate) fn execute(&self) -> Result<(), EditError> {
        let (path, text) = (&self.path, self.text.as_str());
        match self.replaces {
            Replaces::Same => Ok(()),
            Replaces::File => {
                write_atomic(path, text.as_bytes(), Durability::Synced).map_err(unwritable)
            }
            Replaces::Nothing => {
                let folder = path.parent().unwrap_or(Path::new("/"));
                create_folder(folder).map_err(unwritable)?;
                let file = write_temporary(folder, text).map_err(unwritable)?;
                match file.persist_noclobber(path) {
                    Ok(_) => sync(folder).map_err(unwritable),
                    Err(failed) if failed.error.kind() == io::ErrorKind::AlreadyExists => {
                        let same = text_of(path).is_ok_and(|existing| existing == text);
                        if same { Ok(()) } else { Err(EditError::Exists(path.clone())) }
                    }
                    Err(failed) => Err(unwritable(failed.error)),
                }
            }
        }
    }
}

/// A new agent.
pub(crate) struct NewAgent<'a> {
    pub(crate) name: &'a AgentName,
    pub(crate) description: &'a str,
    /// The terminal profile it runs in; the native loop when absent.
    pub(crate) terminal: Option<&'a str>,
    /// Its system prompt; one sentence with its name when absent.
    pub(crate) context: Option<&'a str>,
}

/// Writes the file of a new agent, and creates the folder if it is missing. Never replaces another file.
/// Like the functions below, it checks and returns the write, which the caller carries out.
pub(crate) fn create(folder: &Folder, agent: &NewAgent<'_>) -> Result<AgentFileWrite, EditError> {
    let mut fields = vec![("description", Value::from(agent.description))];
    if let Some(profile) = agent.terminal {
        let runtime = json!([{"kind": "terminal", "config": {"profile": profile}}]);
        fields.push(("runtimes", runtime));
    }
    let own = format!("You are {}.", agent.name);
    define(folder, agent.name, &fields, agent.context.unwrap_or(&own))
}

/// Writes the file of an agent with these fields. Never replaces another file; succeeds when the same file
/// exists already.
pub(crate) fn define(
    folder: &Folder,
    name: &AgentName,
    fields: &[(&'static str, Value)],
    context: &str,
) -> Result<AgentFileWrite, EditError> {
    let lines: String = fields.iter().map(|(field, value)| line(field, value)).collect();
    let text = format!("{FENCE}\n{lines}{FENCE}\n{context}\n");
    let new = read(name.as_str(), &text, &folder.path)?;
    let blank = AgentDefinition::new(name.clone(), "");
    if front_matter::merged(&blank, &new, fields, Some(context)) != new {
        let reason = "the file would define another agent than requested: change the values";
        return Err(EditError::Refused(reason.to_owned()));
    }
    let path = folder.path.join(format!("{name}.md"));
    Ok(AgentFileWrite { path, text, replaces: Replaces::Nothing })
}

/// Replaces the context of an agent. Everything else in its file stays as it is.
pub(crate) fn rewrite(
    path: &Path,
    agent: &AgentDefinition,
    context: &str,
) -> Result<AgentFileWrite, EditError> {
    change(path, agent, &[], Some(context))
}

/// Replaces these fields of an agent, and its context if one is given; `null` removes a field. Everything
/// else in its file stays as it is.
pub(crate) fn change(
    path: &Path,
    agent: &AgentDefinition,
    fields: &[(&'static str, Value)],
    context: Option<&str>,
) -> Result<AgentFileWrite, EditError> {
    let folder = path.parent().unwrap_or(Path::new("/"));
    let old = text_of(path).map_err(unwritable)?;
    let old_front = front(&old);
    let mut front = old_front.map_or_else(
        // Without front matter, a context that begins with a fence would become front matter.
        || format!("{FENCE}\n{}{FENCE}\n", line("description", &agent.description.as_str().into())),
        str::to_owned,
    );
    for (field, value) in fields {
        front = front_matter::replace_field(&front, field, &line(field, value));
    }
    let body = &old[old_front.map_or(0, str::len)..];
    let text = context.map_or_else(|| format!("{front}{body}"), |new| format!("{front}{new}\n"));
    let new = read(agent.name.as_str(), &text, folder)?;
    // The texts are compared too: a broken file can stand for the same agent, and is then written again.
    let is_same = new == *agent && text == old;
    if !is_same && front_matter::merged(agent, &new, fields, context) != new {
        let reason = "its file changed meanwhile: check the file, and try again";
        return Err(EditError::Refused(reason.to_owned()));
    }
    let replaces = if is_same { Replaces::Same } else { Replaces::File };
    Ok(AgentFileWrite { path: path.to_owned(), text, replaces })
}

/// A line of front matter; empty for `null`. A JSON value is valid YAML.
fn line(field: &str, value: &Value) -> String {
    if value.is_null() { String::new() } else { format!("{field}: {value}\n") }
}

/// The text of an agent file, up to its size limit.
fn text_of(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    File::open(path)?.take(FILE_BYTES_MAX as u64).read_to_string(&mut text)?;
    Ok(text)
}

/// The text up to the end of the front matter; `None` without front matter.
pub(super) fn front(text: &str) -> Option<&str> {
    let is_fence = |line: &str| line.trim_end() == FENCE;
    let mut lines = text.split_inclusive('\n');
    let first = lines.next().filter(|line| is_fence(line.trim_start_matches('\u{feff}')))?;
    let mut end = first.len();
    for line in lines {
        end += line.len();
        if is_fence(line) {
            return Some(&text[..end]);
        }
    }
    None
}

/// Parses the text of an agent file.
fn read(stem: &str, text: &str, folder: &Path) -> Result<AgentDefinition, EditError> {
    let mut read_schema = |path: &Path| {
        if !path.components().all(|part| matches!(part, Component::Normal(_))) {
            return Err("it is not below its folder".to_owned());
        }
        let mut bytes = Vec::new();
        let file = File::open(folder.join(path)).map_err(|error| error.to_string())?;
        let limit = SCHEMA_BYTES_MAX as u64 + 1;
        file.take(limit).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
        Ok(bytes)
    };
    parse(stem, text.as_bytes(), &mut read_schema).map_err(
        |AgentFileError { line, reason, .. }| {
            EditError::Refused(format!("not a valid agent: line {line}: {reason}"))
        },
    )
}

/// Creates the folder. A link is refused: it may have come with a clone.
fn create_folder(folder: &Path) -> io::Result<()> {
    match fs::symlink_metadata(folder) {
        Ok(about) if about.is_dir() => Ok(()),
        Ok(_) => Err(io::Error::other("it is not a folder")),
        Err(_) => match DirBuilder::new().mode(0o700).create(folder) {
            // Another process has created it meanwhile.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && is_folder(folder) => {
                Ok(())
            }
            created => created,
        },
    }
}

/// Whether it is a folder and no link.
fn is_folder(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|about| about.is_dir())
}

fn write_temporary(folder: &Path, text: &str) -> io::Result<tempfile::NamedTempFile> {
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(text.as_bytes())?;
    file.as_file().sync_all()?;
    Ok(file)
}

fn sync(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

#[expect(clippy::needless_pass_by_value, reason = "`map_err` passes the error by value")]
fn unwritable(error: io::Error) -> EditError {
    EditError::Unwritable(error.to_string())
}

#[cfg(test)]
mod tests {
    use antiphon_agent_files::AgentCatalog;

    use super::*;

    /// Plans a write and carries it out.
    fn done(write: Result<AgentFileWrite, EditError>) -> Result<(), EditError> {
        write?.execute()
    }

    fn agent(folder: &Path, name: &str) -> AgentDefinition {
        let prompt = |_: antiphon_core::port::PromptSource<'_>| String::new();
        let catalog = AgentCatalog::open(vec![Folder::project(folder)], prompt);
        (*catalog.entry(name).unwrap().definition).clone()
    }

    fn new<'a>(name: &'a AgentName, context: Option<&'a str>) -> NewAgent<'a> {
        NewAgent { name, description: "Made: by \"ci\".", terminal: None, context }
    }

    #[test]
    fn a_new_agent_has_the_given_context_and_replaces_no_other_file() {
        let folder = tempfile::tempdir().unwrap();
        let agents = Folder::project(folder.path().join("agents"));
        let name = AgentName::parse("my scribe").unwrap();
        // A context that looks like front matter stays context.
        done(create(&agents, &new(&name, Some("---\ntools: bash\n---\nWrite.")))).unwrap();
        let made = agent(&agents.path, "my scribe");
        assert_eq!(made.context, "---\ntools: bash\n---\nWrite.");
        assert_eq!((made.tools, made.description.as_str()), (None, "Made: by \"ci\"."));
        let again = done(create(&agents, &new(&name, None)));
        assert!(matches!(again, Err(EditError::Exists(path)) if path.ends_with("my scribe.md")));
        let blank = done(create(&agents, &new(&AgentName::parse("x").unwrap(), Some(" \n"))));
        assert!(matches!(blank, Err(EditError::Refused(_))), "{blank:?}");
        assert_eq!(fs::read_dir(&agents.path).unwrap().count(), 1);
    }

    #[test]
    fn a_new_context_leaves_the_rest_of_the_file_unchanged() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.md");
        let front = "---\n# why\ndescription: d\ntools: read\n---\n";
        fs::write(&path, format!("{front}Old.\n")).unwrap();
        done(rewrite(&path, &agent(folder.path(), "a"), "New.\n---\nMore.")).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), format!("{front}New.\n---\nMore.\n"));
        for none in ["", "  \n"] {
            let refused = done(rewrite(&path, &agent(folder.path(), "a"), none));
            assert!(matches!(refused, Err(EditError::Refused(_))), "{refused:?}");
        }
        assert_eq!(agent(folder.path(), "a").context, "New.\n---\nMore.");
    }

    #[test]
    fn a_context_never_becomes_front_matter() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.md");
        fs::write(&path, "Writes things down.\n").unwrap();
        let before = agent(folder.path(), "a");
        done(rewrite(&path, &before, "---\ntools: bash\n---\nx")).unwrap();
        let after = agent(folder.path(), "a");
        assert_eq!(after.context, "---\ntools: bash\n---\nx");
        assert_eq!(AgentDefinition { context: before.context.clone(), ..after }, before);
    }

    #[test]
    fn a_changed_field_leaves_the_rest_of_the_file_unchanged() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.md");
        let front = "---\n# why\ndescription: >\n  long\n\n  text\n\n# tools\ntools:\n- read\n- grep\n---\n";
        fs::write(&path, format!("{front}Old.\n")).unwrap();
        let fields = [
            ("description", Value::from("New: \"it\"\nand tools: [bash]")),
            ("limits", json!({"turns": 3, "cost_usd": 0.5})),
        ];
        done(change(&path, &agent(folder.path(), "a"), &fields, None)).unwrap();
        let changed = agent(folder.path(), "a");
        assert_eq!(changed.description, "New: \"it\"\nand tools: [bash]");
        assert_eq!(changed.limits.turns_max.unwrap().get(), 3);
        assert_eq!(changed.tools, Some(vec!["read".to_owned(), "grep".to_owned()]));
        assert_eq!(changed.context, "Old.");
        let text = fs::read_to_string(&path).unwrap();
        assert!(
            text.contains("# why\n") && text.contains("# tools\ntools:\n- read\n- grep\n"),
            "{text}"
        );
        let gone = [("tools", Value::Null), ("limits", Value::Null)];
        done(change(&path, &changed, &gone, Some("New."))).unwrap();
        let now = agent(folder.path(), "a");
        assert_eq!((now.tools, now.context.as_str()), (None, "New."));
        for (field, wrong) in [
            ("tools", json!({"a": 1})),
            ("limits", json!({"nonsense": 1})),
            ("description", Value::Null),
            ("model", json!("nobody")),
        ] {
            let refused = done(change(&path, &agent(folder.path(), "a"), &[(field, wrong)], None));
            assert!(matches!(refused, Err(EditError::Refused(_))), "{field}: {refused:?}");
        }
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left behind");
    }

    #[test]
    fn a_broken_file_is_fixed_also_when_its_agent_does_not_change() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.md");
        let whole = "---\ndescription: \"d\"\n---\nOne.\n";
        fs::write(&path, whole).unwrap();
        let in_force = agent(folder.path(), "a");
        fs::write(&path, whole.replace("\"d\"", "[")).unwrap();
        done(change(&path, &in_force, &[("description", "d".into())], Some("One."))).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), whole);
        assert_eq!(agent(folder.path(), "a"), in_force);
    }

    #[test]
    fn the_same_definition_again_succeeds() {
        let folder = tempfile::tempdir().unwrap();
        let agents = Folder::project(folder.path());
        let name = AgentName::parse("a").unwrap();
        let fields = [
            ("description", Value::from("d")),
            ("tools", json!(["read", "grep"])),
            ("runtimes", json!([{"kind": "sandbox", "config": {"a": "b"}}])),
        ];
        done(define(&agents, &name, &fields, "One.")).unwrap();
        done(define(&agents, &name, &fields, "One.")).unwrap();
        let other = done(define(&agents, &name, &fields, "Two."));
        assert!(matches!(other, Err(EditError::Exists(_))), "{other:?}");
        assert_eq!(agent(folder.path(), "a").context, "One.");
    }
}
