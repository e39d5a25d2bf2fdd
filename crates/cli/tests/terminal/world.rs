//! A project with scripts, and the program in it.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::project_folder::{ProjectFolder, home, state, trust};
use crate::screen::Screen;

/// A project.
pub(crate) struct World(ProjectFolder);

impl World {
    pub(crate) fn new() -> Self {
        Self(ProjectFolder::new())
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        let path = self.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Writes the user's configuration, beside the model that answers from a script.
    pub(crate) fn config(&self, text: &str) {
        let has_model = text.lines().any(|line| line.starts_with("model = "));
        let model = if has_model { "" } else { "model = \"scripted/hello\"\n" };
        let text = format!("{model}{text}");
        let folder = home(self.path()).join(".config/antiphon");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("config.toml"), text).unwrap();
    }

    pub(crate) fn trust(&self) {
        trust(self.path());
    }

    /// A script whose replies are these, as TOML.
    pub(crate) fn script(&self, replies: &str) {
        self.write("s.toml", &format!("name = \"s\"\n{replies}"));
    }

    /// A command at a controlling terminal of this size.
    pub(crate) fn command(&self, (rows, columns): (u16, u16), arguments: &[&str]) -> Command {
        let mut command = Command::new("setsid");
        let script = format!("stty rows {rows} cols {columns}; exec \"$0\" \"$@\"");
        command.args(["--ctty", "--wait", "sh", "-c", &script]);
        command.arg(assert_cmd::cargo::cargo_bin!("antiphon")).args(arguments);
        command.current_dir(self.path()).env_clear().env("HOME", home(self.path()));
        command.env("PATH", std::env::var_os("PATH").unwrap()).env("TERM", "xterm-256color");
        command
    }

    /// An interactive shell at a controlling terminal of this size; `$ANTIPHON` is the program.
    pub(crate) fn shell(&self, (rows, columns): (u16, u16)) -> Screen {
        let mut command = Command::new("setsid");
        let script =
            format!("stty rows {rows} cols {columns}; exec bash --norc --noprofile --noediting -i");
        command.args(["--ctty", "--wait", "sh", "-c", &script]);
        command.current_dir(self.path()).env_clear().env("HOME", home(self.path()));
        command.env("PATH", std::env::var_os("PATH").unwrap()).env("TERM", "xterm-256color");
        command.env("ANTIPHON", assert_cmd::cargo::cargo_bin!("antiphon")).env("PS1", "shell> ");
        Screen::start(command, (rows, columns))
    }

    /// The process that holds the journal, and its parent, which the shell knows.
    pub(crate) fn processes(&self) -> (u32, u32) {
        let lock = state(self.path()).join("journal.db.lock");
        let owner = loop {
            // It is empty for a moment while a process takes it.
            let pid = fs::read_to_string(&lock).unwrap_or_default();
            if let Ok(pid) = pid.trim().parse::<u32>() {
                break pid;
            }
        };
        let stat = fs::read_to_string(format!("/proc/{owner}/stat")).unwrap();
        let parent = stat.rsplit(')').next().unwrap().split_whitespace().nth(1).unwrap();
        (owner, parent.parse().unwrap())
    }

    /// The program with the script, at its first prompt.
    pub(crate) fn chat(&self, size: (u16, u16)) -> Screen {
        let mut screen = self.start(size, &[]);
        screen.until("Ask anything");
        screen
    }

    pub(crate) fn start(&self, size: (u16, u16), more: &[&str]) -> Screen {
        self.start_with(size, more, &[])
    }

    /// The same with variables of the environment.
    pub(crate) fn start_with(
        &self,
        size: (u16, u16),
        more: &[&str],
        variables: &[(&str, &str)],
    ) -> Screen {
        let begin = ["chat", "--model", "scripted/s", "--script", "s.toml"];
        let mut command = self.command(size, &[&begin, more].concat());
        command.envs(variables.iter().copied());
        Screen::start(command, size)
    }
}
