//! Paths without symbolic links, of many paths that lie in few folders. The kernel is asked once for each folder.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use crate::followed_links::FollowedLink;

/// The real paths that were looked up, at one moment: links that are made later are not seen.
#[derive(Debug, Default)]
pub(crate) struct RealPaths {
    known: HashMap<PathBuf, Option<PathBuf>>,
    links: Vec<FollowedLink>,
}

impl RealPaths {
    /// What [`Path::canonicalize`] returns for an absolute path without `..`. `None` if that fails.
    pub(crate) fn of(&mut self, path: &Path) -> Option<&Path> {
        if !self.known.contains_key(path) {
            let real = self.look_up(path);
            self.known.insert(path.to_owned(), real);
        }
        self.known.get(path)?.as_deref()
    }

    /// The links that were followed.
    pub(crate) fn into_links(self) -> Vec<FollowedLink> {
        self.links
    }

    fn look_up(&mut self, path: &Path) -> Option<PathBuf> {
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return path.canonicalize().ok();
        };
        let place = self.of(parent)?.join(name);
        if place.symlink_metadata().ok()?.is_symlink() {
            let to = place.canonicalize().ok();
            self.links.push(FollowedLink { at: place, to: to.clone() });
            return to;
        }
        Some(place)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn every_path_is_as_the_kernel_says() {
        let folder = tempfile::tempdir().unwrap();
        let base = folder.path();
        fs::create_dir_all(base.join("a/b")).unwrap();
        fs::write(base.join("a/file"), "").unwrap();
        for (target, link) in
            [("a", "to_a"), ("a/file", "to_file"), ("gone", "to_gone"), ("round", "round")]
        {
            symlink(base.join(target), base.join(link)).unwrap();
        }
        symlink("../to_a/b", base.join("a/back")).unwrap();
        let mut real = RealPaths::default();
        let names = [
            "",
            "a",
            "a/b",
            "a/file",
            "a/file/below",
            "a/none/b",
            "to_a",
            "to_a/b",
            "to_a/back",
            "a/back",
            "to_file",
            "to_gone",
            "to_gone/a",
            "round",
            "round/a",
        ];
        for name in names.into_iter().chain(names) {
            let path = base.join(name);
            assert_eq!(real.of(&path), path.canonicalize().ok().as_deref(), "{name}");
        }
        assert_eq!(real.of(Path::new("/")), Some(Path::new("/")));
        let base = base.canonicalize().unwrap();
        let mut links = real.into_links();
        links.retain(|link| link.at.starts_with(&base));
        // Two spellings of one link are two entries.
        links.dedup();
        let to = |name: &str| Some(base.join(name));
        let led = [
            ("to_a", to("a")),
            ("a/back", to("a/b")),
            ("to_file", to("a/file")),
            ("to_gone", None),
            ("round", None),
        ];
        let expected = led.map(|(name, to)| FollowedLink { at: base.join(name), to });
        assert_eq!(links, expected);
    }
}
