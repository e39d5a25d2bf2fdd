//! The events, and the index over them.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::num::NonZeroUsize;
use std::sync::Arc;

use antiphon_core::port::{
    AgentQuery, Append, Appended, ApprovalQuery, ApprovalSelector, IdempotencyKey, QueuedQuery,
    Read, SessionQuery, TaskFilter, TaskHead, TaskQuery, TaskSelector,
};
use antiphon_core::{
    Approval, ApprovalId, ApprovalStatus, DayRange, Event, EventBody, InteractionId, LiveAgent,
    Position, QueuedMessage, Replied, Seq, SessionId, SessionSummary, Spending, SpendingFold,
    TaskId, TaskSummary,
};

use super::PAGE_EVENTS_MAX;
use super::task_state::TaskState;

#[derive(Debug, Default)]
pub(super) struct JournalState {
    /// The event at index `n` has position `n + 1`. Shared, so that a page is copied after
    /// the lock is released.
    events: Vec<Arc<Event>>,
    tasks: HashMap<TaskId, TaskState>,
    /// Tasks in the order of their creation.
    created: Vec<TaskId>,
    keys: HashMap<IdempotencyKey, Appended>,
    /// Position of the first request of each approval.
    requested: HashMap<ApprovalId, Position>,
    /// The first final answer to each request.
    replies: HashMap<InteractionId, Replied>,
    spending: SpendingFold,
}

impl JournalState {
    pub(super) fn len(&self) -> usize {
        self.events.len()
    }

    pub(super) fn head(&self) -> Position {
        Position(self.events.len() as u64)
    }

    pub(super) fn answered(&self, key: &IdempotencyKey) -> Option<&Appended> {
        self.keys.get(key)
    }

    pub(super) fn place(&self, task_id: &TaskId) -> Option<TaskHead> {
        self.tasks.get(task_id).map(TaskState::head)
    }

    /// Writes an append that was checked.
    pub(super) fn write(&mut self, append: Append) -> Appended {
        let Append { task_id, expected: _, at, events, key } = append;
        let mut seq = self.place(&task_id).map_or(Seq(0), |head| head.seq);
        for body in events {
            seq.0 += 1;
            let position = Position(self.head().0 + 1);
            let event = Event { position, task_id: task_id.clone(), seq, at, body };
            self.fold(&event);
            self.events.push(Arc::new(event));
        }
        let appended = Appended { task_id, seq, position: self.head(), deduplicated: false };
        if let Some(key) = key {
            self.keys.insert(key, appended.clone());
        }
        appended
    }

    fn fold(&mut self, event: &Event) {
        let Event { position, task_id, at, body, .. } = event;
        if let EventBody::Replied(replied) = body
            && replied.status.is_final()
        {
            self.replies.entry(replied.in_reply_to).or_insert_with(|| replied.clone());
        }
        match self.tasks.entry(task_id.clone()) {
            Entry::Occupied(mut task) => {
                task.get_mut().add(event);
                self.spending.apply(&task.get().summary, body, *at);
                if let EventBody::ApprovalRequested(request) = body
                    && let Entry::Vacant(first) = self.requested.entry(request.approval_id.clone())
                {
                    first.insert(*position);
                    task.get_mut().ask(event, request);
                }
            }
            Entry::Vacant(place) => {
                if let EventBody::TaskCreated(created) = body {
                    let summary = TaskSummary::created(task_id.clone(), created, *at);
                    place.insert(TaskState::begin(*position, summary));
                    self.created.push(task_id.clone());
                }
            }
        }
    }

    /// Events after a position, at most one page.
    pub(super) fn behind(&self, read: &Read) -> Vec<Arc<Event>> {
        let limit = read.limit.get().min(PAGE_EVENTS_MAX);
        match &read.task_id {
            None => self.events[index(read.after).min(self.events.len())..]
                .iter()
                .take(limit)
                .cloned()
                .collect(),
            Some(task_id) => {
                let positions = self.tasks.get(task_id).map_or(&[][..], |task| &task.positions);
                let seen = positions.partition_point(|position| *position <= read.after);
                positions[seen..]
                    .iter()
                    .take(limit)
                    .map(|position| Arc::clone(&self.events[index(*position) - 1]))
                    .collect()
            }
        }
    }

    pub(super) fn tasks(&self, query: &TaskQuery) -> Vec<TaskSummary> {
        if let TaskSelector::Matching(filter) = &query.which {
            return self.matching(filter, query.limit);
        }
        let listed = self.newest().filter(|task| {
            let task = &task.summary;
            match &query.which {
                TaskSelector::All => true,
                TaskSelector::Roots => task.parent.is_none(),
                TaskSelector::Unfinished => !task.status.is_terminal(),
                TaskSelector::One(task_id) => task.task_id == *task_id,
                TaskSelector::IdPrefix(start) => task.task_id.is_named_by(start),
                TaskSelector::Tree(root) => task.root == *root,
                TaskSelector::Session(session_id) => task.session_id == *session_id,
                TaskSelector::Matching(filter) => filter.matches(task),
            }
        });
        listed.take(query.limit.get()).map(|task| task.summary.clone()).collect()
    }

