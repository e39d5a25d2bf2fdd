//! The guarantees for senders: an accepted interaction is read once, in order, and every request has one
//! final answer, which arrives once.

use std::collections::{BTreeMap, BTreeSet};

use antiphon_core::{
    EventBody, HandlingMode, InteractionId, Message, MessageQueued, PeerInputClass, TaskId,
    ToolCallBlock,
};
use serde_json::Value;

use super::RecordedTasks;
use crate::tree::{message, starts_call, text};

impl RecordedTasks {
    /// Every queued interaction is in one inbox, once, and was read once; a request may be answered
    /// unread. Unread interactions of a stopped agent are in the inbox of its next task, too.
    pub(crate) fn check_queued(&self) {
        let mut queued_in: BTreeMap<InteractionId, Vec<(&TaskId, &MessageQueued)>> =
            BTreeMap::new();
        for (task_id, _, queued) in self.queued() {
            queued_in.entry(queued.id).or_default().push((task_id, queued));
        }
        for (id, inboxes) in &queued_in {
            let tasks: BTreeSet<&TaskId> = inboxes.iter().map(|(task_id, _)| *task_id).collect();
            let at = format!("{id} in {}", self.describe(inboxes[0].0));
            assert_eq!(tasks.len(), inboxes.len(), "it was queued twice: {at}");
            let ends = |of: &dyn Fn(&TaskId, &TaskId) -> bool| -> Vec<&TaskId> {
                let alone = |task_id: &&TaskId| !tasks.iter().any(|other| of(task_id, other));
                tasks.iter().copied().filter(alone).collect()
            };
            let first = ends(&|task_id, other| self.continues(task_id, other));
            let last = ends(&|task_id, other| self.continues(other, task_id));
            assert_eq!((first.len(), last.len()), (1, 1), "it was queued in {tasks:?}: {at}");
            self.check_read(*id, inboxes[0].1, last[0], &at);
        }
        for (task_id, _, body) in self.bodies() {
            if let EventBody::MessageAppended(appended) = body
                && let Some(id) = appended.queued
            {
                assert!(
                    queued_in.contains_key(&id),
                    "{id} was never queued: {}",
                    self.describe(task_id)
                );
            }
        }
    }

    /// Whether a task continues the conversation of another.
    fn continues(&self, task_id: &TaskId, other: &TaskId) -> bool {
        let history = self.created(task_id).history.as_ref();
        history.is_some_and(|history| history.task_id == *other)
    }

    fn check_read(&self, id: InteractionId, queued: &MessageQueued, last: &TaskId, at: &str) {
        let appended = self.appended(id);
        assert!(appended.len() <= 1, "it was read in {appended:?}: {at}");
        assert!(appended.iter().all(|(task_id, _)| *task_id == last), "{appended:?}: {at}");
        let answers = self.answers(id).len();
        assert_eq!(answers, usize::from(queued.expects_answer()), "its answers: {at}");
        let may_wait = match queued.class {
            PeerInputClass::PeerLifecycleAdded
            | PeerInputClass::PeerLifecycleRetired
            | PeerInputClass::PeerLifecycleUnwired => true,
            PeerInputClass::ActionableMessage
            | PeerInputClass::ActionableRequest
            | PeerInputClass::SilentRequest
            | PeerInputClass::Response
            | PeerInputClass::PeerLifecycleKickoffFailed
            | PeerInputClass::PeerLifecycleKickoffCancelled
            | PeerInputClass::Ack
            | PeerInputClass::PlainEvent => false,
        };
        assert!(appended.len() + answers > 0 || may_wait, "it was not read: {queued:?}: {at}");
    }

    /// Interactions of one sender to one agent were read in the order in which they were queued.
    pub(crate) fn check_order(&self) {
        let mut queues: BTreeMap<_, Vec<InteractionId>> = BTreeMap::new();
        for (task_id, _, queued) in self.queued() {
            if queued.mode == HandlingMode::Queue && queued.wakes() {
                let queue = (task_id, queued.from.to_string(), queued.salience());
                queues.entry(queue).or_default().push(queued.id);
            }
        }
        for ((task_id, from, _), ids) in queues {
            let index = |id: &InteractionId| {
                let appended = self.appended(*id).into_iter().find(|(task, _)| *task == task_id);
                appended.map(|(_, index)| index)
            };
            let indexes: Vec<usize> = ids.iter().filter_map(index).collect();
            assert!(indexes.is_sorted(), "of {from}: {indexes:?}: {}", self.describe(task_id));
        }
    }

