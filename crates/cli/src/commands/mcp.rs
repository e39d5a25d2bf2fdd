//! `antiphon mcp`: this project for MCP clients, and logins to MCP servers.

mod login;
mod serve;

use antiphon_project::environment::Environment;
use clap::Subcommand;

use crate::failure::Failure;

/// Serve MCP clients, and log in to MCP servers.
#[derive(Debug, Subcommand)]
pub(crate) enum Mcp {
    Serve(serve::Serve),
    Login(login::Login),
    Logout(login::Logout),
}

impl Mcp {
    pub(crate) async fn run(self, environment: &Environment) -> Result<(), Failure> {
        match self {
            Self::Serve(serve) => serve.run(environment).await,
            Self::Login(login) => login.run(environment).await,
            Self::Logout(logout) => logout.run(environment),
        }
    }
}
