//! Tells the user when an agent needs an answer or a task has ended, as `[notify]` of the user's settings says.
//!
//! The owner of the journal follows it from its end at the start. A notification names the agent, the project's folder
//! and the tool: never text of a conversation, arguments or results, which may be secret. It is tried once; one that
//! cannot be delivered, or is one of too many, is dropped with a line in the log.

mod delivery;

use std::collections::VecDeque;
use std::time::Duration;

use antiphon_core::{
    ApprovalRequested, Event, EventBody, Position, Question, StatusChanged, TaskStatus, escaped,
};
use antiphon_runtime::Orchestrator;
use antiphon_telemetry::{EventSource as _, SourceError};
use chrono::TimeDelta;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::project::Project;
use crate::settings::{NotifyConfig, NotifyWhen, UserSettings};
use crate::telemetry_follower::JournalEvents;
use delivery::Delivery;

/// Most notifications in a minute; further ones are dropped.
const PER_MINUTE_MAX: usize = 20;

const MINUTE: Duration = Duration::from_secs(60);

/// Longest name in a notification, in characters.
const NAME_CHARS_MAX: usize = 64;

/// How long the last notifications may take at the end of the process.
const SHUTDOWN_WAIT: Duration = Duration::from_secs(3);

/// How long a journal that cannot be read is left alone.
const RETRY_WAIT: Duration = Duration::from_secs(1);

/// What the user is told.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Notification {
    title: String,
    text: String,
}

/// Follows the journal and tells the user. The owner ends it with [`Notifications::shutdown`].
pub(crate) struct Notifications {
    orchestrator: Orchestrator,
    last: watch::Sender<Option<Position>>,
    follower: JoinSet<()>,
}

impl Notifications {
    /// Starts at the end of the journal; `None` when the user wants to be told nothing.
    pub(crate) fn start(
        project: &Project,
        settings: &UserSettings,
        orchestrator: &Orchestrator,
    ) -> Option<Self> {
        if !settings.notify.is_on() {
            return None;
        }
        let folder = project.root().file_name().unwrap_or_default().to_string_lossy();
        let teller = Teller {
            config: settings.notify.clone(),
            project: name(&folder),
            orchestrator: orchestrator.clone(),
            delivery: Delivery::new(&settings.notify, &settings.environment),
            told: VecDeque::new(),
        };
        let (last, last_receiver) = watch::channel(None);
        let mut follower = JoinSet::new();
        follower.spawn(teller.follow(last_receiver));
        Some(Self { orchestrator: orchestrator.clone(), last, follower })
    }

    /// Tells what is recorded by now, for a limited time. Call it after the orchestrator has stopped.
    pub(crate) async fn shutdown(mut self) {
        let told = async {
            if let Ok(head) = self.orchestrator.head().await {
                self.last.send_replace(Some(head));
                while self.follower.join_next().await.is_some() {}
            }
        };
        if tokio::time::timeout(SHUTDOWN_WAIT, told).await.is_err() {
            tracing::warn!("the last notifications were not delivered in time");
        }
        self.follower.shutdown().await;
    }
}

struct Teller {
    config: NotifyConfig,
    project: String,
    orchestrator: Orchestrator,
    delivery: Delivery,
    /// When notifications were sent in the last minute.
    told: VecDeque<Instant>,
}

impl Teller {
    async fn follow(mut self, last: watch::Receiver<Option<Position>>) {
        let after = loop {
            match self.orchestrator.head().await {
                Ok(head) => break head,
                Err(_) => tokio::time::sleep(RETRY_WAIT).await,
            }
        };
        let mut events = JournalEvents::new(&self.orchestrator, after, last);
        loop {
            match events.next().await {
                Ok(event) => self.tell(&event).await,
                Err(SourceError::Ended) => return,
                Err(SourceError::Unavailable { .. }) => tokio::time::sleep(RETRY_WAIT).await,
            }
        }
    }

    async fn tell(&mut self, event: &Event) {
        let Some(notification) = self.notification(event).await else { return };
        let now = Instant::now();
        self.told.retain(|at| now.duration_since(*at) < MINUTE);
        if self.told.len() >= PER_MINUTE_MAX {
            tracing::warn!(
                most = PER_MINUTE_MAX,
                "a notification is dropped: too many in a minute"
            );
            return;
        }
        self.told.push_back(now);
        self.delivery.deliver(&notification).await;
    }

    async fn notification(&self, event: &Event) -> Option<Notification> {
        let is_wanted = |when| self.config.when.contains(&when);
        if let EventBody::ApprovalRequested(asked) = &event.body
            && is_wanted(NotifyWhen::Question)
        {
            let created = self.orchestrator.created(&event.task_id).await.ok()?;
            return Some(self.of_agent(&created.agent, &question(asked)));
        }
        let EventBody::StatusChanged(changed) = &event.body else { return None };
        let how = end(changed).filter(|_| is_wanted(NotifyWhen::Done))?;
        let (created, at) = self.orchestrator.creation(&event.task_id).await.ok()?;
        // A live agent is never done, and the tasks of others are theirs to follow.
        let is_of_user = created.parent.is_none()
            && !created.resident
            && !created.followed
            && created.cancels.is_none()
            && created.payer.is_none();
        let after = TimeDelta::try_seconds(self.config.after_s.try_into().ok()?)?;
        (is_of_user && event.at - at >= after).then(|| self.of_agent(&created.agent, how))
    }

    fn of_agent(&self, agent: &str, what: &str) -> Notification {
        Notification {
            title: format!("Antiphon: {}", name(agent)),
            text: format!("{}: {what}", self.project),
        }
    }
}

fn question(asked: &ApprovalRequested) -> String {
    match &asked.question {
        None => format!("`{}` needs your answer", name(&asked.tool_name)),
        Some(Question::Choice(_)) => "a question for you".to_owned(),
        Some(Question::Plan(_)) => "a plan for you to accept".to_owned(),
    }
}

fn end(changed: &StatusChanged) -> Option<&'static str> {
    match changed.status {
        TaskStatus::Completed => Some("done"),
        TaskStatus::Failed => Some("failed"),
        // A person canceled it; the others go on.
        TaskStatus::Canceled
        | TaskStatus::Pending
        | TaskStatus::Running
        | TaskStatus::InputRequired => None,
    }
}

/// A name on one line, without control characters.
fn name(text: &str) -> String {
    escaped(text).chars().take(NAME_CHARS_MAX).collect()
}
