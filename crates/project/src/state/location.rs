//! Where the state folders are: one folder for the user, with one folder per project below `projects`.

use std::fmt::Write as _;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::environment::Environment;
use crate::error::ProjectError;

/// Environment variable that names the user's state folder.
pub const STATE_VARIABLE: &str = "ANTIPHON_STATE";

/// Folder of the projects in the user's state folder.
pub(super) const PROJECTS: &str = "projects";

/// Bytes of the digest in the name of a state folder.
const DIGEST_BYTES: usize = 8;

/// Longest readable part of the name of a state folder, in characters. The path of its socket has to stay
/// short.
const NAME_CHARS_MAX: usize = 24;

/// The user's state folder: `ANTIPHON_STATE`, or `antiphon` in `XDG_STATE_HOME`, or in `~/.local/state`.
pub fn state_base(environment: &Environment) -> Result<PathBuf, ProjectError> {
    if let Some(path) = environment.path(STATE_VARIABLE) {
        return environment.absolute(&path);
    }
    let home = || environment.home().map(|home| home.join(".local/state"));
    let folder = environment.absolute_path("XDG_STATE_HOME").or_else(home);
    folder.map(|folder| folder.join("antiphon")).ok_or_else(|| {
        ProjectError::InvalidInput(
            "there is no folder for the state of projects: set HOME, or name one with --state DIR"
                .to_owned(),
        )
    })
}

/// The state folder of the project at `root`.
pub fn state_folder(base: &Path, root: &Path) -> PathBuf {
    base.join(PROJECTS).join(folder_name(root))
}

/// The last part of the root, for people, and a digest of the whole path.
fn folder_name(root: &Path) -> String {
    let last = root.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
    let is_plain = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let last: String = last.chars().filter(is_plain).take(NAME_CHARS_MAX).collect();
    let last = last.trim_start_matches('.');
    let mut name = if last.is_empty() { "root".to_owned() } else { last.to_owned() };
    name.push('-');
    for byte in Sha256::digest(root.as_os_str().as_bytes()).iter().take(DIGEST_BYTES) {
        // Writing to a String cannot fail.
        let _ = write!(name, "{byte:02x}");
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_folder_is_named_after_its_root_and_no_two_roots_share_one() {
        let name = |root: &str| folder_name(Path::new(root));
        assert!(name("/home/ada/shop").starts_with("shop-"));
        assert_ne!(name("/home/ada/shop"), name("/home/bob/shop"));
        assert!(name("/").starts_with("root-"));
        assert!(name("/x/../..").starts_with("root-"), "no parent folder is named");
        assert!(name("/x/\u{1b}[31m/../ü").len() < 64);
        assert!(!name("/a/b\nc").contains('\n'));
    }

    #[test]
    fn the_variable_comes_before_xdg_and_home() {
        let environment = |pairs: &[(&str, &str)]| Environment {
            variables: pairs.iter().map(|(name, value)| (name.into(), value.into())).collect(),
            current_dir: Some("/place".into()),
            ..Environment::default()
        };
        let (home, xdg) = (("HOME", "/home/ada"), ("XDG_STATE_HOME", "/state"));
        let base = |pairs: &[(&str, &str)]| state_base(&environment(pairs)).unwrap();
        assert_eq!(base(&[home]), Path::new("/home/ada/.local/state/antiphon"));
        assert_eq!(base(&[home, xdg]), Path::new("/state/antiphon"));
        assert_eq!(base(&[home, xdg, (STATE_VARIABLE, "here")]), Path::new("/place/here"));
        assert!(state_base(&environment(&[])).is_err());
    }
}
