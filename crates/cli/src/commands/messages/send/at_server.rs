//! `antiphon send … --server URL`.

use antiphon_process::{InboxTarget, ProjectServer};

use super::{Send, interrupts, lines};
use crate::failure::Failure;

impl Send {
    /// Runs the command through a server.
    pub(crate) async fn run_at(self, server: &ProjectServer) -> Result<(), Failure> {
        self.check()?;
        let target = InboxTarget::Server(server);
        if self.text == ["-"] {
            return lines::send(&self, target).await;
        }
        let outgoing = self.outgoing(self.content()?, self.key.clone(), self.timeout_s()?);
        let interrupts = if self.wait { Some(interrupts()?) } else { None };
        let sent = target.send(&outgoing).await?;
        self.report(target, sent, interrupts).await
    }
}
