//! Trust: parts of a project have no effect until the user trusts them: its settings, its agents whose tools
//! go beyond reading, and its request folders. They may have come with a clone.
//!
//! Files are trusted by their content: changed content is asked about again. A request folder is trusted as
//! a folder, whatever is dropped into it. What our own commands write is trusted as written. The record is
//! in the project's state folder.

mod record;
mod review;
mod trust_item;

use std::cell::OnceCell;
use std::fs;
use std::io;
use std::os::fd::BorrowedFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use antiphon_agent_files::{CheckedFile, FileCheck, version_of};
use antiphon_core::{AgentDefinition, Runtime, visible};
use antiphon_private_file::create_folder;

use crate::error::{ProjectError, unusable};
use crate::request_drop::ProvidedRequestDrop;
use crate::settings::{mcp_json, project_file};
use crate::state::identity::FolderIdentity;
use crate::state::registry;
use record::TrustRecord;
pub use review::listed;
pub(crate) use trust_item::agent_effects;
pub use trust_item::{TrustItem, TrustItemKind, TrustStatus};

/// Tools that change nothing and reach nothing outside of the project.
const READING_TOOLS: [&str; 3] = ["read", "grep", "glob"];

/// What the user trusts in one project.
#[derive(Debug, Clone)]
pub struct ProjectTrust {
    root: PathBuf,
    state: PathBuf,
    request_drop: ProvidedRequestDrop,
}

impl ProjectTrust {
    pub(crate) fn new(root: &Path, state: &Path, request_drop: &ProvidedRequestDrop) -> Self {
        let request_drop = request_drop.clone();
        Self { root: root.to_owned(), state: state.to_owned(), request_drop }
    }

    /// Trusts everything that the project brings, as it is now.
    pub fn trust(&self, items: &[TrustItem]) -> Result<(), ProjectError> {
        for folder in items.iter().filter(|item| item.kind == TrustItemKind::Requests) {
            // Other users could drop requests into it.
            let path = self.root.join(&folder.path);
            let private = fs::Permissions::from_mode(0o700);
            fs::set_permissions(&path, private).map_err(|error| unusable(&path, &error))?;
        }
        self.update(|record| {
            for item in items {
                record.pin(&item.path, item.pin.clone());
            }
            record.declined = None;
        })
    }

    /// Trusts nothing in this project any more.
    pub fn revoke(&self) -> Result<(), ProjectError> {
        self.update(|record| *record = TrustRecord::default())
    }

    /// Trusts the file at `path` with this text as well: one of our own commands is about to write it.
    pub(crate) fn trust_next(&self, path: &Path, text: &str) -> Result<(), ProjectError> {
        let version = version_of(text.as_bytes());
        self.update(|record| record.pin_next(&self.relative(path), version))
    }

    /// Trusts the file at `path` as it is now: one of our own commands wrote it.
    pub fn trust_written(&self, path: &Path) -> Result<(), ProjectError> {
        let content = fs::read(path).map_err(|error| unusable(path, &error))?;
        let version = version_of(&content);
        self.update(|record| record.pin(&self.relative(path), record::Pin::Content(version)))
    }

    /// Trusts this open folder at `path`: one of our own commands created it.
    pub fn trust_created(&self, path: &Path, folder: BorrowedFd<'_>) -> Result<(), ProjectError> {
        let identity =
            folder.try_clone_to_owned().and_then(|folder| fs::File::from(folder).metadata());
        let identity = FolderIdentity::from(&identity.map_err(|error| unusable(path, &error))?);
        self.update(|record| record.pin(&self.relative(path), record::Pin::Folder(identity)))
    }

    /// Creates a folder that only the user may read, and trusts it. An empty one is taken: it brought nothing, and
    /// a crash may have left it. Any other is left as it is.
    pub(crate) fn create_folder(&self, path: &Path) -> Result<(), ProjectError> {
        let mut created = Ok(());
        // Another process sees the folder and the trust in it, or neither.
        self.update(|record| {
            let is_folder = |about: fs::Metadata| about.is_dir();
            let is_empty = |mut entries: fs::ReadDir| entries.next().is_none();
            let exists = fs::symlink_metadata(path).map(is_folder);
            if exists.is_ok_and(|is_folder| !is_folder || !fs::read_dir(path).is_ok_and(is_empty)) {
                return;
            }
            let made = create_folder(path).and_then(|()| self.folder_identity(path));
            match made {
                Ok(identity) => record.pin(&self.relative(path), record::Pin::Folder(identity)),
                Err(error) => created = Err(unusable(path, &error)),
            }
        })?;
        created
    }

    /// Whether the user trusts the folder at `path`.
    pub fn is_trusted_folder(&self, path: &Path) -> bool {
        let Ok(identity) = self.folder_identity(path) else { return false };
        let record = TrustRecord::read(&self.state).unwrap_or_default();
        record.trusts_folder(&self.relative(path), &identity)
    }

    /// Whether the user trusts this content of the file at `path`.
    fn is_trusted_content(&self, path: &Path, version: &str) -> io::Result<bool> {
        Ok(TrustRecord::read(&self.state)?.trusts_content(&self.relative(path), version))
    }

