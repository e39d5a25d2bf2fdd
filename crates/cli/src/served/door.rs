//! Who takes an order: this process, which has the journal to itself, or the server that has it.
//! Either way the answer is the same, and when it is given the journal has it.

use std::num::NonZeroUsize;

use antiphon_core::port::{Clock, SystemClock, TaskQuery, TaskSelector};
use antiphon_core::{
    ApprovalId, Decision, HandlingMode, TaskId, TaskSummary, UserMessage, WaitingFor,
};
use antiphon_runtime::{Allowance, BudgetStatus, Orchestrator, Recovered, TaskState};

use super::{Order, Served};
use crate::failure::Failure;
use crate::models::Models;
use crate::project::Project;
use crate::team::Team;
use crate::toolset::{PermissionOverrides, Toolset};

/// Who answered an approval, as the journal says it.
pub(crate) const BY: &str = "the command line";

/// Tasks that a server is told to go on with at a time, at most. More are refused.
const RESUMED_MAX: usize = 10_000;

const RESUMED_LIMIT: NonZeroUsize = NonZeroUsize::new(RESUMED_MAX + 1).unwrap();

/// Who takes an order.
pub(crate) enum Door {
    /// This process.
    Alone(Orchestrator),
    /// The server, with the books beside it.
    Served(Served, Orchestrator),
}

impl Door {
    /// The server's door, or else that of somebody who keeps the books and takes nothing up.
    pub(crate) async fn open(
        project: &Project,
        models: Models,
        hands: Toolset,
    ) -> Result<Self, Failure> {
        if let Some(door) = Self::served(project).await? {
            return Ok(door);
        }
        match project.recording_orchestrator(models, hands) {
            Ok(orchestrator) => Ok(Self::Alone(orchestrator)),
            Err(error) => Self::instead(project, error.into()).await,
        }
    }

    /// The same, of somebody who knows the agents.
    pub(crate) async fn to_agents(project: &Project, models: Models) -> Result<Self, Failure> {
        if let Some(door) = Self::served(project).await? {
            return Ok(door);
        }
        let hands = Toolset::none();
        let team = Team::with_project_rules(
            project,
            models.settings(),
            &PermissionOverrides::default(),
            &hands,
        )?;
        let keeper = project.recording_orchestrator_with(models, hands, &team);
        // Who the agents are is known now, and nobody looks at their files any more.
        team.shutdown().await;
        match keeper {
            Ok(orchestrator) => Ok(Self::Alone(orchestrator)),
            Err(error) => Self::instead(project, error.into()).await,
        }
    }

    /// The server's door, if there is a server.
    pub(crate) async fn served(project: &Project) -> Result<Option<Self>, Failure> {
        let served = Served::find(project).await?;
        served.map(|served| Ok(Self::Served(served, Served::books(project)?))).transpose()
    }

    /// The door of a server that was faster than this process, or why `failure` stays one.
    pub(crate) async fn instead(project: &Project, failure: Failure) -> Result<Self, Failure> {
        let served = Served::instead(project, failure).await?;
        Ok(Self::Served(served, Served::books(project)?))
    }

    /// For looking.
    pub(crate) fn books(&self) -> &Orchestrator {
        match self {
            Self::Alone(books) | Self::Served(_, books) => books,
        }
    }

    pub(crate) async fn cancel(&self, task_id: &TaskId) -> Result<(), Failure> {
        match self {
            Self::Alone(orchestrator) => {
                let runner = orchestrator.task(task_id).await?.created.runner;
                if runner.is_some_and(|runner| runner.kind == "loopback") {
                    return Err(Failure::refused(
                        "a peer works on it, and nobody here could tell it: begin `antiphon serve`, \
                         then cancel it",
                    ));
                }
                Ok(orchestrator.cancel(task_id).await?)
            }
            Self::Served(served, _) => served.order(task_id, Order::Cancel).await,
        }
    }

    pub(crate) async fn pause(&self, task_id: &TaskId) -> Result<(), Failure> {
        match self {
            Self::Alone(orchestrator) => Ok(orchestrator.pause(task_id).await?),
            Self::Served(served, _) => served.order(task_id, Order::Pause).await,
        }
    }

