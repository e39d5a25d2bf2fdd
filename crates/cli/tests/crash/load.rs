//! A server under load: many clients create tasks and chats, and others watch, while the server is killed,
//! terminated, and started again at the same address. The script is `load.toml`.

mod client;
mod http;
mod server;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::AddAssign;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use antiphon_core::{AssistantBlock, EventBody, Message, TaskStatus};
use serde_json::Value;

use crate::project::{Exit, Project};
use client::{AnsweredRequest, Records, RequestKind, WatchedTask};
use server::RestartingServer;
pub(crate) use server::Stop;

const SCRIPT: &str = include_str!("load.toml");

const CONFIG: &str = "model = \"scripted/load\"\n[scripts]\nload = \"load.toml\"\n";

/// The agents: name and front matter.
const AGENTS: [(&str, &str); 2] = [("boss", "tools: []\nagents: [hand]"), ("hand", "tools: bash")];

/// What each client requests.
const CLIENTS: [RequestKind; 8] = [
    RequestKind::Task(None),
    RequestKind::Task(None),
    RequestKind::Task(Some("hand")),
    RequestKind::Task(Some("boss")),
    RequestKind::Chat,
    RequestKind::Chat,
    RequestKind::StreamedChat,
    RequestKind::StreamedChat,
];

/// Requests of each client.
const REQUESTS: u64 = 4;

/// Time for a whole run, however often the server is killed.
const TIMEOUT: Duration = Duration::from_secs(180);

/// A project whose server is under load.
pub(crate) struct Load {
    project: Project,
    server: RestartingServer,
    records: Records,
}

/// What was checked in one or more runs.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    /// Requests that were answered.
    pub(crate) answers: usize,
    /// How often requests were sent.
    pub(crate) attempts: usize,
    /// Events that watchers got.
    pub(crate) events: usize,
    /// How often watchers connected.
    pub(crate) connections: usize,
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.answers += other.answers;
        self.attempts += other.attempts;
        self.events += other.events;
        self.connections += other.connections;
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { answers, attempts, events, connections } = self;
        write!(
            f,
            "{answers} answers to {attempts} requests, {events} events in {connections} streams"
        )
    }
}

impl Load {
    pub(crate) fn new() -> Self {
        let agent = |(name, fields): (&str, &str)| {
            let file = format!("---\ndescription: Is {name}.\n{fields}\n---\nYou are {name}.\n");
            (format!(".antiphon/agents/{name}.md"), file)
        };
        let agents = AGENTS.map(agent);
        let mut files =
            vec![(".config/antiphon/config.toml", CONFIG), (".config/antiphon/load.toml", SCRIPT)];
        files.extend(agents.iter().map(|(path, file)| (path.as_str(), file.as_str())));
        let project = Project::new(&files);
        // With a journal, the server uses an existing token: clients know it before the server starts.
        assert_eq!(project.start(&["agents", "list"], None), Exit::Completed);
        assert_eq!(project.start(&["run", "hello"], None), Exit::Completed);
        let token = "0123456789abcdef".repeat(4);
        project.write_private("token", &token);
        Self { project, server: RestartingServer::new(&token), records: Records::default() }
    }

    /// Runs all clients while the server is stopped as `next_stop` says. Returns the stops.
    pub(crate) fn run(&self, mut next_stop: impl FnMut() -> Option<Stop>) -> Vec<Stop> {
        let (Self { project, server, records }, began) = (self, Instant::now());
        let (running, mut stops) = (AtomicUsize::new(CLIENTS.len()), Vec::new());
        std::thread::scope(|clients| {
            let work = clients.spawn(|| {
                std::thread::scope(|scope| {
                    for (number, kind) in CLIENTS.into_iter().enumerate() {
                        let running = &running;
                        scope.spawn(move || {
                            for nth in 0..REQUESTS {
                                let word = format!("w{number}-{nth}-");
                                client::request(server, records, scope, word, kind);
                            }
                            running.fetch_sub(1, Ordering::Relaxed);
                        });
                    }
                });
            });
            while !work.is_finished() {
                if began.elapsed() > TIMEOUT {
                    server.close();
                    break;
                }
                let stop = next_stop();
                if server.run(project, stop, || work.is_finished() || began.elapsed() > TIMEOUT) {
                    stops.extend(stop);
                }
            }
        });
        let left = running.load(Ordering::Relaxed);
        let errors = records.errors.lock().unwrap();
        assert!(errors.is_empty(), "{errors:#?}: stopped {stops:?}");
        assert!(began.elapsed() <= TIMEOUT, "{left} clients are not done: stopped {stops:?}");
        stops
    }

