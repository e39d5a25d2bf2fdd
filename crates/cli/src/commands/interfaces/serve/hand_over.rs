//! The journal of a process that runs a task goes to the server.

use antiphon_interface_transport::{ServerLimits, serve_waiting};
use antiphon_process::Reservation;
use antiphon_project::project::Project;
use antiphon_sqlite::SqliteJournal;

use super::Serve;
use super::listening::OpenAddress;
use crate::failure::Failure;
use crate::terminal;

impl Serve {
    /// The journal of the project, and the address of this server. A process that runs a task gives the journal to
    /// this server when the calls that run are recorded, and goes on as its client. Until then requests are answered
    /// with what this server waits for.
    pub(super) async fn journal(
        &self,
        project: &Project,
        limits: ServerLimits,
    ) -> Result<(SqliteJournal, OpenAddress), Failure> {
        let running = || Failure::unavailable("another `antiphon serve` starts here: use it");
        let reservation = Reservation::new(project).await?.ok_or_else(running)?;
        if let Some(journal) = reservation.ask_for_journal(project).await? {
            return Ok((journal, self.listening.open_address().await?));
        }
        let address = self.listening.open_address().await?;
        let place = address
            .url
            .as_ref()
            .map_or(String::new(), |url| format!("; {url} answers 503 until then"));
        terminal::note(&format!(
            "antiphon: another process runs tasks here; this server takes over when the calls that run now are \
             recorded{place}\n"
        ));
        let taken = reservation.take_journal(project);
        let journal = serve_waiting(&address.listeners, limits, taken).await?;
        Ok((journal, address))
    }
}
