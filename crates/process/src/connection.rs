//! Where a command runs: in this process, which owns the journal, or through the server that owns it.
//! The answer is the same, and once a command returns, the journal has it.

mod client_lock;
mod conversations;
mod discovery;
mod hand_over;
mod inbox;
mod interaction_search;
mod journal_owner;
mod lists;
mod lookup;
mod next_owner;
mod owner_waits;
mod ownership;
mod project_access;
mod server_error;
mod server_record;
mod sessions;
mod task_order;

use std::num::NonZeroUsize;
use std::sync::Arc;

use antiphon_api::{AllowSpending, CreateTask, DecideApproval, SendMessage};
use antiphon_client::ClientError;
use antiphon_core::port::{
    Clock, Journal, RandomIds, SingleTaskJournal, SystemClock, TaskQuery, TaskSelector,
};
use antiphon_core::{
    ApprovalId, ApprovalReply, BudgetStatus, Decision, HandlingMode, InputBlock, Message, ModelRef,
    PriceTable, Provenance, Provider, RawJson, Sender, TaskId, TaskStatus, TaskSummary,
    UserMessage,
};
use antiphon_runtime::{
    LimitRaise, NoTools, OpenGate, Orchestrator, OrchestratorSettings, Recovered, RuntimeDeps,
    TaskMessage, TaskState,
};
use antiphon_sqlite::SqliteJournal;
use serde_json::value::to_raw_value;
use uuid::Uuid;

pub(crate) use client_lock::ClientLock;
pub use discovery::ProjectServer;
pub use inbox::{
    AcceptedInteraction, InboxTarget, OutgoingInteraction, ReceiptKind, RejectedInteraction,
    RequestAnswer, SendOutcome,
};
pub use interaction_search::FoundInteraction;
pub use next_owner::Twice;
pub(crate) use next_owner::{EndingOwner, WAITS_FOR_OWNER};
pub use ownership::{Ownership, Reservation};
pub use task_order::{PeerCancellation, ReadingTime};

pub use project_access::ProjectAccess;

use antiphon_project::Principal;
use antiphon_project::error::ProjectError;
use antiphon_project::models::Models;
use antiphon_project::project::Project;
use antiphon_project::project_agents::ProjectAgents;
use antiphon_project::saved_session;
use antiphon_project::toolset::{PermissionOverrides, Toolset};

/// Tasks that one command resumes at a server, at most. More are refused.
const RESUMED_MAX: usize = 10_000;

const RESUMED_LIMIT: NonZeroUsize = NonZeroUsize::new(RESUMED_MAX + 1).unwrap();

/// Where a command runs.
#[derive(Clone)]
pub enum Connection {
    /// In this process.
    Local(Orchestrator),
    /// Through the server, with a reader of its journal: of the file, or of what the server answers.
    Server(ProjectServer, Orchestrator),
}

impl Connection {
    /// The server of the project, or else an orchestrator in this process that resumes no task.
    pub async fn open(
        project: &Project,
        models: Models,
        tools: Toolset,
    ) -> Result<Self, ProjectError> {
        match Ownership::find(project).await? {
            Ownership::Owner(journal) => {
                Ok(Self::Local(project.recording_orchestrator(journal, models, tools)))
            }
            Ownership::Client(server) => Self::of_owner(server, project),
        }
    }

    /// A reader of the journal's file, beside any owner.
    pub fn reader_only(project: &Project) -> Result<Self, ProjectError> {
        Ok(Self::Local(journal_reader(project)?))
    }

    /// The process that owns the journal, with a reader of the journal's file.
    pub fn of_owner(server: ProjectServer, project: &Project) -> Result<Self, ProjectError> {
        Ok(Self::Server(server, journal_reader(project)?))
    }

    /// The same, with an orchestrator that knows the agents.
    pub async fn open_with_agents(project: &Project, models: Models) -> Result<Self, ProjectError> {
        let journal = match Ownership::find(project).await? {
            Ownership::Owner(journal) => journal,
            Ownership::Client(server) => return Self::of_owner(server, project),
        };
        let tools = Toolset::none();
        let project_agents = ProjectAgents::with_project_rules(
            project,
            models.settings(),
            &PermissionOverrides::default(),
            &tools,
        )?;
        let orchestrator =
            project.recording_orchestrator_with(journal, models, tools, &project_agents);
        // The orchestrator has the agents: no watcher of their files is needed any more.
        project_agents.shutdown().await;
        Ok(Self::Local(orchestrator))
    }

    /// The server that `--server` names. The reader has tasks and events; other lists are methods here.
    pub fn named(server: &ProjectServer) -> Option<Self> {
        let journal = SingleTaskJournal::new(server.named_journal()?);
        Some(Self::Server(server.clone(), reader_of(Arc::new(journal))))
    }

    /// An orchestrator to read tasks, sessions and approvals with.
    pub fn reader(&self) -> &Orchestrator {
        match self {
            Self::Local(reader) | Self::Server(_, reader) => reader,
        }
    }

