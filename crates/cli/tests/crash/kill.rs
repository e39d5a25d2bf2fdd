//! When the program is killed.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// When the program is killed.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Kill {
    /// Before its nth write to the journal, or to a response of the file drop.
    Before(u64),
    /// After its nth write.
    After(u64),
    /// In the middle of its nth write.
    Torn(u64),
    /// After this many milliseconds.
    Time(u64),
}

impl Kill {
    /// Makes a command die at a write. A caller of a command that dies at a time kills it itself.
    pub(crate) fn arm(self, command: &mut Command) {
        let die_at = match self {
            Self::Time(_) => return,
            Self::Before(at) => format!("{at}:before"),
            Self::After(at) => format!("{at}:after"),
            Self::Torn(at) => format!("{at}:torn"),
        };
        command.env("LD_PRELOAD", die_at_library()).env("DIE_AT", die_at);
    }

    /// The time after which it is killed; `None` when it dies at a write.
    pub(crate) fn time(self) -> Option<Duration> {
        match self {
            Self::Time(millis) => Some(Duration::from_millis(millis)),
            Self::Before(_) | Self::After(_) | Self::Torn(_) => None,
        }
    }

    /// Runs a command until it is killed or ends.
    pub(crate) fn run(self, mut command: Command) -> Output {
        self.arm(&mut command);
        let mut child = command.spawn().unwrap();
        if let Some(time) = self.time() {
            let until = Instant::now() + time;
            while child.try_wait().unwrap().is_none() && Instant::now() < until {
                std::thread::sleep(Duration::from_micros(200));
            }
            child.kill().unwrap();
        }
        child.wait_with_output().unwrap()
    }
}

/// The preloaded library, compiled once.
fn die_at_library() -> &'static Path {
    static LIBRARY: OnceLock<(tempfile::TempDir, PathBuf)> = OnceLock::new();
    let (_, path) = LIBRARY.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("die_at.so");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/crash/die_at.c");
        let compiled = Command::new("cc")
            .args(["-shared", "-fPIC", "-O1", "-Wall", "-o"])
            .args([&path, &source])
            .arg("-ldl")
            .status()
            .unwrap();
        assert!(compiled.success(), "the C compiler failed to build {}", path.display());
        (folder, path)
    });
    path
}