    /// Every request to a peer was sent once and has one final answer. The requester gets that answer
    /// once. Returns the number of requests.
    pub(crate) fn check_requests(&self) -> usize {
        let mut sent = BTreeSet::new();
        for (task_id, request) in self.sent() {
            let at = format!("request {} of {}", request.id, self.describe(task_id));
            assert!(sent.insert(request.id), "it was sent twice: {at}");
            assert!(!self.is_ended(task_id), "a requester was stopped: {at}");
            let responses =
                self.queued().filter(|(.., queued)| queued.final_answer_to() == Some(request.id));
            let responses: Vec<_> = responses.collect();
            let [(requester, _, response)] = responses[..] else { panic!("{responses:?}: {at}") };
            assert_eq!(requester, task_id, "{at}");
            assert_eq!(response.from.to_string(), request.to.as_str(), "{at}");
            let answers = self.answers(request.id);
            assert!(answers.len() <= 1, "{answers:?}: {at}");
            let content = serde_json::to_value(&response.content).unwrap();
            for (_, answer) in &answers {
                let status = serde_json::to_value(answer.status).unwrap();
                assert_eq!(
                    (&content["status"], &content["result"]),
                    (&status, &answer.result),
                    "{at}"
                );
            }
            // Without an answer in the journal, the peer did not run.
            let refused = content["result"]["code"] == "rejected";
            assert_eq!(refused, answers.is_empty(), "{content}: {at}");
        }
        sent.len()
    }

    /// Every call started at most once and has one result.
    pub(crate) fn check_calls(&self) {
        for (task_id, bodies) in &self.tasks {
            for call in calls(bodies) {
                let at = format!("{} in {}", call.id, self.describe(task_id));
                let starts = bodies.iter().filter(|body| starts_call(body, &call.id)).count();
                assert!(starts <= 1, "started {starts} times: {at}");
                let results = results(bodies, call).len();
                assert_eq!(results, 1, "its results: {at}");
            }
        }
    }

    /// Every mark was written once by its call, at most once by an interrupted call, and by no other.
    /// Returns how many calls were interrupted.
    pub(crate) fn check_marks(&self, marks: &str) -> usize {
        let (mut interrupted, mut known) = (0, 0);
        for (task_id, bodies) in &self.tasks {
            for call in calls(bodies).filter(|call| call.name == "bash") {
                let at = self.describe(task_id);
                let arguments = call.arguments.object().unwrap().as_str();
                let arguments: Value = serde_json::from_str(arguments).unwrap();
                let command = arguments["command"].as_str().unwrap();
                let mark = command.strip_prefix("echo '").unwrap();
                let mark = mark.strip_suffix("' >> marks").unwrap();
                let times = marks.lines().filter(|line| *line == mark).count();
                known += times;
                assert!(times <= 1, "{mark} was written {times} times: {at}\n{marks}");
                let started = bodies.iter().any(|body| starts_call(body, &call.id));
                assert!(started || times == 0, "{mark} was written and never started: {at}");
                let (is_error, output) = results(bodies, call).remove(0);
                if is_error {
                    assert!(output.contains("outcome unknown"), "{mark} failed: {output}: {at}");
                    interrupted += 1;
                } else {
                    assert_eq!(times, 1, "{mark}: {at}");
                }
            }
        }
        assert_eq!(marks.lines().count(), known, "{}\n{marks}", self.context);
        interrupted
    }
}

fn calls(bodies: &[EventBody]) -> impl Iterator<Item = &ToolCallBlock> {
    bodies.iter().filter_map(message).flat_map(|message| match message {
        Message::Assistant(answer) => answer.tool_calls().collect(),
        Message::User(_) | Message::ToolResult(_) => Vec::new(),
    })
}

/// Whether each result of a call is an error, and its text.
fn results(bodies: &[EventBody], call: &ToolCallBlock) -> Vec<(bool, String)> {
    let result = |message: &Message| match message {
        Message::ToolResult(result) if result.tool_call_id == call.id => {
            Some((result.is_error, text(&result.content)))
        }
        Message::ToolResult(_) | Message::User(_) | Message::Assistant(_) => None,
    };
    bodies.iter().filter_map(message).filter_map(result).collect()
}
