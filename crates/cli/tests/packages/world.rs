//! The packages, and an empty root to install them in.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;

/// Search path of what installs and of what is installed: that of a plain system.
const SYSTEM_PATH: &str = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin";

/// A folder with `packages`, a clean `home`, and room for roots.
pub(crate) struct World(TempDir);

impl World {
    /// With these kinds of packages of the binary. Made anew: they hold what the source says now.
    pub(crate) fn new(kinds: &[&str]) -> Self {
        let world = Self(tempfile::tempdir().unwrap());
        for folder in ["home", "project"] {
            fs::create_dir(world.path(folder)).unwrap();
        }
        let packaging = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/packaging");
        let mut command = Command::new("python3");
        command.arg("-B").arg(packaging).arg(binary()).arg(world.path("packages"));
        done(command.args(kinds).stdin(Stdio::null()));
        world
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// The package whose file ends like this.
    pub(crate) fn package(&self, end: &str) -> PathBuf {
        let files = fs::read_dir(self.path("packages")).unwrap();
        let mut paths = files.map(|file| file.unwrap().path());
        paths.find(|path| path.to_str().unwrap().ends_with(end)).unwrap()
    }

    /// A command of the system or of a root, in the project, with a clean home.
    pub(crate) fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command.current_dir(self.path("project")).env_clear().stdin(Stdio::null());
        command.env("HOME", self.path("home")).env("PATH", search_path(None));
        command
    }

    /// The archive, unpacked: its folder has `bin` and `share`.
    pub(crate) fn unpacked(&self) -> PathBuf {
        let root = self.path("unpacked");
        fs::create_dir(&root).unwrap();
        let mut tar = self.command("tar");
        done(tar.arg("-xzf").arg(self.package(".tar.gz")).arg("-C").arg(&root));
        let mut folders = fs::read_dir(&root).unwrap();
        folders.next().unwrap().unwrap().path()
    }
}

/// The binary that the packages hold.
pub(crate) fn binary() -> PathBuf {
    let named = std::env::var_os("ANTIPHON_PACKAGED");
    named.map_or_else(|| env!("CARGO_BIN_EXE_antiphon").into(), PathBuf::from)
}

/// The search path of a plain system, with the commands of a root before it. Python and npm may be elsewhere: theirs
/// is last.
pub(crate) fn search_path(root: Option<&Path>) -> String {
    let root = root.map(|root| format!("{}:", root.display())).unwrap_or_default();
    format!("{root}{SYSTEM_PATH}:{}", std::env::var("PATH").unwrap())
}

/// What the command wrote to standard output; it succeeds.
pub(crate) fn done(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let (out, wrong) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{command:?}: {out}\n{wrong}");
    out.into_owned()
}

/// Files below a folder, which may be absent.
pub(crate) fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.symlink_metadata().unwrap().is_dir() {
            found.extend(files(&path));
        } else {
            found.push(path);
        }
    }
    found
}
