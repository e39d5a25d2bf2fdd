//! `antiphon mcp login` and `logout`: logins to MCP servers that ask for one.

use std::process::{Command, Stdio};

use antiphon_project::environment::Environment;
use antiphon_project::project::Project;
use antiphon_project::toolset::McpLogin;
use clap::Args;

use crate::failure::Failure;
use crate::terminal;

/// Log in to a configured MCP server, in the browser.
#[derive(Debug, Args)]
#[command(after_help = "\
Prints an address where you consent, and opens it in the browser. The browser comes back to a port of this machine; over SSH, forward that port or open the address here. The login is kept in your state folder and renewed by itself.

Examples:
  antiphon mcp login linear
  antiphon mcp login linear --no-browser")]
pub(crate) struct Login {
    /// Name of the server in your settings, `[mcp.SERVER]`.
    #[arg(id = "mcp_server", value_name = "SERVER")]
    server: String,

    /// Only print the address.
    #[arg(long)]
    no_browser: bool,
}

/// Forget the login to an MCP server.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  antiphon mcp logout linear")]
pub(crate) struct Logout {
    /// Name of the server in your settings, `[mcp.SERVER]`.
    #[arg(id = "mcp_server", value_name = "SERVER")]
    server: String,
}

impl Login {
    pub(crate) async fn run(self, environment: &Environment) -> Result<(), Failure> {
        let login = find(environment, &self.server)?.begin().await?;
        terminal::print(&format!("Open this address to log in:\n\n  {}\n\n", login.url()));
        if !self.no_browser {
            open(login.url());
        }
        login.finish().await?;
        terminal::print(&format!("Logged in to `{}`.\n", self.server));
        Ok(())
    }
}

impl Logout {
    pub(crate) fn run(self, environment: &Environment) -> Result<(), Failure> {
        let said = if find(environment, &self.server)?.end()? {
            format!(
                "Logged out of `{}`. The server may still know the token: revoke it there.\n",
                self.server
            )
        } else {
            format!("There is no login to `{}`.\n", self.server)
        };
        terminal::print(&said);
        Ok(())
    }
}

fn find(environment: &Environment, server: &str) -> Result<McpLogin, Failure> {
    let settings = Project::find(environment)?.settings(environment)?;
    Ok(McpLogin::find(&settings.mcp, environment, server)?)
}

/// Opens an address in the browser, if there is a command for it. The user has the address in any case.
fn open(url: &str) {
    let opener = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let mut command = Command::new(opener);
    command.arg(url).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    if let Err(error) = command.spawn() {
        tracing::debug!(%error, "no browser was opened");
    }
}
