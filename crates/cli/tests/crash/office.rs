//! An office: a server with standing agents, who are written to over HTTP and by files from all sides
//! while it is killed and started again. The script, `office.toml`, draws it.

mod drawer;
mod ledger;
mod mail;
mod paper;
mod server;

use std::fmt;
use std::fs;
use std::ops::AddAssign;
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::dice::Dice;
use crate::kill::Kill;
use crate::project::{Fate, Project};
use drawer::Drawer;
use ledger::Ledger;
use mail::Bag;
use server::{Door, Server};

const SCRIPT: &str = include_str!("office.toml");

const CONFIG: &str = "model = \"scripted/office\"\n[scripts]\noffice = \"office.toml\"\n";

/// Who there is from the beginning: a name, and what its file says of it.
const AGENTS: [(&str, &str); 5] = [
    ("front", "tools: []\nagents: [lead]"),
    ("lead", "tools: []\nagents: [expert, clerk]"),
    ("expert", "tools: bash"),
    ("quiet", "tools: []\nsilent_intents: [status]"),
    ("worker", "tools: bash"),
];

/// What is sent and dropped in one office.
const LETTERS_OF_USER: u64 = 30;
const LETTERS_OF_SOURCE: u64 = 12;
const FILES: u64 = 24;
const CLERKS: usize = 4;

/// How long one life of the server may take in which nobody kills it.
const PATIENCE: Duration = Duration::from_secs(90);

/// How often it is looked whether all is quiet.
const LOOK_EVERY: Duration = Duration::from_millis(15);

/// A project with an office.
pub(crate) struct Office {
    project: Project,
    bags: Vec<Bag>,
    last: Bag,
    drawers: Vec<Drawer>,
}

/// What was seen of an office that is whole.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// Interactions that were accepted.
    pub(crate) interactions: usize,
    /// Requests of agents to agents.
    pub(crate) requests: usize,
    /// Files that were answered.
    pub(crate) files: usize,
    /// Calls that were cut off.
    pub(crate) cut_off: usize,
}

impl AddAssign for Seen {
    fn add_assign(&mut self, other: Self) {
        self.interactions += other.interactions;
        self.requests += other.requests;
        self.files += other.files;
        self.cut_off += other.cut_off;
    }
}

impl fmt::Display for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { interactions, requests, files, cut_off } = self;
        write!(
            f,
            "{interactions} interactions, {requests} requests between agents, {files} files, "
        )?;
        write!(f, "{cut_off} calls cut off")
    }
}

impl Office {
    pub(crate) fn new(dice: &mut Dice) -> Self {
        let agent = |(name, about): (&str, &str)| {
            let file = format!("---\ndescription: Is {name}.\n{about}\n---\nYou are {name}.\n");
            (format!(".antiphon/agents/{name}.md"), file)
        };
        let agents = AGENTS.map(agent);
        let mut files = vec![
            (".config/antiphon/config.toml", CONFIG),
            (".config/antiphon/office.toml", SCRIPT),
        ];
        files.extend(agents.iter().map(|(path, file)| (path.as_str(), file.as_str())));
        let project = Project::new(&files);
        // Requests that are there before anything was done in a folder are carried out by nobody.
        assert_eq!(project.start(&["agents", "start", "front"], None), Fate::Ended);
        let requests = project.path().join(".antiphon/requests");
        fs::create_dir_all(&requests).unwrap();
        fs::set_permissions(&requests, fs::Permissions::from_mode(0o700)).unwrap();
        let mut other = || Dice(dice.below(u64::from(u32::MAX)));
        let bags = vec![
            Bag::of_user(LETTERS_OF_USER, other()),
            Bag::of_events("ci", LETTERS_OF_SOURCE, other()),
            Bag::of_events("log", LETTERS_OF_SOURCE, other()),
        ];
        let drawers = vec![
            Drawer::of_clerk(requests.join("boss"), CLERKS, other()),
            Drawer::of_desk(requests.join("desk"), FILES, other()),
        ];
        Self { project, bags, last: Bag::last(), drawers }
    }

