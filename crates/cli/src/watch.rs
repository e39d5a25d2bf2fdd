//! Watching a task with everything it dispatched, and talking to it: typed lines steer it, and
//! answer what it or any task below it asks.
//!
//! Only the watched task's own text is shown as the answer; the tasks below it are told of in notes.
//! It ends when the task has ended, or when nothing goes on without somebody who is not here.

mod below;
mod descendant;
mod family;
mod held;
mod member;
mod note;
mod questions;

use std::ops::Deref;
use std::time::Duration;

use antiphon_core::port::{Clock, SystemClock, TaskQuery, TaskSelector};
use antiphon_core::{
    Approval, Event, EventBody, HandlingMode, Position, TaskId, TaskStatus, UserMessage,
};
use antiphon_runtime::{Delta, Follower, Orchestrator, OrchestratorError, TaskState, Totals};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;
use tokio::task::JoinSet;

use below::Below;
pub(crate) use family::{Family, Sum, TASKS_MAX};
use held::Held;
pub(crate) use member::{Detail, Member};
pub(crate) use note::{Note, Tone};

use crate::failure::Failure;
use crate::keyboard::Keyboard;
use crate::screen::Screen;

/// How often the line at the bottom is drawn.
const TICK: Duration = Duration::from_millis(100);

/// A task that is watched.
pub(crate) struct Watch<'a> {
    pub(crate) orchestrator: &'a Orchestrator,
    pub(crate) task_id: &'a TaskId,
    pub(crate) screen: Screen,
    pub(crate) keyboard: Keyboard,
    /// What somebody is being asked.
    pub(crate) asking: Option<Approval>,
}

/// A task that was watched, as it is now.
pub(crate) struct Watched {
    state: TaskState,
    /// What it took with everything below it.
    pub(crate) totals: Totals,
    /// Tasks below it.
    pub(crate) below: usize,
}

impl Deref for Watched {
    type Target = TaskState;

    fn deref(&self) -> &TaskState {
        &self.state
    }
}

impl Watch<'_> {
    /// Shows a task from `after` on until it ends or has to wait for somebody who is not here.
    /// Ctrl-C cancels it; a second one ends the program at once. `deltas` must have been asked for
    /// before the task was begun.
    pub(crate) async fn run(
        self,
        after: Position,
        deltas: broadcast::Receiver<Delta>,
    ) -> Result<Watched, Failure> {
        let mut below = Below::new(self.task_id.clone());
        let begins = if after == Position(0) {
            creation(self.orchestrator, self.task_id).await?
        } else {
            below.already(&family(self.orchestrator, self.task_id).await?);
            after
        };
        let follower = self.orchestrator.follow(None, begins);
        let rest = rest(self.orchestrator, self.task_id);
        let mut watching = Watching {
            watch: self,
            below,
            held: Held::default(),
            rest,
            rests: false,
            begun: false,
        };
        watching.until_it_rests(follower, deltas).await?;
        watching.end().await
    }
}

/// A task that is being watched, and what is known of those below it.
struct Watching<'a> {
    watch: Watch<'a>,
    below: Below,
    held: Held,
    /// Resolves when nothing goes on without somebody.
    rest: BoxFuture<'static, Result<TaskState, OrchestratorError>>,
    /// It has.
    rests: bool,
    /// An event of the task was shown: in JSON, none of its deltas comes before.
    begun: bool,
}

