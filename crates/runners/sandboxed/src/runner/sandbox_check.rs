//! Checks whether a worker can be restricted on this machine: starts one that restricts itself,
//! reports the outcome, and ends.

use std::process::Stdio;
use std::time::Duration;

use super::process::prepare;
use crate::settings::Settings;
use crate::setup::Purpose;
use crate::wire::{FromWorker, decode, receive_now};

/// How long it may take.
const CHECK_MAX: Duration = Duration::from_secs(10);

/// Runs the check. The error says why there is no sandbox, and what to do about it.
pub(super) fn sandbox_check(settings: &Settings) -> Result<(), String> {
    let program = settings.worker.program.display();
    let failed =
        |error: std::io::Error| format!("the worker `{program}` cannot be started: {error}");
    let (ours, mut command, tmp) =
        prepare(settings, &settings.limits, Purpose::Trial, None).map_err(failed)?;
    ours.set_read_timeout(Some(CHECK_MAX)).map_err(failed)?;
    let mut guard = command.stderr(Stdio::null()).spawn().map_err(failed)?;
    drop(command);
    let answer = receive_now(&ours);
    // If it has not ended by now, it sees the closed socket.
    drop(ours);
    let ended = guard.wait().map_err(failed);
    drop(tmp);
    ended?;
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
