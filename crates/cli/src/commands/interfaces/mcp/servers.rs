//! `antiphon mcp add`, `list`, `remove` and `test`: the MCP servers of the user's settings.

use std::time::Instant;

use antiphon_project::environment::Environment;
use antiphon_project::project::Project;
use antiphon_project::settings::{SettingsEdit, UserSettings};
use antiphon_project::toolset::{server_target, test_server};
use antiphon_project::trust::{TrustItemKind, TrustStatus};
use antiphon_view::display::escaped;
use clap::Args;
use serde::Serialize;
use serde_json::json;

use crate::failure::Failure;
use crate::terminal;

/// Add an MCP server to your settings.
#[derive(Debug, Args)]
#[command(after_help = "\
Nothing is started: `antiphon mcp test NAME` does. Exit code 2 when the name is taken or not valid.

Examples:
  antiphon mcp add files -- npx -y @modelcontextprotocol/server-filesystem .
  antiphon mcp add store --env STORE=main --cwd ~/shop -- python3 store.py
  antiphon mcp add linear https://mcp.linear.app/mcp")]
pub(crate) struct Add {
    /// Name of the server; it begins the names of its tools.
    #[arg(id = "mcp_server", value_name = "NAME")]
    server: String,

    /// Variable of the server's environment; repeatable.
    #[arg(long, value_name = "NAME=VALUE")]
    env: Vec<String>,

    /// Working folder of the server.
    #[arg(long, value_name = "FOLDER")]
    cwd: Option<String>,

    /// Command and arguments, behind `--`, or an address that begins with http:// or https://.
    #[arg(required = true, value_name = "COMMAND|URL", trailing_var_arg = true)]
    target: Vec<String>,
}

/// List the MCP servers of your settings and of this project. None is started.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  antiphon mcp list
  antiphon mcp list --json | jq -r '.[].name'")]
pub(crate) struct List {
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// Remove an MCP server from your settings.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  antiphon mcp remove store")]
pub(crate) struct Remove {
    /// Name of the server in your settings, `[mcp.NAME]`.
    #[arg(id = "mcp_server", value_name = "NAME")]
    server: String,
}

/// Start an MCP server, list its tools, and stop it.
#[derive(Debug, Args)]
#[command(after_help = "\
Exit code 0 when it offers tools, 4 when it does not start or answer.

Examples:
  antiphon mcp test store
  antiphon mcp test store --json | jq -r '.tools[]'")]
pub(crate) struct Test {
    /// Name of the server in your settings or in those of the project.
    #[arg(id = "mcp_server", value_name = "NAME")]
    server: String,

