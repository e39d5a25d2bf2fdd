//! The folder that the demo works in: a copy of `examples/demo`, with a configuration of its own beside it.
//!
//! A folder that has something in it is refused, and nothing is touched. It is private to its owner, and
//! kept when the demo is over, unless it was asked to be removed.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use super::Speed;
use crate::failure::Failure;
use crate::project::Project;

macro_rules! files {
    ($($path:literal),* $(,)?) => {
        [$(($path, include_str!(concat!("../../../../../examples/demo/", $path)))),*]
    };
}

/// What is in the project.
const FILES: [(&str, &str); 10] = files![
    "README.md",
    "CHANGELOG.md",
    "till.sh",
    "shop.env",
    "tests/run.sh",
    "tests/morning.sh",
    ".antiphon/agents/lead.md",
    ".antiphon/agents/fixer.md",
    ".antiphon/agents/tester.md",
    ".antiphon/agents/writer.md",
];

/// What the agents say when there is no model.
const SCRIPT: &str = include_str!("../../../../../examples/demo/team.toml");

/// What holds for the demo alone: nothing of the user's own is read when the model is a script.
const CONFIG: &str = "\
# The configuration of a demo. It counts where ANTIPHON_CONFIG names it.
[scripts]
team = \"project/team.toml\"
[models.\"scripted/team\"]
price = { input = 0.0, output = 0.0 }
";

/// How many times faster a script speaks that need not be readable.
const FASTER: u64 = 12;

/// The folder of a demo.
pub(super) struct Scratch {
    folder: PathBuf,
}

impl Scratch {
    /// A folder that nobody else has, with everything in it.
    pub(super) fn make(wanted: Option<&Path>, speed: Speed) -> Result<Self, Failure> {
        let folder = match wanted {
            Some(folder) => named(folder),
            None => tempfile::Builder::new()
                .prefix("antiphon-demo-")
                .tempdir()
                .map(tempfile::TempDir::keep),
        };
        let folder = folder.map_err(|error| {
            let name = wanted.map_or_else(std::env::temp_dir, Path::to_owned);
            Failure::usage(format!(
                "cannot begin in {}: {error}. Name a folder that is empty or not there yet with --dir",
                name.display()
            ))
        })?;
        let scratch = Self { folder };
        scratch.fill(speed).map_err(|error| {
            let folder = scratch.folder.display();
            Failure::usage(format!("cannot write in {folder}: {error}. Name another with --dir"))
        })?;
        Ok(scratch)
    }

    /// The folder.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// What is worked on.
    pub(super) fn project(&self) -> Project {
        Project::at(self.root())
    }

    pub(super) fn root(&self) -> PathBuf {
        self.folder.join("project")
    }

    /// The configuration in which the model is a script.
    pub(super) fn config(&self) -> PathBuf {
        self.folder.join("config.toml")
    }

    /// What the server says of itself.
    pub(super) fn log(&self) -> PathBuf {
        self.folder.join("server.log")
    }

    /// Takes everything away.
    pub(super) fn remove(&self) -> Result<(), Failure> {
        fs::remove_dir_all(&self.folder).map_err(|error| {
            Failure::failed(format!("cannot remove {}: {error}", self.folder.display()))
        })
    }

    fn fill(&self, speed: Speed) -> io::Result<()> {
        let root = self.root();
        for (path, text) in FILES {
            write(&root.join(path), text)?;
        }
        let script = match speed {
            Speed::Readable => SCRIPT.to_owned(),
            Speed::Fast => faster(SCRIPT),
        };
        write(&root.join("team.toml"), &script)?;
        write(&self.config(), CONFIG)
    }
}

/// The user's own choice, if there is nothing in it.
fn named(folder: &Path) -> io::Result<PathBuf> {
    match fs::read_dir(folder) {
        Ok(mut entries) => {
            if entries.next().is_some() {
                return Err(io::Error::other("there is something in it"));
            }
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        }
        Err(error) => return Err(error),
    }
    fs::canonicalize(folder)
}

fn write(path: &Path, text: &str) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    }
    fs::write(path, text)
}

/// The same script with shorter waits.
fn faster(script: &str) -> String {
    const WAIT: &str = "delay_ms = ";
    let mut parts = script.split(WAIT);
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let digits = part.bytes().take_while(u8::is_ascii_digit).count();
        let wait: u64 = part[..digits].parse().unwrap_or_default();
        text.extend([WAIT, &(wait / FASTER).to_string(), &part[digits..]]);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_faster_script_differs_in_its_waits_alone() {
        let script = "delay_ms = 24\nsteps = [{ delay_ms = 1200 }, { text = \"delay\" }]\n";
        let expected = "delay_ms = 2\nsteps = [{ delay_ms = 100 }, { text = \"delay\" }]\n";
        assert_eq!(faster(script), expected);
        antiphon_scripted::Script::parse(&faster(SCRIPT)).unwrap();
    }

    #[test]
    fn a_folder_with_something_in_it_is_left_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("mine"), "").unwrap();
        let Err(failure) = Scratch::make(Some(folder.path()), Speed::Fast) else {
            panic!("it was taken")
        };
        assert!(failure.message.contains("--dir"), "{failure}");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
