//! A task that a front end shows: its events in order and each once, with live deltas between them, whichever process
//! owns the journal meanwhile.
//!
//! A front end waits for [`WatchedTask::changed`] beside its keyboard, and gives what it returns to
//! [`WatchedTask::advance`], which says what to show.

use std::num::NonZeroUsize;
use std::time::Duration;

use antiphon_client::ClientError;
use antiphon_core::port::{ApprovalSelector, Read, TaskQuery, TaskSelector};
use antiphon_core::{Approval, Event, HandlingMode, Position, Seq, TaskId};
use antiphon_project::error::ProjectError;
use antiphon_project::saved_session;
use antiphon_runtime::{Delta, Orchestrator, TaskState, Totals};
use antiphon_view::{Descendants, TaskTree};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::task::JoinSet;
use uuid::Uuid;

use crate::attached_task::{AttachedTask, NextOwner};
use crate::connection::{Connection, EndingOwner};
use crate::owner_change::OwnerChange;
use crate::task_stream::{TaskStream, TaskStreamEnd, TaskStreamItem};

/// Events that are read from the journal at a time.
const PAGE: NonZeroUsize = NonZeroUsize::new(1000).unwrap();

/// Pause before the next owner is asked to interrupt a task.
const INTERRUPT_PAUSE: Duration = Duration::from_millis(20);

/// Messages that wait for the next owner. One more is refused.
const MESSAGES_MAX: usize = 64;

/// A task while it is watched.
pub struct WatchedTask<'a, 'p> {
    attachment: &'a mut AttachedTask<'p>,
    task_id: TaskId,
    /// The task without a parent that it belongs to.
    root: TaskId,
    stream: TaskStream,
    rest: Rest,
    /// Present while this process gives the journal to a server.
    handing_over: JoinSet<()>,
    /// The last event that was read.
    position: Position,
    /// The last event of the task itself.
    seen: Seq,
    /// An order that the owner did not confirm before it ended: the next one gets it.
    unconfirmed: Option<Order>,
    /// Messages of the user that the owner did not confirm before it ended, at most [`MESSAGES_MAX`].
    unsent: Vec<UnsentMessage>,
    /// The owner, when it ends and still answers.
    ending: EndingOwner,
}

/// A message that an owner may or may not have recorded: the next one gets it with the same key.
struct UnsentMessage {
    text: String,
    key: String,
}

/// An order about the task. Given twice it has the effect of once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Order {
    Cancel,
    Interrupt,
    Pause,
}

/// Whether the task rests: it has ended, or neither it nor a descendant it waits for runs.
enum Rest {
    /// Not known.
    Awaited(BoxFuture<'static, Result<TaskState, ProjectError>>),
    /// It does. Events from before that are still to be read.
    CatchingUp(Box<TaskState>),
    /// It does, and the front end knows.
    Reported,
}

/// Something that [`WatchedTask::advance`] has to act on.
pub struct WatchChange(Change);

enum Change {
    Item(TaskStreamItem),
    StreamEnded(TaskStreamEnd),
    Rest(Result<Box<TaskState>, ProjectError>),
    CatchUp,
    /// A server wants the journal that this process owns.
    LeaveRequested,
    HandedOver,
}

/// What a front end shows.
pub enum WatchedItem {
    /// An event of the journal: of the task, of a descendant, or of another task.
    Event(Box<Event>),
    /// A part of an answer or of a tool's output. It is not stored.
    Delta(Delta),
    /// So many deltas were missed. The journal has the complete text.
    Missed(u64),
    /// The task has ended, or is suspended until a user or a client acts. Every event before that was delivered.
    Resting(Box<TaskState>),
    /// The owner of the journal has ended, and the tasks of the project go on.
    OwnerChanged(OwnerChange),
    /// What became of an order of the user that the last owner did not confirm.
    Note(String),
}

/// An interrupt that did not happen.
#[derive(Debug)]
pub struct FailedInterrupt {
    error: ProjectError,
    /// Another process owned the journal.
    at_other_owner: bool,
}

/// A task after it was watched.
pub struct WatchResult {
    /// Its state; with its messages if its session is saved to a file.
    pub state: TaskState,
    /// What the task and its descendants spent.
    pub totals: Totals,
    /// Number of its descendants.
    pub descendants: usize,
    /// Number of its descendants that have not ended.
    pub unfinished: usize,
}

impl<'a, 'p> WatchedTask<'a, 'p> {
    /// Watches a task from a position on.
    pub fn new(
        attachment: &'a mut AttachedTask<'p>,
        task_id: TaskId,
        root: TaskId,
        position: Position,
    ) -> Self {
        let stream = attachment.stream(&root, position);
        let rest = Rest::awaited(attachment.connection(), &task_id);
        Self {
            attachment,
            task_id,
            root,
            stream,
            rest,
            handing_over: JoinSet::new(),
            position,
            seen: Seq(0),
            unconfirmed: None,
            unsent: Vec::new(),
            ending: EndingOwner::default(),
        }
    }

