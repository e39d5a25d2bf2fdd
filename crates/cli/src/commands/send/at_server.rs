//! `antiphon send … --server URL`.

use antiphon_process::{InboxTarget, ProjectServer};

use super::Send;
use crate::failure::Failure;

impl Send {
    /// Runs the command through a server.
    pub(crate) async fn run_at(self, server: &ProjectServer) -> Result<(), Failure> {
        self.check()?;
        self.deliver(InboxTarget::Server(server)).await
    }
}
