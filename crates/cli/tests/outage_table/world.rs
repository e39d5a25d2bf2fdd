//! A project with a server, its model, and a peer where the state needs one.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::Ordering;
use std::thread::sleep;
use std::time::Duration;

use antiphon_model_server::Release;
use serde_json::{Value, json};

use crate::faults::Faults;
use crate::model::Model;
use crate::project_folder::{ProjectFolder, home, state, trust};
use crate::project_server::{Server, antiphon, text, until};
use crate::{Outage, State};

/// How long a disk is full, and a process is stopped, in seconds. `OUTAGE_S` makes it longer, and the model away for
/// as long.
const OUTAGE_S: f64 = 1.5;

/// How long a signal has taken effect before the work that it meets ends.
const SIGNAL_DELAY: Duration = Duration::from_millis(300);

/// An hour, in seconds.
const HOUR: i64 = 3600;

pub(crate) struct World {
    state: State,
    folder: ProjectFolder,
    faults: Faults,
    model: Model,
    server: Server,
    peer: Option<(ProjectFolder, Server)>,
}

impl World {
    pub(crate) fn new(state: State) -> Self {
        let (folder, model) = (ProjectFolder::new(), Model::new(state));
        let (mut peers, mut peer) = (String::new(), None);
        if state == State::RemoteChild {
            let office = ProjectFolder::new();
            write_config(office.path(), "");
            write_agent(office.path(), "child", "tools: []\n");
            trust(office.path());
            let server = start(office.path(), &model, None);
            let token = crate::project_folder::state(office.path()).join("token");
            peers = format!(
                "[peers.office]\nurl = \"http://{}\"\ntoken_file = \"{}\"\n",
                server.address,
                token.display()
            );
            peer = Some((office, server));
        }
        let rules = "[permissions]\nask = [\"bash(touch asked)\"]\n";
        write_config(folder.path(), &format!("{rules}{peers}"));
        write_agent(folder.path(), "lead", "tools: [bash]\nagents: [child, far]\n");
        write_agent(folder.path(), "child", "tools: []\n");
        write_agent(folder.path(), "helper", "tools: []\n");
        write_agent(folder.path(), "boxed", "tools: [bash]\nruntimes:\n  - kind: sandbox\n");
        if state == State::RemoteChild {
            let runtimes =
                "runtimes:\n  - kind: loopback\n    config: { peer: office, agent: child }\n";
            write_agent(folder.path(), "far", &format!("tools: []\n{runtimes}"));
        }
        trust(folder.path());
        let faults = Faults::new(&home(folder.path()));
        let server = start(folder.path(), &model, Some(&faults));
        Self { state, folder, faults, model, server, peer }
    }

    /// Brings a task into the state. Returns its path.
    pub(crate) fn reach_state(&self) -> String {
        if self.state == State::Idle {
            self.send("first");
            return until("the agent is idle", || {
                let tasks = self.server.ask("GET", "/v1/tasks", "").json();
                let path = format!("/v1/tasks/{}", tasks["tasks"][0]["task_id"].as_str()?);
                (self.answers(&path) == 1).then_some(path)
            });
        }
        let agent = if self.state == State::SandboxedToolRunning { "boxed" } else { "lead" };
        let task =
            json!({ "agent": agent, "message": "go", "limits": { "wall_clock_s_max": 600 } });
        let created = self.server.ask("POST", "/v1/tasks", &task.to_string());
        assert_eq!(created.status, 201, "{created:?}");
        let path = format!("/v1/tasks/{}", created.json()["task_id"].as_str().unwrap());
        until("the state is reached", || {
            let reached = match self.state {
                State::Thinking | State::Streaming | State::Child | State::RemoteChild => {
                    self.model.server.held() > 0
                }
                State::ToolRunning | State::SandboxedToolRunning => !self.log().is_empty(),
                State::Idle | State::WaitingForApproval => {
                    self.task(&path)["waiting_for"] == "approval"
                }
            };
            reached.then_some(())
        });
        path
    }

    /// Lets the outage begin and end, and the work go on meanwhile.
    pub(crate) fn undergo(&mut self, outage: Outage) {
        match outage {
            Outage::ModelAway => {
                self.model.failures.away.store(true, Ordering::SeqCst);
                self.model.server.release(Release::Cut);
                until("the connection is cut", || (self.model.server.held() == 0).then_some(()));
                // The model is asked now, if it was not before.
                self.go_on();
                self.ask_for_more();
                until("the task waits for its model", || self.waits_for_model().then_some(()));
                if std::env::var_os("OUTAGE_S").is_some() {
                    sleep(outage_time());
                }
                self.model.failures.away.store(false, Ordering::SeqCst);
                return;
            }
            Outage::StreamCut => {
                self.model.failures.cut.store(1, Ordering::SeqCst);
                self.model.server.release(Release::Cut);
                until("the connection is cut", || (self.model.server.held() == 0).then_some(()));
            }
            Outage::DiskFull => {
                self.faults.fill_disk(true);
                self.go_on();
                sleep(outage_time());
                self.faults.fill_disk(false);
            }
            Outage::Sigterm => {
                self.server.signal("-TERM");
                sleep(SIGNAL_DELAY);
                self.touch_go();
                self.restart();
            }
            Outage::Sigkill => {
                self.server.signal("-KILL");
                self.restart();
            }
            Outage::Sigstop => {
                self.server.signal("-STOP");
                self.go_on();
                sleep(outage_time());
                self.server.signal("-CONT");
            }
            Outage::ClockForward => self.faults.shift_clock(HOUR),
            Outage::ClockBack => self.faults.shift_clock(-HOUR),
        }
        self.go_on();
        self.ask_for_more();
    }

