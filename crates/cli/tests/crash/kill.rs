//! How the program dies.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// How the program dies.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Kill {
    /// Before its nth write to the journal.
    Before(u64),
    /// After it.
    After(u64),
    /// When half of it is written.
    Torn(u64),
    /// After so many milliseconds.
    Time(u64),
}

impl Kill {
    /// Runs a command until it dies, or until it ends before that.
    pub(crate) fn run(self, mut command: Command) -> Output {
        let die_at = match self {
            Self::Time(_) => None,
            Self::Before(at) => Some(format!("{at}:before")),
            Self::After(at) => Some(format!("{at}:after")),
            Self::Torn(at) => Some(format!("{at}:torn")),
        };
        if let Some(die_at) = die_at {
            command.env("LD_PRELOAD", die_at_library()).env("DIE_AT", die_at);
        }
        let mut child = command.spawn().unwrap();
        if let Self::Time(millis) = self {
            let until = Instant::now() + Duration::from_millis(millis);
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
