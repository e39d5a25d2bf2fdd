//! When the program is killed.

use std::path::Path;
use std::process::{Command, Output};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use crate::preload::{Library, compile};

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

    /// Makes a command write the path of every file that it syncs to a file.
    pub(crate) fn log_syncs(command: &mut Command, log: &Path) {
        command.env("LD_PRELOAD", die_at_library()).env("SYNC_LOG", log);
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
    static LIBRARY: OnceLock<Library> = OnceLock::new();
    &LIBRARY.get_or_init(|| compile("crash/die_at.c")).path
}
