//! Hidden paths: what the sandbox hides from commands, tools do not touch either.
//!
//! There are hundreds of them, most do not exist, and each call has to know where they lead. A path leads elsewhere only through
//! a symlink, and a symlink cannot appear without a change of its folder. So each call looks at the few folders that exist on the
//! way, and at the symlinks; the rest is looked for again when one of these folders has changed.

use std::collections::{HashMap, HashSet};
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

/// A change of a folder within this time, in nanoseconds, may be followed by another one with the same time of change: the clocks
/// of file systems have ticks.
const SETTLED_AFTER_NS: i128 = 100_000_000;

/// The same for file systems that keep whole seconds.
const SETTLED_AFTER_WHOLE_NS: i128 = 3_000_000_000;

/// Files and folders that tools do not touch.
#[derive(Debug)]
pub(super) struct Hidden {
    /// A path is in one of them if the set has one of its parents: most calls compare nothing else.
    paths: HashSet<PathBuf>,
    known: Mutex<Option<Arc<Known>>>,
}

/// What is known about the paths as long as no folder changes.
#[derive(Debug)]
struct Known {
    /// The folders that exist on the way to the paths.
    folders: Vec<(PathBuf, Stamp)>,
    /// Paths that may lead elsewhere than they are spelled.
    linked: Vec<PathBuf>,
    /// Whether any later change of a folder shows.
    is_settled: bool,
}

/// Changes when an entry of a folder does, or when another folder is in its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    device: u64,
    inode: u64,
    changed_s: i64,
    changed_ns: i64,
}

impl Stamp {
    /// Whether the next change has another stamp.
    fn is_settled(self, now_ns: i128) -> bool {
        let changed_ns = i128::from(self.changed_s) * 1_000_000_000 + i128::from(self.changed_ns);
        let after = if self.changed_ns == 0 { SETTLED_AFTER_WHOLE_NS } else { SETTLED_AFTER_NS };
        changed_ns + after < now_ns
    }
}

/// What is at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Found {
    Nothing,
    Symlink,
    Other(Stamp),
}

impl Hidden {
    pub(super) fn new(paths: Vec<PathBuf>) -> Self {
        Self { paths: paths.into_iter().collect(), known: Mutex::default() }
    }

    /// Whether `real`, a path without symlinks, is hidden or in a hidden folder.
    pub(super) fn covers(&self, real: &Path) -> bool {
        real.ancestors().any(|parent| self.paths.contains(parent))
            || self.leads_to().iter().any(|hidden| real.starts_with(hidden))
    }

    /// The hidden paths beneath `folder`, relative to it.
    pub(super) fn beneath(&self, folder: &Path) -> Vec<PathBuf> {
        let leads_to = self.leads_to();
        let relative = |hidden: &PathBuf| Some(hidden.strip_prefix(folder).ok()?.to_owned());
        self.paths.iter().chain(&leads_to).filter_map(relative).collect()
    }

    /// Where paths lead now, if elsewhere than they are spelled: one may be a symlink, and may appear later.
    fn leads_to(&self) -> Vec<PathBuf> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let now_ns = i128::try_from(now.as_nanos()).unwrap_or(i128::MAX);
        let known = self.known(look, now_ns);
        known.linked.iter().filter_map(|path| path.canonicalize().ok()).collect()
    }

    fn known(&self, look: impl Fn(&Path) -> Found, now_ns: i128) -> Arc<Known> {
        let known = || self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let before = known().clone();
        if let Some(before) = before.filter(|before| before.is_current(&look)) {
            return before;
        }
        let found = Arc::new(Known::find(&self.paths, look, now_ns));
        *known() = Some(Arc::clone(&found));
        found
    }
}

impl Known {
    fn find(paths: &HashSet<PathBuf>, look: impl Fn(&Path) -> Found, now_ns: i128) -> Self {
        let mut seen = HashMap::new();
        let linked = paths.iter().filter(|path| see(path, &look, &mut seen) == Found::Symlink);
        let linked = linked.cloned().collect();
        let parents: HashSet<&Path> = seen.keys().filter_map(|path| path.parent()).collect();
        let folders = seen.into_iter().filter_map(|(path, found)| match found {
            Found::Other(stamp) if parents.contains(path) => Some((path.to_owned(), stamp)),
            Found::Other(_) | Found::Nothing | Found::Symlink => None,
        });
        let folders: Vec<(PathBuf, Stamp)> = folders.collect();
        let is_settled = folders.iter().all(|(_, stamp)| stamp.is_settled(now_ns));
        Self { folders, linked, is_settled }
    }

