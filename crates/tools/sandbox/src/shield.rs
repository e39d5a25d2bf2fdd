//! Places that stay as they are, or that are not seen at all.
//!
//! A shield is a mount over the place it protects. What is mounted over cannot be renamed or
//! removed from inside; the folders between a root and such a place are mounted over themselves
//! (*pinned*), so that they cannot be moved away with it.

use std::fs::Metadata;
use std::path::{Path, PathBuf};

use crate::{Guard, Policy, SandboxError};

/// A place to protect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Shield {
    pub(crate) path: PathBuf,
    pub(crate) guard: Guard,
    /// The writable root it is in: there it could be made if it is absent.
    pub(crate) root: Option<PathBuf>,
}

impl Shield {
    /// The folders between its root and it, outermost first.
    pub(crate) fn pins(&self) -> Vec<&Path> {
        let Some(root) = &self.root else { return Vec::new() };
        let within = |folder: &&Path| folder.starts_with(root) && *folder != root.as_path();
        let mut pins: Vec<&Path> = self.path.ancestors().skip(1).take_while(within).collect();
        pins.reverse();
        pins
    }
}

/// What a resolved policy protects, outermost first.
pub(crate) fn shields(policy: &Policy) -> Result<Vec<Shield>, SandboxError> {
    let mut shields = Vec::new();
    for root in &policy.roots {
        for protected in &policy.protected {
            shields.extend(shield(policy, &root.join(&protected.name), protected.guard)?);
        }
    }
    for hidden in &policy.hidden {
        shields.extend(shield(policy, hidden, Guard::Hidden)?);
    }
    shields.sort_by_key(|shield| (shield.path.components().count(), shield.path.clone()));
    let mut kept: Vec<Shield> = Vec::new();
    for shield in shields {
        let covered = |other: &Shield| {
            other.path == shield.path
                || other.guard == Guard::Hidden && shield.path.starts_with(&other.path)
        };
        match kept.iter_mut().find(|other| covered(other)) {
            // Of two for the same place, the stricter one counts.
            Some(other) if shield.guard == Guard::Hidden => other.guard = Guard::Hidden,
            Some(_) => {}
            None => kept.push(shield),
        }
    }
    Ok(kept)
}

fn shield(policy: &Policy, path: &Path, guard: Guard) -> Result<Option<Shield>, SandboxError> {
    if policy.mode.writes_roots()
        && let Some((root, rest)) = within(&policy.roots, path)
    {
        let mut place = root.to_owned();
        for name in &rest {
            place.push(name);
            if place.symlink_metadata().is_ok_and(|found| found.is_symlink()) {
                return Err(SandboxError::Unprotectable {
                    path: place,
                    reason: "it is a symbolic link, which could be replaced. Make it a real \
                             folder, or choose a workspace that does not contain it"
                        .to_owned(),
                });
            }
        }
        return Ok(Some(Shield { path: place, guard, root: Some(root.to_owned()) }));
    }
    match path.canonicalize() {
        Ok(real) if real != path && policy.mode.writes_roots() => shield(policy, &real, guard),
        Ok(real) => Ok(Some(Shield { path: real, guard, root: None })),
        // If it cannot be reached, there is nothing to protect. It may be made later.
        Err(_) => Ok(Some(Shield { path: path.to_owned(), guard, root: None })),
    }
}

/// The innermost root that `path` is in, however the way there is written, and the rest of it.
fn within<'a>(roots: &'a [PathBuf], path: &Path) -> Option<(&'a Path, PathBuf)> {
    path.ancestors().find_map(|ancestor| {
        let real = ancestor.canonicalize().ok()?;
        let root = roots.iter().find(|root| **root == real)?;
        Some((root.as_path(), path.strip_prefix(ancestor).ok()?.to_owned()))
    })
}

/// What stands at a place, without following links.
pub(crate) fn look(path: &Path) -> Option<Metadata> {
    path.symlink_metadata().ok()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::{Limits, Mode, Network, Protected};

    fn policy(root: &Path, hidden: &[&Path]) -> Policy {
        let policy = Policy {
            mode: Mode::Workspace,
            roots: vec![root.to_owned()],
            protected: Protected::usual(),
            hidden: hidden.iter().map(|path| (*path).to_owned()).collect(),
            tmp: std::env::temp_dir(),
            readable: Vec::new(),
            network: Network::Off,
            limits: Limits::default(),
        };
        policy.resolved().unwrap()
    }

    #[test]
    fn a_hidden_place_within_a_root_is_pinned() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        fs::create_dir_all(root.join(".config/antiphon")).unwrap();
        let shields = shields(&policy(&root, &[&root.join(".config/antiphon/keys")])).unwrap();
        let keys = shields.last().unwrap();
        assert_eq!(keys.path, root.join(".config/antiphon/keys"));
        assert_eq!(keys.pins(), [root.join(".config"), root.join(".config/antiphon")]);
        assert_eq!(shields.len(), 4);
    }

    #[test]
    fn what_is_beneath_a_hidden_place_needs_no_shield_of_its_own() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let shields =
            shields(&policy(&root, &[&root.join(".antiphon/tmp"), &root.join(".git")])).unwrap();
        let seen: Vec<_> = shields.iter().map(|shield| (&shield.path, shield.guard)).collect();
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
        let error = shields(&policy(&root, &[])).unwrap_err();
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
        let shields = shields(&policy(&base.join("root"), &[&base.join("link")])).unwrap();
        assert!(shields.iter().any(|shield| shield.path == base.join("key")));
    }
}
