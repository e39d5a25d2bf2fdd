//! `antiphon completions`: completions for shells. They ask this program, so that they know tasks, agents and sessions.

use std::io::Read as _;
use std::process::{Command as Process, Stdio};

use clap::{Arg, Args, Command, ValueEnum};
use clap_complete::CompletionCandidate;
use clap_complete::engine::ArgValueCompleter;
use clap_complete::env::{Bash, EnvCompleter, Fish, Zsh};
use serde_json::Value;

use crate::commands::chat;
use crate::failure::Failure;
use crate::terminal;

/// The variable by which a shell asks for completions.
pub(crate) const VARIABLE: &str = "ANTIPHON_COMPLETE";

/// Longest list that is read, in bytes.
const LIST_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// Print the completions of a shell.
#[derive(Debug, Args)]
#[command(after_help = "\
Tasks, agents and sessions are completed too, from the project in the current folder.

Examples:
  echo 'source <(antiphon completions bash)' >> ~/.bashrc
  echo 'source <(antiphon completions zsh)' >> ~/.zshrc
  antiphon completions fish > ~/.config/fish/completions/antiphon.fish")]
pub(crate) struct Completions {
    /// The shell.
    shell: Shell,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Shell {
    Bash,
    Zsh,
    Fish,
}

impl Completions {
    pub(crate) fn run(self) -> Result<(), Failure> {
        let shell: &dyn EnvCompleter = match self.shell {
            Shell::Bash => &Bash,
            Shell::Zsh => &Zsh,
            Shell::Fish => &Fish,
        };
        let mut script = Vec::new();
        shell
            .write_registration(VARIABLE, "antiphon", "antiphon", "antiphon", &mut script)
            .map_err(|error| Failure::failed(error.to_string()))?;
        let script = String::from_utf8_lossy(&script);
        terminal::write(&match self.shell {
            Shell::Zsh => loaded_by_zsh(&script),
            Shell::Bash | Shell::Fish => script.into_owned(),
        })
    }
}

/// The script for zsh, which loads a file of `fpath` at the first completion and takes its end for that completion. A
/// script that is sourced registers itself, also where completion was not begun.
fn loaded_by_zsh(script: &str) -> String {
    let Some(at) = script.rfind("compdef ") else { return script.to_owned() };
    let (function, register) = (&script[..at], script[at..].trim_end());
    format!(
        "{function}\
         if [[ $funcstack[1] == _antiphon ]]; then\n    \
         _clap_dynamic_completer_antiphon \"$@\"\n\
         else\n    \
         (( $+functions[compdef] )) || {{ autoload -Uz compinit && compinit -i }}\n    \
         {register}\n\
         fi\n"
    )
}

/// The command with completions of tasks, agents and sessions. Without a command, options are those of the terminal
/// program.
pub(crate) fn with_completions(command: Command) -> Command {
    let program = command.find_subcommand(chat::NAME).into_iter().flat_map(Command::get_arguments);
    let options: Vec<Arg> =
        program.filter(|arg| arg.get_long().is_some() && !arg.is_hide_set()).cloned().collect();
    complete_below(command.args(options), "")
}

fn complete_below(command: Command, parent: &str) -> Command {
    let name = command.get_name().to_owned();
    let command = command.mut_args(|arg| {
        let list: Option<&'static [&'static str]> =
            match (parent, name.as_str(), arg.get_id().as_str()) {
                (_, "run", "resume") | ("tasks", _, "task") => Some(&["tasks", "list"]),
                (_, "run", "session") | ("sessions", _, "session") => Some(&["sessions", "list"]),
                (_, "send" | "run" | "chat" | "acp" | "antiphon", "agent")
                | ("agents", _, "name" | "agent") => Some(&["agents", "list"]),
                (_, _, _) => None,
            };
        match list {
            Some(list) if arg.get_action().takes_values() => {
                arg.add(ArgValueCompleter::new(move |begun: &std::ffi::OsStr| {
                    candidates(list, &begun.to_string_lossy())
                }))
            }
            Some(_) | None => arg,
        }
    });
    command.mut_subcommands(|below| complete_below(below, &name))
}

/// What a list of this program has that begins like this. A list that cannot be had completes nothing.
fn candidates(list: &[&str], begun: &str) -> Vec<CompletionCandidate> {
    let found = listed(list).unwrap_or_default();
    let fits = found.into_iter().filter(|(name, _)| name.starts_with(begun));
    fits.map(|(name, help)| CompletionCandidate::new(name).help(help.map(Into::into))).collect()
}

/// Names and titles of a list, as `--json` prints it.
fn listed(list: &[&str]) -> Option<Vec<(String, Option<String>)>> {
    let mut process = Process::new(std::env::current_exe().ok()?)
        .args(list)
        .arg("--json")
        .env_remove(VARIABLE)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    let mut text = String::new();
    let read = process.stdout.take()?.take(LIST_BYTES_MAX).read_to_string(&mut text);
    process.wait().ok()?;
    read.ok()?;
    let found: Value = serde_json::from_str(&text).ok()?;
    let lists = [Some(&found), found.get("agents"), found.get("tasks"), found.get("sessions")];
    let rows = lists.into_iter().flatten().find_map(Value::as_array)?;
    let text = |row: &Value, names: &[&str]| {
        let value = names.iter().find_map(|name| row.get(name)?.as_str());
        value.map(str::to_owned)
    };
    let rows = rows.iter().filter_map(|row| {
        Some((
            text(row, &["task_id", "session_id", "name", "id"])?,
            text(row, &["title", "description"]),
        ))
    });
    Some(rows.collect())
}
