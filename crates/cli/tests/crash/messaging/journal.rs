//! The tasks in the journal, and the guarantees about them.

mod guarantees;
mod receipts;

use std::collections::BTreeMap;

use antiphon_core::{
    EventBody, InteractionId, MessageQueued, Replied, RequestSent, TaskCreated, TaskId,
};

/// The events of the journal by task.
pub(crate) struct RecordedTasks {
    /// Seed and kills of the run, for failure messages.
    context: String,
    tasks: BTreeMap<TaskId, Vec<EventBody>>,
}

impl RecordedTasks {
    /// Checks that every task is created once, and that no event follows its end.
    pub(crate) fn of(tasks: BTreeMap<TaskId, Vec<EventBody>>, context: &str) -> Self {
        for (task_id, bodies) in &tasks {
            let created = bodies.iter().filter(|body| matches!(body, EventBody::TaskCreated(_)));
            assert_eq!(created.count(), 1, "{task_id}: {context}");
            assert!(matches!(bodies[0], EventBody::TaskCreated(_)), "{task_id}: {context}");
            let before_last = &bodies[..bodies.len() - 1];
            assert!(!before_last.iter().any(EventBody::ends_task), "{task_id}: {context}");
        }
        Self { context: context.to_owned(), tasks }
    }

    fn created(&self, task_id: &TaskId) -> &TaskCreated {
        let EventBody::TaskCreated(created) = &self.tasks[task_id][0] else {
            panic!("{task_id} has no creation: {}", self.context);
        };
        created
    }

    /// Describes a task in failure messages.
    fn describe(&self, task_id: &TaskId) -> String {
        format!("{} {task_id}: {}", self.created(task_id).agent, self.context)
    }

    fn bodies(&self) -> impl Iterator<Item = (&TaskId, usize, &EventBody)> {
        self.tasks.iter().flat_map(|(task_id, bodies)| {
            bodies.iter().enumerate().map(move |(index, body)| (task_id, index, body))
        })
    }

    /// Every queued interaction, with its task and the index of the event.
    fn queued(&self) -> impl Iterator<Item = (&TaskId, usize, &MessageQueued)> {
        self.bodies().filter_map(|(task_id, index, body)| {
            if let EventBody::MessageQueued(queued) = body {
                Some((task_id, index, queued))
            } else {
                None
            }
        })
    }

    /// Where an interaction was appended to a conversation.
    fn appended(&self, id: InteractionId) -> Vec<(&TaskId, usize)> {
        let appended = self.bodies().filter_map(|(task_id, index, body)| {
            if let EventBody::MessageAppended(appended) = body
                && appended.queued == Some(id)
            {
                Some((task_id, index))
            } else {
                None
            }
        });
        appended.collect()
    }

    /// The final answers to a request.
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

    /// The queued interactions that contain a word, each once: one that was carried over to the next
    /// task of an agent is the same.
    fn with_word(&self, word: &str) -> Vec<InteractionId> {
        let text = |queued: &MessageQueued| serde_json::to_string(&queued.content).unwrap();
        let found = self.queued().filter(|(.., queued)| text(queued).contains(word));
        let mut ids: Vec<InteractionId> = found.map(|(.., queued)| queued.id).collect();
        ids.sort();
        ids.dedup();
        ids
    }
}