    /// Cancels a task and its descendants.
    pub async fn cancel(&self, task_id: &TaskId) -> Result<(), ProjectError> {
        match self {
            Self::Local(orchestrator) => Ok(orchestrator.cancel(task_id).await?),
            Self::Server(server, _) => server.ordered(server.client.cancel_task(task_id)).await,
        }
    }

    /// Pauses a task: it waits until it is resumed.
    pub async fn pause(&self, task_id: &TaskId) -> Result<(), ProjectError> {
        match self {
            Self::Local(orchestrator) => Ok(orchestrator.pause(task_id).await?),
            Self::Server(server, _) => server.ordered(server.client.pause_task(task_id)).await,
        }
    }

    /// Interrupts the turn of a task: it waits until it is resumed.
    pub async fn interrupt(&self, task_id: &TaskId) -> Result<(), ProjectError> {
        match self {
            Self::Local(orchestrator) => Ok(orchestrator.interrupt(task_id).await?),
            Self::Server(server, _) => server.ordered(server.client.interrupt_task(task_id)).await,
        }
    }

    /// Resumes a task that was interrupted, paused or suspended.
    pub async fn resume(&self, task_id: &TaskId) -> Result<(), ProjectError> {
        match self {
            Self::Local(orchestrator) => Ok(orchestrator.resume(task_id).await?),
            Self::Server(server, _) => server.ordered(server.client.resume_task(task_id)).await,
        }
    }

    /// Sends a text to a task.
    pub async fn send(
        &self,
        task_id: &TaskId,
        text: String,
        mode: HandlingMode,
    ) -> Result<(), ProjectError> {
        self.send_once(task_id, &text, mode, &Uuid::new_v4().to_string()).await
    }

    /// Sends a text to a task. With the same `key` it is the same message, also at another owner.
    pub async fn send_once(
        &self,
        task_id: &TaskId,
        text: &str,
        mode: HandlingMode,
        key: &str,
    ) -> Result<(), ProjectError> {
        match self {
            Self::Local(orchestrator) => {
                let message = UserMessage::text(text, SystemClock.now());
                send_here(orchestrator, task_id, message, mode, key).await
            }
            Self::Server(server, _) => server.send_text(task_id, text, mode, key).await,
        }
    }

    /// Sends a message with images to a task.
    pub async fn send_blocks(
        &self,
        task_id: &TaskId,
        content: Vec<InputBlock>,
        mode: HandlingMode,
    ) -> Result<(), ProjectError> {
        let message = UserMessage { content, timestamp: SystemClock.now() };
        let key = Uuid::new_v4().to_string();
        match self {
            Self::Local(orchestrator) => {
                send_here(orchestrator, task_id, message, mode, &key).await
            }
            Self::Server(server, _) => {
                let text = to_raw_value(&Message::User(message)).map_err(|error| {
                    ProjectError::Failed(format!("the message cannot be sent: {error}"))
                })?;
                let message = SendMessage { text, mode, from: None };
                server.ordered(server.client.send_message(task_id, &message, Some(&key))).await
            }
        }
    }

    /// Decides an approval. `decider` is recorded when this process owns the journal; a server records the name of
    /// the key.
    pub async fn decide(
        &self,
        approval_id: &ApprovalId,
        decision: Decision,
        decider: &str,
        comment: Option<String>,
    ) -> Result<(), ProjectError> {
        let reply = ApprovalReply { decision, comment, answer: None };
        self.reply(approval_id, reply, decider).await
    }

    /// The same with an answer to the question that waits there, or a changed plan.
    pub async fn reply(
        &self,
        approval_id: &ApprovalId,
        reply: ApprovalReply,
        decider: &str,
    ) -> Result<(), ProjectError> {
        match self {
            Self::Local(orchestrator) => {
                Ok(orchestrator.answer(approval_id, &reply, decider).await?)
            }
            Self::Server(server, _) => server.reply(approval_id, reply).await,
        }
    }

    /// Adds to a spend limit.
    pub async fn allow(&self, raise: LimitRaise) -> Result<BudgetStatus, ProjectError> {
        match self {
            Self::Local(orchestrator) => Ok(orchestrator.allow(raise).await?),
            Self::Server(server, _) => {
                let amount = AllowSpending {
                    usd: dollars(raise.by_nano_usd),
                    key_id: raise.payer,
                    comment: raise.comment,
                };
                server.answer(server.client.allow_spending(&amount, None).await)
            }
        }
    }

    /// Resumes every task that was interrupted.
    pub async fn recover(&self) -> Result<Recovered, ProjectError> {
        let (server, reader) = match self {
            Self::Local(orchestrator) => return Ok(orchestrator.recover().await?),
            Self::Server(server, reader) => (server, reader),
        };
        let query = TaskQuery { which: TaskSelector::Unfinished, limit: RESUMED_LIMIT };
        let mut unfinished = reader.tasks(query).await?;
        if unfinished.len() > RESUMED_MAX {
            return Err(ProjectError::Refused(format!(
                "more than {RESUMED_MAX} tasks have not ended: resume them one by one, or restart the \
                 server"
            )));
        }
        unfinished.reverse();
        let (waiting, begun): (Vec<TaskSummary>, Vec<TaskSummary>) =
            unfinished.into_iter().partition(|task| task.status == TaskStatus::InputRequired);
        for task in &begun {
            if let Err(error) = server.client.resume_task(&task.task_id).await {
                // The server works meanwhile: a task that has ended by now needs no resume.
                if !reader.task_alone(&task.task_id).await?.status.is_terminal() {
                    return Err(server.project_error(error));
                }
            }
        }
        let ids = |tasks: Vec<TaskSummary>| tasks.into_iter().map(|task| task.task_id).collect();
        Ok(Recovered { begun: ids(begun), waiting: ids(waiting), ended: Vec::new() })
    }

