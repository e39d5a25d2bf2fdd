//! Watches a task and its descendants on the terminal. Lines the user types steer the task or answer
//! approvals of the task and its descendants.
//!
//! Only the text of the watched task is shown as the answer; descendants are shown in notes. Watching
//! ends when the task has ended, or when it is suspended and the user is not present to resume it.

mod approvals;
mod steering;

use std::num::NonZeroUsize;
use std::ops::Deref;
use std::time::{Duration, Instant};

use antiphon_client::ClientError;
use antiphon_core::port::{Read, TaskQuery, TaskSelector};
use antiphon_core::{Approval, Event, EventBody, Position, Seq, TaskId, TaskStatus};
use antiphon_process::{AttachedTask, Connection, TaskStream, TaskStreamEnd, TaskStreamItem};
use antiphon_project::saved_session;
use antiphon_runtime::{Delta, Orchestrator, TaskState, Totals};
use antiphon_view::{DeferredOutput, Descendants, Note, TaskTree};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use steering::Order;
use tokio::task::JoinSet;

use crate::failure::{Exit, Failure};
use crate::keyboard::Keyboard;
use crate::screen::Screen;
use crate::stop_signal::{COPY_WITHIN, Interrupts};

/// How often the status line is drawn.
const TICK: Duration = Duration::from_millis(100);

/// Events that are read from the journal at a time.
const PAGE: NonZeroUsize = NonZeroUsize::new(1000).unwrap();

/// A task to watch, and where.
pub(crate) struct Watch<'a, 'p> {
    pub(crate) attachment: &'a mut AttachedTask<'p>,
    pub(crate) task_id: &'a TaskId,
    /// The task without a parent that it belongs to.
    pub(crate) root: &'a TaskId,
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

impl Watch<'_, '_> {
    /// Shows the task from `after` on until it ends, or is suspended with no user present. Ctrl-C
    /// interrupts it; a second one returns at once.
    pub(crate) async fn run(self, after: WatchStart) -> Result<WatchResult, Failure> {
        let mut descendants = Descendants::new(self.task_id.clone());
        let position = match after {
            WatchStart::Creation(position) => position,
            WatchStart::Resumed(position) => {
                let reader = self.attachment.connection().reader();
                descendants.add_existing(&read_tree(reader, self.task_id).await?);
                position
            }
        };
        let feed = self.attachment.stream(self.root, position);
        let suspended = suspended(self.attachment.connection(), self.task_id);
        let mut session = WatchSession {
            watch: self,
            descendants,
            deferred: DeferredOutput::default(),
            suspended,
            is_suspended: false,
            has_begun: false,
            position,
            seen: Seq(0),
            unconfirmed: None,
        };
        session.run(feed).await?;
        session.finish().await
    }
}

/// Where watching begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WatchStart {
    /// Before the creation of the task.
    Creation(Position),
    /// Behind what was shown before the task was resumed.
    Resumed(Position),
}

/// A task while it is watched.
struct WatchSession<'a, 'p> {
    watch: Watch<'a, 'p>,
    descendants: Descendants,
    deferred: DeferredOutput,
    /// Resolves when the task has ended or is suspended.
    suspended: BoxFuture<'static, Result<TaskState, Failure>>,
    /// `suspended` has resolved.
    is_suspended: bool,
    /// An event of the task was shown: in JSON no delta precedes the first event.
    has_begun: bool,
    /// The last event that was read.
    position: Position,
    /// The last event of the task that was shown.
    seen: Seq,
    /// An order that the owner did not confirm before it ended: the next one gets it.
    unconfirmed: Option<Order>,
}

fn taken_by_server() -> TaskStreamEnd {
    let reason = "a server has taken the journal".to_owned();
    TaskStreamEnd::OwnerLost(ClientError::StreamLost { reason })
}

