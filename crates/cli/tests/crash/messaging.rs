//! Messaging: a server with resident agents. Several senders write to them over HTTP and with request
//! files, while the server is killed and started again. The script, `messaging.toml`, contains a drawing.

mod journal;
mod request_file;
mod requester;
mod sender;
mod server;

use std::fmt;
use std::fs;
use std::ops::AddAssign;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::kill::Kill;
use crate::project::{Exit, Project};
use crate::project_folder::trust;
use crate::random::Random;
use journal::RecordedTasks;
use requester::Requester;
use sender::Sender;
use server::{Endpoint, Server};

const SCRIPT: &str = include_str!("messaging.toml");

const CONFIG: &str = "model = \"scripted/messaging\"\n[scripts]\nmessaging = \"messaging.toml\"\n";

/// The agents at the beginning: name and front matter.
const AGENTS: [(&str, &str); 5] = [
    ("front", "tools: []\nagents: [lead]"),
    ("lead", "tools: []\nagents: [expert, clerk]"),
    ("expert", "tools: bash"),
    ("quiet", "tools: []\nsilent_intents: [status]"),
    ("worker", "tools: bash"),
];

/// Submissions and request files of one run.
const USER_SUBMISSIONS: u64 = 30;
const SOURCE_SUBMISSIONS: u64 = 12;
const FILES: u64 = 24;
/// How often the agent `clerk` is spawned.
const CLERKS: usize = 4;

/// Time for one run of the server that is not killed.
const TIMEOUT: Duration = Duration::from_secs(90);

/// How often the server is polled for unfinished work.
const POLL: Duration = Duration::from_millis(15);

/// A project whose agents exchange messages.
pub(crate) struct Messaging {
    project: Project,
    senders: Vec<Sender>,
    last: Sender,
    requesters: Vec<Requester>,
}

/// What was checked in one or more runs.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    /// Interactions that were accepted.
    pub(crate) interactions: usize,
    /// Requests of agents to agents.
    pub(crate) requests: usize,
    /// Files that were answered.
    pub(crate) files: usize,
    /// Calls that were interrupted.
    pub(crate) interrupted: usize,
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.interactions += other.interactions;
        self.requests += other.requests;
        self.files += other.files;
        self.interrupted += other.interrupted;
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { interactions, requests, files, interrupted } = self;
        write!(
            f,
            "{interactions} interactions, {requests} requests between agents, {files} files, "
        )?;
        write!(f, "{interrupted} calls interrupted")
    }
}

impl Messaging {
    pub(crate) fn new(random: &mut Random) -> Self {
        let agent = |(name, fields): (&str, &str)| {
            let file = format!("---\ndescription: Is {name}.\n{fields}\n---\nYou are {name}.\n");
            (format!(".antiphon/agents/{name}.md"), file)
        };
        let agents = AGENTS.map(agent);
        let mut files = vec![
            (".config/antiphon/config.toml", CONFIG),
            (".config/antiphon/messaging.toml", SCRIPT),
        ];
        files.extend(agents.iter().map(|(path, file)| (path.as_str(), file.as_str())));
        let project = Project::new(&files);
        assert_eq!(project.start(&["agents", "start", "front"], None), Exit::Completed);
        let requests = project.path().join(".antiphon/requests");
        fs::create_dir_all(&requests).unwrap();
        trust(project.path());
        let mut next = || Random(random.below(u64::from(u32::MAX)));
        let senders = vec![
            Sender::user(USER_SUBMISSIONS, next()),
            Sender::external("ci", SOURCE_SUBMISSIONS, next()),
            Sender::external("log", SOURCE_SUBMISSIONS, next()),
        ];
        let requesters = vec![
            Requester::for_clerk(requests.join("boss"), CLERKS, next()),
            Requester::for_others(requests.join("other"), FILES, next()),
        ];
        Self { project, senders, last: Sender::last(), requesters }
    }