impl Watching<'_> {
    async fn until_it_rests(
        &mut self,
        mut follower: Follower,
        mut deltas: broadcast::Receiver<Delta>,
    ) -> Result<(), Failure> {
        let mut interrupts = signal(SignalKind::interrupt())
            .map_err(|error| Failure::failed(format!("cannot listen for Ctrl-C: {error}")))?;
        let mut ticks = tokio::time::interval(TICK);
        let mut canceling: Option<JoinSet<()>> = None;
        let live = self.watch.screen.is_live();
        loop {
            let next = tokio::select! {
                // What is said comes before what is written of it.
                biased;
                _ = interrupts.recv() => {
                    if canceling.is_some() {
                        // At once: what its tools started ends with this process.
                        std::process::exit(130);
                    }
                    canceling = Some(self.cancel());
                    Next::GoOn
                }
                delta = deltas.recv() => self.delta(delta)?,
                event = follower.next() => {
                    let event = event.map_err(|error| Failure::unavailable(error.to_string()))?;
                    self.event(&event).await?
                }
                typed = self.watch.keyboard.line() => {
                    let next = self.hear(typed).await?;
                    self.watch_rest();
                    next
                }
                state = &mut self.rest => {
                    (self.rest, self.rests) = (std::future::pending().boxed(), true);
                    let state = state?;
                    match self.catch_up(&mut follower).await? {
                        Next::GoOn => self.rested(&state).await?,
                        Next::Leave => Next::Leave,
                    }
                }
                _ = ticks.tick(), if live => {
                    if self.watch.asking.is_none() {
                        self.watch.screen.tick();
                    }
                    Next::GoOn
                }
            };
            if next == Next::Leave {
                break;
            }
        }
        // The top ends first; what is below it is still being canceled.
        if let Some(canceling) = &mut canceling {
            tokio::select! {
                _ = interrupts.recv() => std::process::exit(130),
                _ = canceling.join_next() => {}
            }
        }
        Ok(())
    }

    /// Shows everything that was written until now.
    async fn catch_up(&mut self, follower: &mut Follower) -> Result<Next, Failure> {
        let head = self.watch.orchestrator.head().await?;
        while follower.position() < head {
            let event = follower.next().await;
            let event = event.map_err(|error| Failure::unavailable(error.to_string()))?;
            if self.event(&event).await? == Next::Leave {
                return Ok(Next::Leave);
            }
        }
        Ok(Next::GoOn)
    }

    fn delta(&mut self, delta: Result<Delta, RecvError>) -> Result<Next, Failure> {
        let top = self.watch.task_id;
        match delta {
            Ok(delta) if delta.task_id == *top && (self.begun || !self.watch.screen.is_json()) => {
                self.watch.screen.delta(&delta)?;
            }
            // Only the task's own text is the answer.
            Ok(_) if !self.watch.screen.is_json() => {}
            Ok(delta) if self.below.contains(&delta.task_id) => self.watch.screen.delta(&delta)?,
            Ok(delta) => {
                if let Some(count) = self.held.keep(delta) {
                    self.watch.screen.missed(top, count)?;
                }
            }
            // What they said is in the journal, whole.
            Err(RecvError::Lagged(count)) => self.watch.screen.missed(top, count)?,
            Err(RecvError::Closed) => return Err(Failure::failed("the orchestrator has ended")),
        }
        Ok(Next::GoOn)
    }

    async fn event(&mut self, event: &Event) -> Result<Next, Failure> {
        if event.task_id == *self.watch.task_id {
            self.watch.screen.event(event)?;
            self.below.top_did(&event.body);
            self.begun = true;
            for delta in self.held.take(&event.task_id) {
                self.watch.screen.delta(&delta)?;
            }
        } else if self.below.concerns(event) {
            self.event_below(event)?;
        } else {
            self.held.take(&event.task_id);
            return Ok(Next::GoOn);
        }
        self.watch.screen.waiting(self.below.waiting());
        if event.task_id == *self.watch.task_id && event.body.ends_task() {
            return Ok(Next::Leave);
        }
        self.mind(event).await
    }

    fn event_below(&mut self, event: &Event) -> Result<(), Failure> {
        let notes = self.below.hear(event);
        if self.watch.screen.is_json() {
            self.watch.screen.event(event)?;
            for delta in self.held.take(&event.task_id) {
                self.watch.screen.delta(&delta)?;
            }
            return Ok(());
        }
        if let EventBody::UsageRecorded(recorded) = &event.body {
            self.watch.screen.spend(recorded);
        }
        for note in notes {
            self.tell(note);
        }
        Ok(())
    }

    /// Notes wait while somebody is asked: the question stays in sight.
    fn tell(&mut self, note: Note) {
        if self.watch.asking.is_some() {
            self.held.keep_note(note);
        } else {
            self.watch.screen.note_below(&note);
        }
    }

    fn tell_held(&mut self) {
        for note in self.held.take_notes() {
            self.watch.screen.note_below(&note);
        }
    }

    /// Has it told again when nothing goes on without somebody.
    fn watch_rest(&mut self) {
        if std::mem::take(&mut self.rests) {
            self.rest = rest(self.watch.orchestrator, self.watch.task_id);
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
                screen.note("it rests at the next safe point");
            }
            _ if line.starts_with('/') => {
                screen.note("/pause, /cancel, or anything else for the model to hear");
            }
            _ => {
                let said = UserMessage::text(line, SystemClock.now());
                match orchestrator.send(task_id, said, HandlingMode::Steer).await {
                    Ok(_) => screen.note("it hears that at the next safe point"),
                    // Too late: the end is about to be shown.
                    Err(OrchestratorError::Ended { .. }) => {}
                    Err(error) => screen.note(&error.to_string()),
                }
            }
        }
        Ok(Next::GoOn)
    }

    /// The task as it is now.
    async fn end(mut self) -> Result<Watched, Failure> {
        self.watch.asking = None;
        self.tell_held();
        self.watch.screen.end();
        self.watch.screen.clear();
        let Watch { orchestrator, task_id, screen, .. } = &mut self.watch;
        let state = orchestrator.task(task_id).await?;
        let family = family(orchestrator, task_id).await?;
        let unfinished = family.members().iter().skip(1);
        let unfinished =
            unfinished.filter(|member| !member.summary.status.is_terminal()).count() as u64;
        if state.status.is_terminal() && unfinished > 0 && !screen.is_json() {
            let tasks = crate::terminal::count(unfinished, "task");
            screen.note(&format!(
                "still to do below it: {tasks}; see `antiphon tasks tree {task_id}`, go on with \
                 `antiphon tasks resume`"
            ));
        }
        // A task below it asks, and it waits for that one.
        if matches!(state.status, TaskStatus::Pending | TaskStatus::Running)
            && let Some(asks) = self.pending().await?.first()
        {
            return Err(Failure::refused(format!(
                "{} waits for an answer: see `antiphon approvals list`, answer with `antiphon \
                 approvals allow` or `deny`, then `antiphon run --resume {}`",
                self.who(asks),
                self.watch.task_id
            )));
        }
        let totals = Totals::of(family.members().iter().map(|member| &member.summary));
        Ok(Watched { state, totals, below: family.members().len() - 1 })
    }
}

