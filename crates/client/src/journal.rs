//! The journal, page by page.

use antiphon_api::{JournalPage, JournalPageQuery};

use crate::client::{Client, Query};
use crate::error::ClientError;

impl Client {
    /// A page of the events that the journal has already. A client that waits for new events opens a
    /// stream, see [`Client::journal_events`].
    pub async fn journal_page(&self, query: &JournalPageQuery) -> Result<JournalPage, ClientError> {
        self.get(&["v1", "journal"], Query::of(query)?).await
    }
}
