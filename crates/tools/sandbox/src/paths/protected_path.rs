//! Paths that commands cannot change, or cannot see.
//!
//! A path is protected by a mount over it. A mount point cannot be renamed or removed from inside.
//! The folders between a root and such a path are mounted over themselves (*pinned*), so that they
//! cannot be moved away with it.

use std::fs::Metadata;
use std::io::ErrorKind::{PermissionDenied, ReadOnlyFilesystem};
use std::path::{Path, PathBuf};

use crate::gitlink::make_folder;
use crate::nested::{Nested, nested, nested_in};
use crate::real_paths::RealPaths;
use crate::repository::Repository;
use crate::{Guard, Policy, SandboxError};

/// A path to protect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ProtectedPath {
    pub(crate) path: PathBuf,
    pub(crate) guard: Guard,
    /// The writable root that contains it: there it could be created if it is missing.
    pub(crate) root: Option<PathBuf>,
}

impl ProtectedPath {
    /// The folders between the root and the path, outermost first.
    pub(crate) fn pins(&self) -> Vec<&Path> {
        let Some(root) = &self.root else { return Vec::new() };
        let within = |folder: &&Path| folder.starts_with(root) && *folder != root.as_path();
        let mut pins: Vec<&Path> = self.path.ancestors().skip(1).take_while(within).collect();
        pins.reverse();
        pins
    }
}

/// The paths that a resolved policy protects by name, outermost first.
pub(crate) fn named_paths(policy: &Policy) -> Result<Vec<ProtectedPath>, SandboxError> {
    Ok(without_covered(by_name(policy, &mut RealPaths::default())?))
}

/// All paths that a resolved policy protects, outermost first: also those found further down. What
/// commands may change in `repository` is not among them. `real` has the links that were followed.
pub(crate) fn protected_paths(
    policy: &Policy,
    repository: Option<&Repository>,
    real: &mut RealPaths,
) -> Result<Vec<ProtectedPath>, SandboxError> {
    let mut protected_paths = by_name(policy, real)?;
    let writes = policy.mode.writes_roots();
    for Nested { path, guard } in nested(policy)? {
        if !writes {
            // Nothing can be written there anyway.
            if guard == Guard::Hidden {
                protected_paths.push(ProtectedPath { path, guard, root: None });
            }
            continue;
        }
        let root = within(&policy.roots, &path, real).map(|(root, _)| root.to_owned());
        if let Some(root) = &root
            && metadata_of(&path).is_none()
        {
            submodule_folder(root, &path)?;
        }
        protected_paths.push(ProtectedPath { path, guard, root });
    }
    if let Some(repository) = repository {
        protected_paths.retain(|protected| !repository.opens(&protected.path));
        for Nested { path, guard } in nested_in(policy, repository)? {
            let root = within(&policy.roots, &path, real).map(|(root, _)| root.to_owned());
            protected_paths.push(ProtectedPath { path, guard, root });
        }
    }
    Ok(without_covered(protected_paths))
}

/// Makes the missing folder of a submodule, as git does in a new work tree: a command could make it
/// otherwise, with a repository in it.
fn submodule_folder(root: &Path, path: &Path) -> Result<(), SandboxError> {
    match make_folder(root, path) {
        // Where this process cannot make it, commands cannot either.
        Err(error) if !matches!(error.kind(), PermissionDenied | ReadOnlyFilesystem) => {
            Err(SandboxError::Unprotectable {
                path: path.to_owned(),
                reason: format!("it is the folder of a submodule and cannot be made: {error}"),
            })
        }
        Ok(()) | Err(_) => Ok(()),
    }
}

/// The error about a protected path that is a symbolic link.
pub(crate) fn replaceable(path: PathBuf) -> SandboxError {
    let reason = "it is a symbolic link, which could be replaced. Make it a real folder or a file \
                  (`gitdir: FOLDER`), or choose a workspace that does not contain it";
    SandboxError::Unprotectable { path, reason: reason.to_owned() }
}

fn by_name(policy: &Policy, real: &mut RealPaths) -> Result<Vec<ProtectedPath>, SandboxError> {
    let mut protected_paths = Vec::new();
    for root in &policy.roots {
        for protected in &policy.protected {
            protected_paths.extend(protected_path(
                policy,
                &root.join(&protected.name),
                protected.guard,
                real,
            )?);
        }
    }
    for hidden in &policy.hidden {
        protected_paths.extend(protected_path(policy, hidden, Guard::Hidden, real)?);
    }
    Ok(protected_paths)
}

fn without_covered(mut protected_paths: Vec<ProtectedPath>) -> Vec<ProtectedPath> {
    protected_paths
        .sort_by_key(|protected| (protected.path.components().count(), protected.path.clone()));
    let mut distinct: Vec<ProtectedPath> = Vec::new();
    for protected in protected_paths {
        let covered = |other: &ProtectedPath| {
            other.path == protected.path
                || other.guard == Guard::Hidden && protected.path.starts_with(&other.path)
        };
        match distinct.iter_mut().find(|other| covered(other)) {
            // Of two entries for the same path the stricter one wins.
            Some(other) if protected.guard == Guard::Hidden => other.guard = Guard::Hidden,
            Some(_) => {}
            None => distinct.push(protected),
        }
    }
    distinct
}

