//! The server of the demo: `antiphon serve` in a process of its own, which can be killed.
//!
//! It has a process group of its own, so that Ctrl-C reaches the demo alone. It ends with the demo,
//! however that ends. When it does not listen in time, the error quotes the end of its log.

use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::process::{Child, ChildStdout, Command};

use crate::folder::DemoFolder;
use crate::{DemoError, ModelChoice};

/// Time until it must listen.
const START_WAIT: Duration = Duration::from_secs(30);

/// Time to shut down after SIGTERM.
const STOP_WAIT: Duration = Duration::from_secs(10);

/// Bytes of standard output that are read.
const ANNOUNCEMENT_BYTES_MAX: u64 = 16 * 1024;

/// Characters of the log that an error quotes.
const LOG_CHARS_MAX: usize = 600;

/// How `antiphon serve` begins its line about the tasks it resumes.
const RESUMED_PREFIX: &str = "resuming ";

/// A server that listens.
pub(crate) struct Server {
    process: Child,
    /// Not read any further, but kept open: the server may still write.
    _stdout: BufReader<tokio::io::Take<ChildStdout>>,
    pub(crate) pid: u32,
    pub(crate) url: String,
    /// Time from its start until it listened.
    pub(crate) start_time: Duration,
    /// Its line about the tasks it resumes; absent when there are none.
    pub(crate) resumed_tasks: Option<String>,
}

impl Server {
    pub(crate) async fn start(
        program: &Path,
        folder: &DemoFolder,
        model: &ModelChoice,
    ) -> Result<Self, DemoError> {
        let began = Instant::now();
        let mut process =
            command(program, folder, model)
                .and_then(|mut command| command.spawn())
                .map_err(|error| DemoError::failed(format!("cannot start a server: {error}")))?;
        let (Some(pid), Some(out)) = (process.id(), process.stdout.take()) else {
            return Err(DemoError::failed("the server ended at once"));
        };
        let mut out = BufReader::new(out.take(ANNOUNCEMENT_BYTES_MAX));
        let lines = tokio::time::timeout(START_WAIT, announcement(&mut out)).await;
        let lines = lines.unwrap_or_default();
        let url = lines.iter().find_map(|line| line.strip_prefix("listening on "));
        let Some(url) = url.map(str::to_owned) else {
            // Dropping `process` kills it.
            return Err(DemoError::unavailable(format!(
                "the server does not listen. The end of its log, {}:\n{}",
                folder.log().display(),
                log_end(folder)
            )));
        };
        let resumed_tasks = lines.into_iter().find(|line| line.starts_with(RESUMED_PREFIX));
        let start_time = began.elapsed();
        Ok(Self { process, _stdout: out, pid, url, start_time, resumed_tasks })
    }

    /// Resolves when it has ended by itself. Cancel safe.
    pub(crate) async fn exited(&mut self) -> io::Result<ExitStatus> {
        self.process.wait().await
    }

    /// Kills it with SIGKILL and waits until it is gone.
    pub(crate) async fn kill(&mut self) -> Result<(), DemoError> {
        let killed = self.process.kill().await;
        killed.map_err(|error| DemoError::failed(format!("cannot kill {}: {error}", self.pid)))
    }

    /// Shuts it down with SIGTERM, or else kills it.
    pub(crate) async fn stop(&mut self) {
        let pid = i32::try_from(self.pid).ok().and_then(Pid::from_raw);
        if let (None, Some(pid)) = (self.process.try_wait().ok().flatten(), pid) {
            // A process that is gone already is no error.
            let _ = kill_process(pid, Signal::TERM);
            let _ = tokio::time::timeout(STOP_WAIT, self.process.wait()).await;
        }
        let _ = self.process.kill().await;
    }
}

/// The end of the log.
pub(crate) fn log_end(folder: &DemoFolder) -> String {
    let log = fs::read(folder.log()).unwrap_or_default();
    let log = String::from_utf8_lossy(&log).trim().to_owned();
    let skipped = log.chars().count().saturating_sub(LOG_CHARS_MAX);
    log.chars().skip(skipped).collect()
}

fn command(program: &Path, folder: &DemoFolder, model: &ModelChoice) -> io::Result<Command> {
    let log = File::options().create(true).append(true).open(folder.log())?;
    let mut command = Command::new(program);
    command
        .args(["serve", "--trust", "--listen", "127.0.0.1:0", "--end-with-parent"])
        .current_dir(folder.root())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(log)
        .process_group(0)
        .env("ANTIPHON_STATE", folder.state())
        .kill_on_drop(true);
    if model.is_scripted() {
        command.env("ANTIPHON_CONFIG", folder.config()).env_remove("ANTIPHON_MODEL");
    }
    Ok(command)
}

/// The lines of standard output up to the first blank one.
async fn announcement(out: &mut BufReader<tokio::io::Take<ChildStdout>>) -> Vec<String> {
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        match out.read_line(&mut line).await {
            Ok(0) | Err(_) => return lines,
            Ok(_) if line.trim().is_empty() => return lines,
            Ok(_) => lines.push(line.trim_end().to_owned()),
        }
    }
}