    /// Checks every guarantee after all requests are answered.
    pub(crate) fn check(&self, context: &str) -> Counts {
        let left = self.project.processes_left();
        assert!(left.is_empty(), "processes are left: {left:?}: {context}");
        let mut journal: BTreeMap<String, Vec<(Value, EventBody)>> = BTreeMap::new();
        for event in self.project.events() {
            let events = journal.entry(event.task_id.to_string()).or_default();
            events.push((serde_json::to_value(&event).unwrap(), event.body));
        }
        let (answered, watched) =
            (self.records.answered.lock().unwrap(), self.records.watched.lock().unwrap());
        check_created_once(&journal, &answered, context);
        answered.iter().for_each(|answer| check_answer(&journal, answer, context));
        watched.iter().for_each(|watched| check_watched(&journal, watched, context));
        let seen: BTreeSet<&str> = watched.iter().map(|watched| watched.task.as_str()).collect();
        // The first task was created before the server started.
        assert_eq!(
            (seen.len(), watched.len()),
            (journal.len() - 1, journal.len() - 1),
            "{context}"
        );
        let marks = self.project.text("marks");
        let once: BTreeSet<&str> = marks.lines().collect();
        assert_eq!(
            once.len(),
            marks.lines().count(),
            "a mark was written twice: {marks}: {context}"
        );
        Counts {
            answers: answered.len(),
            attempts: answered.iter().map(|answer| answer.attempts).sum(),
            events: watched.iter().map(|watched| watched.events.len()).sum(),
            connections: watched.iter().map(|watched| watched.connections).sum(),
        }
    }
}

type ByTask = BTreeMap<String, Vec<(Value, EventBody)>>;

/// There is one task for every request, however often it was sent, and all have ended.
fn check_created_once(journal: &ByTask, answered: &[AnsweredRequest], context: &str) {
    let requests = CLIENTS.len() * usize::try_from(REQUESTS).unwrap();
    assert_eq!(answered.len(), requests, "{context}");
    let tasks: BTreeSet<&str> = answered.iter().map(|answer| answer.task.as_str()).collect();
    assert_eq!(tasks.len(), requests, "two requests were one task: {context}");
    for (task, events) in journal {
        let Some((_, EventBody::TaskCreated(created))) = events.first() else {
            panic!("{task} starts with {events:?}: {context}");
        };
        let known = created.parent.is_some() || tasks.contains(task.as_str());
        // The first task was created before the server started.
        let first = events.iter().any(|(_, body)| is_prompt(body, "hello"));
        assert!(known || first, "no client requested {task}: {context}");
        let (_, last) = events.last().unwrap();
        assert!(last.ends_task(), "{task} has not ended: {last:?}: {context}");
    }
}

/// Whether this is a user message that contains a text.
fn is_prompt(body: &EventBody, text: &str) -> bool {
    let EventBody::MessageAppended(appended) = body else { return false };
    matches!(&*appended.message, Message::User(_))
        && serde_json::to_string(&appended.message).unwrap().contains(text)
}

/// The answer of a client is the one in the journal, to its request.
fn check_answer(journal: &ByTask, answer: &AnsweredRequest, context: &str) {
    let events = &journal[&answer.task];
    let matches = events.iter().any(|(_, body)| is_prompt(body, &answer.word));
    assert!(matches, "{answer:?} belongs to another request: {context}");
    let (ended, _) = events.last().unwrap();
    assert_eq!(ended["data"]["status"], TaskStatus::Completed.as_str(), "{answer:?}: {context}");
    let text = events.iter().rev().find_map(|(_, body)| answer_in(body)).unwrap_or_default();
    assert_eq!(answer.content, text, "{answer:?}: {context}");
    let expected = match answer.kind {
        RequestKind::Task(_) => answer.content.starts_with("This is what there is to say about "),
        RequestKind::Chat | RequestKind::StreamedChat => answer.content.contains(&answer.word),
    };
    assert!(expected, "{answer:?}: {context}");
}

/// The text of an answer of the model.
fn answer_in(body: &EventBody) -> Option<String> {
    let EventBody::MessageAppended(appended) = body else { return None };
    let Message::Assistant(answer) = &*appended.message else { return None };
    let text = |block: &AssistantBlock| match block {
        AssistantBlock::Text(text) => Some(text.text.clone()),
        AssistantBlock::Thinking(_) | AssistantBlock::ToolCall(_) | AssistantBlock::Opaque(_) => {
            None
        }
    };
    Some(answer.content.iter().filter_map(text).collect())
}

/// A watcher got exactly the events in the journal.
fn check_watched(journal: &ByTask, watched: &WatchedTask, context: &str) {
    let events = journal[&watched.task].iter().map(|(event, _)| event);
    let expected: Vec<&Value> = events.collect();
    let seen: Vec<&Value> = watched.events.iter().collect();
    assert_eq!(seen, expected, "{}: {context}", watched.task);
}