    /// The watched task.
    pub fn task_id(&self) -> &TaskId {
        &self.task_id
    }

    /// Where commands about the task go.
    pub fn connection(&self) -> &Connection {
        self.attachment.connection()
    }

    /// The task's place, for a front end that ends.
    pub fn attachment(&mut self) -> &mut AttachedTask<'p> {
        self.attachment
    }

    /// Waits until there is something to do. Cancel safe.
    pub async fn changed(&mut self) -> WatchChange {
        if matches!(self.rest, Rest::CatchingUp(_)) {
            return WatchChange(Change::CatchUp);
        }
        WatchChange(tokio::select! {
            // Deltas before the event that completes their answer.
            biased;
            item = self.stream.next(self.seen) => match item {
                Ok(item) => Change::Item(item),
                Err(end) => Change::StreamEnded(end),
            },
            rest = self.rest.reached() => Change::Rest(rest.map(Box::new)),
            () = self.attachment.asked_to_leave(), if self.handing_over.is_empty() => {
                Change::LeaveRequested
            }
            Some(_) = self.handing_over.join_next() => Change::HandedOver,
        })
    }

    /// Acts on a change, and returns what to show. Not cancel safe.
    pub async fn advance(&mut self, change: WatchChange) -> Result<Vec<WatchedItem>, ProjectError> {
        match change.0 {
            Change::Item(TaskStreamItem::Event(event)) => {
                Ok(self.accept(*event).into_iter().collect())
            }
            Change::Item(TaskStreamItem::Delta(delta)) => Ok(vec![WatchedItem::Delta(delta)]),
            Change::Item(TaskStreamItem::Missed(count)) => Ok(vec![WatchedItem::Missed(count)]),
            Change::StreamEnded(end) => self.find_owner(end).await,
            Change::Rest(rest) => self.on_rest(rest).await,
            Change::CatchUp => {
                let mut items = self.catch_up().await?;
                if items.is_empty()
                    && let Rest::CatchingUp(state) =
                        std::mem::replace(&mut self.rest, Rest::Reported)
                {
                    items.push(WatchedItem::Resting(state));
                }
                Ok(items)
            }
            Change::LeaveRequested => {
                self.handing_over.spawn(self.attachment.hand_over());
                Ok(Vec::new())
            }
            Change::HandedOver => {
                // Both hold the journal.
                (self.stream, self.rest) = (TaskStream::Nothing, Rest::Reported);
                self.attachment.leave().await;
                self.find_owner(lost("a server has taken the journal")).await
            }
        }
    }

    /// The next events up to the head of the journal; none when all were read.
    pub async fn catch_up(&mut self) -> Result<Vec<WatchedItem>, ProjectError> {
        let reader = self.connection().reader().clone();
        let head = reader.head().await?;
        let mut items = Vec::new();
        while items.is_empty() && self.position < head {
            let read = Read { task_id: None, after: self.position, limit: PAGE };
            let page = reader.read(read).await?;
            items.extend(page.events.into_iter().filter_map(|event| self.accept(event)));
            self.position = self.position.max(page.next);
        }
        Ok(items)
    }

    /// The task may have been resumed: waits for the next rest.
    pub fn await_rest(&mut self) {
        if matches!(self.rest, Rest::Reported) {
            self.rest = Rest::awaited(self.attachment.connection(), &self.task_id);
        }
    }

    /// The pending approvals of the task and its descendants, the oldest first.
    pub async fn pending_approvals(
        &self,
        descendants: &Descendants,
    ) -> Result<Vec<Approval>, ProjectError> {
        let mut pending = self.connection().approvals(ApprovalSelector::Pending).await?;
        pending.retain(|approval| {
            approval.task_id == self.task_id || descendants.contains(&approval.task_id)
        });
        Ok(pending)
    }

