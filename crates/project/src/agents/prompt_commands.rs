//! Commands that are prompts in markdown files: the user's own, and those of the project that the user trusts.
//!
//! Every interface lists and expands them here. An earlier folder wins: those of Antiphon, then those of other programs;
//! the user's before the project's.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use antiphon_agent_files::FolderOwner;
use antiphon_core::{ModelRef, visible};
use antiphon_imports::PromptCommand;
pub use antiphon_imports::split_arguments;

use crate::agent_files::foreign_folders::{CLAUDE, OPENCODE, model_named, opencode_folder};
use crate::error::ProjectError;
use crate::found_files::{LookedFolder, is_markdown};
use crate::project::{FOLDER, Project};
use crate::settings::UserSettings;

/// Antiphon itself, as a source of commands.
pub(crate) const OURS: &str = "antiphon";

/// Codex, as it is named in lists and by `antiphon import --from`.
pub const CODEX: &str = "codex";

/// Folders of a project with commands, below its root.
const OF_PROJECT: [(&str, &str); 4] = [
    (OURS, ".antiphon/commands"),
    (CLAUDE, ".claude/commands"),
    (OPENCODE, ".opencode/command"),
    (OPENCODE, ".opencode/commands"),
];

/// Most commands that are listed.
pub const COMMANDS_MAX: usize = 1_000;

/// Longest name of a command, in bytes.
const NAME_BYTES_MAX: usize = 100;

/// A command that can be used.
#[derive(Debug, Clone)]
pub struct ListedCommand {
    /// Its name, without the slash. Folders in it are separated by `:`.
    pub name: String,
    /// The program its file was written for.
    pub program: &'static str,
    /// Whether the file belongs to the project or the user.
    pub owner: FolderOwner,
    /// Path of its file.
    pub path: PathBuf,
    /// Its content.
    pub command: PromptCommand,
}

/// What a task of a command is.
#[derive(Debug, Clone, PartialEq)]
pub struct ExpandedCommand {
    /// The prompt.
    pub prompt: String,
    /// The agent that its file names.
    pub agent: Option<String>,
    /// The model that its file names, if it can be used.
    pub model: Option<ModelRef>,
}

/// Every command that can be used, ordered by name.
pub fn list(project: &Project, settings: &UserSettings) -> Vec<ListedCommand> {
    let trust = project.trust();
    let trusts = trust.trusted_content();
    let mut found = BTreeMap::new();
    for folder in folders(project, settings) {
        for (name, path) in files(&folder) {
            if found.len() >= COMMANDS_MAX {
                break;
            }
            let Ok((bytes, version)) = folder.read(&path) else { continue };
            if folder.owner == FolderOwner::Project && !trusts(&path, &version) {
                continue;
            }
            let Ok(command) = PromptCommand::read(&bytes) else { continue };
            found.entry(name.clone()).or_insert_with(|| {
                let (program, owner) = (folder.program, folder.owner);
                ListedCommand { name, program, owner, path, command }
            });
        }
    }
    found.into_values().collect()
}

/// The prompt of a command with its arguments; the error lists the commands, or says why a file has no effect.
pub fn expand(
    project: &Project,
    settings: &UserSettings,
    name: &str,
    arguments: &[String],
) -> Result<ExpandedCommand, ProjectError> {
    let commands = list(project, settings);
    let name = name.strip_prefix('/').unwrap_or(name);
    let Some(found) = commands.iter().find(|command| command.name == name) else {
        return Err(unknown(project, settings, name, &commands));
    };
    let invalid = |reason: String| {
        ProjectError::InvalidInput(format!("the command `{}`: {reason}", visible(name)))
    };
    let prompt = found.command.expand(arguments).map_err(|error| invalid(error.to_string()))?;
    let model = found.command.model.as_deref().map(|model| model_named(settings, model));
    let model = model.and_then(|model| match model {
        Ok(model) => Some(model),
        Err(reason) => {
            let warning = format!("the command `{name}` names a model that is not used: {reason}");
            settings.environment.warnings.report(&visible(&warning));
            None
        }
    });
    Ok(ExpandedCommand { prompt, agent: found.command.agent.clone(), model })
}

