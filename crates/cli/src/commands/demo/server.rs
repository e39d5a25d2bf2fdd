//! The server of the demo: `antiphon serve` in a process of its own, which can be killed.
//!
//! It has a process group of its own, so that Ctrl-C is heard by the demo alone, and it ends with the
//! demo, however that ends. One that does not begin to listen is an error with the last it said.

use std::fs::{self, File};
use std::io;
use std::process::{ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::process::{Child, ChildStdout, Command};

use super::Cast;
use super::scratch::Scratch;
use crate::failure::Failure;
use crate::served::Served;

/// How long it may take to listen.
const START_WAIT: Duration = Duration::from_secs(30);

/// How long it may take to end in order.
const END_WAIT: Duration = Duration::from_secs(10);

/// What it says when it listens, at most, in bytes.
const SAID_BYTES_MAX: u64 = 16 * 1024;

/// Characters of its log that are shown when it fails.
const LOG_CHARS_MAX: usize = 600;

/// A server that listens.
pub(super) struct Server {
    process: Child,
    /// Nobody reads on, but it can still speak.
    _out: BufReader<tokio::io::Take<ChildStdout>>,
    pub(super) pid: u32,
    pub(super) url: String,
    /// How long it took until it listened.
    pub(super) took: Duration,
    /// What it goes on with, in its own words.
    pub(super) going_on: Option<String>,
}

impl Server {
    pub(super) async fn start(scratch: &Scratch, cast: &Cast) -> Result<Self, Failure> {
        let began = Instant::now();
        let mut process = command(scratch, cast)
            .and_then(|mut command| command.spawn())
            .map_err(|error| Failure::failed(format!("cannot start a server: {error}")))?;
        let (Some(pid), Some(out)) = (process.id(), process.stdout.take()) else {
            return Err(Failure::failed("the server ended at once"));
        };
        let mut out = BufReader::new(out.take(SAID_BYTES_MAX));
        let said = tokio::time::timeout(START_WAIT, announcement(&mut out)).await;
        let said = said.unwrap_or_default();
        let url = said.iter().find_map(|line| line.strip_prefix("listening on "));
        let Some(url) = url.map(str::to_owned) else {
            // It is ended when it is dropped.
            return Err(Failure::unavailable(format!(
                "the server did not begin to listen. The last it said, in {}:\n{}",
                scratch.log().display(),
                last_words(scratch)
            )));
        };
        let going_on = said.into_iter().find(|line| line.starts_with("resuming"));
        Ok(Self { process, _out: out, pid, url, took: began.elapsed(), going_on })
    }

    /// A client of it, found as every command finds it.
    pub(super) async fn client(&self, scratch: &Scratch) -> Result<Served, Failure> {
        let found = Served::find(&scratch.project()).await?;
        found.ok_or_else(|| Failure::unavailable(format!("nobody answers at {}", self.url)))
    }

    /// Ready when it has ended by itself. Cancel safe.
    pub(super) async fn ended(&mut self) -> io::Result<ExitStatus> {
        self.process.wait().await
    }

    /// `kill -9`. When this returns, it is gone.
    pub(super) async fn kill(&mut self) -> Result<(), Failure> {
        let killed = self.process.kill().await;
        killed.map_err(|error| Failure::failed(format!("cannot kill {}: {error}", self.pid)))
    }

    /// Ends it in order, or else by force.
    pub(super) async fn end(&mut self) {
        let pid = i32::try_from(self.pid).ok().and_then(Pid::from_raw);
        if let (None, Some(pid)) = (self.process.try_wait().ok().flatten(), pid) {
            // Gone already is as good.
            let _ = kill_process(pid, Signal::TERM);
            let _ = tokio::time::timeout(END_WAIT, self.process.wait()).await;
        }
        let _ = self.process.kill().await;
    }
}

/// The last lines of the log.
pub(super) fn last_words(scratch: &Scratch) -> String {
    let log = fs::read(scratch.log()).unwrap_or_default();
    let log = String::from_utf8_lossy(&log).trim().to_owned();
    let skipped = log.chars().count().saturating_sub(LOG_CHARS_MAX);
    log.chars().skip(skipped).collect()
}

fn command(scratch: &Scratch, cast: &Cast) -> io::Result<Command> {
    let log = File::options().create(true).append(true).open(scratch.log())?;
    // By a name that holds also when the file of this program is replaced.
    let mut command = Command::new("/proc/self/exe");
    command
        .args(["serve", "--listen", "127.0.0.1:0", "--end-with-parent"])
        .current_dir(scratch.root())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(log)
        .process_group(0)
        .kill_on_drop(true);
    if cast.is_scripted() {
        command.env("ANTIPHON_CONFIG", scratch.config()).env_remove("ANTIPHON_MODEL");
    }
    Ok(command)
}

/// What it says until the first blank line, or its end.
async fn announcement(out: &mut BufReader<tokio::io::Take<ChildStdout>>) -> Vec<String> {
    let mut said = Vec::new();
    loop {
        let mut line = String::new();
        match out.read_line(&mut line).await {
            Ok(0) | Err(_) => return said,
            Ok(_) if line.trim().is_empty() => return said,
            Ok(_) => said.push(line.trim_end().to_owned()),
        }
    }
}