    /// A task, once it has ended or is suspended. With its messages if its session is saved to a file.
    pub async fn wait(&self, task_id: &TaskId) -> Result<TaskState, ProjectError> {
        match self {
            Self::Local(orchestrator) => {
                orchestrator.rest(task_id).await?;
                Ok(saved_session::state(orchestrator, task_id).await?)
            }
            Self::Server(server, reader) => {
                server.ordered(server.client.wait_for_task(task_id)).await?;
                Ok(saved_session::state(reader, task_id).await?)
            }
        }
    }

    /// Whether files that a task names are files of this machine.
    pub fn is_on_this_machine(&self) -> bool {
        match self {
            Self::Local(_) => true,
            Self::Server(server, _) => !server.is_named(),
        }
    }
}

impl ProjectServer {
    /// Creates a task with this text. Once this returns, the journal has it.
    pub async fn create_task(
        &self,
        agent: &str,
        model: &ModelRef,
        text: &str,
    ) -> Result<TaskId, ProjectError> {
        let task = CreateTask::text(text)
            .map_err(|error| ProjectError::Failed(format!("the text cannot be sent: {error}")))?;
        let (agent, model) = (Some(agent.to_owned()), Some(model.clone()));
        let task = CreateTask { agent, model, ..task };
        Ok(self.answer(self.client.create_task(&task, None).await)?.task_id)
    }

    /// Decides an approval, or answers its question.
    pub async fn reply(
        &self,
        approval_id: &ApprovalId,
        reply: ApprovalReply,
    ) -> Result<(), ProjectError> {
        let body = DecideApproval::from(reply);
        self.ordered(self.client.decide_approval(approval_id, &body)).await
    }

    /// Sends a text to a task. With the same `key` it is the same message.
    pub async fn send_text(
        &self,
        task_id: &TaskId,
        text: &str,
        mode: HandlingMode,
        key: &str,
    ) -> Result<(), ProjectError> {
        let message = SendMessage::text(text, mode)
            .map_err(|error| ProjectError::Failed(format!("the text cannot be sent: {error}")))?;
        self.ordered(self.client.send_message(task_id, &message, Some(key))).await
    }

    /// Carries out a request whose answer says only that it was carried out.
    async fn ordered<T>(
        &self,
        sent: impl Future<Output = Result<T, ClientError>>,
    ) -> Result<(), ProjectError> {
        self.answer(sent.await).map(drop)
    }
}

/// An orchestrator that reads the journal beside its owner and changes nothing.
fn journal_reader(project: &Project) -> Result<Orchestrator, ProjectError> {
    Ok(reader_of(Arc::new(SqliteJournal::open_read_only(&project.journal_path())?)))
}

/// Sends a message of the user to a task of this process. With the same `key` it is the same message.
async fn send_here(
    orchestrator: &Orchestrator,
    task_id: &TaskId,
    message: UserMessage,
    mode: HandlingMode,
    key: &str,
) -> Result<(), ProjectError> {
    let key = Principal::default().idempotency_key(Principal::TASK_MESSAGES, key);
    let (from, provenance) = (Sender::User, Provenance::Owner);
    let message = TaskMessage { message, mode, from, key: Some(key), provenance };
    orchestrator.send_message(task_id, message).await?;
    Ok(())
}

/// An orchestrator that reads a journal and changes nothing.
fn reader_of(journal: Arc<dyn Journal>) -> Orchestrator {
    Orchestrator::record_only(RuntimeDeps {
        journal,
        prices: Arc::new(PriceTable::default()),
        models: Arc::new(NoModels),
        tools: Arc::new(NoTools),
        gate: Arc::new(OpenGate),
        agents: None,
        runners: Vec::new(),
        clock: Arc::new(SystemClock),
        ids: Arc::new(RandomIds),
        settings: OrchestratorSettings::default(),
    })
}

/// A reader calls no model.
struct NoModels;

impl antiphon_runtime::Models for NoModels {
    fn provider(
        &self,
        model: &ModelRef,
        _: &[ModelRef],
        _: Option<&RawJson>,
    ) -> Result<Arc<dyn Provider>, String> {
        Err(format!("only the server calls {model}"))
    }

    fn window_tokens(&self, _: &ModelRef) -> Option<u64> {
        None
    }
}

#[expect(clippy::cast_precision_loss, reason = "at most 10^15, which is exact")]
fn dollars(nano_usd: u64) -> f64 {
    nano_usd as f64 / 1e9
}
