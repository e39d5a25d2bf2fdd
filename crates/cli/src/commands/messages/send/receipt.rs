//! What became of the interaction: accepted, or rejected with a reason.

use antiphon_process::{
    AcceptedInteraction, InboxTarget, ReceiptKind, RejectedInteraction, SendOutcome,
};
use serde_json::{Value, json};
use tokio::signal::unix::Signal;

use super::Send;
use crate::failure::Failure;
use crate::terminal;

impl Send {
    pub(super) async fn report(
        &self,
        target: InboxTarget<'_>,
        sent: SendOutcome,
        interrupts: Option<Signal>,
    ) -> Result<(), Failure> {
        match (sent, interrupts) {
            (SendOutcome::Accepted(accepted), Some(interrupts)) => {
                self.wait(target, &accepted, self.timeout_s()?, interrupts).await
            }
            (SendOutcome::Accepted(accepted), None) => self.print(target, &accepted),
            (SendOutcome::Rejected(rejected), _) => {
                if self.json {
                    terminal::print(&terminal::json(&rejection(&rejected))?);
                }
                Err(rejected.error.into())
            }
        }
    }

    pub(super) fn print(
        &self,
        target: InboxTarget<'_>,
        accepted: &AcceptedInteraction,
    ) -> Result<(), Failure> {
        if self.json {
            terminal::print(&terminal::json(accepted)?);
            return Ok(());
        }
        let word = match accepted.receipt {
            ReceiptKind::Accepted => "accepted",
            ReceiptKind::Deduplicated => "duplicate",
        };
        terminal::print(&format!("{word}: {}; {}\n", accepted.id, self.reading(target)));
        Ok(())
    }

    /// When the agent reads it.
    pub(super) fn reading(&self, target: InboxTarget<'_>) -> String {
        match target {
            InboxTarget::Local(_) => {
                format!(
                    "no server is running: `{}` reads it when `antiphon serve` runs",
                    self.agent
                )
            }
            InboxTarget::Server(_) => format!("`{}` will read it", self.agent),
        }
    }
}

/// A rejection in JSON.
pub(super) fn rejection(rejected: &RejectedInteraction) -> Value {
    let message = rejected.error.to_string();
    json!({ "receipt": "rejected", "reason": rejected.reason, "message": message })
}
