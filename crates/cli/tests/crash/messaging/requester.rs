//! One requester, which writes request files one after the other: while the server runs and while it
//! does not, at once and in two steps, some of them invalid, some again, renamed, copied or replaced.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};

use super::request_file::{Effect, Expected, RequestFile};
use super::server::Endpoint;
use crate::random::Random;

/// Longest pause between two files, in milliseconds.
const PAUSE_MAX_MS: u64 = 25;

/// How often the response to a file is polled.
const POLL: Duration = Duration::from_millis(3);

/// Permissions of a file that only its owner can read, and those that a usual umask leaves.
const PRIVATE: u32 = 0o600;
const GROUP_WRITABLE: u32 = 0o664;

/// The request files of one requester, in order.
pub(crate) struct Requester {
    pub(crate) folder: PathBuf,
    steps: Vec<Step>,
    done: usize,
    /// The files that exist now.
    pub(crate) files: Vec<RequestFile>,
    /// Files that were answered and replaced, with their responses.
    pub(crate) replaced: Vec<(RequestFile, Value)>,
    random: Random,
}

/// What the requester does next.
#[derive(Debug, Clone)]
enum Step {
    /// Writes a file.
    Write(RequestFile),
    /// Writes an answered file again.
    Again(String),
    /// Renames an answered file.
    Rename(String, String),
    /// Replaces an answered file of the same name.
    Replace(RequestFile),
    /// Cancels the task that an answered file created.
    Cancel(String, RequestFile),
}

impl Requester {
    /// Request files for the agent `clerk`. Requests for one agent keep their order, so each effect is
    /// known.
    pub(crate) fn for_clerk(folder: PathBuf, rounds: usize, random: Random) -> Self {
        let mut steps = Vec::new();
        for round in 1..=rounds {
            let context = format!("You are clerk.\nIn round {round}.");
            let mut add = |number: usize, request: Value, expected, effect| {
                let (name, word) = (format!("{round}-{number}"), format!("boss-{round}-{number}-"));
                let request = request.to_string().replace("WORD", &word);
                steps.push(Step::Write(RequestFile::new(&name, request, expected, effect, &word)));
            };
            let accepted = Expected::Done(&["accepted", "deduplicated"]);
            let spawn = json!({ "action": "spawn_agent", "name": "clerk", "profile": "native",
                "context": "You are clerk." });
            let spawned = Expected::Done(&["started", "already_running"]);
            add(1, spawn, spawned, Effect::Started);
            let update = json!({ "action": "update_agent_context", "name": "clerk",
                "context": context });
            add(2, update, Expected::Done(&["updated"]), Effect::None);
            let send = json!({ "action": "send", "name": "clerk", "message": "WORD" });
            add(3, send.clone(), accepted, Effect::Queued);
            let ask = json!({ "action": "send", "name": "clerk", "intent": "count",
                "params": "WORD" });
            add(4, ask, accepted, Effect::Answered);
            if round < rounds {
                let stop = json!({ "action": "stop_agent", "name": "clerk" });
                add(5, stop, Expected::Done(&["stopped"]), Effect::Stopped);
                add(6, send, Expected::Refused("CONFLICT"), Effect::None);
            }
        }
        Self::new(folder, steps, random)
    }

    /// All kinds of request files for the other agents.
    pub(crate) fn for_others(folder: PathBuf, files: u64, mut random: Random) -> Self {
        let mut steps = Vec::new();
        for number in 0..files {
            steps.extend(steps_of_kind(number, random.below(14)));
        }
        Self::new(folder, steps, random)
    }

