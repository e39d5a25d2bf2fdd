//! Whether a server answers.

use antiphon_core::HealthStatus;

use crate::client::{Client, Query};
use crate::error::ClientError;

impl Client {
    /// Whether the server answers within the time of a connection. The token is not sent.
    pub async fn is_alive(&self) -> bool {
        let Ok(request) = self.open_request(&["health", "live"]) else { return false };
        let sent = request.timeout(self.timeouts().connect).send().await;
        sent.is_ok_and(|response| response.status().is_success())
    }

    /// Whether the server works. An unhealthy one answers with `Refused` or `Unreachable`.
    pub async fn health(&self) -> Result<HealthStatus, ClientError> {
        self.get(&["health"], Query::NONE).await
    }
}
