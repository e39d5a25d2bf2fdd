//! What was promised to those who send and ask: what was accepted is read once, in order, and every
//! request has one final answer, which arrives once.

use std::collections::{BTreeMap, BTreeSet};

use antiphon_core::{
    EventBody, HandlingMode, InteractionId, Message, MessageQueued, PeerInputClass, TaskId,
    ToolCallBlock,
};
use serde_json::Value;

use super::Ledger;
use crate::tree::{begins, message, text};

impl Ledger {
    /// Whatever arrived is in one inbox, once, and was read once; a request may have been answered
    /// unread. What an agent had not read when it was stopped is in the inbox of its next task, too.
    pub(crate) fn check_arrivals(&self) {
        let mut places: BTreeMap<InteractionId, Vec<(&TaskId, &MessageQueued)>> = BTreeMap::new();
        for (task_id, _, queued) in self.arrivals() {
            places.entry(queued.id).or_default().push((task_id, queued));
        }
        for (id, places) in &places {
            let tasks: BTreeSet<&TaskId> = places.iter().map(|(task_id, _)| *task_id).collect();
            let at = format!("{id} in {}", self.at(places[0].0));
            assert_eq!(tasks.len(), places.len(), "it arrived twice: {at}");
            let ends = |of: &dyn Fn(&TaskId, &TaskId) -> bool| -> Vec<&TaskId> {
                let alone = |task_id: &&TaskId| !tasks.iter().any(|other| of(task_id, other));
                tasks.iter().copied().filter(alone).collect()
            };
            let first = ends(&|task_id, other| self.is_behind(task_id, other));
            let last = ends(&|task_id, other| self.is_behind(other, task_id));
            assert_eq!((first.len(), last.len()), (1, 1), "it arrived in {tasks:?}: {at}");
            self.check_read(*id, places[0].1, last[0], &at);
        }
        for (task_id, _, body) in self.bodies() {
            if let EventBody::MessageAppended(appended) = body
                && let Some(id) = appended.queued
            {
                assert!(places.contains_key(&id), "{id} never arrived: {}", self.at(task_id));
            }
        }
    }

    /// Whether a task goes on with the conversation of another.
    fn is_behind(&self, task_id: &TaskId, other: &TaskId) -> bool {
        let history = self.created(task_id).history.as_ref();
        history.is_some_and(|history| history.task_id == *other)
    }

    fn check_read(&self, id: InteractionId, queued: &MessageQueued, last: &TaskId, at: &str) {
        let joined = self.joined(id);
        assert!(joined.len() <= 1, "it was read in {joined:?}: {at}");
        assert!(joined.iter().all(|(task_id, _)| *task_id == last), "{joined:?}: {at}");
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
        assert!(joined.len() + answers > 0 || may_wait, "nobody read it: {queued:?}: {at}");
    }

    /// What one sender sent to one agent was read in the order in which it arrived.
    pub(crate) fn check_order(&self) {
        let mut lines: BTreeMap<_, Vec<InteractionId>> = BTreeMap::new();
        for (task_id, _, queued) in self.arrivals() {
            if queued.mode == HandlingMode::Queue && queued.wakes() {
                let line = (task_id, queued.from.to_string(), queued.salience());
                lines.entry(line).or_default().push(queued.id);
            }
        }
        for ((task_id, from, _), arrived) in lines {
            let joined = |id: &InteractionId| {
                let joined = self.joined(*id).into_iter().find(|(task, _)| *task == task_id);
                joined.map(|(_, index)| index)
            };
            let joined: Vec<usize> = arrived.iter().filter_map(joined).collect();
            assert!(joined.is_sorted(), "of {from}: {joined:?}: {}", self.at(task_id));
        }
    }

