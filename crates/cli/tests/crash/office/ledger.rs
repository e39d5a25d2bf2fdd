//! What the journal tells of an office, and what must hold of it.

mod books;
mod promises;

use std::collections::BTreeMap;

use antiphon_core::{
    EventBody, InteractionId, MessageQueued, Replied, RequestSent, TaskCreated, TaskId,
};

/// What the journal tells of an office.
pub(crate) struct Ledger {
    /// Where to look when something does not hold.
    place: String,
    tasks: BTreeMap<TaskId, Vec<EventBody>>,
}

impl Ledger {
    /// Every task begins once, and nothing follows its end.
    pub(crate) fn of(tasks: BTreeMap<TaskId, Vec<EventBody>>, place: &str) -> Self {
        for (task_id, bodies) in &tasks {
            let created = bodies.iter().filter(|body| matches!(body, EventBody::TaskCreated(_)));
            assert_eq!(created.count(), 1, "{task_id}: {place}");
            assert!(matches!(bodies[0], EventBody::TaskCreated(_)), "{task_id}: {place}");
            let before_last = &bodies[..bodies.len() - 1];
            assert!(!before_last.iter().any(EventBody::ends_task), "{task_id}: {place}");
        }
        Self { place: place.to_owned(), tasks }
    }

    fn created(&self, task_id: &TaskId) -> &TaskCreated {
        let EventBody::TaskCreated(created) = &self.tasks[task_id][0] else {
            panic!("{task_id} does not begin: {}", self.place);
        };
        created
    }

    /// Whose task it is, for whoever reads that something does not hold.
    fn at(&self, task_id: &TaskId) -> String {
        format!("{} {task_id}: {}", self.created(task_id).agent, self.place)
    }

    fn bodies(&self) -> impl Iterator<Item = (&TaskId, usize, &EventBody)> {
        self.tasks.iter().flat_map(|(task_id, bodies)| {
            bodies.iter().enumerate().map(move |(index, body)| (task_id, index, body))
        })
    }

    /// Everything that arrived, with where and when in its task.
    fn arrivals(&self) -> impl Iterator<Item = (&TaskId, usize, &MessageQueued)> {
        self.bodies().filter_map(|(task_id, index, body)| {
            if let EventBody::MessageQueued(queued) = body {
                Some((task_id, index, queued))
            } else {
                None
            }
        })
    }

    /// Where something joined a conversation.
    fn joined(&self, id: InteractionId) -> Vec<(&TaskId, usize)> {
        let joined = self.bodies().filter_map(|(task_id, index, body)| {
            if let EventBody::MessageAppended(appended) = body
                && appended.queued == Some(id)
            {
                Some((task_id, index))
            } else {
                None
            }
        });
        joined.collect()
    }

    /// The final answers to a request, as they were given.
    fn answers(&self, request: InteractionId) -> Vec<(&TaskId, &Replied)> {
        let answers = self.bodies().filter_map(|(task_id, _, body)| {
            if let EventBody::Replied(replied) = body
                && replied.in_reply_to == request
                && replied.status.is_final()
            {
                Some((task_id, replied))
            } else {
                None
            }
        });
        answers.collect()
    }

    fn sent(&self) -> impl Iterator<Item = (&TaskId, &RequestSent)> {
        self.bodies().filter_map(|(task_id, _, body)| {
            if let EventBody::RequestSent(sent) = body { Some((task_id, sent)) } else { None }
        })
    }

    fn is_ended(&self, task_id: &TaskId) -> bool {
        self.tasks[task_id].last().is_some_and(EventBody::ends_task)
    }

    /// The arrivals in whose text a word stands, each once: what was carried over to the next task of
    /// an agent is the same.
    fn with_word(&self, word: &str) -> Vec<InteractionId> {
        let said = |queued: &MessageQueued| serde_json::to_string(&queued.content).unwrap();
        let found = self.arrivals().filter(|(.., queued)| said(queued).contains(word));
        let mut ids: Vec<InteractionId> = found.map(|(.., queued)| queued.id).collect();
        ids.sort();
        ids.dedup();
        ids
    }
}
