//! The handle: the only way in.

use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use antiphon_core::port::{
    Append, Appended, Clock, Expected, IdSource, IdempotencyKey, Journal, JournalError, Read,
    TaskQuery, Which,
};
use antiphon_core::{
    EVENT_VERSION, EventBody, Message, MessageAppended, ModelRef, Position, Provider, SessionId,
    StatusChanged, StreamEvent, TaskCreated, TaskId, TaskLimits, TaskStatus, ToolExecutor,
    UserMessage,
};
use serde::Serialize;
use tokio::sync::{broadcast, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::follow::Follower;
use crate::lap;
use crate::state::{ReplayError, TaskState};
use crate::tools;

/// Tasks that may run at a time. One more is refused; it stays in the journal.
pub const TASKS_RUNNING_MAX: usize = 16_384;

/// Deltas that a slow watcher may be behind before it misses some.
const DELTAS_KEPT: usize = 4096;

/// What the orchestrator is given to work with.
#[derive(Clone)]
pub struct World {
    /// The truth.
    pub journal: Arc<dyn Journal>,
    /// Who answers.
    pub models: Arc<dyn Models>,
    /// What agents may do.
    pub tools: Arc<dyn ToolExecutor>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Names for new things.
    pub ids: Arc<dyn IdSource>,
}

/// Finds who answers for a model.
pub trait Models: Send + Sync {
    /// The provider, or what to tell the person.
    fn provider(&self, model: &ModelRef) -> Result<Arc<dyn Provider>, String>;
}

/// A task to be accepted.
#[derive(Debug, Clone, PartialEq)]
pub struct NewTask {
    /// Who works on it.
    pub agent: String,
    /// Which model answers.
    pub model: ModelRef,
    /// The scene.
    pub system_prompt: String,
    /// The conversation it goes on with; a new one when absent.
    pub session_id: Option<SessionId>,
    /// What was said before.
    pub history: Vec<Message>,
    /// What to do.
    pub message: UserMessage,
    /// How far it may go.
    pub limits: TaskLimits,
    /// Makes a repeated request harmless.
    pub key: Option<IdempotencyKey>,
}

/// A piece of an answer that is still being given. Not kept. In JSON it is like an event of the
/// journal, without a place in it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Delta {
    v: u32,
    /// Of which task.
    pub task_id: TaskId,
    /// What came.
    #[serde(flatten)]
    pub event: StreamEvent,
}

impl Delta {
    pub(crate) fn new(task_id: TaskId, event: StreamEvent) -> Self {
        Self { v: EVENT_VERSION, task_id, event }
    }
}

/// Why the orchestrator did not do as told.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OrchestratorError {
    /// See there.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// See there.
    #[error(transparent)]
    Replay(#[from] ReplayError),
    /// Wait for others to end.
    #[error("{TASKS_RUNNING_MAX} tasks are running: wait for some of them to end")]
    Full,
    /// Set its key, or configure its provider.
    #[error("the model of task {task_id} cannot be asked: {reason}")]
    NoModel {
        /// Which.
        task_id: TaskId,
        /// Why.
        reason: String,
    },
    /// Go on with it.
    #[error("task {task_id} has not ended, and nobody works on it")]
    AtRest {
        /// Which.
        task_id: TaskId,
    },
    /// It is over.
    #[error("task {task_id} has ended already: {status:?}")]
    Ended {
        /// Which.
        task_id: TaskId,
        /// How.
        status: TaskStatus,
    },
}

/// The orchestrator. Cheap to clone; clones are the same one.
#[derive(Clone)]
pub struct Orchestrator {
    inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub(crate) world: World,
    running: Mutex<HashMap<TaskId, Arc<Running>>>,
    tracker: TaskTracker,
    /// Fires when everything should come to rest; what is not done goes on another time.
    pub(crate) stop: CancellationToken,
    /// Fires when what did not come to rest is cut off.
    kill: CancellationToken,
    head: watch::Sender<Position>,
    pub(crate) deltas: broadcast::Sender<Delta>,
}

impl Orchestrator {
    /// An orchestrator at rest: nothing is taken up before [`recover`](Self::recover) or
    /// [`resume`](Self::resume).
    pub fn new(world: World) -> Self {
        let inner = Inner {
            world,
            running: Mutex::default(),
            tracker: TaskTracker::new(),
            stop: CancellationToken::new(),
            kill: CancellationToken::new(),
            head: watch::Sender::new(Position(0)),
            deltas: broadcast::Sender::new(DELTAS_KEPT),
        };
        Self { inner: Arc::new(inner) }
    }

