//! Copies agents and commands of other programs into files of ours, and MCP servers into the user's settings.
//!
//! Nothing is replaced, and nothing gets more than it had: what an untrusted project brings stays untrusted, and never
//! becomes the user's own.

mod user_servers;

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Write as _};
use std::os::fd::AsRawFd as _;
use std::path::{Component, Path, PathBuf};

use antiphon_agent_files::{AgentCatalog, AgentFileEntry, Folder, FolderOwner, parse};
use antiphon_core::port::PromptSource;
use antiphon_core::visible;
use antiphon_imports::{PromptCommand, agent_text};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use serde::Serialize;

use crate::agent_files::foreign_folders::foreign_folders;
use crate::agent_files::{project_folder, user_folder};
use crate::error::ProjectError;
use crate::found_files::{LookedFolder, is_markdown};
use crate::project::Project;
use crate::prompt_commands;
use crate::settings::UserSettings;
use crate::trust::agent_effects;

/// Where the files go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImportTarget {
    /// Into the project's `.antiphon`.
    Project,
    /// Into the user's configuration folder, for all projects.
    User,
}

/// Whether files are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImportAction {
    /// The report says what would be written.
    DryRun,
    /// Files are written.
    Write,
}

/// What became of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ImportStatus {
    /// It was written.
    Written,
    /// It would be written.
    WouldWrite,
    /// It was not, or would not be.
    Refused,
}

/// One file of another program, and what became of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ImportedFile {
    /// `agent`, `command` or `MCP server`.
    pub kind: &'static str,
    /// The program it was written for.
    pub program: &'static str,
    /// Path of the file.
    pub source: String,
    /// Its name here; absent when the file cannot be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// What became of it.
    pub status: ImportStatus,
    /// Path of the new file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// Why it was refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Whether the new file has an effect only after `antiphon trust`.
    pub needs_trust: bool,
    /// What it may do, one line each.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub effects: Vec<String>,
    /// What its file says and is not used, and why, one line each.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub dropped: Vec<String>,
}

/// Imports what the programs of `from` left in the project and in the user's home; all programs when it is `None`.
pub fn import(
    project: &Project,
    settings: &UserSettings,
    from: Option<&str>,
    target: ImportTarget,
    action: ImportAction,
) -> Result<Vec<ImportedFile>, ProjectError> {
    let mut import = Import { project, settings, target, action, taken: BTreeSet::new() };
    let is_wanted = |program: &str| from.is_none_or(|from| from == program);
    let mut report = Vec::new();
    for folder in foreign_folders(project, settings) {
        let program = folder.foreign.as_ref().map_or("", |format| format.name);
        if is_wanted(program) {
            import.agents(folder, program, &mut report);
        }
    }
    for folder in prompt_commands::folders(project, settings) {
        if folder.program != prompt_commands::OURS && is_wanted(folder.program) {
            import.commands(&folder, &mut report);
        }
    }
    // A server of the user's is for all projects, as it is there.
    if target == ImportTarget::User {
        report.extend(user_servers::import_servers(project, settings, from, action)?);
    }
    Ok(report)
}

struct Import<'a> {
    project: &'a Project,
    settings: &'a UserSettings,
    target: ImportTarget,
    action: ImportAction,
    /// Files that this import has written, or would have.
    taken: BTreeSet<PathBuf>,
}

/// A file that is to be written.
struct NewFile<'a> {
    owner: FolderOwner,
    source: &'a Path,
    version: &'a str,
    target: PathBuf,
    /// Files that would take its place, or whose place it would take.
    rivals: Vec<PathBuf>,
    text: &'a [u8],
}

