//! Watches a task and its descendants on the terminal. Lines the user types steer the task or answer
//! approvals of the task and its descendants.
//!
//! Only the text of the watched task is shown as the answer; descendants are shown in notes. Watching
//! ends when the task has ended, or when it is suspended and the user is not present to resume it.

mod approvals;
pub(crate) mod outcome;
pub(crate) mod screen;

use std::time::{Duration, Instant};

use antiphon_core::{Approval, Event, EventBody, Position, TaskId, TaskStatus};
use antiphon_process::{AttachedTask, FailedInterrupt, WatchResult, WatchedItem, WatchedTask};
use antiphon_runtime::Delta;
use antiphon_view::{DeferredOutput, Descendants, Note};
use tokio::task::{JoinError, JoinSet};

use crate::failure::Failure;
use crate::keyboard::{self, Keyboard};
use crate::screen::Screen;
use crate::stop_signal::{COPY_WITHIN, Interrupts};
use crate::suspension::{Asked, Suspension};
use crate::terminal;
use crate::terminal_notice::TerminalNotices;

/// How often the status line is drawn.
const TICK: Duration = Duration::from_millis(100);

/// How long owners are asked to interrupt the task, one after the other.
const INTERRUPT_WAIT: Duration = Duration::from_secs(30);

/// What became of an interrupt.
type Interrupted = Result<Result<(), FailedInterrupt>, JoinError>;

/// How a task is watched.
pub(crate) struct Watch<'a> {
    pub(crate) task_id: &'a TaskId,
    /// The task without a parent that it belongs to.
    pub(crate) root: &'a TaskId,
    pub(crate) screen: Screen,
    pub(crate) keyboard: &'a mut Keyboard,
    /// Whether the user is asked for approvals. Otherwise another command decides them.
    pub(crate) asks: bool,
    pub(crate) notices: TerminalNotices,
}

impl Watch<'_> {
    /// Shows the task from `after` on until it ends, or is suspended with no user present. Ctrl-C
    /// interrupts it; a second one returns at once.
    pub(crate) async fn run(
        self,
        attachment: &mut AttachedTask<'_>,
        after: WatchStart,
    ) -> Result<WatchResult, Failure> {
        let Self { task_id, root, screen, keyboard, asks, notices } = self;
        let (WatchStart::Creation(position) | WatchStart::Resumed(position)) = after;
        let task = WatchedTask::new(attachment, task_id.clone(), root.clone(), position);
        let mut descendants = Descendants::new(task_id.clone());
        if matches!(after, WatchStart::Resumed(_)) {
            descendants.add_existing(&task.tree().await?);
        }
        let mut session = WatchSession {
            task,
            screen,
            keyboard,
            asks,
            notices,
            asking: None,
            asked_at: Instant::now(),
            answered_at: None,
            descendants,
            deferred: DeferredOutput::default(),
            has_begun: false,
        };
        session.run().await?;
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
    task: WatchedTask<'a, 'p>,
    screen: Screen,
    keyboard: &'a mut Keyboard,
    asks: bool,
    notices: TerminalNotices,
    /// The approval the user is asked for now.
    asking: Option<Approval>,
    /// When the question was shown: a line that was begun before does not answer it.
    asked_at: Instant,
    /// When the user answered a question last.
    answered_at: Option<Instant>,
    descendants: Descendants,
    deferred: DeferredOutput,
    /// An event of the task was shown: in JSON no delta precedes the first event.
    has_begun: bool,
}

impl WatchSession<'_, '_> {
    async fn run(&mut self) -> Result<(), Failure> {
        let mut interrupts = Interrupts::catch()?;
        let mut suspension = Suspension::catch()?;
        let mut ticks = tokio::time::interval(TICK);
        let mut interrupting = JoinSet::new();
        let mut interrupted_at: Option<Instant> = None;
        let has_status_line = self.screen.has_status_line();
        loop {
            let next = tokio::select! {
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
                asked = suspension.asked() => {
                    self.suspend(asked, &mut suspension);
                    Next::Continue
                }
                typed = self.keyboard.typed() => self.typed(typed).await?,
                change = self.task.changed() => {
                    let items = self.task.advance(change).await?;
                    self.show(items).await?
                }
                Some(done) = interrupting.join_next() => {
                    self.on_interrupted(done, interrupted_at, &mut interrupting).await?
                }
                _ = ticks.tick(), if has_status_line => {
                    self.screen.tick()?;
                    Next::Continue
                }
            };
            if next == Next::Stop {
                break;
            }
        }
        // The tasks below are interrupted after it.
        loop {
            tokio::select! {
                () = interrupts.received() => return Err(self.end_at_once().await),
                done = interrupting.join_next() => match done {
                    None => return Ok(()),
                    Some(done) => {
                        self.on_interrupted(done, interrupted_at, &mut interrupting).await?;
                    }
                }
            }
        }
    }

    /// The owner has interrupted the task, or has ended meanwhile: then the next one is asked.
    async fn on_interrupted(
        &mut self,
        done: Interrupted,
        since: Option<Instant>,
        interrupting: &mut JoinSet<Result<(), FailedInterrupt>>,
    ) -> Result<Next, Failure> {
        if let Ok(Err(failed)) = done
            && since.is_some_and(|since| since.elapsed() < INTERRUPT_WAIT)
            && let Some(items) = self.task.interrupt_again(&failed).await?
        {
            self.interrupt(interrupting);
            return self.show(items).await;
        }
        self.catch_up().await?;
        Ok(Next::Stop)
    }