    /// Accepts a task and begins to work on it. When this returns, the journal has it.
    pub async fn invoke(&self, task: NewTask) -> Result<TaskId, OrchestratorError> {
        let world = &self.inner.world;
        let created = TaskCreated {
            model: Some(task.model),
            system_prompt: task.system_prompt,
            limits: task.limits,
            ..TaskCreated::new(
                task.agent,
                task.session_id.unwrap_or_else(|| SessionId::from(world.ids.next())),
            )
        };
        let append = Append {
            task_id: TaskId::from(world.ids.next()),
            expected: Expected::NoTask,
            at: world.clock.now(),
            events: events(created, task.history, task.message),
            key: task.key,
        };
        let appended = self.inner.append(append).await?;
        match self.start(&appended.task_id) {
            // Accepted is accepted: it is taken up when there is room.
            Ok(()) | Err(OrchestratorError::Full) => Ok(appended.task_id),
            Err(error) => Err(error),
        }
    }

    /// Goes on with a task that was cut off. One that runs already, runs.
    pub async fn resume(&self, task_id: &TaskId) -> Result<(), OrchestratorError> {
        let state = self.task(task_id).await?;
        if state.status.is_terminal() {
            let task_id = task_id.clone();
            return Err(OrchestratorError::Ended { task_id, status: state.status });
        }
        self.inner.check_model(&state)?;
        self.start(task_id)
    }

    /// Goes on with every task that was cut off, the oldest first. Says with which. One whose
    /// model cannot be asked stays as it is.
    pub async fn recover(&self) -> Result<Vec<TaskId>, OrchestratorError> {
        let limit = NonZeroUsize::MIN.saturating_add(TASKS_RUNNING_MAX - 1);
        let query = TaskQuery { which: Which::Unfinished, limit };
        let mut begun = Vec::new();
        for task_id in self.inner.world.journal.tasks(query).await?.into_iter().rev() {
            // One that cannot be read, or whose model cannot be asked, holds up no other.
            let taken_up = match self.task(&task_id).await {
                Ok(state) => self.inner.check_model(&state).and_then(|()| self.start(&task_id)),
                Err(error) => Err(error),
            };
            match taken_up {
                Ok(()) => begun.push(task_id),
                Err(error) => tracing::warn!(task.id = %task_id, %error, "not taken up"),
            }
        }
        Ok(begun)
    }

