//! `antiphon reply`: answers a request that an agent in a terminal got. It drops the same file as a program would
//! (`respond`, docs/file-drop.md).

use std::time::Duration;

use antiphon_core::AgentName;
use antiphon_process::ControlRequest;
use antiphon_project::environment::Environment;
use clap::Args;
use serde_json::{Value, json};

use super::request;
use crate::failure::Failure;
use crate::terminal;

/// The variable that the program of an agent in a terminal has.
const AGENT_VARIABLE: &str = "ANTIPHON_AGENT";

/// How long to wait until the answer is recorded.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Answer a request as an agent in a terminal (see docs/terminals.md).
#[derive(Debug, Args)]
#[command(after_help = "\
The label of a request shows its id: [REQUEST ID from AGENT: INTENT]. The answer is recorded in the name of the
agent whose terminal this is (ANTIPHON_AGENT), or of --agent.

Exit code 0 when the answer is recorded, 2 when the agent has no such open request.

Examples:
  antiphon reply 0199c5e1-8f0a-7c3b-9d2e-4a5b6c7d8e9f \"All tests pass.\"
  antiphon reply 0199c5e1-8f0a-7c3b-9d2e-4a5b6c7d8e9f --failed \"There is no such branch.\"
  antiphon reply 0199c5e1-8f0a-7c3b-9d2e-4a5b6c7d8e9f --result '{\"passed\": 12}'")]
pub(crate) struct Reply {
    /// Id of the request.
    id: String,

    /// The answer.
    #[arg(required_unless_present = "result")]
    text: Option<String>,

    /// The answer as JSON.
    #[arg(long, value_name = "JSON", conflicts_with = "text")]
    result: Option<Value>,

    /// It could not be done; the answer says why.
    #[arg(long)]
    failed: bool,

    /// The agent that answers.
    #[arg(long, value_name = "NAME")]
    agent: Option<AgentName>,
}

impl Reply {
    pub(crate) async fn run(self, environment: &Environment) -> Result<(), Failure> {
        let own = || environment.text(AGENT_VARIABLE);
        let Some(requester) = self.agent.map(String::from).or_else(own) else {
            let message = "which agent answers? Name it with --agent";
            return Err(Failure::usage(message.to_owned()));
        };
        let result = self.result.or(self.text.map(Value::String)).unwrap_or_default();
        let request = json!({
            "action": "respond",
            "requestId": self.id,
            "status": if self.failed { "failed" } else { "completed" },
            "result": result,
        });
        let json = request.to_string().into_bytes();
        let request = ControlRequest { requester, json, timeout: TIMEOUT };
        let done = request.submit(environment).await?.outcome?;
        terminal::print(&request::described(&done));
        request::exit(&done)
    }
}
