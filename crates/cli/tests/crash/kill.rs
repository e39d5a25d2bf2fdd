//! How the program dies.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// How the program dies.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Kill {
    /// Before its nth write to the journal, or to a response of the file drop.
    PriorHistory(u64),
    /// After it.
    After(u64),
    /// When half of it is written.
    Torn(u64),
    /// After so many milliseconds.
    Time(u64),
}

impl Kill {
    /// Has a command die at a write. Whoever starts it sees to one that dies at a time.
    pub(crate) fn arm(self, command: &mut Command) {
        let die_at = match self {
            Self::Time(_) => return,
            Self::PriorHistory(at) => format!("{at}:before"),
            Self::After(at) => format!("{at}:after"),
            Self::Torn(at) => format!("{at}:torn"),
        };
        command.env("LD_PRELOAD", die_at_library()).env("DIE_AT", die_at);
    }

    /// How long it has, if that is what it dies of.
    pub(crate) fn time(self) -> Option<Duration> {
        match self {
            Self::Time(millis) => Some(Duration::from_millis(millis)),
            Self::PriorHistory(_) | Self::After(_) | Self::Torn(_) => None,
        }
    }

    /// Runs a command until it dies, or until it ends before that.
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

/// What is preloaded, compiled once.
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
        assert!(compiled.success(), "the C compiler could not make {}", path.display());
        (folder, path)
    });
    path
}