    /// Whether the user trusts a content of a file, by path and version. The record is read once.
    pub(crate) fn trusted_content(&self) -> impl Fn(&Path, &str) -> bool {
        let record = TrustRecord::read(&self.state).unwrap_or_default();
        move |path, version| record.trusts_content(&self.relative(path), version)
    }

    /// The project's `.mcp.json`, if the user trusts it.
    pub(crate) fn mcp_json_text(&self) -> Option<String> {
        let text = match mcp_json::read(&self.root) {
            Ok(text) => text?,
            // It may have come with a clone, and keeps no command from its work.
            Err(error) => {
                tracing::warn!("{}", visible(&error.to_string()));
                return None;
            }
        };
        let version = version_of(text.as_bytes());
        self.trusted_content()(&self.root.join(mcp_json::PATH), &version).then_some(text)
    }

    /// The project's settings, if the user trusts them.
    pub(crate) fn settings_text(&self) -> Result<Option<String>, ProjectError> {
        let text = match project_file::read(&self.root) {
            Ok(Some(text)) => text,
            Ok(None) => return Ok(None),
            // It may have come with a clone, and keeps no command from its work.
            Err(error) => {
                tracing::warn!("{}", visible(&error.to_string()));
                return Ok(None);
            }
        };
        let path = self.root.join(project_file::PATH);
        let is_trusted = self
            .is_trusted_content(&path, &version_of(text.as_bytes()))
            .map_err(|error| unusable(&TrustRecord::path(&self.state), &error))?;
        Ok(is_trusted.then_some(text))
    }

    /// Lets an agent file of the project take effect if its agent only reads, or the user trusts it.
    pub(crate) fn file_check(&self) -> FileCheck {
        let trust = self.clone();
        let begin = move || {
            let (trust, record) = (trust.clone(), OnceCell::new());
            move |file: &CheckedFile<'_>| {
                if !file.is_foreign && only_reads(file.definition) {
                    return Ok(());
                }
                // One record for all files: it is as long as there are files.
                match record.get_or_init(|| TrustRecord::read(&trust.state)) {
                    Ok(record)
                        if record.trusts_content(&trust.relative(file.path), file.version) =>
                    {
                        Ok(())
                    }
                    Ok(_) => {
                        Err("it has no effect until you trust it: `antiphon trust`".to_owned())
                    }
                    Err(error) => Err(format!("it has no effect: {error}")),
                }
            }
        };
        FileCheck::new(begin, vec![TrustRecord::path(&self.state)])
    }

    fn update(&self, change: impl FnOnce(&mut TrustRecord)) -> Result<(), ProjectError> {
        let updated = registry::prepare(&self.state, &self.root)
            .and_then(|()| TrustRecord::update(&self.state, change));
        updated.map_err(|error| unusable(&TrustRecord::path(&self.state), &error))
    }

    /// The path below the root, as the record names it.
    fn relative(&self, path: &Path) -> String {
        path.strip_prefix(&self.root).unwrap_or(path).to_string_lossy().into_owned()
    }

    /// The identity of a folder below the root. A link on the way is an error.
    fn folder_identity(&self, path: &Path) -> io::Result<FolderIdentity> {
        let mut folder = self.root.clone();
        for part in path.strip_prefix(&self.root).map_err(io::Error::other)? {
            folder.push(part);
            if !fs::symlink_metadata(&folder)?.is_dir() {
                return Err(io::ErrorKind::NotADirectory.into());
            }
        }
        FolderIdentity::of(&folder)
    }
}

/// Whether an agent can do no more than read the project: it names its tools, calls no agent, and runs here.
fn only_reads(agent: &AgentDefinition) -> bool {
    let is_reading = |tool: &String| READING_TOOLS.contains(&tool.as_str());
    let runs_here = |runtime: &Runtime| match runtime {
        Runtime::Local => true,
        Runtime::Runner(_) => false,
    };
    agent.tools.as_ref().is_some_and(|tools| tools.iter().all(is_reading))
        && agent.agents.allows_none()
        && agent.runtimes.iter().all(runs_here)
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use super::*;

    #[test]
    fn a_folder_that_took_the_place_of_a_created_one_is_not_trusted() {
        let (root, state) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let trust = ProjectTrust::new(root.path(), state.path(), &ProvidedRequestDrop::default());
        let [path, theirs, aside] =
            ["requests", "theirs", "aside"].map(|name| root.path().join(name));
        for folder in [&path, &theirs] {
            fs::create_dir(folder).unwrap();
        }
        let created = fs::File::open(&path).unwrap();
        fs::rename(&path, &aside).unwrap();
        fs::rename(&theirs, &path).unwrap();
        trust.trust_created(&path, created.as_fd()).unwrap();
        assert!(!trust.is_trusted_folder(&path));

        fs::rename(&path, &theirs).unwrap();
        fs::rename(&aside, &path).unwrap();
        assert!(trust.is_trusted_folder(&path));
    }
}
