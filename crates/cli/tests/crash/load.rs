//! A server under load: clients ask it for tasks and chats from all sides, and others watch, while it is
//! killed, told to end, and started again at the same address. The script is `load.toml`.

mod client;
mod site;
mod wire;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::AddAssign;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use antiphon_core::{AssistantBlock, EventBody, Message, TaskStatus};
use serde_json::Value;

use crate::project::{Fate, Project};
use client::{Asks, Notes, Told, Watched};
pub(crate) use site::Death;
use site::Site;

const SCRIPT: &str = include_str!("load.toml");

const CONFIG: &str = "model = \"scripted/load\"\n[scripts]\nload = \"load.toml\"\n";

/// Who there is: a name, and what its file says of it.
const AGENTS: [(&str, &str); 2] = [("boss", "tools: []\nagents: [hand]"), ("hand", "tools: bash")];

/// What the clients ask for, one after the other.
const CLIENTS: [Asks; 8] = [
    Asks::Task(None),
    Asks::Task(None),
    Asks::Task(Some("hand")),
    Asks::Task(Some("boss")),
    Asks::Whole,
    Asks::Whole,
    Asks::Streamed,
    Asks::Streamed,
];

/// How often each of them asks.
const ASKS: u64 = 4;

/// How long all of it may take, however often it dies.
const PATIENCE: Duration = Duration::from_secs(180);

/// A project whose server is under load.
pub(crate) struct Load {
    project: Project,
    site: Site,
    notes: Notes,
}

/// What was seen of a load that is done.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// Requests that were answered.
    pub(crate) answers: usize,
    /// How often they were sent.
    pub(crate) attempts: usize,
    /// Events that were watched.
    pub(crate) events: usize,
    /// How often those who watched came back.
    pub(crate) returns: usize,
}

impl AddAssign for Seen {
    fn add_assign(&mut self, other: Self) {
        self.answers += other.answers;
        self.attempts += other.attempts;
        self.events += other.events;
        self.returns += other.returns;
    }
}

impl fmt::Display for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { answers, attempts, events, returns } = self;
        write!(f, "{answers} answers to {attempts} requests, {events} events in {returns} streams")
    }
}

impl Load {
    pub(crate) fn new() -> Self {
        let agent = |(name, about): (&str, &str)| {
            let file = format!("---\ndescription: Is {name}.\n{about}\n---\nYou are {name}.\n");
            (format!(".antiphon/agents/{name}.md"), file)
        };
        let agents = AGENTS.map(agent);
        let mut files =
            vec![(".config/antiphon/config.toml", CONFIG), (".config/antiphon/load.toml", SCRIPT)];
        files.extend(agents.iter().map(|(path, file)| (path.as_str(), file.as_str())));
        let project = Project::new(&files);
        // A token counts once there is a journal: then it is known before the server is there.
        assert_eq!(project.start(&["agents", "list"], None), Fate::Ended);
        assert_eq!(project.start(&["run", "hello"], None), Fate::Ended);
        let token = "0123456789abcdef".repeat(4);
        project.write_private(".antiphon/token", &token);
        Self { project, site: Site::new(&token), notes: Notes::default() }
    }

    /// Has all clients ask for everything, while the server dies as `deaths` says. Says how often it
    /// did.
    pub(crate) fn bear(&self, mut deaths: impl FnMut() -> Option<Death>) -> Vec<Death> {
        let (Self { project, site, notes }, began) = (self, Instant::now());
        let (at_work, mut died) = (AtomicUsize::new(CLIENTS.len()), Vec::new());
        std::thread::scope(|clients| {
            let work = clients.spawn(|| {
                std::thread::scope(|scope| {
                    for (number, asks) in CLIENTS.into_iter().enumerate() {
                        let at_work = &at_work;
                        scope.spawn(move || {
                            for nth in 0..ASKS {
                                client::ask(site, notes, scope, format!("w{number}-{nth}-"), asks);
                            }
                            at_work.fetch_sub(1, Ordering::Relaxed);
                        });
                    }
                });
            });
            while !work.is_finished() {
                if began.elapsed() > PATIENCE {
                    site.close();
                    break;
                }
                let death = deaths();
                if site.live(project, death, || work.is_finished() || began.elapsed() > PATIENCE) {
                    died.extend(death);
                }
            }
        });
        let left = at_work.load(Ordering::Relaxed);
        let wrong = notes.wrong.lock().unwrap();
        assert!(wrong.is_empty(), "{wrong:#?}: killed {died:?}");
        assert!(began.elapsed() <= PATIENCE, "{left} clients still ask: killed {died:?}");
        died
    }

