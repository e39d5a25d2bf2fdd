//! All lists of a journal's index.

use std::num::NonZeroUsize;

use antiphon_core::port::{
    ApprovalQuery, ApprovalSelector, Journal, JournalError, TaskFilter, TaskQuery, TaskSelector,
};
use antiphon_core::{
    Approval, DayRange, LiveAgent, QueuedMessage, Replied, SessionSummary, Spending, TaskStatus,
    TaskSummary,
};
use chrono::NaiveDate;

use crate::any_history::{
    INTERACTIONS, SESSIONS, TASKS, approval_id, interaction_id, session_id, task,
};

#[derive(Debug, PartialEq)]
pub(crate) struct Glance {
    tasks: Vec<Vec<TaskSummary>>,
    sessions: Vec<Vec<SessionSummary>>,
    approvals: Vec<Vec<Approval>>,
    agents: Vec<Vec<LiveAgent>>,
    queued: Vec<Vec<QueuedMessage>>,
    replies: Vec<Option<Replied>>,
    spending: Spending,
}

impl Glance {
    pub(crate) async fn at(journal: &dyn Journal) -> Self {
        Self::try_at(journal).await.expect("lists")
    }

    async fn try_at(journal: &dyn Journal) -> Result<Self, JournalError> {
        let mut glance = Self {
            tasks: Vec::new(),
            sessions: Vec::new(),
            approvals: Vec::new(),
            agents: Vec::new(),
            queued: Vec::new(),
            replies: Vec::new(),
            spending: journal.spending(EVER).await?,
        };
        for n in 0..INTERACTIONS {
            glance.replies.push(journal.reply(interaction_id(n)).await?);
        }
        for limit in [NonZeroUsize::MAX, NonZeroUsize::MIN.saturating_add(1)] {
            for which in every_selection() {
                glance.tasks.push(journal.tasks(TaskQuery { which, limit }).await?);
            }
            for which in [
                ApprovalSelector::All,
                ApprovalSelector::Pending,
                ApprovalSelector::One(approval_id(1)),
            ] {
                glance
                    .approvals
                    .push(journal.approvals(ApprovalQuery { which, after: None, limit }).await?);
            }
            glance.sessions.push(journal.sessions(limit.into()).await?);
            glance.agents.push(journal.agents(limit.into()).await?);
            glance.queued.push(journal.queued(limit.into()).await?);
        }
        Ok(glance)
    }
}

const EVER: DayRange = DayRange { from: NaiveDate::MIN, to: NaiveDate::MAX };

fn every_selection() -> Vec<TaskSelector> {
    let mut every = vec![
        TaskSelector::All,
        TaskSelector::Unfinished,
        TaskSelector::IdPrefix("task".to_owned()),
    ];
    for number in 0..TASKS {
        every.push(TaskSelector::One(task(number)));
        every.push(TaskSelector::Tree(task(number)));
    }
    every.extend((0..SESSIONS).map(|number| TaskSelector::Session(session_id(number))));
    every.extend(filters().into_iter().map(TaskSelector::Matching));
    every
}

fn filters() -> Vec<TaskFilter> {
    let any = TaskFilter::default();
    let mut filters = vec![any.clone()];
    for statuses in [vec![], vec![TaskStatus::Running], TaskStatus::ALL.to_vec()] {
        for agent in [None, Some("tester"), Some("lawyer")] {
            for session in [None, Some(session_id(0))] {
                for before in [None, Some(task(1))] {
                    filters.push(TaskFilter {
                        statuses: statuses.clone(),
                        agent: agent.map(str::to_owned),
                        session: session.clone(),
                        before,
                        ..any.clone()
                    });
                }
            }
        }
    }
    filters.push(TaskFilter { roots: true, ..any.clone() });
    filters.push(TaskFilter {
        without_records: true,
        statuses: vec![TaskStatus::Completed],
        ..any
    });
    filters
}
