//! The processes of a terminal, seen from outside. Dropped, they end by themselves; closed, they are
//! gone when that returns.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tokio::io::AsyncReadExt;
use tokio::process::Child;
use tokio::time::timeout;

use crate::guard::GRACE;
use crate::guard::census::KILLING_MAX;
use crate::settings::GuardCommand;
use crate::setup::{Report, SETUP, Setup, Stage};

/// Longest report.
const REPORT_BYTES_MAX: u64 = 4096;

/// What a program is started with.
pub(crate) struct Launch<'a> {
    pub(crate) guard: &'a GuardCommand,
    pub(crate) program: PathBuf,
    pub(crate) args: Vec<String>,
    pub(crate) env: Vec<(OsString, OsString)>,
    pub(crate) root: &'a Path,
    pub(crate) lock: File,
    pub(crate) terminal: OwnedFd,
}

/// How a program ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Ending {
    /// It said so, or was seen to.
    Told(Report),
    /// Its guard was killed, and it with it.
    Lost,
}

/// The processes of a terminal.
pub(crate) struct Process {
    /// Ours, to close the socket whoever else holds it.
    line: UnixStream,
    socket: tokio::net::UnixStream,
    guard: Child,
    report: Vec<u8>,
}

impl Process {
    pub(crate) fn launch(launch: Launch<'_>) -> io::Result<Self> {
        let (ours, theirs) = UnixStream::pair()?;
        let setup = Setup { stage: Stage::Guard, own_args: launch.guard.args.len() };
        let mut command = tokio::process::Command::new(&launch.guard.program);
        command
            .args(&launch.guard.args)
            .arg(&launch.program)
            .args(&launch.args)
            .env_clear()
            .envs(launch.env)
            .env(SETUP, serde_json::to_string(&setup)?)
            .current_dir(launch.root)
            .stdin(OwnedFd::from(theirs))
            .stdout(Stdio::from(launch.lock))
            .stderr(Stdio::from(launch.terminal));
        let guard = command.spawn()?;
        // Our copies of its ends go with it.
        drop(command);
        let line = ours.try_clone()?;
        ours.set_nonblocking(true)?;
        let socket = tokio::net::UnixStream::from_std(ours)?;
        Ok(Self { line, socket, guard, report: Vec::new() })
    }

    /// When everything has ended: how the program did. Cancel safe.
    pub(crate) async fn ended(&mut self) -> Ending {
        // The guard holds the other end until everything is gone.
        let mut left = (&mut self.socket).take(REPORT_BYTES_MAX);
        while let Ok(1..) = left.read_buf(&mut self.report).await {}
        let _ = self.guard.wait().await;
        serde_json::from_slice(&self.report).map_or(Ending::Lost, Ending::Told)
    }

    /// Ends everything, and waits until it is gone.
    pub(crate) async fn close(mut self) {
        self.hang_up();
        let patience = GRACE + KILLING_MAX + Duration::from_secs(1);
        if timeout(patience, self.guard.wait()).await.is_err() {
            // The kernel ends the program with it.
            let _ = self.guard.kill().await;
        }
    }

    /// The guard sees it and ends everything.
    fn hang_up(&self) {
        // It may be closed already.
        let _ = self.line.shutdown(Shutdown::Both);
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.hang_up();
    }
}
