//! News of live agents, told to those who named them as somebody they talk to.

use std::sync::Arc;

use antiphon_core::port::{Append, Expected, IdempotencyKey, JournalError};
use antiphon_core::{
    AgentName, CallableAgents, HandlingMode, Interaction, InteractionContent, LifecycleIntent,
    MessageQueued, Sender, SilentIntents, TaskId, TaskStatus, TaskSummary, classify,
};
use serde_json::{Value, json};

use crate::flight::{self, Outcome};
use crate::inner::Inner;
use crate::orchestrator_error::OrchestratorError;
use crate::roster::{Live, is_resident};
use crate::running;
use crate::tree;

/// What there is to tell of an agent.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum LifecycleNotice {
    /// It is there.
    Added,
    /// It is no longer defined.
    Unwired,
    /// It is there no more.
    Ended {
        status: TaskStatus,
        why: Value,
        /// It never got as far as an answer.
        at_kickoff: bool,
    },
}

impl LifecycleNotice {
    fn intent(&self) -> LifecycleIntent {
        match self {
            Self::Added => LifecycleIntent::PeerAdded,
            Self::Unwired => LifecycleIntent::PeerUnwired,
            Self::Ended { at_kickoff: false, .. } => LifecycleIntent::PeerRetired,
            Self::Ended { status: TaskStatus::Canceled, .. } => LifecycleIntent::KickoffCancelled,
            Self::Ended { .. } => LifecycleIntent::KickoffFailed,
        }
    }

    fn params(&self, name: &AgentName) -> Value {
        match self {
            Self::Added | Self::Unwired => json!({ "peer": name }),
            Self::Ended { status, why, .. } => {
                let reason = why.get("error").unwrap_or(why);
                json!({ "peer": name, "status": status, "reason": reason })
            }
        }
    }
}

impl Inner {
    /// Tells those who named an agent. Each hears it once.
    pub(crate) async fn tell_peers(
        self: &Arc<Self>,
        name: &AgentName,
        about: &TaskId,
        news: LifecycleNotice,
    ) -> Result<(), OrchestratorError> {
        for peer in self.roster.peers_of(name) {
            self.tell_peer(&peer, name, about, &news).await?;
        }
        Ok(())
    }

    async fn tell_peer(
        self: &Arc<Self>,
        peer: &TaskId,
        name: &AgentName,
        about: &TaskId,
        news: &LifecycleNotice,
    ) -> Result<(), OrchestratorError> {
        let intent = news.intent().as_str();
        let key = format!("{intent}:{about}:{peer}");
        let content =
            InteractionContent::Request { intent: intent.to_owned(), params: news.params(name) };
        let interaction = Interaction {
            id: flight::named_id(&key),
            from: Sender::Peer(name.clone()),
            content,
            handling_mode: HandlingMode::Queue,
            render_metadata: None,
        };
        let queued = MessageQueued::of(classify(interaction, &SilentIntents::default()));
        let append = Append {
            task_id: peer.clone(),
            expected: Expected::Exists,
            at: self.world.clock.now(),
            events: vec![queued.into()],
            key: Some(IdempotencyKey(key)),
        };
        match self.append(append).await {
            Ok(_) => running::start(self, peer),
            Err(JournalError::Ended { .. }) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    /// Tells live agents what became of those they named since they are there: whoever was to tell
    /// them may have been cut off.
    pub(crate) async fn tell_again(self: &Arc<Self>) -> Result<(), OrchestratorError> {
        for live in self.roster.all() {
            let since = self.summary(&live.task_id).await?.created_at;
            let CallableAgents::Only(names) = &live.agents else { continue };
            for name in names.iter().filter_map(|name| AgentName::parse(name).ok()) {
                let Some(last) = self.last_of(&name).await? else { continue };
                let news = match last.ended_at {
                    Some(ended_at) if ended_at > since => self.end_of(&last).await?,
                    None if last.created_at > since => LifecycleNotice::Added,
                    Some(_) | None => continue,
                };
                self.tell_peer(&live.task_id, &name, &last.task_id, &news).await?;
            }
        }
        Ok(())
    }

    async fn end_of(&self, task: &TaskSummary) -> Result<LifecycleNotice, OrchestratorError> {
        let Outcome { status, content: why, .. } = self.outcome(task).await?;
        Ok(LifecycleNotice::Ended { status, why, at_kickoff: task.turns == 0 })
    }

    /// An agent is no longer defined.
    pub(crate) async fn unwire(
        self: &Arc<Self>,
        name: &AgentName,
    ) -> Result<(), OrchestratorError> {
        let Some(task_id) = self.roster.find(name) else { return Ok(()) };
        self.tell_peers(name, &task_id, LifecycleNotice::Unwired).await
    }

    /// Notes a live agent that was there before this process.
    pub(crate) async fn enroll(&self, task: &TaskSummary) -> Result<(), OrchestratorError> {
        let Ok(name) = AgentName::parse(&task.agent) else { return Ok(()) };
        if !is_resident(task) {
            return Ok(());
        }
        let (created, _) = tree::beginning(&task.task_id, &*self.world.journal).await?;
        if created.resident {
            let live = Live { task_id: task.task_id.clone(), agents: created.agents };
            self.roster.enter(name, live);
        }
        Ok(())
    }

    /// A task has ended: if it was an agent's, the agent is there no more.
    pub(crate) fn retire(self: &Arc<Self>, task_id: &TaskId, outcome: &Outcome) {
        self.outstanding.forget(task_id);
        let Some(name) = self.roster.forget(task_id) else { return };
        let (inner, task_id, outcome) = (Arc::clone(self), task_id.clone(), outcome.clone());
        self.tracker.spawn(async move {
            let turns = inner.summary(&task_id).await.map(|summary| summary.turns);
            let news = LifecycleNotice::Ended {
                status: outcome.status,
                why: outcome.content,
                at_kickoff: turns.is_ok_and(|turns| turns == 0),
            };
            if let Err(error) = inner.tell_peers(&name, &task_id, news).await {
                tracing::warn!(agent.name = %name, %error, "its peers were not told of its end");
            }
        });
    }
}