    pub(crate) async fn resume(&self, task_id: &TaskId) -> Result<(), Failure> {
        match self {
            Self::Alone(orchestrator) => Ok(orchestrator.resume(task_id).await?),
            Self::Served(served, _) => served.order(task_id, Order::Resume).await,
        }
    }

    pub(crate) async fn send(
        &self,
        task_id: &TaskId,
        text: String,
        mode: HandlingMode,
    ) -> Result<(), Failure> {
        match self {
            Self::Alone(orchestrator) => {
                let said = UserMessage::text(text, SystemClock.now());
                orchestrator.send(task_id, said, mode).await?;
                Ok(())
            }
            Self::Served(served, _) => served.say(task_id, &text, mode).await,
        }
    }

    pub(crate) async fn decide(
        &self,
        approval_id: &ApprovalId,
        decision: Decision,
        comment: Option<String>,
    ) -> Result<(), Failure> {
        match self {
            Self::Alone(orchestrator) => {
                Ok(orchestrator.decide(approval_id, decision, BY, comment).await?)
            }
            Self::Served(served, _) => {
                served.decide(approval_id, decision, comment.as_deref()).await
            }
        }
    }

    /// Lets more be spent.
    pub(crate) async fn allow(&self, allowance: Allowance) -> Result<BudgetStatus, Failure> {
        match self {
            Self::Alone(orchestrator) => Ok(orchestrator.allow(allowance).await?),
            Self::Served(served, _) => served.allow(&allowance).await,
        }
    }

    /// Goes on with every task that was cut off.
    pub(crate) async fn recover(&self) -> Result<Recovered, Failure> {
        let (served, books) = match self {
            Self::Alone(orchestrator) => return Ok(orchestrator.recover().await?),
            Self::Served(served, books) => (served, books),
        };
        let query = TaskQuery { which: TaskSelector::Unfinished, limit: RESUMED_LIMIT };
        let mut unfinished = books.tasks(query).await?;
        if unfinished.len() > RESUMED_MAX {
            return Err(Failure::refused(format!(
                "more than {RESUMED_MAX} tasks have not ended: go on with them one by one, or start the \
                 server again"
            )));
        }
        unfinished.reverse();
        let (waiting, begun): (Vec<TaskSummary>, Vec<TaskSummary>) =
            unfinished.into_iter().partition(|task| task.waiting_for.is_some());
        for task in &begun {
            if let Err(failure) = served.order(&task.task_id, Order::Resume).await {
                // The server works on: it may have ended meanwhile, which is as good.
                if !books.task(&task.task_id).await?.status.is_terminal() {
                    return Err(failure);
                }
            }
        }
        let ids = |tasks: Vec<TaskSummary>| tasks.into_iter().map(|task| task.task_id).collect();
        Ok(Recovered { begun: ids(begun), waiting: ids(waiting), ended: Vec::new() })
    }

    /// A task, once it has ended or once nothing of it goes on without somebody.
    pub(crate) async fn rest(&self, task_id: &TaskId) -> Result<TaskState, Failure> {
        match self {
            Self::Alone(orchestrator) => Ok(orchestrator.wait(task_id).await?),
            Self::Served(served, books) => {
                served.rest(task_id).await?;
                Ok(books.task(task_id).await?)
            }
        }
    }

    /// The command that goes on with a task that rests.
    pub(crate) fn going_on(&self, task_id: &TaskId) -> String {
        match self {
            Self::Alone(_) => format!("`antiphon run --resume {task_id}`"),
            Self::Served(..) => format!("`antiphon tasks resume {task_id}`"),
        }
    }

    /// When a task that was told something hears it.
    pub(crate) fn hearing(&self, task: &TaskSummary) -> String {
        match (self, task.waiting_for) {
            (Self::Alone(_), _) | (Self::Served(..), Some(WaitingFor::Resume)) => {
                format!("it hears it with {}", self.going_on(&task.task_id))
            }
            (
                Self::Served(..),
                Some(WaitingFor::Approval | WaitingFor::ToolResult | WaitingFor::Budget),
            ) => "it hears it when it goes on".to_owned(),
            (Self::Served(..), None) => "it hears it while it works".to_owned(),
        }
    }
}
