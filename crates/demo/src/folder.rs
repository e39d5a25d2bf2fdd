//! The folder of the demo: a copy of `examples/demo`, and a configuration beside it. Only its owner may
//! read it. A folder that is not empty is refused and not touched.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use crate::{DemoError, Speed};

macro_rules! files {
    ($($path:literal),* $(,)?) => {
        [$(($path, include_str!(concat!("../../../examples/demo/", $path)))),*]
    };
}

/// The files of the project.
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

/// The answers of the agents when there is no model.
const SCRIPT: &str = include_str!("../../../examples/demo/team.toml");

/// The configuration of a scripted demo: the user's own is not read.
const CONFIG: &str = "\
# The configuration of a demo. ANTIPHON_CONFIG=config.toml selects it.
[scripts]
team = \"project/team.toml\"
[models.\"scripted/team\"]
price = { input = 0.0, output = 0.0 }
";

/// How many times faster the script answers at `Speed::Fast`.
const SPEEDUP: u64 = 12;

/// The folder of a demo.
#[derive(Debug)]
pub(crate) struct DemoFolder {
    path: PathBuf,
}

impl DemoFolder {
    /// Creates the folder and fills it. `wanted` must be empty or missing; without it a temporary folder
    /// is created.
    pub(crate) fn create(wanted: Option<&Path>, speed: Speed) -> Result<Self, DemoError> {
        let path = match wanted {
            Some(folder) => empty_folder(folder),
            None => tempfile::Builder::new()
                .prefix("antiphon-demo-")
                .tempdir()
                .map(tempfile::TempDir::keep),
        };
        let path = path.map_err(|error| {
            let name = wanted.map_or_else(std::env::temp_dir, Path::to_owned);
            DemoError::usage(format!(
                "cannot use {}: {error}. Name an empty or new folder with --dir",
                name.display()
            ))
        })?;
        let folder = Self { path };
        folder.fill(speed).map_err(|error| {
            let path = folder.path.display();
            DemoError::usage(format!(
                "cannot write to {path}: {error}. Name another folder with --dir"
            ))
        })?;
        Ok(folder)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The project the agents work on.
    pub(crate) fn root(&self) -> PathBuf {
        self.path.join("project")
    }

    /// The configuration of a scripted demo.
    pub(crate) fn config(&self) -> PathBuf {
        self.path.join("config.toml")
    }

    /// The state folder of the project.
    pub(crate) fn state(&self) -> PathBuf {
        crate::state_folder(&self.root())
    }

    /// The log of the server.
    pub(crate) fn log(&self) -> PathBuf {
        self.path.join("server.log")
    }

    pub(crate) fn remove(&self) -> Result<(), DemoError> {
        fs::remove_dir_all(&self.path).map_err(|error| {
            DemoError::failed(format!("cannot remove {}: {error}", self.path.display()))
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

/// The folder the user named, created if it is missing.
fn empty_folder(folder: &Path) -> io::Result<PathBuf> {
    match fs::read_dir(folder) {
        Ok(mut entries) => {
            if entries.next().is_some() {
                return Err(io::Error::other("it is not empty"));
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

/// The same script with shorter delays.
fn faster(script: &str) -> String {
    const DELAY: &str = "delay_ms = ";
    let mut parts = script.split(DELAY);
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let digits = part.bytes().take_while(u8::is_ascii_digit).count();
        let delay_ms: u64 = part[..digits].parse().unwrap_or_default();
        text.extend([DELAY, &(delay_ms / SPEEDUP).to_string(), &part[digits..]]);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_faster_script_differs_only_in_its_delays() {
        let script = "delay_ms = 24\nsteps = [{ delay_ms = 1200 }, { text = \"delay\" }]\n";
        let expected = "delay_ms = 2\nsteps = [{ delay_ms = 100 }, { text = \"delay\" }]\n";
        assert_eq!(faster(script), expected);
        antiphon_scripted::Script::parse(&faster(SCRIPT)).unwrap();
    }

    #[test]
    fn a_folder_that_is_not_empty_is_refused_and_not_touched() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("mine"), "").unwrap();
        let Err(error) = DemoFolder::create(Some(folder.path()), Speed::Fast) else {
            panic!("it was used")
        };
        assert!(error.to_string().contains("--dir"), "{error}");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
