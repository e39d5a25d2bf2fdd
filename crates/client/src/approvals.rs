//! Approvals: listed, read, decided.

use antiphon_api::{ApprovalList, ApprovalQuery, DecideApproval};
use antiphon_core::{Approval, ApprovalId};

use crate::client::{Client, Query};
use crate::error::ClientError;

impl Client {
    /// Approvals, oldest first.
    pub async fn approvals(&self, query: &ApprovalQuery) -> Result<ApprovalList, ClientError> {
        self.get(&["v1", "approvals"], Query::of(query)?).await
    }

    /// One approval, pending or decided.
    pub async fn approval(&self, approval_id: &ApprovalId) -> Result<Approval, ClientError> {
        self.get(&["v1", "approvals", approval_id.as_str()], Query::NONE).await
    }

    /// Decides an approval. Once this returns, the journal has the decision.
    pub async fn decide_approval(
        &self,
        approval_id: &ApprovalId,
        decision: &DecideApproval,
    ) -> Result<Approval, ClientError> {
        self.post(&["v1", "approvals", approval_id.as_str()], decision, None).await
    }
}
