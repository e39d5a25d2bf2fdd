//! Compares receipts and responses with the journal: each has one effect.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use antiphon_core::{EventBody, Message, TaskId, TaskStatus};
use serde_json::{Value, json};

use super::RecordedTasks;
use crate::messaging::request_file::{Effect, RequestFile};
use crate::messaging::requester::Requester;
use crate::messaging::sender::{Answer, Receipt, Submission};
use crate::tree::{message, text};

impl RecordedTasks {
    /// An accepted submission is in the journal once, with the id of its receipt; a refused one is not.
    /// Returns how many were accepted.
    pub(crate) fn check_submission(&self, submission: &Submission) -> usize {
        let found = self.with_word(&submission.word);
        let at = format!("{submission:?}: {}", self.context);
        match submission.receipt.as_ref().unwrap() {
            Receipt::Accepted(id) => {
                let ids: Vec<String> = found.iter().map(ToString::to_string).collect();
                assert_eq!(ids, std::slice::from_ref(id), "{at}");
                let answers = self.answers(found[0]).len();
                assert_eq!(answers, usize::from(submission.answer == Answer::Expected), "{at}");
                1
            }
            Receipt::Refused => {
                assert!(found.is_empty(), "{found:?}: {at}");
                0
            }
        }
    }

    /// Every request file has one response, and there are no other files. Returns how many there are.
    pub(crate) fn check_requester(&self, requester: &Requester) -> usize {
        let (mut expected, mut set_aside) = (BTreeSet::new(), BTreeSet::new());
        for file in &requester.files {
            let response = requester.response(&file.name).unwrap();
            self.check_request_file(file, &response);
            expected.insert(format!("{}.response.json", file.name));
            if file.is_set_aside() {
                set_aside.insert(format!("{}.json", file.name));
                set_aside.insert(format!("{}.json.reason.txt", file.name));
            } else {
                expected.insert(format!("{}.json", file.name));
            }
        }
        for (file, response) in &requester.replaced {
            self.check_request_file(file, response);
        }
        if !set_aside.is_empty() {
            expected.insert("rejected".to_owned());
        }
        assert_eq!(names(&requester.folder), expected, "{}", self.context);
        assert_eq!(names(&requester.folder.join("rejected")), set_aside, "{}", self.context);
        requester.files.len() + requester.replaced.len()
    }

    fn check_request_file(&self, file: &RequestFile, response: &Value) {
        let at = format!("{file:?} was answered with {response}: {}", self.context);
        assert!(file.is_answered_by(response), "{at}");
        let found: Vec<Value> = self.with_word(&file.word).iter().map(|id| json!(id)).collect();
        let tasks = self.tasks_with_word(&file.word);
        let named = &response["taskId"];
        match file.effect {
            Effect::None => {
                assert!(found.is_empty() && tasks.is_empty(), "{found:?}, {tasks:?}: {at}");
            }
            Effect::Queued | Effect::Answered => {
                assert_eq!(found, [response["interactionId"].clone()], "{at}");
                let id = serde_json::from_value(found[0].clone()).unwrap();
                let answers = usize::from(file.effect == Effect::Answered);
                assert_eq!(self.answers(id).len(), answers, "{at}");
                assert!(self.has(named) && tasks.is_empty(), "{at}");
            }
            Effect::Task => {
                let tasks: Vec<Value> = tasks.iter().map(|task_id| json!(task_id)).collect();
                assert_eq!((tasks, found), (vec![named.clone()], Vec::new()), "{at}");
            }
            Effect::Started => assert!(self.has(named), "{at}"),
            Effect::Stopped | Effect::Canceled => {
                let task_id = serde_json::from_value(named.clone()).unwrap();
                assert_eq!(self.end(&task_id), Some(TaskStatus::Canceled), "{at}");
            }
        }
    }

    /// Every spawned clerk has one task, and all but the last were stopped, each by one file.
    pub(crate) fn check_clerks(&self, requester: &Requester, clerks: usize) {
        let of_clerk = |task_id: &&TaskId| self.created(task_id).agent == "clerk";
        let tasks: Vec<&TaskId> = self.tasks.keys().filter(of_clerk).collect();
        assert_eq!(tasks.len(), clerks, "{tasks:?}: {}", self.context);
        let is_ended = |task_id: &&TaskId| self.is_ended(task_id);
        let ended: BTreeSet<&TaskId> = tasks.into_iter().filter(is_ended).collect();
        let stops = requester.files.iter().filter(|file| file.effect == Effect::Stopped);
        let stops = stops.map(|file| requester.response(&file.name).unwrap()["taskId"].clone());
        let stops: Vec<TaskId> = stops.map(|id| serde_json::from_value(id).unwrap()).collect();
        assert_eq!(stops.len(), clerks - 1, "{stops:?}: {}", self.context);
        assert_eq!(stops.iter().collect::<BTreeSet<_>>(), ended, "{}", self.context);
    }

    fn has(&self, task_id: &Value) -> bool {
        self.tasks.keys().any(|known| json!(known) == *task_id)
    }

    fn end(&self, task_id: &TaskId) -> Option<TaskStatus> {
        let last = self.tasks.get(task_id)?.last()?;
        if let EventBody::StatusChanged(change) = last
            && last.ends_task()
        {
            Some(change.status)
        } else {
            None
        }
    }

    /// The tasks whose first prompt contains a word, without those of resident agents.
    fn tasks_with_word(&self, word: &str) -> Vec<&TaskId> {
        let prompt = |bodies: &[EventBody]| {
            bodies.iter().find_map(|body| match message(body)? {
                Message::User(user) => Some(text(&user.content)),
                Message::Assistant(_) | Message::ToolResult(_) => None,
            })
        };
        let found = self.tasks.iter().filter(|(task_id, bodies)| {
            let has_word = prompt(bodies).is_some_and(|prompt| prompt.contains(word));
            has_word && !self.created(task_id).resident
        });
        found.map(|(task_id, _)| task_id).collect()
    }
}

/// The names of the entries of a folder; none when it is missing.
fn names(folder: &Path) -> BTreeSet<String> {
    let Ok(entries) = fs::read_dir(folder) else { return BTreeSet::new() };
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}
