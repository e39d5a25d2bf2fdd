//! Inboxes of agents, and requests.

use std::num::NonZeroU32;

use antiphon_api::{
    InboxPage, InboxQuery, Receipt, RequestStatus, RequestWaitQuery, SendInteraction,
};
use antiphon_core::{AgentName, InteractionId};

use crate::client::{Client, Query};
use crate::error::ClientError;

impl Client {
    /// Sends an interaction to an agent. Once this returns, the journal has it. With the same `key` it is
    /// the same interaction. The refusal of a rejected one has its `reason` among its details.
    pub async fn send_interaction(
        &self,
        agent: &AgentName,
        interaction: &SendInteraction,
        key: Option<&str>,
    ) -> Result<Receipt, ClientError> {
        self.post(&["v1", "agents", agent.as_str(), "inbox"], interaction, key).await
    }

    /// Queued interactions, in order of arrival.
    pub async fn inbox(&self, query: &InboxQuery) -> Result<InboxPage, ClientError> {
        self.get(&["v1", "inbox"], Query::of(query)?).await
    }

    /// How far a request got. With `wait_s` the server waits that long for the answer.
    pub async fn request_status(
        &self,
        id: InteractionId,
        wait_s: Option<NonZeroU32>,
    ) -> Result<RequestStatus, ClientError> {
        let query = Query::of(&RequestWaitQuery { wait_s })?;
        self.get(&["v1", "requests", &id.to_string()], query).await
    }
}
