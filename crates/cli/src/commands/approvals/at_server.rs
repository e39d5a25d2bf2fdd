//! `antiphon approvals … --server URL`.

use antiphon_api::ApprovalQuery;
use antiphon_core::{Approval, Decision};

use super::{Approvals, call, table};
use crate::connection::ProjectServer;
use crate::failure::Failure;
use crate::terminal;

impl Approvals {
    /// Runs the command through a server.
    pub(crate) async fn run_at(self, server: &ProjectServer) -> Result<(), Failure> {
        match self {
            Self::List { all, json } => {
                let approvals = list(server, all).await?;
                let shown = if json { terminal::json(&approvals)? } else { table(&approvals) };
                terminal::print(&shown);
                Ok(())
            }
            Self::Allow { approval, task, always } => {
                let decision = match (task, always) {
                    (_, true) => Decision::AllowAlways,
                    (true, false) => Decision::AllowTask,
                    (false, false) => Decision::AllowOnce,
                };
                decide(server, &approval, decision, None).await
            }
            Self::Deny { approval, comment } => {
                decide(server, &approval, Decision::Deny, comment).await
            }
        }
    }
}

async fn list(server: &ProjectServer, all: bool) -> Result<Vec<Approval>, Failure> {
    let listed = server.client.approvals(&ApprovalQuery { all }).await;
    Ok(listed.map_err(|error| server.failure(error))?.approvals)
}

async fn decide(
    server: &ProjectServer,
    name: &str,
    decision: Decision,
    comment: Option<String>,
) -> Result<(), Failure> {
    let is_meant =
        |approval: &Approval| name == "last" || approval.approval_id.as_str().starts_with(name);
    let mut found: Vec<Approval> =
        list(server, false).await?.into_iter().filter(is_meant).collect();
    let approval = match (found.pop(), found.is_empty() || name == "last") {
        (Some(approval), true) => approval,
        (Some(_), false) => {
            return Err(Failure::usage(format!("more than one begins with `{name}`")));
        }
        (None, _) => {
            return Err(Failure::usage(format!("no pending approval is `{name}`")));
        }
    };
    server.decide(&approval.approval_id, decision, comment).await?;
    let word = if decision.allows() { "allowed" } else { "denied" };
    terminal::print(&format!("{word}: {}; its task continues\n", call(&approval)));
    Ok(())
}