    /// Print JSON.
    #[arg(long)]
    json: bool,
}

impl Add {
    pub(crate) fn run(self, environment: &Environment) -> Result<(), Failure> {
        let name = self.server.as_str();
        let mut settings = SettingsEdit::open(environment)?;
        if settings.all().iter().any(|it| it.key.starts_with(&format!("mcp.{name}."))) {
            return Err(Failure::usage(format!(
                "there is an MCP server `{}` already: remove it with `antiphon mcp remove {}`",
                escaped(name),
                escaped(name)
            )));
        }
        match self.target.as_slice() {
            [url] if url.starts_with("http://") || url.starts_with("https://") => {
                if !self.env.is_empty() || self.cwd.is_some() {
                    return Err(Failure::usage(
                        "--env and --cwd go with a command, not with a URL",
                    ));
                }
                settings.set_text(&["mcp", name, "url"], url)?;
            }
            [command, arguments @ ..] => {
                settings.set_text(&["mcp", name, "command"], command)?;
                if !arguments.is_empty() {
                    settings.set_list(&["mcp", name, "args"], arguments)?;
                }
            }
            [] => return Err(Failure::usage("give a command behind `--`, or a URL")),
        }
        if let Some(cwd) = &self.cwd {
            let cwd = environment.absolute(cwd.as_ref())?;
            settings.set_text(&["mcp", name, "cwd"], &cwd.to_string_lossy())?;
        }
        for pair in &self.env {
            let (variable, value) = pair
                .split_once('=')
                .filter(|(variable, _)| !variable.is_empty())
                .ok_or_else(|| Failure::usage("--env takes NAME=VALUE"))?;
            settings.set_text(&["mcp", name, "env", variable], value)?;
        }
        settings.save()?;
        let (name, path) = (escaped(name), settings.path().display());
        terminal::note(&format!(
            "antiphon: added to {path}; try it with `antiphon mcp test {name}`\n"
        ));
        Ok(())
    }
}

/// A server as it is listed.
#[derive(Serialize)]
struct Row {
    name: String,
    /// Command line or address, without variables and headers.
    target: String,
    /// `you`: your settings. `project`: what the project brings and you trust.
    from: &'static str,
}

impl List {
    pub(crate) fn run(self, environment: &Environment) -> Result<(), Failure> {
        let own = UserSettings::load(environment)?;
        let project = Project::find(environment).ok();
        let settings = match &project {
            Some(project) => project.settings(environment)?,
            // Outside of a project there are those of the user.
            None => own.clone(),
        };
        let rows: Vec<Row> = settings
            .mcp
            .0
            .iter()
            .map(|(name, server)| Row {
                name: name.to_string(),
                target: server_target(server),
                from: if own.mcp.0.contains_key(name) { "you" } else { "project" },
            })
            .collect();
        for note in &settings.unused_servers {
            terminal::note(&format!("antiphon: {}\n", escaped(note)));
        }
        if project.is_some_and(|project| has_untrusted(&project)) {
            terminal::note(
                "antiphon: the servers of .mcp.json have no effect until you trust the file: \
                 `antiphon trust`\n",
            );
        }
        if self.json {
            terminal::print(&terminal::json(&rows)?);
        } else if rows.is_empty() {
            terminal::print("No MCP servers. Add one with `antiphon mcp add`.\n");
        } else {
            let mut lines = vec![["NAME", "FROM", "TARGET"].map(str::to_owned)];
            lines.extend(rows.iter().map(|row| {
                [row.name.clone(), row.from.to_owned(), escaped(&row.target).into_owned()]
            }));
            terminal::print(&terminal::table(&lines));
        }
        Ok(())
    }
}

/// Whether the project brings servers that are not trusted.
fn has_untrusted(project: &Project) -> bool {
    let items = project.trust().items().unwrap_or_default();
    items
        .iter()
        .any(|item| item.kind == TrustItemKind::McpServers && item.status != TrustStatus::Trusted)
}

impl Remove {
    pub(crate) fn run(self, environment: &Environment) -> Result<(), Failure> {
        let mut settings = SettingsEdit::open(environment)?;
        if !settings.remove_table(&["mcp", &self.server]) {
            return Err(no_server(&self.server));
        }
        settings.save()?;
        Ok(())
    }
}

impl Test {
    pub(crate) async fn run(self, environment: &Environment) -> Result<(), Failure> {
        let project = Project::find(environment)?;
        let settings = project.settings(environment)?;
        let started = Instant::now();
        let tested = test_server(&project, &settings, &self.server).await;
        let tested = tested.ok_or_else(|| no_server(&self.server))?;
        let seconds = started.elapsed().as_secs_f64();
        let name = escaped(&self.server);
        if self.json {
            let shown = json!({
                "name": self.server, "tools": tested.tools, "error": tested.error, "seconds": seconds,
            });
            terminal::print(&terminal::json(&shown)?);
        } else {
            let lines = tested.tools.iter().map(|tool| format!("{}\n", escaped(tool)));
            terminal::print(&lines.collect::<String>());
        }
        match tested.error {
            Some(error) if tested.tools.is_empty() => {
                Err(Failure::unavailable(format!("`{name}`: {}", escaped(&error))))
            }
            None if tested.tools.is_empty() => {
                Err(Failure::unavailable(format!("`{name}` offers no tools")))
            }
            Some(_) | None => {
                let count = tested.tools.len();
                terminal::note(&format!("antiphon: {count} tools in {seconds:.1} s\n"));
                Ok(())
            }
        }
    }
}

fn no_server(name: &str) -> Failure {
    Failure::usage(format!("there is no MCP server `{}`: see `antiphon mcp list`", escaped(name)))
}
