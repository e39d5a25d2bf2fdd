//! Usage: what was spent.

use antiphon_api::{UsageQuery, UsageReport};

use crate::client::{Client, Query};
use crate::error::ClientError;

impl Client {
    /// What was spent, in tokens and in money.
    pub async fn usage(&self, query: &UsageQuery) -> Result<UsageReport, ClientError> {
        self.get(&["v1", "usage"], Query::of(query)?).await
    }
}
