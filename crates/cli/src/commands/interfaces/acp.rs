//! `antiphon acp`: the Agent Client Protocol on standard input and output, for editors.

use antiphon_acp::{AcpConfig, SessionChoice};
use antiphon_core::ModelRef;
use antiphon_permissions::PermissionMode;
use antiphon_project::environment::Environment;
use clap::Args;

use crate::failure::Failure;
use crate::interface::interface;
use crate::permission_args::ModeName;
use crate::standard_streams::StandardStreams;
use crate::stop_signal::{StopSignal, StopSignals};

/// Serve an editor on standard input and output (Agent Client Protocol).
#[derive(Debug, Args)]
#[command(after_help = "\
The editor starts this command. Each session works in the folder that the editor names; sessions are those of `antiphon sessions list`. Approvals are asked in the editor. Standard output carries the protocol alone; the log is on standard error.

Examples:
  antiphon acp
  antiphon acp --agent reviewer --mode read-only
  npx acpx --agent 'antiphon acp' exec \"Who are you?\"

Settings for Zed, JetBrains and acpx are in docs/acp.md.")]
pub(crate) struct Acp {
    /// Agent of the first prompts (see `antiphon agents list`); the editor can change it.
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,

    /// Model as PROVIDER/MODEL; the editor can change it.
    #[arg(long)]
    model: Option<ModelRef>,

    /// Permission mode where no rule applies; the editor can change it.
    #[arg(long, value_name = "MODE")]
    mode: Option<ModeName>,
}

impl Acp {
    pub(crate) async fn run(self, environment: &Environment) -> Result<(), Failure> {
        let mode = self.mode.map(PermissionMode::from);
        let choice = SessionChoice { agent: self.agent, model: self.model, mode };
        let config = AcpConfig { environment: environment.clone(), interface, choice };
        let mut stop_signal = StopSignal::catch(StopSignals::Terminate)?;
        let StandardStreams { input, output } = StandardStreams::open()?;
        let mut is_stopped = false;
        let stop = async {
            stop_signal.received().await;
            is_stopped = true;
        };
        let ended = antiphon_acp::serve(config, input, output, stop).await;
        if is_stopped {
            // A read of the input still runs, and would keep the process.
            crate::keyboard::exit_now(143);
        }
        ended.map_err(|error| Failure::failed(format!("the input cannot be read: {error}")))
    }
}
