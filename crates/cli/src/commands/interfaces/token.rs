//! `antiphon token`: the token of this project's server, for scripts.

use antiphon_project::environment::Environment;
use antiphon_project::project::Project;
use antiphon_project::server_files::ServerFiles;
use clap::Args;
use secrecy::ExposeSecret;

use crate::failure::Failure;
use crate::terminal;

/// Print the token of this project's server, for scripts (see docs/server.md).
#[derive(Debug, Args)]
#[command(after_help = "\
The token is created when there is none. It gives full control over the project: hand out keys instead
(`antiphon keys new`). Only you can read the file it is in (`antiphon projects show`).

Examples:
  curl -H \"Authorization: Bearer $(antiphon token)\" http://127.0.0.1:7117/v1/tasks")]
pub(crate) struct Token {}

impl Token {
    pub(crate) fn run(environment: &Environment) -> Result<(), Failure> {
        let project = Project::find(environment)?;
        project.prepare()?;
        let token = ServerFiles::new(project.state()).token()?;
        terminal::print(&format!("{}\n", token.expose_secret()));
        Ok(())
    }
}