    /// Ends a task: its model call, its tools, and then itself. When this returns, the journal
    /// says so.
    pub async fn cancel(&self, task_id: &TaskId) -> Result<(), OrchestratorError> {
        let mut asked = false;
        loop {
            if let Some(running) = self.inner.find(task_id) {
                running.cancel.cancel();
                running.left.cancelled().await;
                asked = true;
                continue;
            }
            let state = self.task(task_id).await?;
            if asked && state.status == TaskStatus::Canceled {
                return Ok(());
            }
            if state.status.is_terminal() {
                let task_id = task_id.clone();
                return Err(OrchestratorError::Ended { task_id, status: state.status });
            }
            let canceled = StatusChanged { status: TaskStatus::Canceled, detail: None };
            let append = Append {
                task_id: task_id.clone(),
                expected: Expected::At(state.seq),
                at: self.inner.world.clock.now(),
                events: vec![canceled.into()],
                key: None,
            };
            match self.inner.append(append).await {
                Ok(_) => return Ok(()),
                // Somebody else was first: look again.
                Err(JournalError::Stale { .. } | JournalError::Ended { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Tasks, the newest first.
    pub async fn tasks(&self, query: TaskQuery) -> Result<Vec<TaskId>, OrchestratorError> {
        Ok(self.inner.world.journal.tasks(query).await?)
    }

    /// The last position of the journal.
    pub async fn head(&self) -> Result<Position, OrchestratorError> {
        let after = Position(u64::MAX);
        let read = Read { task_id: None, after, limit: NonZeroUsize::MIN };
        Ok(self.inner.world.journal.read(read).await?.head)
    }

    /// A task as it is now.
    pub async fn task(&self, task_id: &TaskId) -> Result<TaskState, OrchestratorError> {
        self.inner.load(task_id).await
    }

    /// Waits for the end of a task. One that stopped before its end, or that nobody works on, is
    /// an error that says why.
    pub async fn wait(&self, task_id: &TaskId) -> Result<TaskState, OrchestratorError> {
        let running = self.inner.find(task_id);
        if let Some(running) = &running {
            running.left.cancelled().await;
        }
        let state = self.task(task_id).await?;
        if state.status.is_terminal() {
            return Ok(state);
        }
        let why = running.and_then(|running| running.why.get().cloned());
        Err(why.unwrap_or(OrchestratorError::AtRest { task_id: task_id.clone() }))
    }

    /// Everything behind a position, of one task or of all, as it was and as it goes on.
    pub fn follow(&self, task_id: Option<TaskId>, after: Position) -> Follower {
        let journal = Arc::clone(&self.inner.world.journal);
        Follower::new(journal, self.inner.head.subscribe(), task_id, after)
    }

    /// Answers as they are given. A watcher that is too slow misses some and is told.
    pub fn deltas(&self) -> broadcast::Receiver<Delta> {
        self.inner.deltas.subscribe()
    }

    /// Brings everything to rest: whatever can, ends its step within `patience`; the rest is cut
    /// off and goes on another time. Says whether everything came to rest by itself.
    pub async fn shutdown(&self, patience: Duration) -> bool {
        self.inner.stop.cancel();
        self.inner.tracker.close();
        let rested = tokio::time::timeout(patience, self.inner.tracker.wait()).await.is_ok();
        self.inner.kill.cancel();
        self.inner.tracker.wait().await;
        rested
    }

    fn start(&self, task_id: &TaskId) -> Result<(), OrchestratorError> {
        let mut tasks = self.inner.running();
        if tasks.contains_key(task_id) || self.inner.stop.is_cancelled() {
            return Ok(());
        }
        if tasks.len() == TASKS_RUNNING_MAX {
            return Err(OrchestratorError::Full);
        }
        let running = Arc::new(Running::default());
        tasks.insert(task_id.clone(), Arc::clone(&running));
        let (inner, task_id) = (Arc::clone(&self.inner), task_id.clone());
        self.inner.tracker.spawn(async move {
            let place = Place { inner: Arc::clone(&inner), task_id: task_id.clone(), running };
            let cancel = place.running.cancel.clone();
            let ended = tokio::select! {
                ended = lap::run(Arc::clone(&inner), &task_id, cancel) => ended,
                () = inner.kill.cancelled() => Ok(()),
            };
            if let Err(error) = ended {
                // The journal is out of reach. Whoever waits is told; the task can be resumed.
                tracing::error!(task.id = %task_id, %error, "a task stopped before its end");
                let _ = place.running.why.set(error);
            }
        });
        Ok(())
    }
}

/// A task that is being worked on.
#[derive(Default)]
struct Running {
    /// Fires when it should end.
    cancel: CancellationToken,
    /// Fires when nobody works on it any more.
    left: CancellationToken,
    /// Why not, if that was not its end.
    why: OnceLock<OrchestratorError>,
}

/// A creation, and everything said up to the first answer.
fn events(created: TaskCreated, history: Vec<Message>, last: UserMessage) -> Vec<EventBody> {
    let cut_off = cut_off(&history);
    let said = history.into_iter().chain(cut_off).chain([last.into()]);
    let said = said.map(|message| MessageAppended { message }.into());
    [created.into()].into_iter().chain(said).collect()
}

/// Results for the calls at the end of a history that have none. They were made in another task,
/// and what came of them is not known here: they are never run again.
fn cut_off(history: &[Message]) -> Vec<Message> {
    let Some(index) = history.iter().rposition(|m| matches!(m, Message::Assistant(_))) else {
        return Vec::new();
    };
    let Message::Assistant(answer) = &history[index] else { return Vec::new() };
    let answered = |call: &antiphon_core::ToolCallBlock| {
        history[index + 1..].iter().any(|message| match message {
            Message::ToolResult(result) => result.tool_call_id == call.id,
            Message::User(_) | Message::Assistant(_) => false,
        })
    };
    let unknown = |call| tools::message(call, tools::outcome_unknown(), answer.timestamp).into();
    answer.tool_calls().filter(|call| !answered(call)).map(unknown).collect()
}

/// A place among the running tasks, given up however the task ends.
struct Place {
    inner: Arc<Inner>,
    task_id: TaskId,
    running: Arc<Running>,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.inner.running().remove(&self.task_id);
        self.running.left.cancel();
    }
}

impl Inner {
    fn running(&self) -> MutexGuard<'_, HashMap<TaskId, Arc<Running>>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn find(&self, task_id: &TaskId) -> Option<Arc<Running>> {
        self.running().get(task_id).cloned()
    }

    pub(crate) async fn append(&self, append: Append) -> Result<Appended, JournalError> {
        let appended = self.world.journal.append(append).await?;
        self.head.send_if_modified(|head| {
            let news = appended.position > *head;
            *head = appended.position.max(*head);
            news
        });
        Ok(appended)
    }

    /// Whether somebody can answer for a task that is to be taken up again.
    fn check_model(&self, state: &TaskState) -> Result<(), OrchestratorError> {
        let refuse = |reason: String| {
            Err(OrchestratorError::NoModel { task_id: state.task_id.clone(), reason })
        };
        match state.created.model.as_ref().map(|model| self.world.models.provider(model)) {
            Some(Ok(_)) => Ok(()),
            Some(Err(reason)) => refuse(reason),
            None => refuse("it names none".to_owned()),
        }
    }

    pub(crate) async fn load(&self, task_id: &TaskId) -> Result<TaskState, OrchestratorError> {
        let mut events = Vec::new();
        let mut after = Position(0);
        loop {
            let read = Read { task_id: Some(task_id.clone()), after, limit: NonZeroUsize::MAX };
            let page = self.world.journal.read(read).await?;
            if page.events.is_empty() {
                return Ok(TaskState::replay(task_id, &events)?);
            }
            after = page.next;
            events.extend(page.events);
        }
    }
}
