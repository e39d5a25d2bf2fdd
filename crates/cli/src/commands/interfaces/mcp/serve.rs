//! `antiphon mcp serve`: agents of the project as tools of an MCP client, on standard input and output.

use antiphon_core::{AgentName, ModelRef};
use antiphon_mcp_server::StdioConfig;
use antiphon_permissions::PermissionMode;
use antiphon_project::environment::Environment;
use clap::Args;

use crate::failure::Failure;
use crate::interface::interface;
use crate::permission_args::ModeName;
use crate::standard_streams::StandardStreams;
use crate::stop_signal::{StopSignal, StopSignals};

/// Serve an MCP client on standard input and output.
#[derive(Debug, Args)]
#[command(after_help = "\
The client starts this command in the folder of the project. Each agent of `antiphon agents list` is a tool. Approvals are asked in the client, if it can ask. Standard output carries the protocol alone; the log is on standard error.

Examples:
  antiphon mcp serve
  antiphon mcp serve --agent reviewer --mode read-only
  claude mcp add antiphon -- antiphon mcp serve

Settings for MCP clients, and MCP over HTTP, are in docs/mcp-server.md.")]
pub(crate) struct Serve {
    /// Agent to offer (see `antiphon agents list`), all when absent; repeatable.
    #[arg(long = "agent", value_name = "NAME")]
    agents: Vec<AgentName>,

    /// Model of the tasks, as PROVIDER/MODEL.
    #[arg(long)]
    model: Option<ModelRef>,

    /// Permission mode where no rule applies.
    #[arg(long, value_name = "MODE")]
    mode: Option<ModeName>,
}

impl Serve {
    pub(crate) async fn run(self, environment: &Environment) -> Result<(), Failure> {
        let config = StdioConfig {
            environment: environment.clone(),
            interface,
            agents: self.agents,
            model: self.model,
            mode: self.mode.map(PermissionMode::from),
        };
        let mut stop_signal = StopSignal::catch(StopSignals::Terminate)?;
        let StandardStreams { input, output } = StandardStreams::open()?;
        let mut is_stopped = false;
        let stop = async {
            stop_signal.received().await;
            is_stopped = true;
        };
        let ended = Box::pin(antiphon_mcp_server::serve(config, input, output, stop)).await;
        if is_stopped {
            // A read of the input still runs, and would keep the process.
            crate::keyboard::exit_now(143);
        }
        ended.map_err(|error| match error {
            antiphon_mcp_server::StdioError::Project(error) => error.into(),
            antiphon_mcp_server::StdioError::Client(_) => Failure::usage(error.to_string()),
        })
    }
}
