//! `antiphon budget … --server URL`.

use antiphon_api::AllowSpending;
use antiphon_core::Cost;
use antiphon_project::nano_usd;

use super::{BudgetOf, table};
use crate::connection::ProjectServer;
use crate::failure::Failure;
use crate::terminal;

impl BudgetOf {
    /// Runs the command through a server.
    pub(crate) async fn run_at(self, server: &ProjectServer) -> Result<(), Failure> {
        match self {
            Self::Show { json } => {
                let status = server.client.budget().await.map_err(|error| server.failure(error))?;
                terminal::print(&if json { terminal::json(&status)? } else { table(&status) });
                Ok(())
            }
            Self::Allow { usd, key, comment, json } => {
                let bad = || Failure::usage("an amount is from 0.000000001 to 1000000 dollars");
                let amount = Cost { nano_usd: nano_usd(usd).ok_or_else(bad)? };
                let body = AllowSpending { usd, key_id: key.map(String::from), comment };
                let allowed = server.client.allow_spending(&body, None).await;
                let status = allowed.map_err(|error| server.failure(error))?;
                if json {
                    terminal::print(&terminal::json(&status)?);
                } else {
                    let text = "tasks that waited for the budget go on";
                    terminal::print(&format!("{amount} more may be spent; {text}\n"));
                }
                Ok(())
            }
        }
    }
}
