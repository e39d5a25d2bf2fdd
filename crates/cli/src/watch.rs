//! Watches a task and its descendants on the terminal. Lines the user types steer the task or answer
//! approvals of the task and its descendants.
//!
//! Only the text of the watched task is shown as the answer; descendants are shown in notes. Watching
//! ends when the task has ended, or when it is suspended and the user is not present to resume it.

mod approvals;

use std::ops::Deref;
use std::time::Duration;

use antiphon_core::port::{Clock, SystemClock, TaskQuery, TaskSelector};
use antiphon_core::{
    Approval, Event, EventBody, HandlingMode, Position, TaskId, TaskStatus, UserMessage,
};
use antiphon_runtime::{Delta, Follower, Orchestrator, OrchestratorError, TaskState, Totals};
use antiphon_view::{DeferredOutput, Descendants, Note, TaskTree};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;
use tokio::task::JoinSet;

use crate::failure::Failure;
use crate::keyboard::Keyboard;
use crate::screen::Screen;

/// How often the status line is drawn.
const TICK: Duration = Duration::from_millis(100);

/// A task to watch, and where.
pub(crate) struct Watch<'a> {
    pub(crate) orchestrator: &'a Orchestrator,
    pub(crate) task_id: &'a TaskId,
    pub(crate) screen: Screen,
    pub(crate) keyboard: Keyboard,
    /// Whether the user is asked for approvals. Otherwise another command decides them.
    pub(crate) asks: bool,
    /// The approval the user is asked for now.
    pub(crate) asking: Option<Approval>,
}

/// The state of a task after it was watched.
pub(crate) struct WatchResult {
    state: TaskState,
    /// What the task and its descendants spent.
    pub(crate) totals: Totals,
    /// The number of its descendants.
    pub(crate) descendants: usize,
}

impl Deref for WatchResult {
    type Target = TaskState;

    fn deref(&self) -> &TaskState {
        &self.state
    }
}

impl Watch<'_> {
    /// Shows the task from `after` on until it ends, or is suspended with no user present. Ctrl-C
    /// cancels it; a second one ends the program at once. The caller subscribes to `deltas` before it
    /// starts the task.
    pub(crate) async fn run(
        self,
        after: Position,
        deltas: broadcast::Receiver<Delta>,
    ) -> Result<WatchResult, Failure> {
        let mut descendants = Descendants::new(self.task_id.clone());
        let start = if after == Position(0) {
            creation(self.orchestrator, self.task_id).await?
        } else {
            descendants.add_existing(&read_tree(self.orchestrator, self.task_id).await?);
            after
        };
        let follower = self.orchestrator.follow(None, start);
        let suspended = suspended(self.orchestrator, self.task_id);
        let mut session = WatchSession {
            watch: self,
            descendants,
            deferred: DeferredOutput::default(),
            suspended,
            is_suspended: false,
            has_begun: false,
        };
        session.run(follower, deltas).await?;
        session.finish().await
    }
}

/// A task while it is watched.
struct WatchSession<'a> {
    watch: Watch<'a>,
    descendants: Descendants,
    deferred: DeferredOutput,
    /// Resolves when the task has ended or is suspended.
    suspended: BoxFuture<'static, Result<TaskState, OrchestratorError>>,
    /// `suspended` has resolved.
    is_suspended: bool,
    /// An event of the task was shown: in JSON no delta precedes the first event.
    has_begun: bool,
}