impl WatchSession<'_, '_> {
    async fn run(&mut self, mut feed: TaskStream) -> Result<(), Failure> {
        let mut interrupts = Interrupts::catch()?;
        let mut ticks = tokio::time::interval(TICK);
        let mut interrupting = JoinSet::new();
        let mut interrupted_at: Option<Instant> = None;
        let mut handing_over = JoinSet::new();
        let has_status_line = self.watch.screen.has_status_line();
        loop {
            let next = tokio::select! {
                // Deltas before the event that completes their answer.
                biased;
                () = interrupts.received() => match interrupted_at {
                    Some(at) if at.elapsed() < COPY_WITHIN => Next::Continue,
                    Some(_) => return Err(self.end_at_once().await),
                    None => {
                        interrupted_at = Some(Instant::now());
                        self.interrupt(&mut interrupting);
                        Next::Continue
                    }
                },
                item = feed.next(self.seen) => match item {
                    Ok(TaskStreamItem::Event(event)) => self.event(&event).await?,
                    Ok(TaskStreamItem::Delta(delta)) => self.delta(delta)?,
                    Ok(TaskStreamItem::Missed(count)) => {
                        self.watch.screen.missed(self.watch.task_id, count)?;
                        Next::Continue
                    }
                    Err(end) => self.find_owner(end, &mut feed).await?,
                },
                typed = self.watch.keyboard.line() => {
                    let next = self.typed(typed).await?;
                    self.watch_suspension();
                    next
                }
                state = &mut self.suspended => {
                    self.suspended = std::future::pending().boxed();
                    // An error while handing over: it stopped for the server, and other calls still run here.
                    self.is_suspended = state.is_ok() || handing_over.is_empty();
                    if self.is_suspended { self.on_rest(state, &mut feed).await? } else { Next::Continue }
                }
                Some(_) = interrupting.join_next() => self.catch_up().await.map(|_| Next::Stop)?,
                () = self.watch.attachment.asked_to_leave(), if handing_over.is_empty() => {
                    handing_over.spawn(self.watch.attachment.hand_over());
                    Next::Continue
                }
                Some(_) = handing_over.join_next() => {
                    // Both hold the journal.
                    (feed, self.suspended) = (TaskStream::Nothing, std::future::pending().boxed());
                    self.watch.attachment.leave().await;
                    self.find_owner(taken_by_server(), &mut feed).await?
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
        if interrupting.is_empty() {
            return Ok(());
        }
        tokio::select! {
            () = interrupts.received() => Err(self.end_at_once().await),
            // The tasks below were interrupted after it.
            _ = interrupting.join_next() => self.catch_up().await.map(drop),
        }
    }

    /// The user wants the end now. Other processes' calls go on, if this process runs any; otherwise the processes
    /// of its tools end with it.
    async fn end_at_once(&mut self) -> Failure {
        let attachment = &mut *self.watch.attachment;
        if !attachment.works_for_others().await {
            crate::keyboard::exit_now(130);
        }
        attachment.ends_at_once = true;
        Failure::interrupted()
    }

    /// The task has ended or is suspended, or its owner cannot say so any more.
    async fn on_rest(
        &mut self,
        state: Result<TaskState, Failure>,
        feed: &mut TaskStream,
    ) -> Result<Next, Failure> {
        let state = match state {
            Ok(state) => state,
            Err(failure)
                if failure.exit == Exit::Unavailable && !self.watch.attachment.is_owner() =>
            {
                let reason = failure.message;
                return self
                    .find_owner(TaskStreamEnd::OwnerLost(ClientError::StreamLost { reason }), feed)
                    .await;
            }
            Err(failure) => return Err(failure),
        };
        match self.catch_up().await? {
            Next::Continue => self.on_suspended(&state).await,
            Next::Stop => Ok(Next::Stop),
        }
    }

    /// Goes on after the owner of the journal has ended: with the next one, or as the next one. No event is shown
    /// twice, and none is left out.
    async fn find_owner(
        &mut self,
        end: TaskStreamEnd,
        feed: &mut TaskStream,
    ) -> Result<Next, Failure> {
        match end {
            TaskStreamEnd::Unreadable(reason) => return Err(Failure::unavailable(reason)),
            TaskStreamEnd::OwnerLost(error) => {
                tracing::debug!(%error, "looks for the owner of the journal");
            }
        }
        self.order_again().await?;
        if self.watch.attachment.attach_again(self.watch.task_id).await?
            && !self.watch.screen.is_json()
        {
            self.watch
                .screen
                .note("the process that ran the tasks of this project has ended; this one goes on");
        }
        *feed = self.watch.attachment.stream(self.watch.root, self.position);
        self.suspended = suspended(self.watch.attachment.connection(), self.watch.task_id);
        self.is_suspended = false;
        Ok(Next::Continue)
    }

    /// Shows all events up to the head of the journal.
    async fn catch_up(&mut self) -> Result<Next, Failure> {
        let reader = self.watch.attachment.connection().reader().clone();
        let head = reader.head().await?;
        while self.position < head {
            let read = Read { task_id: None, after: self.position, limit: PAGE };
            let page = reader.read(read).await?;
            for event in &page.events {
                if self.event(event).await? == Next::Stop {
                    return Ok(Next::Stop);
                }
            }
            self.position = self.position.max(page.next);
        }
        Ok(Next::Continue)
    }

    fn delta(&mut self, delta: Delta) -> Result<Next, Failure> {
        let top = self.watch.task_id;
        if delta.task_id == *top && (self.has_begun || !self.watch.screen.is_json()) {
            self.watch.screen.delta(&delta)?;
        } else if !self.watch.screen.is_json() {
            // Text of descendants is not shown.
        } else if self.descendants.contains(&delta.task_id) {
            self.watch.screen.delta(&delta)?;
        } else if let Some(count) = self.deferred.push_delta(delta) {
            self.watch.screen.missed(top, count)?;
        }
        Ok(Next::Continue)
    }

    async fn event(&mut self, event: &Event) -> Result<Next, Failure> {
        if event.position <= self.position {
            // It was shown before.
            return Ok(Next::Continue);
        }
        self.position = event.position;
        if event.task_id == *self.watch.task_id {
            self.seen = event.seq;
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
            self.suspended = suspended(self.watch.attachment.connection(), self.watch.task_id);
        }
    }

    fn interrupt(&self, interrupting: &mut JoinSet<()>) {
        let connection = self.watch.attachment.connection().clone();
        let task_id = self.watch.task_id.clone();
        interrupting.spawn(async move { drop(connection.interrupt(&task_id).await) });
    }

    /// Shows the rest, and reads the state of the task.
    async fn finish(mut self) -> Result<WatchResult, Failure> {
        self.watch.asking = None;
        self.show_deferred_notes();
        self.watch.screen.finish();
        let Watch { attachment, task_id, screen, .. } = &mut self.watch;
        let reader = attachment.connection().reader();
        let state = saved_session::state(reader, task_id).await?;
        let tree = read_tree(reader, task_id).await?;
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

/// A task and its descendants, or the task alone when its tree is too large.
async fn read_tree(orchestrator: &Orchestrator, task_id: &TaskId) -> Result<TaskTree, Failure> {
    let limit = NonZeroUsize::MIN;
    let one = TaskQuery { which: TaskSelector::One(task_id.clone()), limit };
    let missing = || Failure::failed(format!("task {task_id} is no longer in the journal"));
    let one = orchestrator.tasks(one).await?.into_iter().next().ok_or_else(missing)?;
    let all = orchestrator.tasks(TaskTree::query(&one.root)).await?;
    TaskTree::new(task_id, all).or_else(|| TaskTree::new(task_id, vec![one])).ok_or_else(missing)
}

/// Resolves when the task has ended, or when neither it nor a descendant it waits for runs.
fn suspended(
    connection: &Connection,
    task_id: &TaskId,
) -> BoxFuture<'static, Result<TaskState, Failure>> {
    let (connection, task_id) = (connection.clone(), task_id.clone());
    async move { Ok(connection.wait(&task_id).await?) }.boxed()
}

/// Whether watching continues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    Continue,
    Stop,
}
