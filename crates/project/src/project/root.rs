//! The root of a project: the folder its agents work in.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::FOLDER;
use crate::environment::{Environment, RootPolicy};
use crate::error::ProjectError;
use crate::hidden_paths::{homes, in_homes, named};
use crate::settings::config_folder;
use crate::state::state_base;

/// The root for a current folder: the nearest folder with an `.antiphon` at or below the top of the git work
/// tree, or else that top, or else the current folder. Folders above the work tree are another project's.
pub(super) fn find(current_dir: &Path) -> PathBuf {
    let has = |folder: &Path, name: &str| fs::symlink_metadata(folder.join(name)).is_ok();
    let Some(top) = current_dir.ancestors().find(|folder| has(folder, ".git")) else {
        return current_dir.to_owned();
    };
    let is_known = |folder: &&Path| {
        fs::symlink_metadata(folder.join(FOLDER)).is_ok_and(|about| about.is_dir())
    };
    let mut below = current_dir.ancestors().take_while(|folder| folder.starts_with(top));
    below.find(is_known).unwrap_or(top).to_owned()
}

/// Refuses a root whose tools would reach the user's own files: `/`, the home folder, any folder that holds the
/// user's settings, state or keys, and any folder within these three. A folder that is mounted a second time is
/// the same folder.
pub(super) fn check(root: &Path, environment: &Environment) -> Result<(), ProjectError> {
    if environment.root_policy == RootPolicy::AllowUnsafe {
        return Ok(());
    }
    let real = |path: &Path| fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let root = real(root);
    let place = FolderChain::of(&root);
    let holds = |own: &Path| real(own).starts_with(&root) || FolderChain::of(own).is_in(&place);
    let is_within_existing =
        |own: &Path| root.starts_with(real(own)) || place.is_in(&FolderChain::of(own));
    // What does not exist is most of a long list: nothing of it has to be resolved.
    let is_within = |own: &Path| {
        if own.exists() { is_within_existing(own) } else { root.starts_with(own) }
    };
    let touches = |own: &Path| holds(own) || is_within(own);
    let base = state_base(environment)?;
    let touches_keys = |own: &PathBuf| {
        if own.exists() { holds(own) || is_within_existing(own) } else { root.starts_with(own) }
    };
    let reason = if root.parent().is_none() {
        "it holds the whole system"
    } else if homes(environment).iter().any(|home| holds(home)) {
        "it holds your home folder"
    } else if config_folder(environment).as_deref().is_some_and(touches) {
        "it holds your settings"
    } else if touches(&base) {
        "it holds the state of your projects"
    } else if in_homes(environment).iter().any(touches_keys)
        || named(environment).iter().any(|own| is_within(own))
    {
        "it holds keys or passwords"
    } else {
        return Ok(());
    };
    Err(ProjectError::Refused(format!(
        "{} cannot be the root of a project: {reason}, which agents could then read or change. Work in a \
         folder of its own, or use --allow-unsafe-root",
        root.display()
    )))
}

/// Which folders a path leads through, whatever their names: device and inode of each, the last first.
struct FolderChain(Vec<(u64, u64)>);

impl FolderChain {
    fn of(path: &Path) -> Self {
        let real = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let about = real.ancestors().map(fs::metadata);
        // A folder that does not exist is no place; `/` is in no other folder.
        let found = about.map_while(Result::ok).map(|about| (about.dev(), about.ino()));
        Self(found.collect())
    }

    /// Whether this is the other place, or in it.
    fn is_in(&self, other: &Self) -> bool {
        other.0.first().is_some_and(|folder| self.0.contains(folder))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_root_is_at_or_below_the_top_of_the_work_tree() {
        let folder = tempfile::tempdir().unwrap();
        let at = |path: &str| folder.path().join(path);
        for path in
            ["above/.antiphon", "above/top/.git", "above/top/inner/.antiphon", "above/top/a/b"]
        {
            fs::create_dir_all(at(path)).unwrap();
        }
        for (current, root) in [
            ("above", "above"),
            ("above/top", "above/top"),
            ("above/top/a/b", "above/top"),
            ("above/top/inner", "above/top/inner"),
            ("above/top/inner/.antiphon", "above/top/inner"),
        ] {
            assert_eq!(find(&at(current)), at(root), "{current}");
        }
        fs::create_dir_all(at("plain/.antiphon")).unwrap();
        fs::create_dir_all(at("plain/sub")).unwrap();
        assert_eq!(find(&at("plain/sub")), at("plain/sub"), "no folder above decides without git");
        fs::write(at("above/top/a/.git"), "gitdir: elsewhere").unwrap();
        assert_eq!(
            find(&at("above/top/a/b")),
            at("above/top/a"),
            "a linked work tree has its own top"
        );
    }

    #[test]
    fn folders_that_hold_the_users_own_files_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let at = |path: &str| folder.path().canonicalize().unwrap().join(path);
        fs::create_dir_all(at("home/ada/work")).unwrap();
        for path in [
            "settings/antiphon/agents",
            "home/ada/.ssh/deep",
            "home/ada/.aws",
            "home/ada/.config/gh",
            "home/ada/.config/nvim",
            "account/.gnupg",
            "kube/configs",
        ] {
            fs::create_dir_all(at(path)).unwrap();
        }
        // A second name of the same folder, as a second mount has one.
        std::os::unix::fs::symlink(at("home/ada"), at("second")).unwrap();
        let pair = |name: &str, path: &str| (name.into(), at(path).into_os_string());
        let environment = Environment {
            variables: [
                pair("HOME", "home/ada"),
                pair("XDG_CONFIG_HOME", "settings"),
                pair("XDG_STATE_HOME", "state"),
                pair("KUBECONFIG", "kube"),
            ]
            .into(),
            account_home: Some(at("account")),
            ..Environment::default()
        };
        for refused in [
            "home/ada",
            "home",
            "settings",
            "settings/antiphon",
            "state",
            "state/antiphon",
            "state/antiphon/projects/x",
            "settings/antiphon/agents",
            "home/ada/.ssh",
            "home/ada/.ssh/deep",
            "home/ada/.aws",
            "home/ada/.config",
            "account/.gnupg",
            "account",
            "kube/configs",
            "second/.ssh",
            "second",
            "",
        ] {
            assert!(check(&at(refused), &environment).is_err(), "{refused}");
        }
        assert!(check(Path::new("/"), &environment).is_err());
        for allowed in ["home/ada/work", "home/ada/.config/nvim", "second/work"] {
            assert_eq!(check(&at(allowed), &environment), Ok(()), "{allowed}");
        }
        let allowed = Environment { root_policy: RootPolicy::AllowUnsafe, ..environment };
        assert_eq!(check(&at("home/ada"), &allowed), Ok(()));
    }
}
