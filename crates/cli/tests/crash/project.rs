//! A project in which the real binary works, dies when it is told to, and is started again.
//!
//! The folder is removed with it, unless a check failed: then its path is printed.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::num::NonZeroUsize;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use antiphon_core::port::{JournalLog, Read};
use antiphon_core::{Event, EventBody, Position, TaskId};
use antiphon_sqlite::{SqliteJournal, Sync};

use crate::kill::Kill;

/// How long what a killed program started may take to be gone.
const GONE_AFTER: Duration = Duration::from_secs(10);

/// How one start of the program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It got to its end.
    Ended,
    /// It was killed.
    Died,
}

/// A project.
pub(crate) struct Project {
    folder: tempfile::TempDir,
}

impl Project {
    /// A folder with these files in it.
    pub(crate) fn new(files: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for (path, content) in files {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        Self { folder }
    }

    /// A file of it; empty when it is not there.
    pub(crate) fn text(&self, path: &str) -> String {
        fs::read_to_string(self.folder.path().join(path)).unwrap_or_default()
    }

    /// Makes a file that only its owner can read.
    pub(crate) fn write_private(&self, path: &str, content: &str) {
        let mut file = fs::OpenOptions::new();
        let file = file.write(true).create_new(true).mode(0o600);
        file.open(self.folder.path().join(path)).unwrap().write_all(content.as_bytes()).unwrap();
    }

    /// Starts the program, which dies if told to. By SIGKILL, or at its end: it never fails.
    pub(crate) fn start(&self, arguments: &[&str], kill: Option<Kill>) -> Fate {
        let mut command = self.antiphon();
        command.args(arguments);
        let output = match kill {
            None => command.output().unwrap(),
            Some(kill) => kill.run(command),
        };
        let err = String::from_utf8_lossy(&output.stderr);
        let killed = output.status.code().is_none();
        assert!(output.status.success() || killed, "{arguments:?}, {kill:?}: {err}");
        if killed { Fate::Died } else { Fate::Ended }
    }

    /// What a command that only looks prints.
    pub(crate) fn look(&self, arguments: &[&str]) -> Vec<u8> {
        self.antiphon().args(arguments).stdout(Stdio::piped()).output().unwrap().stdout
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn antiphon(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_antiphon"));
        command
            .current_dir(self.folder.path())
            .env_clear()
            .env("HOME", self.folder.path())
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        command
    }

    /// Everything in its journal, which is whole.
    pub(crate) fn events(&self) -> Vec<Event> {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let journal = self.folder.path().join(".antiphon/journal.db");
        let journal = SqliteJournal::open(&journal, Sync::Full).unwrap();
        runtime.block_on(async {
            journal.verify().await.unwrap();
            let (mut events, mut after) = (Vec::new(), Position(0));
            loop {
                let read = Read { task_id: None, after, limit: NonZeroUsize::MAX };
                let page = journal.read(read).await.unwrap();
                if page.events.is_empty() {
                    return events;
                }
                after = page.next;
                events.extend(page.events);
            }
        })
    }

    /// The same, by task: positions and seqs count from one without a gap.
    pub(crate) fn by_task(&self, place: &str) -> BTreeMap<TaskId, Vec<EventBody>> {
        let mut by_task: BTreeMap<TaskId, Vec<EventBody>> = BTreeMap::new();
        for (number, event) in (1..).zip(self.events()) {
            assert_eq!(event.position.0, number, "{place}");
            let bodies = by_task.entry(event.task_id.clone()).or_default();
            assert_eq!(event.seq.0, bodies.len() as u64 + 1, "{}: {place}", event.task_id);
            bodies.push(event.body);
        }
        by_task
    }

    /// Waits until no process of this project is there, and says which are left if some stay.
    pub(crate) fn processes_left(&self) -> Vec<String> {
        let until = Instant::now() + GONE_AFTER;
        loop {
            let left = processes_in(self.folder.path());
            if left.is_empty() || Instant::now() >= until {
                return left;
            }
            // Nobody tells when somebody else's process is gone.
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Project {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.folder.disable_cleanup(true);
            eprintln!("kept to be looked at: {}", self.folder.path().display());
        }
    }
}

/// Processes that work in a folder or have it in their environment.
fn processes_in(folder: &Path) -> Vec<String> {
    let name = folder.as_os_str().as_bytes();
    let about = |process: &Path| {
        let cwd = fs::read_link(process.join("cwd")).is_ok_and(|cwd| cwd.starts_with(folder));
        let told = fs::read(process.join("environ")).unwrap_or_default();
        let told = told.windows(name.len()).any(|part| part == name);
        let line = fs::read(process.join("cmdline")).unwrap_or_default();
        // What is dead and not waited for has no command line.
        ((cwd || told) && !line.is_empty()).then(|| String::from_utf8_lossy(&line).into_owned())
    };
    let processes = fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    processes.filter_map(|process| about(&process.path())).collect()
}
