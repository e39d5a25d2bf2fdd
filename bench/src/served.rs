//! `antiphon serve` as users start it: a release binary, its own project, a journal on disk.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tempfile::TempDir;

use crate::Error;
use crate::connection::Address;
use crate::process::Process;

/// Environment variable with the path of the binary.
const ANTIPHON: &str = "ANTIPHON";

/// A project with a configuration and scripts, and a home folder beside it. Dropping it removes both.
#[derive(Debug)]
pub struct Project {
    antiphon: PathBuf,
    _outer: TempDir,
    folder: PathBuf,
}

impl Project {
    /// An empty project below `near`, which should be on a disk: a temporary folder may be in
    /// memory, where a sync costs nothing.
    pub fn new(near: &str, config: &str) -> Result<Self, Error> {
        let antiphon = std::env::var_os(ANTIPHON)
            .ok_or("set ANTIPHON to a release binary of `antiphon`, or use `make bench`")?;
        let antiphon = fs::canonicalize(antiphon)?;
        let outer = tempfile::tempdir_in(near)?;
        let folder = fs::canonicalize(outer.path())?.join("project");
        fs::create_dir(folder.with_file_name("home"))?;
        let project = Self { antiphon, _outer: outer, folder };
        project.write("config.toml", config)?;
        Ok(project)
    }

    /// Path of the folder.
    pub fn path(&self) -> &Path {
        &self.folder
    }

    /// Writes a file into the folder.
    pub fn write(&self, name: &str, text: &str) -> Result<PathBuf, Error> {
        let path = self.path().join(name);
        fs::create_dir_all(path.parent().ok_or("that is no file")?)?;
        fs::write(&path, text)?;
        Ok(path)
    }

    /// A command that runs in the folder.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.antiphon);
        command.current_dir(self.path()).args(arguments).stdin(Stdio::null());
        command.env_clear().env("HOME", self.folder.with_file_name("home"));
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.env("ANTIPHON_CONFIG", self.path().join("config.toml"));
        // Faults are part of the load: only unexpected errors are logged.
        command.env("ANTIPHON_LOG", "error");
        command
    }

    /// The journal, once a server or a task has created it.
    pub fn journal(&self) -> Result<PathBuf, Error> {
        let state = self.folder.with_file_name("home").join(".local/state/antiphon/projects");
        let mut projects = fs::read_dir(state)?;
        let project = projects.next().ok_or("the project has no state")??;
        Ok(project.path().join("journal.db"))
    }

    /// Starts a server and waits until it listens.
    pub fn serve(&self, arguments: &[&str]) -> Result<Served, Error> {
        let arguments = [&["serve", "--trust", "--listen", "127.0.0.1:0"], arguments].concat();
        let mut process = self.command(&arguments).stdout(Stdio::piped()).spawn()?;
        let output = process.stdout.take().ok_or("the server has no output")?;
        let mut served = Served { process, output: BufReader::new(output), address: None };
        let mut line = String::new();
        served.output.read_line(&mut line)?;
        let url = line.trim().strip_prefix("listening on http://");
        let url = url.ok_or_else(|| format!("the server said: {line}"))?;
        let token = String::from_utf8(self.command(&["token"]).output()?.stdout)?;
        served.address = Some(Address::new(url.parse()?).with_token(token.trim()));
        Ok(served)
    }
}

/// A running server. Dropping it kills it.
#[derive(Debug)]
pub struct Served {
    process: Child,
    /// Kept open: a server that cannot print would end.
    output: BufReader<ChildStdout>,
    address: Option<Address>,
}

impl Served {
    /// Its address and token.
    pub fn address(&self) -> Result<Address, Error> {
        Ok(self.address.clone().ok_or("the server does not listen")?)
    }

    /// Its process.
    pub fn process(&self) -> Process {
        Process::new(self.process.id())
    }

    /// Kills it, like a power failure.
    pub fn kill(mut self) -> Result<(), Error> {
        self.process.kill()?;
        self.process.wait()?;
        Ok(())
    }

    /// Shuts it down in order.
    pub fn end(mut self) -> Result<(), Error> {
        kill(Pid::from_raw(i32::try_from(self.process.id())?), Signal::SIGTERM)?;
        let status = self.process.wait()?;
        if status.success() { Ok(()) } else { Err(format!("the server ended: {status}").into()) }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
