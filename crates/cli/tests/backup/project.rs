//! A project with a journal, and the binary in it.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::time::{Duration, Instant};

use antiphon_core::port::{Append, Expected, Journal, JournalLog, Read as ReadFrom};
use antiphon_core::{
    Event, MessageAppended, Position, SessionId, TaskCreated, TaskId, UserMessage,
};
use antiphon_sqlite::{SqliteJournal, SyncPolicy};
use chrono::DateTime;
use serde_json::Value;

use crate::project_folder::{ProjectFolder, home, state};

/// What was seen of a command.
#[derive(Debug)]
pub(crate) struct Seen {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Seen {
    fn of(output: Output) -> Self {
        Self {
            code: output.status.code().unwrap(),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }

    pub(crate) fn json(&self) -> Value {
        assert_eq!(self.code, 0, "{self:?}");
        serde_json::from_str(&self.out).unwrap()
    }
}

pub(crate) struct Project {
    folder: ProjectFolder,
}

impl Project {
    pub(crate) fn new() -> Self {
        Self { folder: ProjectFolder::new() }
    }

    /// One whose journal has so many tasks with a hundred long notes each.
    pub(crate) fn with_tasks(tasks: usize) -> Self {
        let project = Self::new();
        let path = project.journal();
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::set_permissions(
            path.parent().unwrap(),
            std::os::unix::fs::PermissionsExt::from_mode(0o700),
        )
        .unwrap();
        project.add_tasks(tasks);
        project
    }

    /// Adds so many tasks to its journal.
    pub(crate) fn add_tasks(&self, tasks: usize) {
        let journal = SqliteJournal::open(&self.journal(), SyncPolicy::Normal).unwrap();
        let note = || {
            let message = UserMessage::text("note ".repeat(200), DateTime::UNIX_EPOCH);
            MessageAppended::new(message).into()
        };
        let first = events_of(&journal).len();
        block_on(async {
            for number in 0..tasks {
                let session = SessionId::parse("notes").unwrap();
                let mut events = vec![TaskCreated::new("tester", session).into()];
                events.extend((0..100).map(|_| note()));
                let append = Append {
                    task_id: TaskId::parse(&format!("task-{first}-{number}")).unwrap(),
                    expected: Expected::NoTask,
                    at: DateTime::UNIX_EPOCH,
                    events,
                    key: None,
                };
                journal.append(append).await.unwrap();
            }
        });
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn at(&self, name: &str) -> PathBuf {
        self.path().join(name)
    }

    pub(crate) fn state(&self) -> PathBuf {
        state(self.path())
    }

    pub(crate) fn journal(&self) -> PathBuf {
        self.state().join("journal.db")
    }

    /// What is in its folder of that name.
    pub(crate) fn names(&self, folder: impl AsRef<Path>) -> Vec<String> {
        let entries = fs::read_dir(self.path().join(folder)).unwrap().map(|entry| entry.unwrap());
        let mut names: Vec<_> =
            entries.map(|entry| entry.file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(assert_cmd::cargo::cargo_bin!("antiphon"));
        command.current_dir(self.path()).env_clear().env("HOME", home(self.path()));
        command.env("PATH", std::env::var_os("PATH").unwrap());
        command.args(arguments).stdin(Stdio::null());
        command
    }

    pub(crate) fn antiphon(&self, arguments: &[&str]) -> Seen {
        Seen::of(self.command(arguments).output().unwrap())
    }

    /// Starts a command and kills it after a while. Says whether it was dead by then.
    pub(crate) fn killed(&self, arguments: &[&str], after: Duration) -> bool {
        let mut command = self.command(arguments);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let until = Instant::now() + after;
        while Instant::now() < until && child.try_wait().unwrap().is_none() {
            std::thread::sleep(Duration::from_micros(50));
        }
        let _ = child.kill();
        child.wait().unwrap().code().is_none()
    }

    pub(crate) fn serve(&self) -> Server {
        let mut command = self.command(&["serve", "--listen", "127.0.0.1:0"]);
        let mut process = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut out = BufReader::new(process.stdout.take().unwrap());
        let mut line = String::new();
        out.read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("listening on http://").unwrap().to_owned();
        let token = fs::read_to_string(self.state().join("token")).unwrap().trim().to_owned();
        Server { process, out, address, token }
    }
}

/// A server that is at work. It is killed when it is dropped.
pub(crate) struct Server {
    process: Child,
    out: BufReader<ChildStdout>,
    address: String,
    token: String,
}

impl Server {
    /// What is answered.
    pub(crate) fn ask(&self, method: &str, path: &str, body: &str) -> Value {
        let mut socket = TcpStream::connect(&self.address).unwrap();
        let Self { address, token, .. } = self;
        let head = format!(
            "{method} {path} HTTP/1.0\r\nhost: {address}\r\nauthorization: Bearer {token}\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        socket.write_all(head.as_bytes()).unwrap();
        let mut text = String::new();
        socket.read_to_string(&mut text).unwrap();
        serde_json::from_str(text.split_once("\r\n\r\n").unwrap().1).unwrap()
    }

    /// Waits for a line that it says.
    pub(crate) fn says(&mut self, what: &str) {
        let mut said = String::new();
        while !said.contains(what) {
            assert!(self.out.read_line(&mut said).unwrap() > 0, "{said}");
        }
    }

    /// Ends in order.
    pub(crate) fn end(mut self) {
        let id = self.process.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
        self.out.read_to_string(&mut String::new()).unwrap();
        assert!(self.process.wait().unwrap().success());
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(work)
}

/// Every event of the journal in a file, which is whole.
pub(crate) fn events(path: &Path) -> Vec<Event> {
    let journal = SqliteJournal::open_read_only(path).unwrap();
    block_on(journal.verify()).unwrap();
    events_of(&journal)
}

fn events_of(journal: &dyn Journal) -> Vec<Event> {
    block_on(async {
        let (mut events, mut after) = (Vec::new(), Position(0));
        loop {
            let read = ReadFrom { task_id: None, after, limit: NonZeroUsize::MAX };
            let page = journal.read(read).await.unwrap();
            if page.events.is_empty() {
                return events;
            }
            after = page.next;
            events.extend(page.events);
        }
    })
}
