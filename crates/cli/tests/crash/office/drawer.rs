//! The files that one requester drops, one after the other: while the server works and while it does
//! not, whole and in two steps, some of them bad, some again, renamed, copied or replaced.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};

use super::paper::{Effect, Expected, Paper};
use super::server::Door;
use crate::dice::Dice;

/// Longest pause between two files, in milliseconds.
const PAUSE_MAX_MS: u64 = 25;

/// How often it is looked whether a file is answered.
const LOOK_EVERY: Duration = Duration::from_millis(3);

/// Everything that one requester drops, in order.
pub(crate) struct Drawer {
    pub(crate) folder: PathBuf,
    steps: Vec<Step>,
    done: usize,
    /// What lies there now.
    pub(crate) papers: Vec<Paper>,
    /// What lay there, was answered, and gave way to something else.
    pub(crate) gone: Vec<(Paper, Value)>,
    dice: Dice,
}

/// What is done next.
#[derive(Debug, Clone)]
enum Step {
    /// It is dropped.
    Drop(Paper),
    /// It is dropped once more, when it was answered.
    Again(String),
    /// It gets another name, when it was answered.
    Rename(String, String),
    /// It gives way to another one of the same name, when it was answered.
    Replace(Paper),
    /// The task that it made is canceled, when it was answered.
    Cancel(String, Paper),
}

impl Drawer {
    /// What happens to the clerk, round after round: orders for one agent keep their order, so it is
    /// known what comes of each.
    pub(crate) fn of_clerk(folder: PathBuf, rounds: usize, dice: Dice) -> Self {
        let mut steps = Vec::new();
        for round in 1..=rounds {
            let context = format!("You are clerk.\nIn round {round}.");
            let mut add = |number: usize, request: Value, expected, effect| {
                let (name, word) = (format!("{round}-{number}"), format!("boss-{round}-{number}-"));
                let request = request.to_string().replace("WORD", &word);
                steps.push(Step::Drop(Paper::new(&name, request, expected, effect, &word)));
            };
            let taken = Expected::Done(&["accepted", "deduplicated"]);
            let spawn = json!({ "action": "spawn_agent", "name": "clerk", "profile": "native",
                "context": "You are clerk." });
            let spawned = Expected::Done(&["started", "already_running"]);
            add(1, spawn, spawned, Effect::Started);
            let update = json!({ "action": "update_agent_context", "name": "clerk",
                "context": context });
            add(2, update, Expected::Done(&["updated"]), Effect::None);
            let send = json!({ "action": "send", "name": "clerk", "message": "WORD" });
            add(3, send.clone(), taken, Effect::Arrived);
            let ask = json!({ "action": "send", "name": "clerk", "intent": "count",
                "params": "WORD" });
            add(4, ask, taken, Effect::Asked);
            if round < rounds {
                let stop = json!({ "action": "stop_agent", "name": "clerk" });
                add(5, stop, Expected::Done(&["stopped"]), Effect::Stopped);
                add(6, send, Expected::Refused("CONFLICT"), Effect::None);
            }
        }
        Self::new(folder, steps, dice)
    }

    /// All kinds of things for everybody else.
    pub(crate) fn of_desk(folder: PathBuf, files: u64, mut dice: Dice) -> Self {
        let mut steps = Vec::new();
        for number in 0..files {
            steps.extend(kinds(number, dice.below(14)));
        }
        Self::new(folder, steps, dice)
    }

