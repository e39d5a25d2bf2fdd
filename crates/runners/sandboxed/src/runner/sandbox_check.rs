//! Checks whether a worker can be restricted on this machine: starts one that restricts itself,
//! reports the outcome, and ends.

use std::fmt::Display;
use std::io;
use std::process::Stdio;
use std::time::Duration;

use super::lacks_room;
use super::process::prepare;
use crate::settings::SandboxRunnerSettings;
use crate::setup::Purpose;
use crate::wire::{FrameError, FromWorker, decode, receive_now};

/// How long it may take.
const CHECK_MAX: Duration = Duration::from_secs(10);

/// The report of a worker, or why it cannot be read.
type Received = Result<Option<Vec<u8>>, FrameError>;

/// What a check found out, other than that there is no sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Checked {
    /// A worker was restricted.
    Works,
    /// There was no room for the files of a worker.
    NoRoom,
}

/// Runs the check. The error says why there is no sandbox, and what to do about it.
pub(super) fn sandbox_check(settings: &SandboxRunnerSettings) -> Result<Checked, String> {
    let program = settings.worker.program.display();
    match ask_worker(settings) {
        Ok(body) => verdict(&program, body).map(|()| Checked::Works),
        Err(error) if lacks_room(&error) => Ok(Checked::NoRoom),
        Err(error) => Err(format!("the worker `{program}` cannot be started: {error}")),
    }
}

/// What a worker reports that only restricts itself.
fn ask_worker(settings: &SandboxRunnerSettings) -> io::Result<Received> {
    let (ours, mut command, tmp) = prepare(settings, &settings.limits, Purpose::Trial, None)?;
    ours.set_read_timeout(Some(CHECK_MAX))?;
    let mut guard = command.stderr(Stdio::null()).spawn()?;
    drop(command);
    let answer = receive_now(&ours);
    // If it has not ended by now, it sees the closed socket.
    drop(ours);
    let ended = guard.wait();
    drop(tmp);
    ended.map(|_| answer)
}

fn verdict(program: &dyn Display, answer: Received) -> Result<(), String> {
    let body = answer.map_err(|error| format!("the worker `{program}` did not answer: {error}"))?;
    let body = body.ok_or_else(|| format!("the worker `{program}` sent nothing"))?;
    match decode(&body)
        .map_err(|error| format!("the worker `{program}` sent an invalid answer: {error}"))?
    {
        FromWorker::Ready { .. } => Ok(()),
        FromWorker::Refused { reason } => Err(reason),
        FromWorker::Append { .. }
        | FromWorker::Read { .. }
        | FromWorker::History { .. }
        | FromWorker::Tasks { .. }
        | FromWorker::Open { .. }
        | FromWorker::More { .. }
        | FromWorker::Close { .. }
        | FromWorker::Done { .. } => Err(format!("the worker `{program}` began to work")),
    }
}
