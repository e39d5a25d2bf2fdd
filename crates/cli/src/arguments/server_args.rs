//! `--server URL`: the options that run a command through a server elsewhere.

use std::fs;
use std::path::PathBuf;

use antiphon_client::{Client, ClientConfig, Endpoint, Timeouts};
use antiphon_process::ProjectServer;
use antiphon_project::environment::Environment;
use clap::{Arg, ArgAction, Args, Command, value_parser};
use secrecy::SecretString;

use crate::failure::Failure;

/// Environment variable that holds the token for `--server`.
const TOKEN_VARIABLE: &str = "ANTIPHON_TOKEN";

/// Options of every command that can run through a server.
#[derive(Debug, Args)]
pub(crate) struct ServerArgs {
    /// Run the command through the server at this URL, not in the project of this folder. The token comes
    /// from --token-file or from `ANTIPHON_TOKEN`.
    #[arg(
        long,
        global = true,
        env = "ANTIPHON_SERVER",
        value_name = "URL",
        hide_short_help = true
    )]
    server: Option<String>,

    /// File that holds the token for --server.
    #[arg(long, global = true, value_name = "FILE", hide_short_help = true)]
    token_file: Option<PathBuf>,
}

impl ServerArgs {
    /// The server that the user named, if any. Nothing is sent yet.
    pub(crate) fn server(
        self,
        environment: &Environment,
    ) -> Result<Option<ProjectServer>, Failure> {
        let Some(url) = self.server.as_deref().filter(|url| !url.is_empty()) else {
            return match self.token_file {
                Some(_) => Err(Failure::usage("--token-file needs --server URL")),
                None => Ok(None),
            };
        };
        let endpoint =
            Endpoint::parse(url).map_err(|reason| Failure::usage(format!("--server: {reason}")))?;
        let token = self.token(environment)?;
        let config = ClientConfig { endpoint, token, timeouts: Timeouts::default() };
        let client =
            Client::new(config).map_err(|error| Failure::usage(format!("--server: {error}")))?;
        Ok(Some(ProjectServer::named(client)))
    }

    fn token(&self, environment: &Environment) -> Result<SecretString, Failure> {
        let text = match &self.token_file {
            Some(file) => fs::read_to_string(file).map_err(|error| {
                Failure::usage(format!("--token-file {}: {error}", file.display()))
            })?,
            None => environment.text(TOKEN_VARIABLE).ok_or_else(|| {
                Failure::usage(format!(
                    "--server needs a token: use --token-file FILE, or set {TOKEN_VARIABLE}"
                ))
            })?,
        };
        match text.trim() {
            "" => Err(Failure::usage("the token for --server is empty")),
            token => Ok(token.into()),
        }
    }
}

/// Commands that do not work through a server.
const LOCAL_COMMANDS: [&str; 21] = [
    "acp",
    "chat",
    "demo",
    "mcp",
    "request",
    "reply",
    "serve",
    "keys",
    "token",
    "trust",
    "projects",
    "backup",
    "restore",
    "journal",
    "doctor",
    "init",
    "config",
    "completions",
    "man",
    "import",
    "prompt",
];

/// Hides the options from the help of commands that refuse them. They are still parsed there: the refusal
/// says more than an unknown option.
pub(crate) fn hide(command: Command) -> Command {
    let command = LOCAL_COMMANDS.iter().fold(command, |command, name| {
        command.mut_subcommand(name, |command| hide_below(hidden(command)))
    });
    command.mut_subcommand("agents", |agents| agents.mut_subcommand("attach", hidden))
}

fn hide_below(command: Command) -> Command {
    let names: Vec<String> =
        command.get_subcommands().map(|below| below.get_name().to_owned()).collect();
    names.iter().fold(command, |command, name| command.mut_subcommand(name, hidden))
}

/// An option of its own takes the place of the global one.
fn hidden(command: Command) -> Command {
    let option = |name: &'static str, long: &'static str| {
        Arg::new(name).long(long).global(true).hide(true).action(ArgAction::Set)
    };
    let server = option("server", "server").env("ANTIPHON_SERVER");
    let token_file = option("token_file", "token-file");
    command.arg(server).arg(token_file.value_parser(value_parser!(PathBuf)))
}

/// The failure of a command that works only on the files of a project on this machine.
pub(crate) fn not_through_server(command: &str) -> Failure {
    Failure::usage(format!(
        "`antiphon {command}` does not work through --server: run it in the project's folder, without \
         --server and ANTIPHON_SERVER"
    ))
}