    /// Runs the server until it is killed, or until everything was sent and no work is left.
    pub(crate) fn run(&mut self, kill: Option<Kill>) -> Exit {
        // Some request files exist before the server starts.
        self.requesters.iter_mut().for_each(Requester::run_one_step);
        let (endpoint, began) = (Endpoint::default(), Instant::now());
        let Self { project, senders, last, requesters } = self;
        std::thread::scope(|scope| {
            let mut server = Server::start(project, kill, &endpoint, scope);
            let work = scope.spawn(|| send_everything(&endpoint, senders, last, requesters));
            loop {
                if work.is_finished() && !server.is_dead() {
                    work.join().unwrap().unwrap_or_else(|error| panic!("{error}"));
                    server.stop();
                    return Exit::Completed;
                }
                if server.is_dead() {
                    drop(server);
                    work.join().unwrap().unwrap_or_else(|error| panic!("{error}"));
                    return Exit::Killed;
                }
                assert!(
                    began.elapsed() < TIMEOUT,
                    "work is left after {TIMEOUT:?}: {kill:?}: {:#?}",
                    poll(&endpoint)
                );
            }
        })
    }

    /// Checks every guarantee after the work is done.
    pub(crate) fn check(&self, context: &str) -> Counts {
        let left = self.project.processes_left();
        assert!(left.is_empty(), "processes are left: {left:?}: {context}");
        let recorded = RecordedTasks::of(self.project.by_task(context), context);
        recorded.check_queued();
        recorded.check_order();
        let requests = recorded.check_requests();
        recorded.check_calls();
        let interrupted = recorded.check_marks(&self.project.text("marks"));
        let submissions =
            || self.senders.iter().chain([&self.last]).flat_map(|sender| &sender.submissions);
        let interactions =
            submissions().map(|submission| recorded.check_submission(submission)).sum();
        let files =
            self.requesters.iter().map(|requester| recorded.check_requester(requester)).sum();
        recorded.check_clerks(&self.requesters[0], CLERKS);
        let clerk = self.project.text(".antiphon/agents/clerk.md");
        assert!(clerk.ends_with(&format!("In round {CLERKS}.\n")), "{clerk}: {context}");
        Counts { interactions, requests, files, interrupted }
    }
}

/// Sends everything in parallel, then waits until no work is left or the server is gone.
fn send_everything(
    endpoint: &Endpoint,
    senders: &mut [Sender],
    last: &mut Sender,
    requesters: &mut [Requester],
) -> Result<(), String> {
    std::thread::scope(|scope| {
        let sending: Vec<_> =
            senders.iter_mut().map(|sender| scope.spawn(move || sender.send(endpoint))).collect();
        for requester in requesters.iter_mut() {
            scope.spawn(move || requester.run(endpoint));
        }
        sending.into_iter().try_for_each(|sender| sender.join().unwrap())
    })?;
    if !senders.iter().all(Sender::is_sent) || !requesters.iter().all(Requester::is_done) {
        return Ok(());
    }
    last.send(endpoint)?;
    let mut earlier = None;
    while !endpoint.is_gone() {
        let answered = senders.iter().all(|sender| sender.is_answered(endpoint) == Some(true));
        let current = poll(endpoint).filter(|_| answered);
        if current.as_ref().is_some_and(is_idle) && current == earlier {
            return Ok(());
        }
        earlier = current;
        endpoint.pause(POLL);
    }
    Ok(())
}

/// The agents, the waiting interactions, and the unfinished tasks.
fn poll(endpoint: &Endpoint) -> Option<[Value; 3]> {
    let get = |path| Some(endpoint.request("GET", path, "", "")?.1);
    Some([
        get("/v1/agents/status")?,
        get("/v1/inbox?limit=1000")?,
        get("/v1/tasks?unfinished=true")?,
    ])
}

/// Whether no work is left. Lifecycle events of peers may wait: they wake no agent.
fn is_idle([agents, inbox, tasks]: &[Value; 3]) -> bool {
    let each = |list: &Value| list.as_array().unwrap().clone();
    let is_lifecycle = |waiting: &Value| {
        waiting["class"].as_str().unwrap().starts_with("peer_lifecycle_")
            && waiting["wakes"] == false
    };
    let is_resident = |task: &Value| task["session_id"].as_str().unwrap().starts_with("agent:");
    each(agents).iter().all(|agent| agent["state"] == "idle")
        && each(&inbox["waiting"]).iter().all(is_lifecycle)
        && each(&tasks["tasks"]).iter().all(is_resident)
}