impl WatchSession<'_> {
    async fn run(
        &mut self,
        mut follower: Follower,
        mut deltas: broadcast::Receiver<Delta>,
    ) -> Result<(), Failure> {
        let mut interrupts = signal(SignalKind::interrupt())
            .map_err(|error| Failure::failed(format!("cannot listen for Ctrl-C: {error}")))?;
        let mut ticks = tokio::time::interval(TICK);
        let mut canceling: Option<JoinSet<()>> = None;
        let has_status_line = self.watch.screen.has_status_line();
        loop {
            let next = tokio::select! {
                // Deltas before the event that completes their answer.
                biased;
                _ = interrupts.recv() => {
                    if canceling.is_some() {
                        // At once: processes of its tools end with this process.
                        std::process::exit(130);
                    }
                    canceling = Some(self.cancel());
                    Next::Continue
                }
                delta = deltas.recv() => self.delta(delta)?,
                event = follower.next() => {
                    let event = event.map_err(|error| Failure::unavailable(error.to_string()))?;
                    self.event(&event).await?
                }
                typed = self.watch.keyboard.line() => {
                    let next = self.typed(typed).await?;
                    self.watch_suspension();
                    next
                }
                state = &mut self.suspended => {
                    (self.suspended, self.is_suspended) = (std::future::pending().boxed(), true);
                    let state = state?;
                    match self.catch_up(&mut follower).await? {
                        Next::Continue => self.on_suspended(&state).await?,
                        Next::Stop => Next::Stop,
                    }
                }
                _ = ticks.tick(), if has_status_line => {
                    if self.watch.asking.is_none() {
                        self.watch.screen.tick();
                    }
                    Next::Continue
                }
            };
            if next == Next::Stop {
                break;
            }
        }
        // The top ends first; its descendants are still being canceled.
        if let Some(canceling) = &mut canceling {
            tokio::select! {
                _ = interrupts.recv() => std::process::exit(130),
                _ = canceling.join_next() => {}
            }
        }
        Ok(())
    }

    /// Shows all events up to the head of the journal.
    async fn catch_up(&mut self, follower: &mut Follower) -> Result<Next, Failure> {
        let head = self.watch.orchestrator.head().await?;
        while follower.position() < head {
            let event = follower.next().await;
            let event = event.map_err(|error| Failure::unavailable(error.to_string()))?;
            if self.event(&event).await? == Next::Stop {
                return Ok(Next::Stop);
            }
        }
        Ok(Next::Continue)
    }

    fn delta(&mut self, delta: Result<Delta, RecvError>) -> Result<Next, Failure> {
        let top = self.watch.task_id;
        match delta {
            Ok(delta)
                if delta.task_id == *top && (self.has_begun || !self.watch.screen.is_json()) =>
            {
                self.watch.screen.delta(&delta)?;
            }
            // Text of descendants is not shown.
            Ok(_) if !self.watch.screen.is_json() => {}
            Ok(delta) if self.descendants.contains(&delta.task_id) => {
                self.watch.screen.delta(&delta)?;
            }
            Ok(delta) => {
                if let Some(count) = self.deferred.push_delta(delta) {
                    self.watch.screen.missed(top, count)?;
                }
            }
            // The journal has the complete text.
            Err(RecvError::Lagged(count)) => self.watch.screen.missed(top, count)?,
            Err(RecvError::Closed) => return Err(Failure::failed("the orchestrator has ended")),
        }
        Ok(Next::Continue)
    }

    async fn event(&mut self, event: &Event) -> Result<Next, Failure> {
        if event.task_id == *self.watch.task_id {
            self.watch.screen.event(event)?;
            self.descendants.apply_to_top(&event.body);
            self.has_begun = true;
            for delta in self.deferred.take_deltas(&event.task_id) {
                self.watch.screen.delta(&delta)?;
            }
        } else if self.descendants.concerns(event) {
            self.descendant_event(event)?;
        } else {
            self.deferred.take_deltas(&event.task_id);
            return Ok(Next::Continue);
        }
        self.watch.screen.set_waiting(self.descendants.waiting_text());
        if event.task_id == *self.watch.task_id && event.body.ends_task() {
            return Ok(Next::Stop);
        }
        self.track_approvals(event).await
    }

    fn descendant_event(&mut self, event: &Event) -> Result<(), Failure> {
        let notes = self.descendants.apply(event);
        if self.watch.screen.is_json() {
            self.watch.screen.event(event)?;
            for delta in self.deferred.take_deltas(&event.task_id) {
                self.watch.screen.delta(&delta)?;
            }
            return Ok(());
        }
        if let EventBody::UsageRecorded(recorded) = &event.body {
            self.watch.screen.add_usage(recorded);
        }
        for note in notes {
            self.note(note);
        }
        Ok(())
    }

    /// Shows a note, after the pending question if there is one: the question stays in sight.
    fn note(&mut self, note: Note) {
        if self.watch.asking.is_some() {
            self.deferred.push_note(note);
        } else {
            self.watch.screen.note_about_descendant(&note);
        }
    }

    fn show_deferred_notes(&mut self) {
        for note in self.deferred.take_notes() {
            self.watch.screen.note_about_descendant(&note);
        }
    }

    /// Waits for the next suspension: the task may have been resumed.
    fn watch_suspension(&mut self) {
        if std::mem::take(&mut self.is_suspended) {
            self.suspended = suspended(self.watch.orchestrator, self.watch.task_id);
        }
    }

    fn cancel(&self) -> JoinSet<()> {
        let (orchestrator, task_id) = (self.watch.orchestrator.clone(), self.watch.task_id.clone());
        let mut canceling = JoinSet::new();
        canceling.spawn(async move { drop(orchestrator.cancel(&task_id).await) });
        canceling
    }

    async fn steer(&mut self, line: &str) -> Result<Next, Failure> {
        let Watch { orchestrator, task_id, screen, .. } = &mut self.watch;
        match line {
            "" => {}
            "/cancel" => drop(orchestrator.cancel(task_id).await),
            "/pause" => {
                orchestrator.pause(task_id).await?;
                screen.note("Queued: the task pauses after the current step");
            }
            _ if line.starts_with('/') => {
                screen.note("Type /pause, /cancel, or a message for the agent");
            }
            _ => {
                let message = UserMessage::text(line, SystemClock.now());
                match orchestrator.send(task_id, message, HandlingMode::Steer).await {
                    Ok(_) => screen.note("Queued: the agent reads it after the current step"),
                    // Too late: the end is about to be shown.
                    Err(OrchestratorError::Ended { .. }) => {}
                    Err(error) => screen.note(&error.to_string()),
                }
            }
        }
        Ok(Next::Continue)
    }

    /// Shows the rest, and reads the state of the task.
    async fn finish(mut self) -> Result<WatchResult, Failure> {
        self.watch.asking = None;
        self.show_deferred_notes();
        self.watch.screen.finish();
        let Watch { orchestrator, task_id, screen, .. } = &mut self.watch;
        let state = orchestrator.task(task_id).await?;
        let tree = read_tree(orchestrator, task_id).await?;
        let descendants = tree.tasks().iter().skip(1);
        let unfinished =
            descendants.filter(|task| !task.summary.status.is_terminal()).count() as u64;
        if state.status.is_terminal() && unfinished > 0 && !screen.is_json() {
            let tasks = crate::terminal::count(unfinished, "task");
            screen.note(&format!(
                "unfinished below it: {tasks}; see `antiphon tasks tree {task_id}`, resume with \
                 `antiphon tasks resume`"
            ));
        }
        // The task waits for a descendant that needs an approval.
        if matches!(state.status, TaskStatus::Pending | TaskStatus::Running)
            && let Some(approval) = self.pending().await?.first()
        {
            return Err(Failure::refused(format!(
                "{} waits for an answer: see `antiphon approvals list`, answer with `antiphon \
                 approvals allow` or `deny`, then `antiphon run --resume {}`",
                self.task_name(approval),
                self.watch.task_id
            )));
        }
        let totals = Totals::of(tree.tasks().iter().map(|task| &task.summary));
        Ok(WatchResult { state, totals, descendants: tree.tasks().len() - 1 })
    }
}