/// The prompt of one of these commands for what a person typed, with the slash: `None` when there is none of this name.
pub fn expand_typed(
    commands: &[ListedCommand],
    name: &str,
    typed: &str,
) -> Option<Result<String, String>> {
    let found = commands.iter().find(|command| command.name == name)?;
    let typed = typed.trim_start().strip_prefix('/').unwrap_or(typed);
    let arguments = split_arguments(typed.strip_prefix(name).unwrap_or_default());
    let expanded = found.command.expand(&arguments);
    Some(expanded.map_err(|error| format!("the command `{name}`: {error}")))
}

fn unknown(
    project: &Project,
    settings: &UserSettings,
    name: &str,
    known: &[ListedCommand],
) -> ProjectError {
    let file = folders(project, settings).iter().find_map(|folder| {
        files(folder).into_iter().find(|(found, _)| found == name).map(|(_, path)| path)
    });
    let shown = visible(name);
    if let Some(path) = file {
        let path = path.display();
        return ProjectError::InvalidInput(visible(&format!(
            "the command `{shown}` has no effect: trust its file with `antiphon trust`, or correct it: {path}"
        )));
    }
    let names: Vec<&str> = known.iter().map(|command| command.name.as_str()).take(20).collect();
    let known = if names.is_empty() {
        "there are none: write .antiphon/commands/NAME.md".to_owned()
    } else {
        format!("there are {}", names.join(", "))
    };
    ProjectError::InvalidInput(format!("there is no command `{shown}`; {known}"))
}

/// Commands of the project's folders, whether they are trusted or not: name, path below the root, version, content.
pub(crate) fn brought(root: &Path) -> Vec<(String, PathBuf, String, PromptCommand)> {
    let mut found = Vec::new();
    for folder in project_folders(root) {
        for (name, path) in files(&folder) {
            if found.len() >= COMMANDS_MAX {
                return found;
            }
            let Ok((bytes, version)) = folder.read(&path) else { continue };
            if let Ok(command) = PromptCommand::read(&bytes) {
                found.push((name, path, version, command));
            }
        }
    }
    found
}

/// Folder of the user's own commands.
pub fn user_folder(settings: &UserSettings) -> PathBuf {
    settings.path.with_file_name("commands")
}

/// Folder of the project's own commands.
pub fn project_folder(project: &Project) -> PathBuf {
    project.root().join(FOLDER).join("commands")
}

/// Folders in order of precedence.
pub(crate) fn folders(project: &Project, settings: &UserSettings) -> Vec<LookedFolder> {
    let user = |program, path: PathBuf| LookedFolder {
        owner: FolderOwner::User,
        root: path.clone(),
        path,
        program,
    };
    let mut folders = vec![user(OURS, user_folder(settings))];
    let mut of_project = project_folders(project.root());
    folders.push(of_project.remove(0));
    if let Some(home) = settings.environment.home() {
        folders.push(user(CLAUDE, home.join(".claude/commands")));
        folders.push(user(CODEX, home.join(".codex/prompts")));
    }
    if let Some(folder) = opencode_folder(&settings.environment) {
        folders.extend(["command", "commands"].map(|name| user(OPENCODE, folder.join(name))));
    }
    folders.extend(of_project);
    folders
}

fn project_folders(root: &Path) -> Vec<LookedFolder> {
    let folder = |(program, path): (&'static str, &str)| LookedFolder {
        owner: FolderOwner::Project,
        root: root.to_owned(),
        path: root.join(path),
        program,
    };
    OF_PROJECT.into_iter().map(folder).collect()
}

/// Names and paths of the commands of a folder. A file whose name is no name of a command is none.
fn files(folder: &LookedFolder) -> Vec<(String, PathBuf)> {
    let found = folder.files(is_markdown).into_iter();
    found.filter_map(|file| Some((command_name(&file.relative)?, file.path))).collect()
}

/// `frontend/component.md` is `frontend:component`.
pub(crate) fn command_name(relative: &Path) -> Option<String> {
    let parts = relative.with_extension("");
    let parts: Option<Vec<&str>> = parts.iter().map(std::ffi::OsStr::to_str).collect();
    let parts = parts?;
    let is_plain = |c: char| c.is_alphanumeric() || "_-.".contains(c);
    let name = parts.join(":");
    let is_name = parts.iter().all(|part| !part.is_empty() && part.chars().all(is_plain));
    (is_name && name.len() <= NAME_BYTES_MAX).then_some(name)
}