    /// Carries out a line that the user typed: `/cancel`, `/pause`, or a message for the agent. Returns what to show
    /// about it.
    pub async fn steer(&mut self, line: &str) -> Option<String> {
        match line {
            "" => None,
            "/cancel" => self.order(Order::Cancel).await,
            "/pause" => self.order(Order::Pause).await,
            _ if line.starts_with('/') => {
                Some("Type /pause, /cancel, or a message for the agent".to_owned())
            }
            _ => {
                let (text, key) = (line.to_owned(), Uuid::new_v4().to_string());
                self.send(UnsentMessage { text, key }).await
            }
        }
    }

    async fn send(&mut self, message: UnsentMessage) -> Option<String> {
        let UnsentMessage { text, key } = &message;
        let connection = self.connection();
        match connection.send_once(&self.task_id, text, HandlingMode::Steer, key).await {
            Ok(()) => Some("Queued: the agent reads it after the current step".to_owned()),
            // Too late: the end is about to be shown.
            Err(_) if self.has_ended().await => None,
            Err(ProjectError::OwnerEnds(_))
                if self.unsent.len() < MESSAGES_MAX && !self.attachment.is_owner() =>
            {
                self.unsent.push(message);
                None
            }
            Err(ProjectError::Unavailable(_))
                if self.unsent.len() < MESSAGES_MAX && self.attachment.has_lost_owner().await =>
            {
                self.unsent.push(message);
                None
            }
            Err(error) => Some(error.to_string()),
        }
    }

    /// Sends the messages that the last owner did not confirm, once the task goes on at the next one.
    async fn send_again(&mut self) -> Vec<WatchedItem> {
        let mut items = Vec::new();
        for message in std::mem::take(&mut self.unsent) {
            items.extend(self.send(message).await.map(WatchedItem::Note));
        }
        items
    }

