//! Commands of git that write to a repository or leave the sandbox.
//!
//! The settings and hooks of a repository name programs. Those of the project's own repository are
//! protected from agents; every other repository in the workspace may be an agent's work.

use std::path::Path;

use super::Evaluation;
use crate::commands::{Command, Repository, program_name, repository};
use crate::normalized_path::NormalizedPath;
use crate::remotes::remotes;

impl Evaluation<'_> {
    /// Why a command of git may use another repository than that of the workspace, if it may.
    pub(super) fn other_repository(&self, command: &Command) -> Option<String> {
        if command.words.first().and_then(program_name) != Some("git") {
            return None;
        }
        let root = &self.context.root;
        let in_root = |folder: &Option<String>| {
            folder
                .as_ref()
                .is_some_and(|folder| NormalizedPath::of(root, "", folder).absolute == *root)
        };
        if !command.folders.iter().all(in_root) {
            let reason = "git runs in another folder, and the settings of a repository there may run \
                          anything";
            return Some(reason.to_owned());
        }
        let known = || remotes(Path::new(root));
        let name = match repository(command.words.get(1..).unwrap_or_default())? {
            Repository::Elsewhere => return None,
            Repository::Named(name) if known().iter().any(|known| known == name) => return None,
            // Git uses the only remote, or `origin`.
            Repository::Default => {
                let known = known();
                if known.len() == 1 || known.iter().any(|known| known == "origin") {
                    return None;
                }
                "origin"
            }
            Repository::Named(name) | Repository::Folder(name) => name,
        };
        Some(format!("`{name}` is no remote of the project's repository, so it may be a folder"))
    }
}