    fn new(folder: PathBuf, steps: Vec<Step>, random: Random) -> Self {
        fs::create_dir(&folder).unwrap();
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o700)).unwrap();
        Self { folder, steps, done: 0, files: Vec::new(), replaced: Vec::new(), random }
    }

    /// Whether every file was written and answered.
    pub(crate) fn is_done(&self) -> bool {
        self.done == self.steps.len() && self.files.iter().all(|file| self.is_answered(file))
    }

    /// Does the next step, if it needs no server.
    pub(crate) fn run_one_step(&mut self) {
        self.step();
    }

    /// Does all steps, until every file is answered or the server is gone.
    pub(crate) fn run(&mut self, endpoint: &Endpoint) {
        while !endpoint.is_gone() && !self.is_done() {
            if self.step() {
                endpoint.pause(Duration::from_millis(self.random.below(PAUSE_MAX_MS)));
            } else {
                endpoint.pause(POLL);
            }
        }
    }

    /// Does the next step, if it can be done. Returns whether it was.
    fn step(&mut self) -> bool {
        let Some(step) = self.steps.get(self.done).cloned() else { return false };
        let done = match step {
            Step::Write(file) => {
                self.write(&file);
                self.files.push(file);
                true
            }
            Step::Again(name) => self.when_answered(&name, |requester, file, _| {
                requester.rename_in(&file);
                requester.files.push(file);
            }),
            Step::Rename(name, new) => self.when_answered(&name, |requester, file, _| {
                let to = requester.folder.join(format!("{new}.json"));
                fs::rename(requester.folder.join(format!("{name}.json")), to).unwrap();
                requester.files.push(RequestFile { name: new.clone(), ..file });
            }),
            Step::Replace(new) => {
                self.when_answered(&new.name.clone(), |requester, old, response| {
                    requester.rename_in(&new);
                    requester
                        .files
                        .push(RequestFile { replaces: Some(response.to_string()), ..new.clone() });
                    requester.replaced.push((old, response));
                })
            }
            Step::Cancel(name, file) => {
                self.when_answered(&name, |requester, invoked, response| {
                    let task_id = response["taskId"].as_str().unwrap();
                    let text = file.text.replace("TASK", task_id);
                    let file = RequestFile { text, ..file.clone() };
                    requester.write(&file);
                    requester.files.extend([invoked, file]);
                })
            }
        };
        self.done += usize::from(done);
        done
    }

    /// Removes an answered file from the list and calls `act` with it.
    fn when_answered(
        &mut self,
        name: &str,
        act: impl FnOnce(&mut Self, RequestFile, Value),
    ) -> bool {
        let at = self.files.iter().position(|file| file.name == name).unwrap();
        let Some(response) = self.response(name) else { return false };
        let file = self.files.remove(at);
        act(self, file, response);
        true
    }

    fn is_answered(&self, file: &RequestFile) -> bool {
        // An invalid file is answered first and then set aside. A kill may come in between.
        if file.is_set_aside() && self.folder.join(format!("{}.json", file.name)).exists() {
            return false;
        }
        let response = self.response(&file.name);
        response.is_some_and(|response| file.replaces.as_ref() != Some(&response.to_string()))
    }

    /// The response to a file. It is complete when it exists.
    pub(crate) fn response(&self, name: &str) -> Option<Value> {
        let text = fs::read(self.folder.join(format!("{name}.response.json"))).ok()?;
        Some(serde_json::from_slice(&text).unwrap())
    }

    fn write(&mut self, file: &RequestFile) {
        if file.mode == PRIVATE && self.random.below(3) == 0 {
            // In two halves, as an editor may write it.
            let path = self.folder.join(format!("{}.json", file.name));
            let (one, other) = file.text.split_at(file.text.len() / 2);
            let mut file = private(&path);
            file.write_all(one.as_bytes()).unwrap();
            std::thread::sleep(POLL);
            file.write_all(other.as_bytes()).unwrap();
        } else {
            self.rename_in(file);
        }
    }

    fn rename_in(&self, file: &RequestFile) {
        let hidden = self.folder.join(".being-written");
        private(&hidden).write_all(file.text.as_bytes()).unwrap();
        fs::set_permissions(&hidden, fs::Permissions::from_mode(file.mode)).unwrap();
        fs::rename(&hidden, self.folder.join(format!("{}.json", file.name))).unwrap();
    }
}

/// A new file that only its owner can read.
fn private(path: &Path) -> fs::File {
    OpenOptions::new().write(true).create(true).truncate(true).mode(PRIVATE).open(path).unwrap()
}

/// The steps of one kind of request.
fn steps_of_kind(number: u64, kind: u64) -> Vec<Step> {
    let (name, word) = (format!("p{number}"), format!("other-{number}-"));
    let accepted = Expected::Done(&["accepted", "deduplicated"]);
    let send = |word: &str| json!({ "action": "send", "name": "front", "message": word });
    let invoke = |word: &str, wait: bool| json!({ "action": "invoke", "name": "worker", "prompt": word, "wait": wait });
    let file = |request: Value, expected, effect| {
        RequestFile::new(&name, request.to_string(), expected, effect, &word)
    };
    let write = |request: Value, expected, effect| Step::Write(file(request, expected, effect));
    let queued = || write(send(&word), accepted, Effect::Queued);
    match kind {
        0 => {
            let ask = json!({ "action": "send", "name": "expert", "intent": "measure",
                "params": word });
            vec![write(ask, accepted, Effect::Answered)]
        }
        1 => {
            let named = json!({ "action": "send", "name": "front", "message": word,
                "id": format!("id-{number}") });
            let copy = RequestFile {
                name: format!("{name}-copy"),
                ..file(named.clone(), accepted, Effect::Queued)
            };
            vec![write(named, accepted, Effect::Queued), Step::Write(copy)]
        }
        2 => vec![write(invoke(&word, true), Expected::Done(&["completed"]), Effect::Task)],
        3 => vec![write(invoke(&word, false), Expected::Done(&["accepted"]), Effect::Task)],
        4 => {
            let stall = invoke(&format!("stall {word}"), false);
            let cancel = json!({ "action": "cancel", "taskId": "TASK" }).to_string();
            let done = Expected::Done(&["canceled"]);
            let cancel =
                RequestFile::new(&format!("{name}-cancel"), cancel, done, Effect::Canceled, &word);
            let stall = write(stall, Expected::Done(&["accepted"]), Effect::Task);
            vec![stall, Step::Cancel(name.clone(), cancel)]
        }
        5 => {
            let text = format!("{{\"action\": \"send\", \"message\": \"{word}\"");
            let expected = Expected::SetAside("INVALID_REQUEST");
            vec![Step::Write(RequestFile::new(&name, text, expected, Effect::None, &word))]
        }
        6 => {
            let unknown = json!({ "action": "promote", "message": word });
            vec![write(unknown, Expected::SetAside("INVALID_REQUEST"), Effect::None)]
        }
        7 => {
            let missing = json!({ "action": "send", "name": "missing", "message": word });
            vec![write(missing, Expected::Refused("NOT_FOUND"), Effect::None)]
        }
        8 => {
            let open = file(send(&word), accepted, Effect::Queued);
            vec![Step::Write(RequestFile { mode: GROUP_WRITABLE, ..open })]
        }
        9 => vec![queued(), Step::Again(name.clone())],
        10 => vec![queued(), Step::Rename(name.clone(), format!("{name}-renamed"))],
        11 => {
            let (other, new) = (format!("other-{number}b-"), send(&format!("other-{number}b-")));
            let new = RequestFile::new(&name, new.to_string(), accepted, Effect::Queued, &other);
            vec![queued(), Step::Replace(new)]
        }
        _ => vec![queued()],
    }
}