    fn is_current(&self, look: impl Fn(&Path) -> Found) -> bool {
        let is_same = |(path, stamp): &(PathBuf, Stamp)| look(path) == Found::Other(*stamp);
        self.is_settled && self.folders.iter().all(is_same)
    }
}

/// What is at a path, or `Symlink` when there is one on the way. A folder is looked at before what is in it.
fn see<'a>(
    path: &'a Path,
    look: &impl Fn(&Path) -> Found,
    seen: &mut HashMap<&'a Path, Found>,
) -> Found {
    if let Some(found) = seen.get(path) {
        return *found;
    }
    let found = match (path.parent(), path.components().next_back()) {
        (Some(parent), Some(Component::Normal(_))) => match see(parent, look, seen) {
            Found::Other(_) => look(path),
            elsewhere @ (Found::Nothing | Found::Symlink) => elsewhere,
        },
        (None, Some(Component::RootDir)) => look(path),
        // Spelled with `..`.
        (_, _) => Found::Symlink,
    };
    seen.insert(path, found);
    found
}

fn look(path: &Path) -> Found {
    match path.symlink_metadata() {
        Ok(found) if found.is_symlink() => Found::Symlink,
        Ok(found) => Found::Other(Stamp {
            device: found.dev(),
            inode: found.ino(),
            changed_s: found.ctime(),
            changed_ns: found.ctime_nsec(),
        }),
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
        let hidden = ["home/.keys", "home/real/../real/keys", "home/.later/token", "home/absent"];
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

    /// A home with two folders and an entry in the second.
    struct Home {
        looks: Cell<usize>,
        changed_s: Cell<i64>,
        has_link: Cell<bool>,
    }

    impl Home {
        fn look(&self, path: &Path) -> Found {
            self.looks.set(self.looks.get() + 1);
            let stamp = |inode, changed_s| {
                Found::Other(Stamp { device: 1, inode, changed_s, changed_ns: 0 })
            };
            match path.to_str() {
                Some("/") => stamp(1, 10),
                Some("/home") => stamp(2, 10),
                Some("/home/ada") => stamp(3, self.changed_s.get()),
                Some("/home/ada/7") if self.has_link.get() => Found::Symlink,
                Some(_) | None => Found::Nothing,
            }
        }
    }

    #[test]
    fn each_call_looks_at_the_folders_that_exist_and_at_the_rest_when_one_has_changed() {
        let named = |folder: &'static str| {
            (0..50).map(move |n| Path::new(folder).join(format!("{n}/secret")))
        };
        let hidden = Hidden::new(named("/home/ada").chain(named("/home/ada/.config")).collect());
        let home =
            Home { looks: Cell::new(0), changed_s: Cell::new(20), has_link: Cell::new(false) };
        let linked =
            |now_s: i128| hidden.known(|path| home.look(path), now_s * 1_000_000_000).linked.len();
        assert_eq!((linked(21), home.looks.take()), (0, 3 + 50 + 1), "folders, names, `.config`");
        assert_eq!((linked(30), home.looks.take()), (0, 54), "it had changed a moment before");
        for _ in 0..3 {
            assert_eq!((linked(31), home.looks.take()), (0, 3));
        }
        home.has_link.set(true);
        home.changed_s.set(40);
        assert_eq!(linked(40), 1, "a link has appeared");
    }

    #[test]
    fn a_stamp_is_settled_when_the_clock_of_its_file_system_has_moved_on() {
        let stamp = |changed_ns| Stamp { device: 1, inode: 1, changed_s: 10, changed_ns };
        let at_ms = |ms: i128| 10_000_000_000 + ms * 1_000_000;
        assert!(!stamp(5).is_settled(at_ms(50)) && stamp(5).is_settled(at_ms(101)));
        assert!(!stamp(0).is_settled(at_ms(2_000)) && stamp(0).is_settled(at_ms(3_001)));
        assert!(!stamp(5).is_settled(at_ms(-5_000)), "the clock was set back");
    }
}
