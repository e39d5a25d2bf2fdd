//! `antiphon mcp`: this project for MCP clients, and the MCP servers that agents use.

mod login;
mod serve;
mod servers;

use antiphon_project::environment::Environment;
use clap::Subcommand;

use crate::failure::Failure;

/// Serve MCP clients; add, try and remove MCP servers, and log in to them.
#[derive(Debug, Subcommand)]
#[command(after_help = "\
Examples:
  antiphon mcp add files -- npx -y @modelcontextprotocol/server-filesystem .
  antiphon mcp test files
  antiphon mcp list
  antiphon mcp serve")]
pub(crate) enum Mcp {
    Serve(serve::Serve),
    Login(login::Login),
    Logout(login::Logout),
    Add(servers::Add),
    List(servers::List),
    Remove(servers::Remove),
    Test(servers::Test),
}

impl Mcp {
    pub(crate) async fn run(self, environment: &Environment) -> Result<(), Failure> {
        match self {
            Self::Serve(serve) => serve.run(environment).await,
            Self::Login(login) => login.run(environment).await,
            Self::Logout(logout) => logout.run(environment),
            Self::Add(add) => add.run(environment),
            Self::List(list) => list.run(environment),
            Self::Remove(remove) => remove.run(environment),
            Self::Test(test) => test.run(environment).await,
        }
    }
}
