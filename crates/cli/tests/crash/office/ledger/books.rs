//! What those outside were told, compared with what the journal has: every receipt, every response,
//! one effect each.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use antiphon_core::{EventBody, Message, TaskId, TaskStatus};
use serde_json::{Value, json};

use super::Ledger;
use crate::office::drawer::Drawer;
use crate::office::mail::{Asks, Letter, Receipt};
use crate::office::paper::{Effect, Paper};
use crate::tree::{message, text};

impl Ledger {
    /// What was accepted is there once, under the id of its receipt; what was refused is nowhere.
    /// Says how many were accepted.
    pub(crate) fn check_letter(&self, letter: &Letter) -> usize {
        let there = self.with_word(&letter.word);
        let at = format!("{letter:?}: {}", self.place);
        match letter.receipt.as_ref().unwrap() {
            Receipt::Kept(id) => {
                let ids: Vec<String> = there.iter().map(ToString::to_string).collect();
                assert_eq!(ids, std::slice::from_ref(id), "{at}");
                let answers = self.answers(there[0]).len();
                assert_eq!(answers, usize::from(letter.asks == Asks::Yes), "{at}");
                1
            }
            Receipt::Refused => {
                assert!(there.is_empty(), "{there:?}: {at}");
                0
            }
        }
    }

    /// Every file has one response, and nothing else lies there. Says how many there are.
    pub(crate) fn check_drawer(&self, drawer: &Drawer) -> usize {
        let (mut expected, mut aside) = (BTreeSet::new(), BTreeSet::new());
        for paper in &drawer.papers {
            let response = drawer.response(&paper.name).unwrap();
            self.check_paper(paper, &response);
            expected.insert(format!("{}.response.json", paper.name));
            if paper.is_set_aside() {
                aside.insert(format!("{}.json", paper.name));
                aside.insert(format!("{}.json.reason.txt", paper.name));
            } else {
                expected.insert(format!("{}.json", paper.name));
            }
        }
        for (paper, response) in &drawer.gone {
            self.check_paper(paper, response);
        }
        if !aside.is_empty() {
            expected.insert("rejected".to_owned());
        }
        assert_eq!(names(&drawer.folder), expected, "{}", self.place);
        assert_eq!(names(&drawer.folder.join("rejected")), aside, "{}", self.place);
        drawer.papers.len() + drawer.gone.len()
    }

    fn check_paper(&self, paper: &Paper, response: &Value) {
        let at = format!("{paper:?} was answered with {response}: {}", self.place);
        assert!(paper.is_answered_by(response), "{at}");
        let there: Vec<Value> = self.with_word(&paper.word).iter().map(|id| json!(id)).collect();
        let tasks = self.tasks_with_word(&paper.word);
        let named = &response["taskId"];
        match paper.effect {
            Effect::None | Effect::Open => {
                assert!(there.is_empty() && tasks.is_empty(), "{there:?}, {tasks:?}: {at}");
            }
            Effect::Arrived | Effect::Asked => {
                assert_eq!(there, [response["interactionId"].clone()], "{at}");
                let id = serde_json::from_value(there[0].clone()).unwrap();
                let answers = usize::from(paper.effect == Effect::Asked);
                assert_eq!(self.answers(id).len(), answers, "{at}");
                assert!(self.has(named) && tasks.is_empty(), "{at}");
            }
            Effect::Task => {
                let tasks: Vec<Value> = tasks.iter().map(|task_id| json!(task_id)).collect();
                assert_eq!((tasks, there), (vec![named.clone()], Vec::new()), "{at}");
            }
            Effect::Started => assert!(self.has(named), "{at}"),
            Effect::Stopped | Effect::Canceled => {
                let task_id = serde_json::from_value(named.clone()).unwrap();
                assert_eq!(self.end(&task_id), Some(TaskStatus::Canceled), "{at}");
            }
        }
    }

    /// Every clerk that was spawned is there once, all but the last were stopped, each by one file.
    pub(crate) fn check_clerks(&self, drawer: &Drawer, clerks: usize) {
        let of_clerk = |task_id: &&TaskId| self.created(task_id).agent == "clerk";
        let tasks: Vec<&TaskId> = self.tasks.keys().filter(of_clerk).collect();
        assert_eq!(tasks.len(), clerks, "{tasks:?}: {}", self.place);
        let is_ended = |task_id: &&TaskId| self.is_ended(task_id);
        let ended: BTreeSet<&TaskId> = tasks.into_iter().filter(is_ended).collect();
        let stops = drawer.papers.iter().filter(|paper| paper.effect == Effect::Stopped);
        let stops = stops.map(|paper| drawer.response(&paper.name).unwrap()["taskId"].clone());
        let stops: Vec<TaskId> = stops.map(|id| serde_json::from_value(id).unwrap()).collect();
        assert_eq!(stops.len(), clerks - 1, "{stops:?}: {}", self.place);
        assert_eq!(stops.iter().collect::<BTreeSet<_>>(), ended, "{}", self.place);
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

    /// The tasks that are no inbox, and were asked first for what has a word in it.
    fn tasks_with_word(&self, word: &str) -> Vec<&TaskId> {
        let asked = |bodies: &[EventBody]| {
            bodies.iter().find_map(|body| match message(body)? {
                Message::User(user) => Some(text(&user.content)),
                Message::Assistant(_) | Message::ToolResult(_) => None,
            })
        };
        let found = self.tasks.iter().filter(|(task_id, bodies)| {
            let asked = asked(bodies).is_some_and(|asked| asked.contains(word));
            asked && !self.created(task_id).resident
        });
        found.map(|(task_id, _)| task_id).collect()
    }
}

/// What lies in a folder; nothing when there is none.
fn names(folder: &Path) -> BTreeSet<String> {
    let Ok(entries) = fs::read_dir(folder) else { return BTreeSet::new() };
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}
