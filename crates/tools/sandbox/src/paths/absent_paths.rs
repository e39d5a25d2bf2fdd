//! Paths that were missing when a sandbox was made: once one exists, only a new sandbox covers it.
//!
//! An entry appears in a folder only when the folder changes. So before a command each folder is looked at, and the paths
//! below it only if it has changed since, or so shortly before that another change might have had the same time.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::folder_stamp::FolderStamp;
use crate::protected_path::metadata_of;

/// Missing paths, by the closest folder above that exists.
#[derive(Debug, Default)]
pub(crate) struct AbsentPaths {
    groups: Vec<Group>,
}

#[derive(Debug)]
struct Group {
    folder: PathBuf,
    stamp: Option<FolderStamp>,
    paths: Vec<PathBuf>,
}

impl AbsentPaths {
    pub(crate) fn new(paths: Vec<PathBuf>, now: SystemTime) -> Self {
        Self { groups: groups(paths, now) }
    }

    /// A path that exists by now.
    pub(crate) fn appeared(&mut self, now: SystemTime) -> Option<PathBuf> {
        let is_same = |group: &mut Group| {
            group.stamp.is_some() && group.stamp == FolderStamp::of(&group.folder, now)
        };
        let changed: Vec<Group> = self.groups.extract_if(.., |group| !is_same(group)).collect();
        if changed.is_empty() {
            return None;
        }
        let paths = changed.into_iter().flat_map(|group| group.paths).collect();
        // Stamped before the look: a path that is made meanwhile is found the next time.
        let looked_at = self.groups.len();
        self.groups.extend(groups(paths, now));
        let mut paths = self.groups[looked_at..].iter().flat_map(|group| &group.paths);
        paths.find(|path| exists(path)).cloned()
    }
}

fn groups(paths: Vec<PathBuf>, now: SystemTime) -> Vec<Group> {
    let (mut groups, mut places) = (Vec::<Group>::new(), HashMap::<PathBuf, usize>::new());
    for path in paths {
        let parent = path.parent().unwrap_or(&path);
        let place = match places.get(parent) {
            Some(place) => *place,
            None => {
                // A link that leads nowhere is no folder, but may become one: it has no stamp.
                let is_there = |folder: &&Path| metadata_of(folder).is_some();
                let folder = parent.ancestors().find(is_there).unwrap_or(parent).to_owned();
                let parent = parent.to_owned();
                let place = *places.entry(folder.clone()).or_insert_with(|| {
                    let stamp = FolderStamp::of(&folder, now);
                    groups.push(Group { folder, stamp, paths: Vec::new() });
                    groups.len() - 1
                });
                places.insert(parent, place);
                place
            }
        };
        groups[place].paths.push(path);
    }
    groups
}

fn exists(path: &Path) -> bool {
    #[cfg(test)]
    tests::count_look();
    metadata_of(path).is_some()
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::folder_stamp::later;

    thread_local! {
        static LOOKS: Cell<usize> = const { Cell::new(0) };
    }

    pub(super) fn count_look() {
        LOOKS.set(LOOKS.get() + 1);
    }

    /// A folder `home` with one below it, and 100 paths that are absent in each, 100 in a missing one.
    fn world() -> (tempfile::TempDir, PathBuf, Vec<PathBuf>) {
        let base = tempfile::tempdir().unwrap();
        let home = base.path().join("home");
        fs::create_dir_all(home.join("config")).unwrap();
        let folders = [home.clone(), home.join("config"), home.join("local/share")];
        let paths = folders
            .iter()
            .flat_map(|folder| (0..100).map(move |number| folder.join(format!("secret-{number}"))));
        (base, home, paths.collect())
    }

    #[test]
    fn nothing_is_looked_for_where_nothing_changed() {
        let (_base, _, paths) = world();
        let mut absent = AbsentPaths::new(paths, later());
        assert_eq!(absent.groups.len(), 2, "two folders exist");
        LOOKS.set(0);
        for _ in 0..10 {
            assert_eq!(absent.appeared(later()), None);
        }
        assert_eq!(LOOKS.get(), 0);
    }

    #[test]
    fn what_is_made_is_found_in_whichever_folder() {
        for (number, made) in [(0, "home"), (1, "home/config"), (2, "home/local/share")] {
            let (base, _, paths) = world();
            let mut absent = AbsentPaths::new(paths.clone(), later());
            assert_eq!(absent.appeared(later()), None);
            fs::create_dir_all(base.path().join(made)).unwrap();
            fs::write(&paths[100 * number + 99], "a key").unwrap();
            assert_eq!(absent.appeared(later()).as_ref(), Some(&paths[100 * number + 99]));
        }
    }

    #[test]
    fn a_change_beside_a_path_costs_one_look_at_the_paths_of_that_folder() {
        let (_base, home, paths) = world();
        let mut absent = AbsentPaths::new(paths, later());
        fs::write(home.join("config/other"), "").unwrap();
        LOOKS.set(0);
        assert_eq!(absent.appeared(later()), None);
        assert_eq!(absent.appeared(later()), None);
        assert_eq!(LOOKS.get(), 100);
    }

    #[test]
    fn a_folder_that_has_just_changed_is_looked_at_each_time() {
        let (_base, home, paths) = world();
        let mut absent = AbsentPaths::new(paths.clone(), SystemTime::now());
        LOOKS.set(0);
        for _ in 0..3 {
            assert_eq!(absent.appeared(SystemTime::now()), None);
        }
        assert_eq!(LOOKS.get(), 3 * 300);
        // A clock that was set back settles nothing either.
        assert_eq!(absent.appeared(SystemTime::UNIX_EPOCH), None);
        fs::write(home.join("secret-0"), "").unwrap();
        assert_eq!(absent.appeared(SystemTime::now()), Some(home.join("secret-0")));
    }

    #[test]
    fn what_appears_behind_a_link_that_led_nowhere_is_found() {
        let base = tempfile::tempdir().unwrap();
        symlink(base.path().join("elsewhere"), base.path().join("link")).unwrap();
        let path = base.path().join("link/secret");
        let mut absent = AbsentPaths::new(vec![path.clone()], later());
        assert_eq!(absent.appeared(later()), None);
        // The folder of the link does not change.
        let elsewhere = base.path().join("elsewhere");
        fs::create_dir(&elsewhere).unwrap();
        assert_eq!(absent.appeared(later()), None);
        fs::write(elsewhere.join("secret"), "").unwrap();
        assert_eq!(absent.appeared(later()), Some(path));
    }

    #[test]
    fn another_folder_in_its_place_is_seen() {
        let (base, home, paths) = world();
        let mut absent = AbsentPaths::new(paths, later());
        let other = base.path().join("other");
        fs::create_dir_all(other.join("config")).unwrap();
        fs::write(other.join("config/secret-7"), "").unwrap();
        fs::rename(&home, base.path().join("aside")).unwrap();
        symlink(&other, &home).unwrap();
        assert_eq!(absent.appeared(later()), Some(home.join("config/secret-7")));
    }
}