/// The place before a task was created.
async fn creation(orchestrator: &Orchestrator, task_id: &TaskId) -> Result<Position, Failure> {
    let first = orchestrator.follow(Some(task_id.clone()), Position(0)).next().await;
    let first = first.map_err(|error| Failure::unavailable(error.to_string()))?;
    Ok(Position(first.position.0.saturating_sub(1)))
}

/// A task and everything below it.
async fn family(orchestrator: &Orchestrator, task_id: &TaskId) -> Result<Family, Failure> {
    let limit = std::num::NonZeroUsize::MIN;
    let one = TaskQuery { which: TaskSelector::One(task_id.clone()), limit };
    let gone = || Failure::failed(format!("task {task_id} is not in the journal any more"));
    let one = orchestrator.tasks(one).await?.into_iter().next().ok_or_else(gone)?;
    let tree = orchestrator.tasks(Family::query(&one.root)).await?;
    // A tree that is larger than what is looked at: at least the task itself.
    Family::new(task_id, tree).or_else(|| Family::new(task_id, vec![one])).ok_or_else(gone)
}

/// Resolves when nobody works on the task, nor on anything it waits for.
fn rest(
    orchestrator: &Orchestrator,
    task_id: &TaskId,
) -> BoxFuture<'static, Result<TaskState, OrchestratorError>> {
    let (orchestrator, task_id) = (orchestrator.clone(), task_id.clone());
    async move { orchestrator.wait(&task_id).await }.boxed()
}

/// Whether to go on watching.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    GoOn,
    Leave,
}
