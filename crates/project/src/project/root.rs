//! The root of a project: the folder its agents work in.

use std::fs;
use std::path::{Path, PathBuf};

use super::FOLDER;
use crate::environment::{Environment, RootPolicy};
use crate::error::ProjectError;
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

/// Refuses a root whose tools would reach the user's own files: `/`, the home folder, and any folder that
/// holds the user's settings or state.
pub(super) fn check(root: &Path, environment: &Environment) -> Result<(), ProjectError> {
    if environment.root_policy == RootPolicy::AllowUnsafe {
        return Ok(());
    }
    let holds = |own: &Path| {
        let real = fs::canonicalize(own).unwrap_or_else(|_| own.to_owned());
        real.starts_with(root)
    };
    let (home, base) = (environment.home(), state_base(environment)?);
    let reason = if root.parent().is_none() {
        "it holds the whole system"
    } else if home.as_deref().is_some_and(holds) {
        "it holds your home folder"
    } else if config_folder(environment).as_deref().is_some_and(holds) {
        "it holds your settings"
    } else if holds(&base) || root.starts_with(&base) {
        "it holds the state of your projects"
    } else {
        return Ok(());
    };
    Err(ProjectError::Refused(format!(
        "{} cannot be the root of a project: {reason}, which agents could then change. Work in a folder of \
         its own, or use --allow-unsafe-root",
        root.display()
    )))
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
        fs::create_dir_all(at("settings/antiphon")).unwrap();
        let pair = |name: &str, path: &str| (name.into(), at(path).into_os_string());
        let environment = Environment {
            variables: [
                pair("HOME", "home/ada"),
                pair("XDG_CONFIG_HOME", "settings"),
                pair("XDG_STATE_HOME", "state"),
            ]
            .into(),
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
            "",
        ] {
            assert!(check(&at(refused), &environment).is_err(), "{refused}");
        }
        assert!(check(Path::new("/"), &environment).is_err());
        assert_eq!(check(&at("home/ada/work"), &environment), Ok(()));
        let allowed = Environment { root_policy: RootPolicy::AllowUnsafe, ..environment };
        assert_eq!(check(&at("home/ada"), &allowed), Ok(()));
    }
}