/// The position before the creation of a task.
async fn creation(orchestrator: &Orchestrator, task_id: &TaskId) -> Result<Position, Failure> {
    let first = orchestrator.follow(Some(task_id.clone()), Position(0)).next().await;
    let first = first.map_err(|error| Failure::unavailable(error.to_string()))?;
    Ok(Position(first.position.0.saturating_sub(1)))
}

/// A task and its descendants, or the task alone when its tree is too large.
async fn read_tree(orchestrator: &Orchestrator, task_id: &TaskId) -> Result<TaskTree, Failure> {
    let limit = std::num::NonZeroUsize::MIN;
    let one = TaskQuery { which: TaskSelector::One(task_id.clone()), limit };
    let missing = || Failure::failed(format!("task {task_id} is no longer in the journal"));
    let one = orchestrator.tasks(one).await?.into_iter().next().ok_or_else(missing)?;
    let all = orchestrator.tasks(TaskTree::query(&one.root)).await?;
    TaskTree::new(task_id, all).or_else(|| TaskTree::new(task_id, vec![one])).ok_or_else(missing)
}

/// Resolves when the task has ended, or when neither it nor a descendant it waits for runs.
fn suspended(
    orchestrator: &Orchestrator,
    task_id: &TaskId,
) -> BoxFuture<'static, Result<TaskState, OrchestratorError>> {
    let (orchestrator, task_id) = (orchestrator.clone(), task_id.clone());
    async move { orchestrator.wait(&task_id).await }.boxed()
}

/// Whether watching continues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    Continue,
    Stop,
}
