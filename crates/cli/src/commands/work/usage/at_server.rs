//! `antiphon usage --server URL`.

use antiphon_api::{UsageBy, UsageQuery};
use antiphon_core::port::{Clock, SystemClock};
use antiphon_process::ProjectServer;
use antiphon_project::usage_days;

use super::{UsageOf, table};
use crate::failure::Failure;
use crate::terminal;

impl UsageOf {
    /// Runs the command through a server.
    pub(crate) async fn run_at(self, server: &ProjectServer) -> Result<(), Failure> {
        usage_days(self.from, self.to, SystemClock.now()).map_err(Failure::usage)?;
        let by =
            UsageBy::parse(&self.by).map_err(|error| Failure::usage(format!("--by: {error}")))?;
        let query = UsageQuery { from: self.from, to: self.to, by: Some(self.by) };
        let report = server.answer(server.client.usage(&query).await)?;
        terminal::print(&if self.json { terminal::json(&report)? } else { table(&report, &by) });
        Ok(())
    }
}
