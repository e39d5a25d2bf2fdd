//! When the demo does something itself: steer an agent, kill the server. It goes by what has happened and
//! by the clock, never by what a script is going to say.
//!
//! | cue   | comes when                                                                            |
//! |-------|---------------------------------------------------------------------------------------|
//! | steer | the writer has begun to work; or, where there is none, anybody, a while after the fan-out |
//! | kill  | that is done, nobody is asked, and a call has been running for a moment; or when it would soon be too late |

use std::time::{Duration, Instant};

use antiphon_core::TaskId;

use super::Speed;
use super::stage::Stage;

/// The agent that is steered, if it is there.
const STEERED: &str = "writer";

/// How long the demo waits for what it would like to see.
#[derive(Debug, Clone, Copy)]
pub(super) struct Patience {
    /// With another agent to be steered than the one that was meant.
    pub(super) steer: Duration,
    /// With a question, after the fan-out.
    pub(super) question: Duration,
    /// With a call to be running for so long.
    pub(super) running: Duration,
    /// With the kill, after the fan-out.
    pub(super) kill: Duration,
    /// With everything.
    pub(super) all: Duration,
}

impl Patience {
    pub(super) fn with_script(speed: Speed) -> Self {
        Self {
            steer: Duration::from_secs(8),
            question: Duration::from_secs(15),
            running: match speed {
                Speed::Readable => Duration::from_millis(900),
                Speed::Fast => Duration::from_millis(100),
            },
            kill: Duration::from_secs(30),
            all: Duration::from_secs(120),
        }
    }

    /// Nobody knows what it does, nor how long it takes.
    pub(super) fn with_model() -> Self {
        Self {
            steer: Duration::from_secs(20),
            question: Duration::from_secs(30),
            running: Duration::from_millis(100),
            kill: Duration::from_secs(120),
            all: Duration::from_secs(900),
        }
    }
}

/// Who is steered now, if anybody is.
pub(super) fn steer(stage: &Stage, patience: &Patience, now: Instant) -> Option<TaskId> {
    let waited = now.duration_since(stage.fanned_out?);
    let mut at_work = stage.at_work().filter(|task| stage.has_begun(&task.task_id));
    let meant = stage.at_work().find(|task| task.agent == STEERED);
    match meant {
        Some(meant) if stage.has_begun(&meant.task_id) => Some(meant.task_id.clone()),
        None if waited >= patience.steer => at_work.next().map(|task| task.task_id.clone()),
        Some(_) | None => None,
    }
}

/// Whether the server is killed now. `steered` says that nobody is to be steered any more.
pub(super) fn kill(stage: &Stage, steered: bool, patience: &Patience, now: Instant) -> bool {
    let Some(fanned_out) = stage.fanned_out else { return false };
    let waited = now.duration_since(fanned_out);
    // Everybody is back: it is now or never.
    let known = stage.tasks().count() > 1;
    if known && stage.at_work().next().is_none() {
        return true;
    }
    if stage.is_asking() {
        return false;
    }
    if waited >= patience.kill {
        return true;
    }
    let asked = stage.asked > 0 || waited >= patience.question;
    let is_child = |task_id: &TaskId| stage.at_work().any(|task| task.task_id == *task_id);
    steered
        && asked
        && stage.running().any(|(task_id, _, since)| {
            is_child(task_id) && now.duration_since(since) >= patience.running
        })
}
