//! A forged server: listens, writes the files of a server, and may own the journal.

use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use antiphon_sqlite::{SqliteJournal, SyncPolicy};
use serde_json::json;

use super::project::Project;
use crate::project_folder::state;

/// A forged server in the process of the test.
pub(crate) struct Forger {
    folder: PathBuf,
    listener: TcpListener,
    pub(crate) token: String,
    journal: Option<SqliteJournal>,
}

impl Forger {
    /// A forged server that does not own the journal.
    pub(crate) fn beside(project: &Project) -> Self {
        Self::with(project, None)
    }

    /// A forged server that owns the journal.
    pub(crate) fn owning(project: &Project) -> Self {
        let journal = state(project.path()).join("journal.db");
        Self::with(project, Some(SqliteJournal::open(&journal, SyncPolicy::Normal).unwrap()))
    }

    fn with(project: &Project, journal: Option<SqliteJournal>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let folder = state(project.path());
        Self { folder, listener, token: "0".repeat(64), journal }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.listener.local_addr().unwrap()
    }

    /// Writes the files of a server that listens at this URL.
    pub(crate) fn publish(&self, url: &str) {
        let about = json!({"url": url, "pid": std::process::id()}).to_string();
        write_private(&self.folder.join("server.json"), &about);
        if self.journal.is_some() {
            write_private(&self.folder.join("token"), &self.token);
        }
    }

    /// A pending connection, described; empty if there is none.
    pub(crate) fn connection(&self) -> String {
        self.listener.set_nonblocking(true).unwrap();
        let came = self.listener.accept();
        self.listener.set_nonblocking(false).unwrap();
        match came {
            Ok((_, from)) => format!("a connection from {from}"),
            Err(error) if error.kind() == ErrorKind::WouldBlock => String::new(),
            Err(error) => error.to_string(),
        }
    }

    /// Accepts a connection, reads a request without a body, answers and closes the connection.
    pub(crate) fn answer(&self, answer: &str) -> String {
        let (mut socket, _) = self.listener.accept().unwrap();
        let mut request = Vec::new();
        let mut byte = [0];
        while !request.ends_with(b"\r\n\r\n") && socket.read(&mut byte).unwrap() > 0 {
            request.push(byte[0]);
        }
        let head = String::from_utf8_lossy(&request).to_lowercase();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        let length: usize = length.map_or(0, |length| length.trim().parse().unwrap());
        // A body that is not read would reset the connection.
        socket.read_exact(&mut vec![0; length]).unwrap();
        socket.write_all(answer.as_bytes()).unwrap();
        String::from_utf8(request).unwrap()
    }
}

fn write_private(path: &Path, text: &str) {
    let _ = fs::remove_file(path);
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path).unwrap();
    file.write_all(text.as_bytes()).unwrap();
}