    /// Checks everything that must hold when everybody has their answer.
    pub(crate) fn check(&self, place: &str) -> Seen {
        let left = self.project.processes_left();
        assert!(left.is_empty(), "processes are left: {left:?}: {place}");
        let mut journal: BTreeMap<String, Vec<(Value, EventBody)>> = BTreeMap::new();
        for event in self.project.events() {
            let events = journal.entry(event.task_id.to_string()).or_default();
            events.push((serde_json::to_value(&event).unwrap(), event.body));
        }
        let (told, watched) = (self.notes.told.lock().unwrap(), self.notes.watched.lock().unwrap());
        check_made_once(&journal, &told, place);
        told.iter().for_each(|told| check_told(&journal, told, place));
        watched.iter().for_each(|watched| check_watched(&journal, watched, place));
        let seen: BTreeSet<&str> = watched.iter().map(|watched| watched.task.as_str()).collect();
        // The first task was there before the server was.
        assert_eq!((seen.len(), watched.len()), (journal.len() - 1, journal.len() - 1), "{place}");
        let marks = self.project.text("marks");
        let once: BTreeSet<&str> = marks.lines().collect();
        assert_eq!(once.len(), marks.lines().count(), "a mark was left twice: {marks}: {place}");
        Seen {
            answers: told.len(),
            attempts: told.iter().map(|told| told.attempts).sum(),
            events: watched.iter().map(|watched| watched.events.len()).sum(),
            returns: watched.iter().map(|watched| watched.returns).sum(),
        }
    }
}

type ByTask = BTreeMap<String, Vec<(Value, EventBody)>>;

/// There is one task for every request, however often it was sent, and all have ended.
fn check_made_once(journal: &ByTask, told: &[Told], place: &str) {
    let asked = CLIENTS.len() * usize::try_from(ASKS).unwrap();
    assert_eq!(told.len(), asked, "{place}");
    let tasks: BTreeSet<&str> = told.iter().map(|told| told.task.as_str()).collect();
    assert_eq!(tasks.len(), asked, "two requests were one task: {place}");
    for (task, events) in journal {
        let Some((_, EventBody::TaskCreated(created))) = events.first() else {
            panic!("{task} begins with {events:?}: {place}");
        };
        let known = created.parent.is_some() || tasks.contains(task.as_str());
        // The one that was there before the server was.
        let first = events.iter().any(|(_, body)| is_said(body, "hello"));
        assert!(known || first, "nobody asked for {task}: {place}");
        let (_, last) = events.last().unwrap();
        assert!(last.ends_task(), "{task} has not ended: {last:?}: {place}");
    }
}

fn is_said(body: &EventBody, text: &str) -> bool {
    let EventBody::MessageAppended(appended) = body else { return false };
    matches!(&*appended.message, Message::User(_))
        && serde_json::to_string(&appended.message).unwrap().contains(text)
}

/// What a client was told is what the journal says, about what it asked.
fn check_told(journal: &ByTask, told: &Told, place: &str) {
    let events = &journal[&told.task];
    let asked = events.iter().any(|(_, body)| is_said(body, &told.word));
    assert!(asked, "{told:?} is about something else: {place}");
    let (ended, _) = events.last().unwrap();
    assert_eq!(ended["data"]["status"], TaskStatus::Completed.as_str(), "{told:?}: {place}");
    let said = events.iter().rev().find_map(|(_, body)| answer_in(body)).unwrap_or_default();
    assert_eq!(told.content, said, "{told:?}: {place}");
    let expected = match told.asks {
        Asks::Task(_) => told.content.starts_with("This is what there is to say about "),
        Asks::Whole | Asks::Streamed => told.content.contains(&told.word),
    };
    assert!(expected, "{told:?}: {place}");
}

/// What the model said, if this is an answer of its.
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

/// What somebody saw is what the journal says, event for event.
fn check_watched(journal: &ByTask, watched: &Watched, place: &str) {
    let events = journal[&watched.task].iter().map(|(event, _)| event);
    let expected: Vec<&Value> = events.collect();
    let seen: Vec<&Value> = watched.events.iter().collect();
    assert_eq!(seen, expected, "{}: {place}", watched.task);
}
