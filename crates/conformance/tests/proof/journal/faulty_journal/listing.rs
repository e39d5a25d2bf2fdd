//! Faults of lists of tasks and sessions.

use std::num::NonZeroUsize;

use antiphon_core::port::{
    JournalError, JournalIndex, SessionQuery, TaskFilter, TaskIndex, TaskQuery, TaskSelector,
};
use antiphon_core::{ORDERS, SessionSummary, TaskSummary};

use super::{Fault, FaultyJournal};

#[expect(clippy::wildcard_enum_match_arm, reason = "a fault is wrong in one respect")]
impl FaultyJournal {
    pub(super) async fn list_wrongly(
        &self,
        mut query: TaskQuery,
    ) -> Result<Vec<TaskSummary>, JournalError> {
        if self.fault == Fault::ListsOneMore && query.which == TaskSelector::All {
            query.limit = query.limit.saturating_add(1);
        }
        if let (Fault::IgnoresPayers, TaskSelector::Matching(filter)) =
            (self.fault, &mut query.which)
        {
            filter.payer = None;
        }
        let which = query.which.clone();
        let mut tasks = match self.selected_wrongly(&query).await? {
            Some(tasks) => tasks,
            None => self.inner.tasks(query).await?,
        };
        if self.fault == Fault::ListsByName && which == TaskSelector::All {
            tasks.sort_by(|a, b| b.task_id.cmp(&a.task_id));
        }
        if self.fault == Fault::TakesWaitingForDone && which == TaskSelector::Unfinished {
            tasks.pop();
        }
        for task in &mut tasks {
            self.sum_up_wrongly(task).await;
        }
        Ok(tasks)
    }

    /// Other tasks than the query selects.
    async fn selected_wrongly(
        &self,
        query: &TaskQuery,
    ) -> Result<Option<Vec<TaskSummary>>, JournalError> {
        let all = TaskQuery { which: TaskSelector::All, limit: NonZeroUsize::MAX };
        let mut tasks = self.inner.tasks(all).await?;
        match (self.fault, &query.which) {
            (Fault::FindsUnfinishedTasksOnly, TaskSelector::One(id)) => {
                tasks.retain(|task| task.task_id == *id && task.ended_at.is_none());
            }
            (Fault::TakesBeginningsForPatterns, TaskSelector::IdPrefix(start)) => {
                tasks.retain(|task| {
                    let random = task.task_id.random_part();
                    is_like(task.task_id.as_str(), start)
                        || random.is_some_and(|part| part.starts_with(start))
                });
            }
            (Fault::KnowsNoRandomParts, TaskSelector::IdPrefix(start)) => {
                tasks.retain(|task| task.task_id.as_str().starts_with(start));
            }
            (Fault::LeavesOutGrandchildren, TaskSelector::Tree(root)) => {
                let near = |task: &TaskSummary| {
                    task.task_id == task.root || task.parent.as_ref() == Some(root)
                };
                tasks.retain(|task| task.root == *root && near(task));
            }
            (Fault::TakesChildrenForTops, TaskSelector::Roots) => {}
            (Fault::LeavesOutTheTop, TaskSelector::Tree(root)) => {
                tasks.retain(|task| task.root == *root && task.task_id != *root);
            }
            (Fault::FindsSessionsByPrefix, TaskSelector::Session(session)) => {
                tasks.retain(|task| task.session_id.as_str().starts_with(session.as_str()));
            }
            (_, TaskSelector::Matching(filter)) => {
                return self.matching_wrongly(filter, query.limit).await;
            }
            _ => return Ok(None),
        }
        tasks.truncate(query.limit.get());
        Ok(Some(tasks))
    }

    async fn matching_wrongly(
        &self,
        filter: &TaskFilter,
        limit: NonZeroUsize,
    ) -> Result<Option<Vec<TaskSummary>>, JournalError> {
        let mut asked = filter.clone();
        match self.fault {
            Fault::LooksAtTheStatusOnly => {
                (asked.agent, asked.session, asked.roots) = (None, None, false);
            }
            Fault::BeginsAnewBehindNothing => {
                let all = TaskQuery { which: TaskSelector::All, limit: NonZeroUsize::MAX };
                let there = self.inner.tasks(all).await?;
                asked.before.take_if(|before| !there.iter().any(|task| task.task_id == *before));
            }
            Fault::TakesAllOfThatNameForOrders | Fault::BeginsAPageWithTheLastOne => {}
            _ => return Ok(None),
        }
        let which = TaskSelector::Matching(asked);
        let mut tasks = self.inner.tasks(TaskQuery { which, limit: NonZeroUsize::MAX }).await?;
        if self.fault == Fault::TakesAllOfThatNameForOrders && filter.without_records {
            tasks.retain(|task| task.agent != ORDERS);
        }
        if let (Fault::BeginsAPageWithTheLastOne, Some(before)) = (self.fault, &filter.before) {
            let one = TaskQuery { which: TaskSelector::One(before.clone()), limit };
            tasks.splice(0..0, self.inner.tasks(one).await?);
        }
        tasks.truncate(limit.get());
        Ok(Some(tasks))
    }

    pub(super) async fn list_sessions_wrongly(
        &self,
        mut query: SessionQuery,
    ) -> Result<Vec<SessionSummary>, JournalError> {
        if self.fault == Fault::ListsOneMoreSession {
            query.limit = query.limit.saturating_add(1);
        }
        if self.fault == Fault::IgnoresCursorOfSessions {
            query.before = None;
        }
        let all = TaskQuery { which: TaskSelector::All, limit: NonZeroUsize::MAX };
        let tasks = self.inner.tasks(all).await?;
        let mut sessions = self.inner.sessions(query).await?;
        if self.fault == Fault::ListsSessionsByTheirFirstTasks {
            let first = |session: &SessionSummary| {
                tasks.iter().rposition(|task| task.session_id == session.session_id)
            };
            sessions.sort_by_key(first);
        }
        for session in &mut sessions {
            let of_it = tasks.iter().filter(|task| task.session_id == session.session_id);
            if self.fault == Fault::CountsUnfinishedTasksOnly && session.tasks > 2 {
                session.tasks = of_it.clone().filter(|task| task.ended_at.is_none()).count() as u64;
            }
            if self.fault == Fault::DatesImportsByTheirEvents {
                session.created_at = of_it.clone().map(|task| task.created_at).min().unwrap();
            }
            if self.fault == Fault::TitlesSessionsByTheirLastTask {
                session.title = of_it.map(|task| task.title.clone()).next().unwrap();
            }
        }
        Ok(sessions)
    }
}

/// Like SQL's `LIKE`, where `_` is any character.
fn is_like(text: &str, start: &str) -> bool {
    let mut characters = text.chars();
    start
        .chars()
        .all(|expected| characters.next().is_some_and(|c| c == expected || expected == '_'))
}