impl Import<'_> {
    fn agents(&mut self, folder: Folder, program: &'static str, report: &mut Vec<ImportedFile>) {
        let catalog = AgentCatalog::open(vec![folder], |_: PromptSource<'_>| String::new());
        let blank = |source: &Path| ImportedFile {
            kind: "agent",
            program,
            source: source.display().to_string(),
            name: None,
            status: ImportStatus::Refused,
            target: None,
            reason: None,
            needs_trust: false,
            effects: Vec::new(),
            dropped: Vec::new(),
        };
        for entry in catalog.entries() {
            let mut file = blank(&entry.path);
            file.name = Some(entry.definition.name.to_string());
            file.effects = agent_effects(&entry.definition);
            file.dropped = entry.imported.iter().flat_map(|it| it.dropped.clone()).collect();
            let written = self.agent(&entry);
            self.record(&mut file, written);
            report.push(file);
        }
        for problem in catalog.problems() {
            let line = problem.line.map_or(String::new(), |line| format!("line {line}: "));
            let reason = Some(format!("{line}{}", problem.reason));
            report.push(ImportedFile { reason, ..blank(&problem.path) });
        }
    }

    fn agent(&mut self, entry: &AgentFileEntry) -> Result<(PathBuf, bool), String> {
        let name = &entry.definition.name;
        let source = entry.path.strip_prefix(self.project.root()).unwrap_or(&entry.path);
        let text = agent_text(&entry.definition, &source.display().to_string());
        // The text that is written means what was read.
        let read = parse(name.as_str(), text.as_bytes(), &mut |_| Err("no files".to_owned()));
        match read {
            Ok(read) if read == *entry.definition => {}
            Ok(_) => return Err("it cannot be written as an agent here".to_owned()),
            Err(error) => return Err(error.reason),
        }
        let of_project = project_folder(self.project).path.join(format!("{name}.md"));
        let of_user = user_folder(self.settings).path.join(format!("{name}.md"));
        let (target, rival) = match self.target {
            ImportTarget::Project => (of_project, of_user),
            ImportTarget::User => (of_user, of_project),
        };
        self.write(&NewFile {
            owner: entry.origin,
            source: &entry.path,
            version: &entry.version,
            target,
            rivals: vec![rival],
            text: text.as_bytes(),
        })
    }

    fn commands(&mut self, folder: &LookedFolder, report: &mut Vec<ImportedFile>) {
        for found in folder.files(is_markdown) {
            let mut file = ImportedFile {
                kind: "command",
                program: folder.program,
                source: found.path.display().to_string(),
                name: prompt_commands::command_name(&found.relative),
                status: ImportStatus::Refused,
                target: None,
                reason: None,
                needs_trust: false,
                effects: Vec::new(),
                dropped: Vec::new(),
            };
            let written = self.command(folder, &found.path, &mut file);
            self.record(&mut file, written);
            report.push(file);
        }
    }

    fn command(
        &mut self,
        folder: &LookedFolder,
        path: &Path,
        file: &mut ImportedFile,
    ) -> Result<(PathBuf, bool), String> {
        let name = file.name.clone().ok_or("its name cannot name a command")?;
        let (bytes, version) = folder.read(path).map_err(|error| error.to_string())?;
        let command = PromptCommand::read(&bytes).map_err(|error| error.to_string())?;
        file.effects = command.effects(&name);
        file.dropped.clone_from(&command.dropped);
        let relative = format!("{}.md", name.replace(':', "/"));
        let of_project = prompt_commands::project_folder(self.project).join(&relative);
        let of_user = prompt_commands::user_folder(self.settings).join(&relative);
        let (target, rival) = match self.target {
            ImportTarget::Project => (of_project, of_user),
            ImportTarget::User => (of_user, of_project),
        };
        self.write(&NewFile {
            owner: folder.owner,
            source: path,
            version: &version,
            target,
            rivals: vec![rival],
            text: &bytes,
        })
    }

    fn record(&self, file: &mut ImportedFile, written: Result<(PathBuf, bool), String>) {
        match written {
            Ok((target, is_trusted)) => {
                file.status = match self.action {
                    ImportAction::DryRun => ImportStatus::WouldWrite,
                    ImportAction::Write => ImportStatus::Written,
                };
                file.target = Some(target.display().to_string());
                file.needs_trust = !is_trusted;
            }
            Err(reason) => file.reason = Some(visible(&reason)),
        }
    }

    /// The folder that nothing is written outside of.
    fn base(&self) -> &Path {
        match self.target {
            ImportTarget::Project => self.project.root(),
            ImportTarget::User => self.settings.path.parent().unwrap_or(Path::new("/")),
        }
    }

    /// Writes a new file, and says whether it has an effect now. It is trusted if its source was.
    fn write(&mut self, file: &NewFile<'_>) -> Result<(PathBuf, bool), String> {
        let trust = self.project.trust();
        let is_trusted = match file.owner {
            FolderOwner::User => true,
            FolderOwner::Project => trust.trusted_content()(file.source, file.version),
        };
        if self.target == ImportTarget::User && !is_trusted {
            return Err("it is not trusted: read it, and run `antiphon trust` first".to_owned());
        }
        if file.target.symlink_metadata().is_ok() || self.taken.contains(&file.target) {
            return Err(format!("{} exists already", file.target.display()));
        }
        if let Some(rival) = file.rivals.iter().find(|path| path.symlink_metadata().is_ok()) {
            let rival = rival.display();
            return Err(match self.target {
                ImportTarget::Project => format!("your own {rival} would hide it"),
                ImportTarget::User => format!("it would take the place of {rival}"),
            });
        }
        if self.action == ImportAction::Write {
            if self.target == ImportTarget::Project {
                self.project.prepare_shared().map_err(|error| error.to_string())?;
            }
            write_new(self.base(), &file.target, file.text).map_err(|error| error.to_string())?;
            if self.target == ImportTarget::Project && is_trusted {
                trust.trust_written(&file.target).map_err(|error| error.to_string())?;
            }
        }
        self.taken.insert(file.target.clone());
        Ok((file.target.clone(), is_trusted))
    }
}

/// Writes a file whole, or not at all. Folders below `base` that are missing are created; a link in place of one is
/// refused, so that nothing is written outside.
fn write_new(base: &Path, path: &Path, text: &[u8]) -> io::Result<()> {
    let outside =
        || io::Error::other(format!("{} is not below {}", path.display(), base.display()));
    let below = path.strip_prefix(base).map_err(|_| outside())?;
    let name = below.file_name().ok_or_else(outside)?;
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    fs::create_dir_all(base)?;
    let mut folder = rustix::fs::open(base, flags, Mode::empty())?;
    for part in below.parent().into_iter().flat_map(Path::components) {
        let Component::Normal(part) = part else { return Err(outside()) };
        match rustix::fs::mkdirat(&folder, part, Mode::RWXU | Mode::RWXG | Mode::RWXO) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
        let opened = rustix::fs::openat(&folder, part, flags | OFlags::NOFOLLOW, Mode::empty());
        folder = opened.map_err(|error| match error {
            Errno::LOOP | Errno::NOTDIR => {
                let part = Path::new(part).display();
                io::Error::other(format!("{part} in {} is a link or no folder", path.display()))
            }
            other => other.into(),
        })?;
    }
    // The open folder, whatever takes its name meanwhile.
    let folder = PathBuf::from(format!("/proc/self/fd/{}", folder.as_raw_fd()));
    let mut file = tempfile::NamedTempFile::new_in(&folder)?;
    file.write_all(text)?;
    file.as_file().sync_all()?;
    file.persist_noclobber(folder.join(name)).map(|_| ()).map_err(|error| error.error)
}