    fn matching(&self, filter: &TaskFilter, limit: NonZeroUsize) -> Vec<TaskSummary> {
        let older = self.newest_before(filter.before.as_ref());
        let listed = older.map(|task| &task.summary).filter(|task| filter.matches(task));
        listed.take(limit.get()).cloned().collect()
    }

    pub(super) fn spending(&self, days: DayRange) -> Spending {
        self.spending.during(days, self.head())
    }

    pub(super) fn sessions(&self, query: &SessionQuery) -> Vec<SessionSummary> {
        let mut sessions: Vec<SessionSummary> = Vec::new();
        let mut known: HashMap<&SessionId, usize> = HashMap::new();
        for TaskState { summary: task, .. } in self.newest() {
            let place = *known.entry(&task.session_id).or_insert(sessions.len());
            if place == sessions.len() {
                sessions.push(SessionSummary {
                    session_id: task.session_id.clone(),
                    title: String::new(),
                    tasks: 0,
                    last_task: task.task_id.clone(),
                    status: task.status,
                    created_at: task.session_created_at(),
                    updated_at: task.session_updated_at(),
                });
            }
            // The last one visited is the first task of its session.
            let session = &mut sessions[place];
            session.title.clone_from(&task.title);
            session.created_at = task.session_created_at();
            session.tasks += 1;
        }
        let older = self.is_before(query.before.as_ref());
        sessions.retain(|session| older(&session.last_task));
        sessions.truncate(query.limit.get());
        sessions
    }

    pub(super) fn approvals(&self, query: &ApprovalQuery) -> Vec<Approval> {
        let requested = self.tasks.values().flat_map(|task| &task.approvals);
        let is_of = |approval: &Approval, payer: &String| {
            let task = self.tasks.get(&approval.task_id);
            task.is_some_and(|task| task.summary.payer.as_ref() == Some(payer))
        };
        let listed = requested.filter(|(_, approval)| match &query.which {
            ApprovalSelector::All => true,
            ApprovalSelector::Pending => approval.status == ApprovalStatus::Pending,
            ApprovalSelector::AllOf(payer) => is_of(approval, payer),
            ApprovalSelector::PendingOf(payer) => {
                approval.status == ApprovalStatus::Pending && is_of(approval, payer)
            }
            ApprovalSelector::PendingIn(root) => {
                let task = self.tasks.get(&approval.task_id);
                approval.status == ApprovalStatus::Pending
                    && task.is_some_and(|task| task.summary.root == *root)
            }
            ApprovalSelector::One(approval_id) => approval.approval_id == *approval_id,
        });
        let after = match &query.after {
            None => Position(0),
            Some(after) => match self.requested.get(after) {
                Some(position) => *position,
                None => return Vec::new(),
            },
        };
        in_order(listed, after, query.limit)
    }

    pub(super) fn agents(&self, query: &AgentQuery) -> Vec<LiveAgent> {
        let older = self.newest_before(query.before.as_ref());
        older.filter_map(TaskState::agent).take(query.limit.get()).collect()
    }

    pub(super) fn queued(&self, query: &QueuedQuery) -> Vec<QueuedMessage> {
        let queued = self.tasks.values().flat_map(|task| &task.queued);
        in_order(queued, query.after, query.limit)
    }

    pub(super) fn reply(&self, request: InteractionId) -> Option<Replied> {
        self.replies.get(&request).cloned()
    }

    /// Tasks created before `before`, the newest first. None when `before` does not exist.
    fn newest_before(&self, before: Option<&TaskId>) -> impl Iterator<Item = &TaskState> {
        let older = self.is_before(before);
        self.newest().filter(move |task| older(&task.summary.task_id))
    }

    /// Whether a task was created before `before`.
    fn is_before(&self, before: Option<&TaskId>) -> impl Fn(&TaskId) -> bool {
        let created =
            |task_id: &TaskId| self.tasks.get(task_id).and_then(|task| task.positions.first());
        let bound = match before {
            None => Some(&Position(u64::MAX)),
            Some(before) => created(before),
        };
        move |task_id| bound.is_some_and(|bound| created(task_id) < Some(bound))
    }

    fn newest(&self) -> impl Iterator<Item = &TaskState> {
        self.created.iter().rev().filter_map(|task_id| self.tasks.get(task_id))
    }
}

fn in_order<'a, T: Clone + 'a>(
    found: impl Iterator<Item = &'a (Position, T)>,
    after: Position,
    limit: NonZeroUsize,
) -> Vec<T> {
    let mut found: Vec<_> = found.filter(|(position, _)| *position > after).collect();
    found.sort_by_key(|(position, _)| *position);
    found.into_iter().take(limit.get()).map(|(_, value)| value.clone()).collect()
}

fn index(position: Position) -> usize {
    usize::try_from(position.0).unwrap_or(usize::MAX)
}