    /// Has the server work until it dies, or until everything was sent and all is quiet.
    pub(crate) fn open(&mut self, kill: Option<Kill>) -> Fate {
        // Some of it is there before the server is.
        self.drawers.iter_mut().for_each(Drawer::work_alone);
        let (door, began) = (Door::default(), Instant::now());
        let Self { project, bags, last, drawers } = self;
        std::thread::scope(|scope| {
            let mut server = Server::start(project, kill, &door, scope);
            let work = scope.spawn(|| work(&door, bags, last, drawers));
            loop {
                if work.is_finished() && !server.is_dead() {
                    work.join().unwrap().unwrap_or_else(|wrong| panic!("{wrong}"));
                    server.end();
                    return Fate::Ended;
                }
                if server.is_dead() {
                    drop(server);
                    work.join().unwrap().unwrap_or_else(|wrong| panic!("{wrong}"));
                    return Fate::Died;
                }
                assert!(began.elapsed() < PATIENCE, "it is not quiet after {PATIENCE:?}: {kill:?}");
            }
        })
    }

    /// Checks everything that must hold of an office in which all is quiet.
    pub(crate) fn check(&self, place: &str) -> Seen {
        let left = self.project.processes_left();
        assert!(left.is_empty(), "processes are left: {left:?}: {place}");
        let ledger = Ledger::of(self.project.by_task(place), place);
        ledger.check_arrivals();
        ledger.check_order();
        let requests = ledger.check_requests();
        ledger.check_calls();
        let cut_off = ledger.check_marks(&self.project.text("marks"));
        let letters = || self.bags.iter().chain([&self.last]).flat_map(|bag| &bag.letters);
        let interactions = letters().map(|letter| ledger.check_letter(letter)).sum();
        let files = self.drawers.iter().map(|drawer| ledger.check_drawer(drawer)).sum();
        ledger.check_clerks(&self.drawers[0], CLERKS);
        let clerk = self.project.text(".antiphon/agents/clerk.md");
        assert!(clerk.ends_with(&format!("In round {CLERKS}.\n")), "{clerk}: {place}");
        Seen { interactions, requests, files, cut_off }
    }
}

/// Sends and drops everything, from all sides, then waits until all is quiet or nobody is there.
fn work(
    door: &Door,
    bags: &mut [Bag],
    last: &mut Bag,
    drawers: &mut [Drawer],
) -> Result<(), String> {
    std::thread::scope(|scope| {
        let sending: Vec<_> =
            bags.iter_mut().map(|bag| scope.spawn(move || bag.send(door))).collect();
        for drawer in drawers.iter_mut() {
            scope.spawn(move || drawer.work(door));
        }
        sending.into_iter().try_for_each(|sender| sender.join().unwrap())
    })?;
    if !bags.iter().all(Bag::is_sent) || !drawers.iter().all(Drawer::is_done) {
        return Ok(());
    }
    last.send(door)?;
    let mut before = None;
    while !door.is_gone() {
        let answered = bags.iter().all(|bag| bag.is_answered(door) == Some(true));
        let seen = look(door).filter(|_| answered);
        if seen.as_ref().is_some_and(is_quiet) && seen == before {
            return Ok(());
        }
        before = seen;
        door.pause(LOOK_EVERY);
    }
    Ok(())
}

/// Who is there, what waits, and what is not done.
fn look(door: &Door) -> Option<[Value; 3]> {
    let ask = |path| Some(door.ask("GET", path, "", "")?.1);
    Some([
        ask("/v1/agents/status")?,
        ask("/v1/inbox?limit=1000")?,
        ask("/v1/tasks?unfinished=true")?,
    ])
}

/// Whether nobody has anything to do. News of peers may wait: they wake nobody.
fn is_quiet([agents, inbox, tasks]: &[Value; 3]) -> bool {
    let each = |list: &Value| list.as_array().unwrap().clone();
    let is_news = |waiting: &Value| {
        waiting["class"].as_str().unwrap().starts_with("peer_lifecycle_")
            && waiting["wakes"] == false
    };
    let stands = |task: &Value| task["session_id"].as_str().unwrap().starts_with("agent:");
    each(agents).iter().all(|agent| agent["state"] == "idle")
        && each(&inbox["waiting"]).iter().all(is_news)
        && each(&tasks["tasks"]).iter().all(stands)
}