    /// Every request to a peer was sent once and has one final answer, which whoever asked was given
    /// once, and which is the one that was given. Says how many there were.
    pub(crate) fn check_requests(&self) -> usize {
        let mut sent = BTreeSet::new();
        for (task_id, request) in self.sent() {
            let at = format!("request {} of {}", request.id, self.at(task_id));
            assert!(sent.insert(request.id), "it was sent twice: {at}");
            assert!(!self.is_ended(task_id), "nobody stops those who ask: {at}");
            let told =
                self.arrivals().filter(|(.., queued)| queued.final_answer_to() == Some(request.id));
            let told: Vec<_> = told.collect();
            let [(asker, _, response)] = told[..] else { panic!("{told:?}: {at}") };
            assert_eq!(asker, task_id, "{at}");
            assert_eq!(response.from.to_string(), request.to.as_str(), "{at}");
            let given = self.answers(request.id);
            assert!(given.len() <= 1, "{given:?}: {at}");
            let content = serde_json::to_value(&response.content).unwrap();
            for (_, given) in &given {
                let status = serde_json::to_value(given.status).unwrap();
                assert_eq!(
                    (&content["status"], &content["result"]),
                    (&status, &given.result),
                    "{at}"
                );
            }
            // Where nobody gave one, nobody was there to ask.
            let refused = content["result"]["code"] == "rejected";
            assert_eq!(refused, given.is_empty(), "{content}: {at}");
        }
        sent.len()
    }

    /// Every call was begun once at most and has one result.
    pub(crate) fn check_calls(&self) {
        for (task_id, bodies) in &self.tasks {
            for call in calls(bodies) {
                let at = format!("{} in {}", call.id, self.at(task_id));
                let begun = bodies.iter().filter(|body| begins(body, &call.id)).count();
                assert!(begun <= 1, "begun {begun} times: {at}");
                let results = results(bodies, call).len();
                assert_eq!(results, 1, "its results: {at}");
            }
        }
    }

    /// Every mark was left once by the call that says so, once at most by one that was cut off, and
    /// by nobody else. Says how many calls were cut off.
    pub(crate) fn check_marks(&self, marks: &str) -> usize {
        let (mut cut_off, mut known) = (0, 0);
        for (task_id, bodies) in &self.tasks {
            for call in calls(bodies).filter(|call| call.name == "bash") {
                let at = self.at(task_id);
                let arguments = call.arguments.object().unwrap().as_str();
                let arguments: Value = serde_json::from_str(arguments).unwrap();
                let command = arguments["command"].as_str().unwrap();
                let mark = command.strip_prefix("echo '").unwrap();
                let mark = mark.strip_suffix("' >> marks").unwrap();
                let times = marks.lines().filter(|there| *there == mark).count();
                known += times;
                assert!(times <= 1, "{mark} was left {times} times: {at}\n{marks}");
                let begun = bodies.iter().any(|body| begins(body, &call.id));
                assert!(begun || times == 0, "{mark} was left and never begun: {at}");
                let (is_error, said) = results(bodies, call).remove(0);
                if is_error {
                    assert!(said.contains("outcome unknown"), "{mark} failed: {said}: {at}");
                    cut_off += 1;
                } else {
                    assert_eq!(times, 1, "{mark}: {at}");
                }
            }
        }
        assert_eq!(marks.lines().count(), known, "{}\n{marks}", self.place);
        cut_off
    }
}

fn calls(bodies: &[EventBody]) -> impl Iterator<Item = &ToolCallBlock> {
    bodies.iter().filter_map(message).flat_map(|message| match message {
        Message::Assistant(answer) => answer.tool_calls().collect(),
        Message::User(_) | Message::ToolResult(_) => Vec::new(),
    })
}

/// Whether each result of a call is an error, and what it says.
fn results(bodies: &[EventBody], call: &ToolCallBlock) -> Vec<(bool, String)> {
    let result = |message: &Message| match message {
        Message::ToolResult(result) if result.tool_call_id == call.id => {
            Some((result.is_error, text(&result.content)))
        }
        Message::ToolResult(_) | Message::User(_) | Message::Assistant(_) => None,
    };
    bodies.iter().filter_map(message).filter_map(result).collect()
}
