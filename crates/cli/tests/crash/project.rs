//! A project in which the real binary runs, is killed, and is started again.
//!
//! The folder is removed on drop, unless a check failed: then its path is printed.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::num::NonZeroUsize;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use antiphon_core::port::{JournalLog, Read};
use antiphon_core::{Event, EventBody, Position, TaskId};
use antiphon_sqlite::{SqliteJournal, SyncPolicy};

use crate::kill::Kill;
use crate::project_folder::{ProjectFolder, home, state, trust};

/// Time for the child processes of a killed program to end.
const EXIT_WAIT: Duration = Duration::from_secs(10);

/// How one run of the program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// It exited by itself.
    Completed,
    /// It was killed.
    Killed,
}

/// A project in a temporary folder.
pub(crate) struct Project {
    folder: ProjectFolder,
}

impl Project {
    /// A folder with these files in it.
    pub(crate) fn new(files: &[(&str, &str)]) -> Self {
        let folder = ProjectFolder::new();
        for (path, content) in files {
            // What begins with `.config` is the user's own.
            let at = if path.starts_with(".config") {
                home(folder.path())
            } else {
                folder.path().to_owned()
            };
            let path = at.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        trust(folder.path());
        Self { folder }
    }

    /// The text of a file; empty when the file is missing.
    pub(crate) fn text(&self, path: &str) -> String {
        fs::read_to_string(self.folder.path().join(path)).unwrap_or_default()
    }

    /// Creates or replaces a file in the state folder that only its owner can read.
    pub(crate) fn write_private(&self, path: &str, content: &str) {
        let _ = fs::remove_file(state(self.folder.path()).join(path));
        let mut file = fs::OpenOptions::new();
        let file = file.write(true).create_new(true).mode(0o600);
        file.open(state(self.folder.path()).join(path))
            .unwrap()
            .write_all(content.as_bytes())
            .unwrap();
    }

    /// Runs the program, which dies at `kill`. It must be killed or succeed.
    pub(crate) fn start(&self, arguments: &[&str], kill: Option<Kill>) -> Exit {
        self.start_with(arguments, &[], kill)
    }

    /// The same with these environment variables.
    pub(crate) fn start_with(
        &self,
        arguments: &[&str],
        variables: &[(&str, &str)],
        kill: Option<Kill>,
    ) -> Exit {
        let mut command = self.antiphon();
        command.args(arguments).envs(variables.iter().copied());
        let output = match kill {
            None => command.output().unwrap(),
            Some(kill) => kill.run(command),
        };
        let err = String::from_utf8_lossy(&output.stderr);
        let killed = output.status.code().is_none();
        assert!(output.status.success() || killed, "{arguments:?}, {kill:?}: {err}");
        if killed { Exit::Killed } else { Exit::Completed }
    }

    /// The standard output of a read-only command.
    pub(crate) fn output(&self, arguments: &[&str]) -> Vec<u8> {
        self.antiphon().args(arguments).stdout(Stdio::piped()).output().unwrap().stdout
    }

    /// The state folder.
    pub(crate) fn state(&self) -> PathBuf {
        state(self.folder.path())
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// The folder that holds the state folders of projects.
    pub(crate) fn state_base(&self) -> PathBuf {
        home(self.folder.path()).join(".local/state")
    }

    pub(crate) fn antiphon(&self) -> Command {
        self.antiphon_in(env!("CARGO_BIN_EXE_antiphon"))
    }

    /// A program with the environment of this project.
    pub(crate) fn antiphon_in(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command
            .current_dir(self.folder.path())
            .env_clear()
            .env("HOME", home(self.folder.path()))
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        command
    }

    /// All events of its journal, which is verified first.
    pub(crate) fn events(&self) -> Vec<Event> {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let journal = state(self.folder.path()).join("journal.db");
        let journal = SqliteJournal::open(&journal, SyncPolicy::Full).unwrap();
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

    /// The events by task. Checks that positions and sequence numbers count from one without a gap.
    pub(crate) fn by_task(&self, context: &str) -> BTreeMap<TaskId, Vec<EventBody>> {
        let mut by_task: BTreeMap<TaskId, Vec<EventBody>> = BTreeMap::new();
        for (number, event) in (1..).zip(self.events()) {
            assert_eq!(event.position.0, number, "{context}");
            let bodies = by_task.entry(event.task_id.clone()).or_default();
            assert_eq!(event.seq.0, bodies.len() as u64 + 1, "{}: {context}", event.task_id);
            bodies.push(event.body);
        }
        by_task
    }

    /// Waits until no process of this project is left. Returns those that stay.
    pub(crate) fn processes_left(&self) -> Vec<String> {
        let until = Instant::now() + EXIT_WAIT;
        loop {
            let left = processes_in(self.folder.path());
            if left.is_empty() || Instant::now() >= until {
                return left;
            }
            // There is no notification for the end of a process that is not a child.
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Project {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.folder.keep();
            eprintln!("the folder is kept: {}", self.folder.path().display());
        }
    }
}

/// Processes whose working folder or environment contains this folder.
fn processes_in(folder: &Path) -> Vec<String> {
    let name = folder.as_os_str().as_bytes();
    let about = |process: &Path| {
        let cwd = fs::read_link(process.join("cwd")).is_ok_and(|cwd| cwd.starts_with(folder));
        let environ = fs::read(process.join("environ")).unwrap_or_default();
        let mentions = environ.windows(name.len()).any(|part| part == name);
        let line = fs::read(process.join("cmdline")).unwrap_or_default();
        // A zombie has no command line.
        ((cwd || mentions) && !line.is_empty()).then(|| String::from_utf8_lossy(&line).into_owned())
    };
    let processes = fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    processes.filter_map(|process| about(&process.path())).collect()
}