    fn new(folder: PathBuf, steps: Vec<Step>, dice: Dice) -> Self {
        fs::create_dir(&folder).unwrap();
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o700)).unwrap();
        Self { folder, steps, done: 0, papers: Vec::new(), gone: Vec::new(), dice }
    }

    /// Whether everything was dropped and answered.
    pub(crate) fn is_done(&self) -> bool {
        self.done == self.steps.len() && self.papers.iter().all(|paper| self.is_answered(paper))
    }

    /// Does what can be done without a server.
    pub(crate) fn work_alone(&mut self) {
        self.step();
    }

    /// Does one thing after the other, until all is answered or nobody is there.
    pub(crate) fn work(&mut self, door: &Door) {
        while !door.is_gone() && !self.is_done() {
            if self.step() {
                door.pause(Duration::from_millis(self.dice.below(PAUSE_MAX_MS)));
            } else {
                door.pause(LOOK_EVERY);
            }
        }
    }

    /// Does the next thing, if it can be done. Says whether it did.
    fn step(&mut self) -> bool {
        let Some(step) = self.steps.get(self.done).cloned() else { return false };
        let done = match step {
            Step::Drop(paper) => {
                self.put(&paper);
                self.papers.push(paper);
                true
            }
            Step::Again(name) => self.when_answered(&name, |drawer, paper, _| {
                drawer.rename_in(&paper);
                drawer.papers.push(paper);
            }),
            Step::Rename(name, new) => self.when_answered(&name, |drawer, paper, _| {
                let to = drawer.folder.join(format!("{new}.json"));
                fs::rename(drawer.folder.join(format!("{name}.json")), to).unwrap();
                drawer.papers.push(Paper { name: new.clone(), ..paper });
            }),
            Step::Replace(new) => self.when_answered(&new.name.clone(), |drawer, old, response| {
                drawer.rename_in(&new);
                drawer.papers.push(Paper { replaces: Some(response.to_string()), ..new.clone() });
                drawer.gone.push((old, response));
            }),
            Step::Cancel(name, paper) => self.when_answered(&name, |drawer, invoked, response| {
                let task_id = response["taskId"].as_str().unwrap();
                let text = paper.text.replace("TASK", task_id);
                let paper = Paper { text, ..paper.clone() };
                drawer.put(&paper);
                drawer.papers.extend([invoked, paper]);
            }),
        };
        self.done += usize::from(done);
        done
    }

    /// Takes out a paper that was answered, for somebody who does something with it.
    fn when_answered(&mut self, name: &str, act: impl FnOnce(&mut Self, Paper, Value)) -> bool {
        let at = self.papers.iter().position(|paper| paper.name == name).unwrap();
        let Some(response) = self.response(name) else { return false };
        let paper = self.papers.remove(at);
        act(self, paper, response);
        true
    }

    fn is_answered(&self, paper: &Paper) -> bool {
        // What is bad is answered first and set aside then. Killed in between, it takes a moment.
        if paper.is_set_aside() && self.folder.join(format!("{}.json", paper.name)).exists() {
            return false;
        }
        let response = self.response(&paper.name);
        response.is_some_and(|told| paper.replaces.as_ref() != Some(&told.to_string()))
    }

    /// The response to a file, which is whole if it is there.
    pub(crate) fn response(&self, name: &str) -> Option<Value> {
        let text = fs::read(self.folder.join(format!("{name}.response.json"))).ok()?;
        Some(serde_json::from_slice(&text).unwrap())
    }

    fn put(&mut self, paper: &Paper) {
        if paper.effect == Effect::Open {
            self.rename_in(paper);
        } else if self.dice.below(3) == 0 {
            // As an editor may: the one half, and then the other.
            let path = self.folder.join(format!("{}.json", paper.name));
            let (one, other) = paper.text.split_at(paper.text.len() / 2);
            let mut file = private(&path);
            file.write_all(one.as_bytes()).unwrap();
            std::thread::sleep(LOOK_EVERY);
            file.write_all(other.as_bytes()).unwrap();
        } else {
            self.rename_in(paper);
        }
    }

    fn rename_in(&self, paper: &Paper) {
        let hidden = self.folder.join(".being-written");
        private(&hidden).write_all(paper.text.as_bytes()).unwrap();
        if paper.effect == Effect::Open {
            fs::set_permissions(&hidden, fs::Permissions::from_mode(0o660)).unwrap();
        }
        fs::rename(&hidden, self.folder.join(format!("{}.json", paper.name))).unwrap();
    }
}

/// A new file for nobody else.
fn private(path: &Path) -> fs::File {
    OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path).unwrap()
}

/// One of the kinds of things that are dropped.
fn kinds(number: u64, kind: u64) -> Vec<Step> {
    let (name, word) = (format!("p{number}"), format!("desk-{number}-"));
    let taken = Expected::Done(&["accepted", "deduplicated"]);
    let send = |word: &str| json!({ "action": "send", "name": "front", "message": word });
    let invoke = |word: &str, wait: bool| json!({ "action": "invoke", "name": "worker", "prompt": word, "wait": wait });
    let paper = |request: Value, expected, effect| {
        Paper::new(&name, request.to_string(), expected, effect, &word)
    };
    let drop = |request: Value, expected, effect| Step::Drop(paper(request, expected, effect));
    let arrived = || drop(send(&word), taken, Effect::Arrived);
    match kind {
        0 => {
            let ask = json!({ "action": "send", "name": "expert", "intent": "measure",
                "params": word });
            vec![drop(ask, taken, Effect::Asked)]
        }
        1 => {
            let named = json!({ "action": "send", "name": "front", "message": word,
                "id": format!("id-{number}") });
            let copy = Paper {
                name: format!("{name}-copy"),
                ..paper(named.clone(), taken, Effect::Arrived)
            };
            vec![drop(named, taken, Effect::Arrived), Step::Drop(copy)]
        }
        2 => vec![drop(invoke(&word, true), Expected::Done(&["completed"]), Effect::Task)],
        3 => vec![drop(invoke(&word, false), Expected::Done(&["accepted"]), Effect::Task)],
        4 => {
            let stall = invoke(&format!("stall {word}"), false);
            let cancel = json!({ "action": "cancel", "taskId": "TASK" }).to_string();
            let done = Expected::Done(&["canceled"]);
            let cancel =
                Paper::new(&format!("{name}-cancel"), cancel, done, Effect::Canceled, &word);
            let stall = drop(stall, Expected::Done(&["accepted"]), Effect::Task);
            vec![stall, Step::Cancel(name.clone(), cancel)]
        }
        5 => {
            let text = format!("{{\"action\": \"send\", \"message\": \"{word}\"");
            let expected = Expected::SetAside("INVALID_REQUEST");
            vec![Step::Drop(Paper::new(&name, text, expected, Effect::None, &word))]
        }
        6 => {
            let unknown = json!({ "action": "promote", "message": word });
            vec![drop(unknown, Expected::SetAside("INVALID_REQUEST"), Effect::None)]
        }
        7 => {
            let nobody = json!({ "action": "send", "name": "nobody", "message": word });
            vec![drop(nobody, Expected::Refused("NOT_FOUND"), Effect::None)]
        }
        8 => vec![drop(send(&word), Expected::SetAside("FORBIDDEN"), Effect::Open)],
        9 => vec![arrived(), Step::Again(name.clone())],
        10 => vec![arrived(), Step::Rename(name.clone(), format!("{name}-renamed"))],
        11 => {
            let (other, new) = (format!("desk-{number}b-"), send(&format!("desk-{number}b-")));
            let new = Paper::new(&name, new.to_string(), taken, Effect::Arrived, &other);
            vec![arrived(), Step::Replace(new)]
        }
        _ => vec![arrived()],
    }
}
