//! `antiphon inbox … --server URL`.

use std::collections::HashMap;
use std::num::NonZeroUsize;

use antiphon_api::{InboxQuery, LISTED_MAX};

use super::{Inbox, table};
use crate::connection::ProjectServer;
use crate::failure::Failure;
use crate::server_args::not_through_server;
use crate::terminal;

impl Inbox {
    /// Runs the command through a server.
    pub(crate) async fn run_at(self, server: &ProjectServer) -> Result<(), Failure> {
        match self {
            Self::List { agent, limit, json } => {
                let limit_sent = NonZeroUsize::new(limit.get().min(LISTED_MAX));
                let page = server.client.inbox(&InboxQuery { agent, limit: limit_sent }).await;
                let page = page.map_err(|error| server.failure(error))?;
                terminal::print(&if json {
                    terminal::json(&page.waiting)?
                } else {
                    table(&page.waiting, &HashMap::new())
                });
                if page.total > page.waiting.len() {
                    let (count, total) = (page.waiting.len(), page.total);
                    terminal::note(&format!(
                        "the first {count} of {total}; see more with --limit\n"
                    ));
                }
                Ok(())
            }
            Self::Show { .. } => Err(not_through_server("inbox show")),
        }
    }
}