    /// Interrupts the task and all its descendants. The front end goes on meanwhile.
    pub fn interrupt(&self) -> impl Future<Output = Result<(), FailedInterrupt>> + Send + 'static {
        let (connection, task_id) = (self.connection().clone(), self.task_id.clone());
        let at_other_owner = matches!(connection, Connection::Server(..));
        async move {
            let interrupted = connection.interrupt(&task_id).await;
            interrupted.map_err(|error| FailedInterrupt { error, at_other_owner })
        }
    }

    /// An owner has failed to interrupt the task. If it may have ended, goes on with the next one, which is to be asked
    /// again. Returns what to show, or `None` when asking again does not help.
    pub async fn interrupt_again(
        &mut self,
        failed: &FailedInterrupt,
    ) -> Result<Option<Vec<WatchedItem>>, ProjectError> {
        let FailedInterrupt { error, at_other_owner } = failed;
        let may_have_ended =
            !matches!(error, ProjectError::InvalidInput(_) | ProjectError::Refused(_));
        if !at_other_owner || !may_have_ended || self.has_ended().await {
            return Ok(None);
        }
        if self.attachment.is_owner() {
            return Ok(Some(Vec::new()));
        }
        tokio::time::sleep(INTERRUPT_PAUSE).await;
        self.unconfirmed = Some(Order::Interrupt);
        self.find_owner(lost(&error.to_string())).await.map(Some)
    }

    async fn order(&mut self, order: Order) -> Option<String> {
        let connection = self.connection();
        let (given, note) = match order {
            // The end of the task is shown.
            Order::Cancel => (connection.cancel(&self.task_id).await, None),
            Order::Interrupt => (connection.interrupt(&self.task_id).await, None),
            Order::Pause => (
                connection.pause(&self.task_id).await,
                Some("Queued: the task pauses after the current step".to_owned()),
            ),
        };
        match given {
            Ok(()) => note,
            Err(_) if self.has_ended().await => None,
            Err(ProjectError::Unavailable(_) | ProjectError::OwnerEnds(_))
                if !self.attachment.is_owner() =>
            {
                self.unconfirmed = Some(order);
                None
            }
            Err(error) => Some(error.to_string()),
        }
    }

    /// Gives the next owner the order that the last one did not confirm, before the task goes on there.
    async fn order_again(&mut self) -> Result<Option<WatchedItem>, ProjectError> {
        let Some(order) = self.unconfirmed.take() else { return Ok(None) };
        self.attachment.find_next_owner().await?;
        Ok(self.order(order).await.map(WatchedItem::Note))
    }

    /// The task and its descendants, or the task alone when its tree is too large.
    pub async fn tree(&self) -> Result<TaskTree, ProjectError> {
        read_tree(self.connection().reader(), &self.task_id).await
    }

    /// The task as it is now.
    pub async fn result(&self) -> Result<WatchResult, ProjectError> {
        let state = saved_session::state(self.connection().reader(), &self.task_id).await?;
        let tree = self.tree().await?;
        let descendants = tree.tasks().iter().skip(1);
        Ok(WatchResult {
            state,
            totals: Totals::of(tree.tasks().iter().map(|task| &task.summary)),
            unfinished: descendants.filter(|task| !task.summary.status.is_terminal()).count(),
            descendants: tree.tasks().len() - 1,
        })
    }

    async fn has_ended(&self) -> bool {
        let state = self.connection().reader().task_alone(&self.task_id).await;
        state.is_ok_and(|state| state.status.is_terminal())
    }

    /// An event that was not delivered before.
    fn accept(&mut self, event: Event) -> Option<WatchedItem> {
        if event.position <= self.position {
            return None;
        }
        self.position = event.position;
        if event.task_id == self.task_id {
            self.seen = event.seq;
        }
        Some(WatchedItem::Event(Box::new(event)))
    }

    /// The task has ended or is suspended, or its owner cannot say so any more.
    async fn on_rest(
        &mut self,
        rest: Result<Box<TaskState>, ProjectError>,
    ) -> Result<Vec<WatchedItem>, ProjectError> {
        match rest {
            Ok(state) => {
                self.rest = Rest::CatchingUp(state);
                Ok(Vec::new())
            }
            // It stopped for the server, and other calls still run here.
            Err(_) if !self.handing_over.is_empty() => Ok(Vec::new()),
            Err(ProjectError::Unavailable(reason) | ProjectError::OwnerEnds(reason))
                if !self.attachment.is_owner() =>
            {
                self.find_owner(lost(&reason)).await
            }
            Err(error) => Err(error),
        }
    }

    /// Goes on after the owner of the journal has ended: with the next one, or as the next one. No event is delivered
    /// twice, and none is left out.
    async fn find_owner(&mut self, end: TaskStreamEnd) -> Result<Vec<WatchedItem>, ProjectError> {
        match end {
            TaskStreamEnd::Unreadable(reason) => return Err(ProjectError::Unavailable(reason)),
            TaskStreamEnd::OwnerLost(error) => {
                tracing::debug!(%error, "looks for the owner of the journal");
            }
        }
        let mut items: Vec<WatchedItem> = self.order_again().await?.into_iter().collect();
        match self.attachment.attach_again(&self.task_id).await? {
            NextOwner::Found => {
                let change = self.attachment.take_owner_change();
                items.extend(change.map(WatchedItem::OwnerChanged));
            }
            NextOwner::Ending => {
                let told = self.ending.waits();
                items.extend(told.map(|text| WatchedItem::Note(text.to_owned())));
                // The front end goes on meanwhile.
                (self.stream, self.rest) = (TaskStream::ending(), Rest::Reported);
                return Ok(items);
            }
        }
        self.ending = EndingOwner::default();
        items.extend(self.send_again().await);
        self.stream = self.attachment.stream(&self.root, self.position);
        self.rest = Rest::awaited(self.attachment.connection(), &self.task_id);
        Ok(items)
    }
}

impl Rest {
    fn awaited(connection: &Connection, task_id: &TaskId) -> Self {
        let (connection, task_id) = (connection.clone(), task_id.clone());
        Self::Awaited(async move { connection.wait(&task_id).await }.boxed())
    }

    /// Cancel safe.
    async fn reached(&mut self) -> Result<TaskState, ProjectError> {
        let Self::Awaited(rest) = self else { return std::future::pending().await };
        let rest = rest.await;
        *self = Self::Reported;
        rest
    }
}

fn lost(reason: &str) -> TaskStreamEnd {
    TaskStreamEnd::OwnerLost(ClientError::StreamLost { reason: reason.to_owned() })
}

async fn read_tree(
    orchestrator: &Orchestrator,
    task_id: &TaskId,
) -> Result<TaskTree, ProjectError> {
    let limit = NonZeroUsize::MIN;
    let one = TaskQuery { which: TaskSelector::One(task_id.clone()), limit };
    let missing = || ProjectError::Failed(format!("task {task_id} is no longer in the journal"));
    let one = orchestrator.tasks(one).await?.into_iter().next().ok_or_else(missing)?;
    let all = orchestrator.tasks(TaskTree::query(&one.root)).await?;
    TaskTree::new(task_id, all).or_else(|| TaskTree::new(task_id, vec![one])).ok_or_else(missing)
}
