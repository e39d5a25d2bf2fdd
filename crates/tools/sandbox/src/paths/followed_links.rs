//! Symbolic links on the way to protected paths. What they led to when a sandbox was made is covered; when one leads
//! elsewhere, only a new sandbox covers that.

use std::path::{Path, PathBuf};

/// A link, and the path without links that it led to. `None`: nothing that the sandbox shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FollowedLink {
    pub(crate) at: PathBuf,
    pub(crate) to: Option<PathBuf>,
}

impl FollowedLink {
    /// The same link as it is seen inside of a sandbox, where what it led to may be covered or private.
    fn seen_inside(self, is_private: impl Fn(&Path) -> bool) -> Self {
        match self.at.canonicalize() {
            // It was changed while the sandbox was made.
            Ok(real) if !is_private(&real) => self,
            seen => Self { to: seen.ok(), ..self },
        }
    }
}

/// The links that must lead where they did.
#[derive(Debug, Default)]
pub(crate) struct FollowedLinks(Vec<FollowedLink>);

impl FollowedLinks {
    /// The links that were followed outside, looked at inside of the sandbox. What is below an `is_private` folder belongs to
    /// the sandbox.
    pub(crate) fn new(links: Vec<FollowedLink>, is_private: impl Fn(&Path) -> bool) -> Self {
        let is_outside = |link: &FollowedLink| !is_private(&link.at);
        Self(
            links
                .into_iter()
                .filter(is_outside)
                .map(|link| link.seen_inside(&is_private))
                .collect(),
        )
    }

    /// A link that leads elsewhere by now.
    pub(crate) fn changed(&self) -> Option<PathBuf> {
        let leads_elsewhere = |link: &&FollowedLink| link.at.canonicalize().ok() != link.to;
        self.0.iter().find(leads_elsewhere).map(|link| link.at.clone())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_link_that_leads_elsewhere_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let base = folder.path().canonicalize().unwrap();
        for name in ["one", "two", "private"] {
            fs::create_dir(base.join(name)).unwrap();
        }
        let lead = |name: &str, target: &str| {
            let _ = fs::remove_file(base.join(name));
            symlink(base.join(target), base.join(name)).unwrap();
        };
        for (name, target) in [("a", "one"), ("b", "a"), ("c", "private"), ("d", "one")] {
            lead(name, target);
        }
        let link =
            |name: &str, to: &str| FollowedLink { at: base.join(name), to: Some(base.join(to)) };
        let links = vec![link("a", "one"), link("b", "one"), link("c", "private")];
        let private = base.join("private");
        let is_private = |path: &Path| path.starts_with(&private);
        let links = FollowedLinks::new(links, is_private);
        assert_eq!(links.changed(), None);
        lead("a", "two");
        assert_eq!(links.changed(), Some(base.join("a")));
        fs::remove_file(base.join("a")).unwrap();
        assert_eq!(links.changed(), Some(base.join("a")));
        lead("a", "one");
        assert_eq!(links.changed(), None);
        lead("c", "one");
        assert_eq!(links.changed(), Some(base.join("c")));
        // Changed between the look outside and the one inside.
        let links = FollowedLinks::new(vec![link("d", "two")], is_private);
        assert_eq!(links.changed(), Some(base.join("d")));
    }
}
