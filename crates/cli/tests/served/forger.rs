//! Somebody who pretends to be a server: listens, writes its papers, and may own the journal.

use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use antiphon_sqlite::{SqliteJournal, Sync};
use serde_json::json;

use super::project::Project;

/// Somebody who pretends to be a server, in the process of the test.
pub(crate) struct Forger {
    papers: PathBuf,
    listener: TcpListener,
    pub(crate) token: String,
    journal: Option<SqliteJournal>,
}

impl Forger {
    /// One who owns nothing.
    pub(crate) fn beside(project: &Project) -> Self {
        Self::with(project, None)
    }

    /// One who owns the journal.
    pub(crate) fn owning(project: &Project) -> Self {
        let journal = project.path().join(".antiphon/journal.db");
        Self::with(project, Some(SqliteJournal::open(&journal, Sync::Normal).unwrap()))
    }

    fn with(project: &Project, journal: Option<SqliteJournal>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let papers = project.path().join(".antiphon");
        Self { papers, listener, token: "0".repeat(64), journal }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.listener.local_addr().unwrap()
    }

    /// Writes the papers of a server that listens there.
    pub(crate) fn publish(&self, url: &str) {
        let about = json!({"url": url, "pid": std::process::id()}).to_string();
        write_private(&self.papers.join("server.json"), &about);
        if self.journal.is_some() {
            write_private(&self.papers.join("token"), &self.token);
        }
    }

    /// What somebody said who came, if anybody did.
    pub(crate) fn heard(&self) -> String {
        self.listener.set_nonblocking(true).unwrap();
        let came = self.listener.accept();
        self.listener.set_nonblocking(false).unwrap();
        match came {
            Ok((_, from)) => format!("somebody came from {from}"),
            Err(error) if error.kind() == ErrorKind::WouldBlock => String::new(),
            Err(error) => error.to_string(),
        }
    }

    /// Waits for somebody, hears a request without a body, answers and closes the connection.
    pub(crate) fn answer(&self, answer: &str) -> String {
        let (mut socket, _) = self.listener.accept().unwrap();
        let mut heard = Vec::new();
        let mut byte = [0];
        while !heard.ends_with(b"\r\n\r\n") && socket.read(&mut byte).unwrap() > 0 {
            heard.push(byte[0]);
        }
        socket.write_all(answer.as_bytes()).unwrap();
        String::from_utf8(heard).unwrap()
    }
}

fn write_private(path: &Path, text: &str) {
    let _ = fs::remove_file(path);
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path).unwrap();
    file.write_all(text.as_bytes()).unwrap();
}