    /// Gives the terminal to the shell until the command is continued, or takes it again.
    fn suspend(&mut self, asked: Asked, suspension: &mut Suspension) {
        match asked {
            Asked::Suspend => {
                self.screen.clear();
                keyboard::give_back();
                suspension.stop();
            }
            Asked::Continue => {}
        }
        self.keyboard.take_again();
        if terminal::may_draw() {
            self.screen.redraw();
        }
    }

    /// The user wants the end now. Other processes' calls go on, if this process runs any; otherwise the processes
    /// of its tools end with it.
    async fn end_at_once(&mut self) -> Failure {
        let attachment = self.task.attachment();
        if !attachment.works_for_others().await {
            self.screen.clear();
            keyboard::exit_now(130);
        }
        attachment.ends_at_once = true;
        Failure::interrupted()
    }

    /// Shows all events up to the head of the journal, or to the end of the task.
    async fn catch_up(&mut self) -> Result<(), Failure> {
        loop {
            let items = self.task.catch_up().await?;
            if items.is_empty() || self.show(items).await? == Next::Stop {
                return Ok(());
            }
        }
    }

    async fn show(&mut self, items: Vec<WatchedItem>) -> Result<Next, Failure> {
        for item in items {
            let next = match item {
                WatchedItem::Event(event) => self.event(&event).await?,
                WatchedItem::Delta(delta) => self.delta(delta)?,
                WatchedItem::Missed(count) => {
                    self.screen.missed(self.task.task_id(), count)?;
                    Next::Continue
                }
                WatchedItem::Note(text) => {
                    self.screen.note(&text);
                    Next::Continue
                }
                WatchedItem::Resting(state) => self.on_rest(&state).await?,
                WatchedItem::OwnerChanged(change) => {
                    if !self.screen.is_json() {
                        self.screen.note(&change.text());
                    }
                    Next::Continue
                }
            };
            if next == Next::Stop {
                return Ok(Next::Stop);
            }
        }
        Ok(Next::Continue)
    }

    fn delta(&mut self, delta: Delta) -> Result<Next, Failure> {
        let top = self.task.task_id();
        if delta.task_id == *top && (self.has_begun || !self.screen.is_json()) {
            self.screen.delta(&delta)?;
        } else if !self.screen.is_json() {
            // Text of descendants is not shown.
        } else if self.descendants.contains(&delta.task_id) {
            self.screen.delta(&delta)?;
        } else if let Some(count) = self.deferred.push_delta(delta) {
            self.screen.missed(top, count)?;
        }
        Ok(Next::Continue)
    }

    async fn event(&mut self, event: &Event) -> Result<Next, Failure> {
        let is_top = event.task_id == *self.task.task_id();
        if is_top {
            self.screen.event(event)?;
            self.descendants.apply_to_top(&event.body);
            self.has_begun = true;
            for delta in self.deferred.take_deltas(&event.task_id) {
                self.screen.delta(&delta)?;
            }
        } else if self.descendants.concerns(event) {
            self.descendant_event(event)?;
        } else {
            self.deferred.take_deltas(&event.task_id);
            return Ok(Next::Continue);
        }
        self.screen.set_waiting(self.descendants.waiting_text());
        if is_top && event.body.ends_task() {
            return Ok(Next::Stop);
        }
        self.track_approvals(event).await
    }

    fn descendant_event(&mut self, event: &Event) -> Result<(), Failure> {
        let notes = self.descendants.apply(event);
        if self.screen.is_json() {
            self.screen.event(event)?;
            for delta in self.deferred.take_deltas(&event.task_id) {
                self.screen.delta(&delta)?;
            }
            return Ok(());
        }
        if let EventBody::UsageRecorded(recorded) = &event.body {
            self.screen.add_usage(recorded);
        }
        for note in notes {
            self.note(note);
        }
        Ok(())
    }

    /// Shows a note, after the pending question if there is one: the question stays in sight.
    fn note(&mut self, note: Note) {
        if self.asking.is_some() {
            self.deferred.push_note(note);
        } else {
            self.screen.note_about_descendant(&note);
        }
    }

    fn show_deferred_notes(&mut self) {
        for note in self.deferred.take_notes() {
            self.screen.note_about_descendant(&note);
        }
    }

    fn interrupt(&self, interrupting: &mut JoinSet<Result<(), FailedInterrupt>>) {
        interrupting.spawn(self.task.interrupt());
    }

    /// Shows the rest, and reads the state of the task.
    async fn finish(mut self) -> Result<WatchResult, Failure> {
        self.asking = None;
        self.show_deferred_notes();
        self.screen.finish();
        let task_id = self.task.task_id();
        let result = self.task.result().await?;
        let status = result.state.status;
        if status.is_terminal() {
            self.notices.done();
        }
        if status.is_terminal() && result.unfinished > 0 && !self.screen.is_json() {
            let tasks = terminal::count(result.unfinished as u64, "task");
            self.screen.note(&format!(
                "unfinished below it: {tasks}; see `antiphon tasks tree {task_id}`, resume with \
                 `antiphon tasks resume`"
            ));
        }
        // The task waits for a descendant that needs an approval.
        if matches!(status, TaskStatus::Pending | TaskStatus::Running)
            && let Some(approval) = self.task.pending_approvals(&self.descendants).await?.first()
        {
            return Err(Failure::refused(format!(
                "{} waits for an answer: see `antiphon approvals list`, answer with `antiphon \
                 approvals allow`, `answer` or `deny`, then `antiphon run --resume {task_id}`",
                self.task_name(approval),
            )));
        }
        Ok(result)
    }
}

/// Whether watching continues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    Continue,
    Stop,
}
