//! Hidden paths: what the sandbox hides from commands, tools do not touch either.
//!
//! There are many of them, most do not exist, and each call looks where they lead: they share the look at a folder, and
//! nothing is looked for in a folder that does not exist.

use std::collections::HashMap;
use std::path::{Component, Path, PathBuf};

/// Files and folders that tools do not touch.
#[derive(Debug)]
pub(super) struct Hidden(Vec<PathBuf>);

/// What is at a path whose parent has no symlinks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Found {
    Nothing,
    Symlink,
    Other,
}

impl Hidden {
    pub(super) fn new(paths: Vec<PathBuf>) -> Self {
        Self(paths)
    }

    /// Whether `real`, a path without symlinks, is hidden or in a hidden folder.
    pub(super) fn covers(&self, real: &Path) -> bool {
        self.0.iter().any(|hidden| real.starts_with(hidden))
            || self.leads_to(look).iter().any(|hidden| real.starts_with(hidden))
    }

    /// The hidden paths beneath `folder`, relative to it.
    pub(super) fn beneath(&self, folder: &Path) -> Vec<PathBuf> {
        let leads_to = self.leads_to(look);
        let relative = |hidden: &PathBuf| Some(hidden.strip_prefix(folder).ok()?.to_owned());
        self.0.iter().chain(&leads_to).filter_map(relative).collect()
    }

    /// Where paths lead now, if elsewhere than they are spelled: one may be a symlink, and may appear later.
    fn leads_to(&self, look: impl Fn(&Path) -> Found) -> Vec<PathBuf> {
        let mut known = HashMap::new();
        let paths = self.0.iter();
        paths.filter_map(|path| resolve(path, &look, &mut known).filter(|it| it != path)).collect()
    }
}

/// The path without symlinks; `None` when there is nothing. `known` are the paths that were resolved before.
fn resolve<'a>(
    path: &'a Path,
    look: &impl Fn(&Path) -> Found,
    known: &mut HashMap<&'a Path, Option<PathBuf>>,
) -> Option<PathBuf> {
    if let Some(real) = known.get(path) {
        return real.clone();
    }
    let real = match (path.parent(), path.components().next_back()) {
        (Some(parent), Some(Component::Normal(name))) => {
            resolve(parent, look, known).and_then(|parent| {
                let at = parent.join(name);
                match look(&at) {
                    Found::Nothing => None,
                    Found::Symlink => at.canonicalize().ok(),
                    Found::Other => Some(at),
                }
            })
        }
        (_, _) => path.canonicalize().ok(),
    };
    known.insert(path, real.clone());
    real
}

fn look(path: &Path) -> Found {
    match path.symlink_metadata() {
        Ok(found) if found.is_symlink() => Found::Symlink,
        Ok(_) => Found::Other,
        Err(_) => Found::Nothing,
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_path_is_hidden_as_it_is_spelled_and_where_it_leads_now() {
        let folder = tempfile::tempdir().unwrap();
        let at = |path: &str| folder.path().canonicalize().unwrap().join(path);
        fs::create_dir_all(at("home/real/keys")).unwrap();
        fs::create_dir(at("elsewhere")).unwrap();
        fs::write(at("elsewhere/token"), "").unwrap();
        let hidden = ["home/.keys", "home/real/keys/../keys", "home/.later/token", "home/absent"];
        let hidden = Hidden::new(hidden.map(at).into());
        assert!(hidden.covers(&at("home/.keys/id")) && hidden.covers(&at("home/absent/x")));
        assert!(hidden.covers(&at("home/real/keys/id")), "whatever the spelling");
        assert!(!hidden.covers(&at("elsewhere/token")) && !hidden.covers(&at("home/real")));
        symlink(at("elsewhere"), at("home/.later")).unwrap();
        symlink("real", at("home/.keys")).unwrap();
        assert!(hidden.covers(&at("elsewhere/token")), "a folder on the way is a link");
        assert!(hidden.covers(&at("home/real/other")), "it is a link itself");
        assert!(!hidden.covers(&at("elsewhere/other")));
        assert!(hidden.beneath(&at("elsewhere")).contains(&PathBuf::from("token")));
    }

    #[test]
    fn each_folder_is_looked_at_once_and_nothing_is_looked_for_in_one_that_is_absent() {
        let named = |folder: &'static str| {
            (0..50).map(move |n| Path::new(folder).join(format!("{n}/secret")))
        };
        let hidden = Hidden::new(named("/home/ada").chain(named("/home/ada/.config")).collect());
        let looks = Cell::new(0);
        let look = |path: &Path| {
            looks.set(looks.get() + 1);
            let is_there = ["/home", "/home/ada"].iter().any(|there| path == Path::new(there));
            if is_there { Found::Other } else { Found::Nothing }
        };
        assert_eq!(hidden.leads_to(look), Vec::<PathBuf>::new());
        assert_eq!(looks.get(), 2 + 50 + 1, "two folders, fifty names and `.config`");
    }
}