fn protected_path(
    policy: &Policy,
    path: &Path,
    guard: Guard,
    real_paths: &mut RealPaths,
) -> Result<Option<ProtectedPath>, SandboxError> {
    if policy.mode.writes_roots()
        && let Some((root, rest)) = within(&policy.roots, path, real_paths)
    {
        let mut place = root.to_owned();
        for name in &rest {
            place.push(name);
            if place.symlink_metadata().is_ok_and(|found| found.is_symlink()) {
                return Err(replaceable(place));
            }
        }
        return Ok(Some(ProtectedPath { path: place, guard, root: Some(root.to_owned()) }));
    }
    match real_paths.of(path).map(Path::to_owned) {
        Some(real) if real != path && policy.mode.writes_roots() => {
            protected_path(policy, &real, guard, real_paths)
        }
        Some(real) => Ok(Some(ProtectedPath { path: real, guard, root: None })),
        // A path that cannot be reached needs no protection now. It may be created later.
        None => Ok(Some(ProtectedPath { path: path.to_owned(), guard, root: None })),
    }
}

/// The innermost root that contains `path`, and the path relative to it.
pub(crate) fn within<'a>(
    roots: &'a [PathBuf],
    path: &Path,
    real_paths: &mut RealPaths,
) -> Option<(&'a Path, PathBuf)> {
    path.ancestors().find_map(|ancestor| {
        let real = real_paths.of(ancestor)?;
        let root = roots.iter().find(|root| root.as_path() == real)?;
        Some((root.as_path(), path.strip_prefix(ancestor).ok()?.to_owned()))
    })
}

/// Metadata of a path, without following links.
pub(crate) fn metadata_of(path: &Path) -> Option<Metadata> {
    path.symlink_metadata().ok()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::{Limits, Network, Protected, SandboxMode, UnixSockets};

    fn policy(root: &Path, hidden: &[&Path]) -> Policy {
        let policy = Policy {
            mode: SandboxMode::Workspace,
            roots: vec![root.to_owned()],
            protected: Protected::usual(),
            hidden: hidden.iter().map(|path| (*path).to_owned()).collect(),
            tmp: std::env::temp_dir(),
            readable: Vec::new(),
            network: Network::Off,
            unix_sockets: UnixSockets::Refused,
            repository: None,
            git_programs: crate::GitPrograms::GitOnly,
            runs: crate::Runs::Commands,
            limits: Limits::default(),
        };
        policy.resolved().unwrap()
    }

    fn all_paths(policy: &Policy) -> Result<Vec<ProtectedPath>, SandboxError> {
        protected_paths(policy, None, &mut RealPaths::default())
    }

    #[test]
    fn a_hidden_path_within_a_root_is_pinned() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        fs::create_dir_all(root.join(".config/antiphon")).unwrap();
        let protected_paths =
            all_paths(&policy(&root, &[&root.join(".config/antiphon/keys")])).unwrap();
        let keys = protected_paths.last().unwrap();
        assert_eq!(keys.path, root.join(".config/antiphon/keys"));
        assert_eq!(keys.pins(), [root.join(".config"), root.join(".config/antiphon")]);
        assert_eq!(protected_paths.len(), 4);
    }

    #[test]
    fn a_path_below_a_hidden_path_needs_no_mount() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let protected_paths =
            named_paths(&policy(&root, &[&root.join(".antiphon/tmp"), &root.join(".git")]))
                .unwrap();
        let seen: Vec<_> =
            protected_paths.iter().map(|protected| (&protected.path, protected.guard)).collect();
        let expected = [
            (root.join(".antiphon"), Guard::Hidden),
            (root.join(".git"), Guard::Hidden),
            (root.join(".ideai"), Guard::ReadOnly),
        ];
        assert_eq!(seen, expected.iter().map(|(path, guard)| (path, *guard)).collect::<Vec<_>>());
    }

    #[test]
    fn a_protected_name_that_is_a_link_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        fs::create_dir(root.join("elsewhere")).unwrap();
        symlink(root.join("elsewhere"), root.join(".git")).unwrap();
        let error = named_paths(&policy(&root, &[])).unwrap_err();
        assert!(
            matches!(error, SandboxError::Unprotectable { path, .. } if path == root.join(".git"))
        );
    }

    #[test]
    fn a_hidden_link_hides_what_it_points_to() {
        let folder = tempfile::tempdir().unwrap();
        let base = folder.path().canonicalize().unwrap();
        fs::create_dir(base.join("root")).unwrap();
        fs::write(base.join("key"), "").unwrap();
        symlink(base.join("key"), base.join("link")).unwrap();
        let protected_paths =
            named_paths(&policy(&base.join("root"), &[&base.join("link")])).unwrap();
        assert!(protected_paths.iter().any(|protected| protected.path == base.join("key")));
    }
}
