//! The processes of a terminal, seen from the runner. Dropping it ends them; `close` waits until
//! they are gone.

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
use crate::guard::process_list::KILL_WAIT_MAX;
use crate::settings::GuardCommand;
use crate::setup::{ProcessRole, Report, SETUP, Setup};

/// Longest report.
const REPORT_BYTES_MAX: u64 = 4096;

/// Parameters of a program start.
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
    /// The guard reported it.
    Reported(Report),
    /// The guard was killed, and the program with it.
    Lost,
}

/// The processes of a terminal.
pub(crate) struct Process {
    /// A copy of the socket, to shut it down while others hold it.
    connection: UnixStream,
    socket: tokio::net::UnixStream,
    guard: Child,
    report: Vec<u8>,
}

impl Process {
    pub(crate) fn launch(launch: Launch<'_>) -> io::Result<Self> {
        let (ours, theirs) = UnixStream::pair()?;
        let setup = Setup { role: ProcessRole::Guard, own_args: launch.guard.args.len() };
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
        // Closes this process's copies of the program's descriptors.
        drop(command);
        let connection = ours.try_clone()?;
        ours.set_nonblocking(true)?;
        let socket = tokio::net::UnixStream::from_std(ours)?;
        Ok(Self { connection, socket, guard, report: Vec::new() })
    }

    /// Waits until every process has ended. Returns how the program ended. Cancel safe.
    pub(crate) async fn ended(&mut self) -> Ending {
        // The guard holds the other end until every process is gone.
        let mut left = (&mut self.socket).take(REPORT_BYTES_MAX);
        while let Ok(1..) = left.read_buf(&mut self.report).await {}
        let _ = self.guard.wait().await;
        serde_json::from_slice(&self.report).map_or(Ending::Lost, Ending::Reported)
    }

    /// Ends every process and waits until they are gone.
    pub(crate) async fn close(mut self) {
        self.disconnect();
        let patience = GRACE + KILL_WAIT_MAX + Duration::from_secs(1);
        if timeout(patience, self.guard.wait()).await.is_err() {
            // The kernel ends the program with it.
            let _ = self.guard.kill().await;
        }
    }

    /// Closes the connection: the guard sees it and ends every process.
    fn disconnect(&self) {
        // Fails if it is closed already.
        let _ = self.connection.shutdown(Shutdown::Both);
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.disconnect();
    }
}