    /// Does what the task waits for in this state.
    fn ask_for_more(&self) {
        match self.state {
            State::Idle => self.send("second"),
            State::WaitingForApproval => self.approve(),
            State::Thinking
            | State::Streaming
            | State::ToolRunning
            | State::SandboxedToolRunning
            | State::Child
            | State::RemoteChild => {}
        }
    }

    /// Whether a task says that it waits for its model, and when it tries again. The model of a remote child is the
    /// peer's.
    fn waits_for_model(&self) -> bool {
        let server = self.peer.as_ref().map_or(&self.server, |(_, peer)| peer);
        let tasks = server.ask("GET", "/v1/tasks", "").json();
        tasks["tasks"].as_array().unwrap().iter().any(|task| {
            task["status"] == "running"
                && task["waiting_for"] == "model"
                && task["wait"]["next_at"].is_string()
        })
    }

    /// The old process has ended; a new one takes its place.
    fn restart(&mut self) {
        self.server.process.wait().unwrap();
        self.server = start(self.folder.path(), &self.model, Some(&self.faults));
    }

    /// The model answers, and the command ends.
    fn go_on(&self) {
        self.touch_go();
        self.model.server.release(Release::Continue);
    }

    fn touch_go(&self) {
        fs::write(self.folder.path().join("go"), "").unwrap();
    }

    fn send(&self, words: &str) {
        until("the message is accepted", || {
            let sent = self.antiphon().args(["send", "helper", "--from", "ci", words]).output();
            sent.unwrap().status.success().then_some(())
        });
    }

    fn approve(&self) {
        until("the approval is accepted", || {
            let allowed = self.antiphon().args(["approvals", "allow", "last"]).output();
            allowed.unwrap().status.success().then_some(())
        });
    }

    fn antiphon(&self) -> Command {
        antiphon(self.folder.path())
    }

    pub(crate) fn task(&self, path: &str) -> Value {
        self.server.ask("GET", path, "").json()
    }

    /// Waits for the end of the task, or for the answer to the second message.
    pub(crate) fn finish(&self, path: &str) {
        until("the work is done", || {
            let is_done = match self.state {
                State::Idle => self.answers(path) == 2,
                State::Thinking
                | State::Streaming
                | State::ToolRunning
                | State::SandboxedToolRunning
                | State::WaitingForApproval
                | State::Child
                | State::RemoteChild => {
                    let task = self.task(path);
                    assert_ne!(task["status"], "failed", "{task:#}");
                    task["status"] == "completed"
                }
            };
            is_done.then_some(())
        });
    }

    /// The recorded events of a task.
    pub(crate) fn events(&self, path: &str) -> Vec<Value> {
        let id = path.trim_start_matches("/v1/tasks/");
        let page =
            self.server.ask("GET", &format!("/v1/journal?task_id={id}&limit=1000"), "").json();
        page["events"].as_array().cloned().unwrap_or_default()
    }

    /// Number of answers of the model that count.
    fn answers(&self, path: &str) -> usize {
        let is_answer = |event: &&Value| {
            event["type"] == "message_appended"
                && event["data"]["message"]["type"] == "assistant"
                && event["data"]["superseded"] != true
        };
        self.events(path).iter().filter(is_answer).count()
    }

    pub(crate) fn log(&self) -> String {
        text(&self.folder.path().join("log"))
    }
}

fn outage_time() -> Duration {
    let seconds = std::env::var("OUTAGE_S").ok().and_then(|text| text.parse().ok());
    Duration::from_secs_f64(seconds.unwrap_or(OUTAGE_S))
}

fn start(folder: &Path, model: &Model, faults: Option<&Faults>) -> Server {
    let mut command = antiphon(folder);
    command
        .env("ANTHROPIC_API_KEY", "sk-ant-test")
        .env("ANTHROPIC_BASE_URL", model.server.url())
        .args(["serve", "--listen", "127.0.0.1:0"]);
    if let Some(faults) = faults {
        faults.arm(&mut command);
    }
    let token = state(folder).join("token");
    Server::spawn(command, |_| token)
}

fn write_config(folder: &Path, more: &str) {
    let config = home(folder).join(".config/antiphon");
    fs::create_dir_all(&config).unwrap();
    let text = format!("model = \"anthropic/claude\"\n{more}");
    fs::write(config.join("config.toml"), text).unwrap();
}

fn write_agent(folder: &Path, name: &str, settings: &str) {
    let agents = folder.join(".antiphon/agents");
    fs::create_dir_all(&agents).unwrap();
    let text = format!("---\ndescription: For the table.\n{settings}---\nYou are {name}.\n");
    fs::write(agents.join(format!("{name}.md")), text).unwrap();
}
