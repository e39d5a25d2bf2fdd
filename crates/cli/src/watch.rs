//! Watching a task, and talking to it: typed lines steer it, and answer what it asks.

use std::time::Duration;

use antiphon_core::port::{Clock, SystemClock, WhichApprovals};
use antiphon_core::{
    Approval, Decision, HandlingMode, Position, TaskId, TaskStatus, UserMessage, WaitingFor,
    visible,
};
use antiphon_runtime::{Delta, Orchestrator, OrchestratorError, TaskState};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;
use tokio::task::JoinSet;

use crate::failure::Failure;
use crate::keyboard::Keyboard;
use crate::screen::Screen;

/// How often the line at the bottom is drawn.
const TICK: Duration = Duration::from_millis(100);

/// Characters of a call's arguments that are shown when somebody is asked about it.
const ARGUMENTS_CHARS_MAX: usize = 2000;

/// A task that is watched.
pub(crate) struct Watch<'a> {
    pub(crate) orchestrator: &'a Orchestrator,
    pub(crate) task_id: &'a TaskId,
    pub(crate) screen: Screen,
    pub(crate) keyboard: Keyboard,
    /// What somebody is being asked.
    pub(crate) asking: Option<Approval>,
}

impl Watch<'_> {
    /// Shows a task from `after` on until it ends or has to wait for somebody who is not here.
    /// Ctrl-C cancels it; a second one ends the program at once. `deltas` must have been asked for
    /// before the task was begun.
    pub(crate) async fn run(
        mut self,
        after: Position,
        mut deltas: broadcast::Receiver<Delta>,
    ) -> Result<TaskState, Failure> {
        let mut follower = self.orchestrator.follow(Some(self.task_id.clone()), after);
        let mut interrupts = signal(SignalKind::interrupt())
            .map_err(|error| Failure::failed(format!("cannot listen for Ctrl-C: {error}")))?;
        let mut ticks = tokio::time::interval(TICK);
        let mut canceling: Option<JoinSet<()>> = None;
        let (mut rest, mut rests) = (self.rest(), false);
        let live = self.screen.is_live();
        loop {
            tokio::select! {
                // What is said comes before what is written of it.
                biased;
                _ = interrupts.recv() => {
                    if canceling.is_some() {
                        // At once: what its tools started ends with this process.
                        std::process::exit(130);
                    }
                    canceling = Some(self.cancel());
                }
                delta = deltas.recv() => match delta {
                    Ok(delta) if delta.task_id == *self.task_id => self.screen.delta(&delta)?,
                    Ok(_) => {}
                    // What they said is in the journal, whole.
                    Err(RecvError::Lagged(count)) => self.screen.missed(self.task_id, count)?,
                    Err(RecvError::Closed) => {
                        return Err(Failure::failed("the orchestrator has ended"));
                    }
                },
                event = follower.next() => {
                    let event = event.map_err(|error| Failure::unavailable(error.to_string()))?;
                    self.screen.event(&event)?;
                    if event.body.ends_task() {
                        break;
                    }
                }
                typed = self.keyboard.line() => {
                    if self.hear(typed).await? == Next::Leave {
                        break;
                    }
                    if std::mem::take(&mut rests) {
                        rest = self.rest();
                    }
                }
                // Behind the events: everything it wrote has been shown.
                state = &mut rest => {
                    (rest, rests) = (std::future::pending().boxed(), true);
                    if self.rested(state?).await? == Next::Leave {
                        break;
                    }
                }
                _ = ticks.tick(), if live => {
                    if self.asking.is_none() {
                        self.screen.tick();
                    }
                }
            }
        }
        self.screen.end();
        self.screen.clear();
        Ok(self.orchestrator.task(self.task_id).await?)
    }

    /// Resolves when nobody works on the task.
    fn rest(&self) -> BoxFuture<'static, Result<TaskState, OrchestratorError>> {
        let (orchestrator, task_id) = (self.orchestrator.clone(), self.task_id.clone());
        async move { orchestrator.wait(&task_id).await }.boxed()
    }

    fn cancel(&self) -> JoinSet<()> {
        let (orchestrator, task_id) = (self.orchestrator.clone(), self.task_id.clone());
        let mut canceling = JoinSet::new();
        canceling.spawn(async move { drop(orchestrator.cancel(&task_id).await) });
        canceling
    }

    /// The task ended, or waits for somebody.
    async fn rested(&mut self, state: TaskState) -> Result<Next, Failure> {
        // The follower sees the end.
        if state.status != TaskStatus::InputRequired {
            return Ok(Next::GoOn);
        }
        let asks = state.waiting_for == Some(WaitingFor::Approval);
        if !asks || !self.keyboard.is_there() {
            return Ok(Next::Leave);
        }
        if self.asking.is_some() {
            return Ok(Next::GoOn);
        }
        self.ask_next().await
    }

    /// Asks about the next call that somebody has to be asked about.
    async fn ask_next(&mut self) -> Result<Next, Failure> {
        let pending = self.orchestrator.approvals(WhichApprovals::Pending).await?;
        self.asking = pending.into_iter().find(|approval| approval.task_id == *self.task_id);
        if let Some(approval) = &self.asking {
            let arguments = shown(approval.arguments.as_str());
            let question = format!(
                "? {} {}\n  {}\n  allow? [y]es once, [t]his task, [a]lways: {}, [n]o, or no and why",
                visible(&approval.tool_name),
                visible(&arguments),
                visible(&approval.reason),
                visible(&approval.rule.0),
            );
            self.screen.note(&question);
        }
        Ok(Next::GoOn)
    }

    /// Somebody typed a line: an answer to what was asked, or something for the task to hear.
    async fn hear(&mut self, line: Option<String>) -> Result<Next, Failure> {
        match (line, self.asking.take()) {
            // Nobody is there any more: what was asked stays so.
            (None, Some(_)) => Ok(Next::Leave),
            (None, None) => Ok(Next::GoOn),
            (Some(line), Some(approval)) if line.trim().starts_with('/') => {
                self.asking = Some(approval);
                self.steer(line.trim()).await
            }
            (Some(line), Some(approval)) => self.answer(line.trim(), approval).await,
            (Some(line), None) => self.steer(line.trim()).await,
        }
    }

    async fn answer(&mut self, line: &str, approval: Approval) -> Result<Next, Failure> {
        let (decision, comment) = match line.to_ascii_lowercase().as_str() {
            "y" | "yes" => (Decision::AllowOnce, None),
            "t" | "task" => (Decision::AllowTask, None),
            "a" | "always" => (Decision::AllowAlways, None),
            "n" | "no" => (Decision::Deny, None),
            "" => {
                self.asking = Some(approval);
                self.screen.note("  y, t, a, or n");
                return Ok(Next::GoOn);
            }
            _ => (Decision::Deny, Some(line.to_owned())),
        };
        let by = "the terminal";
        let decided = self.orchestrator.decide(&approval.approval_id, decision, by, comment).await;
        match decided {
            Ok(()) | Err(OrchestratorError::Decided { .. }) => self.ask_next().await,
            Err(error @ OrchestratorError::NotRemembered { .. }) => {
                self.screen.note(&format!("  {error}"));
                self.asking = Some(approval);
                Ok(Next::GoOn)
            }
            Err(error) => Err(error.into()),
        }
    }

    async fn steer(&mut self, line: &str) -> Result<Next, Failure> {
        match line {
            "" => {}
            "/cancel" => drop(self.orchestrator.cancel(self.task_id).await),
            "/pause" => {
                self.orchestrator.pause(self.task_id).await?;
                self.screen.note("it rests at the next safe point");
            }
            _ if line.starts_with('/') => {
                self.screen.note("/pause, /cancel, or anything else for the model to hear");
            }
            _ => {
                let said = UserMessage::text(line, SystemClock.now());
                match self.orchestrator.send(self.task_id, said, HandlingMode::Steer).await {
                    Ok(_) => self.screen.note("it hears that at the next safe point"),
                    // Too late: the end is about to be shown.
                    Err(OrchestratorError::Ended { .. }) => {}
                    Err(error) => self.screen.note(&error.to_string()),
                }
            }
        }
        Ok(Next::GoOn)
    }
}

/// Arguments on one line, and how much of them is not shown: nobody should allow what they cannot
/// see.
fn shown(arguments: &str) -> String {
    let shown: String = arguments.chars().take(ARGUMENTS_CHARS_MAX).collect();
    let left = arguments.chars().count().saturating_sub(ARGUMENTS_CHARS_MAX);
    let shown = shown.replace(['\n', '\r'], " ");
    if left == 0 {
        return shown;
    }
    format!("{shown} … AND {left} MORE CHARACTERS: see `antiphon approvals list --json`")
}

/// Whether to go on watching.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    GoOn,
    Leave,
}
