//! Pending parts of one task: approvals and queued messages.

use std::collections::HashMap;

use antiphon_core::{
    ApprovalDecided, ApprovalId, ApprovalStatus, InteractionId, MessageQueued, PeerInputClass,
};
use chrono::{DateTime, Utc};

/// Most approvals, and most messages, that are tracked per task. Above the limit, their waiting
/// time is unknown.
pub(crate) const WAITING_MAX: usize = 4096;

#[derive(Debug, Default)]
pub(crate) struct PendingItems {
    requested: HashMap<ApprovalId, DateTime<Utc>>,
    arrived: HashMap<InteractionId, (PeerInputClass, DateTime<Utc>)>,
}

/// An approval that was decided or canceled.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ApprovalEnded {
    pub(crate) status: ApprovalStatus,
    /// When it was requested, if that was seen.
    pub(crate) requested: Option<DateTime<Utc>>,
    pub(crate) ended: DateTime<Utc>,
}

/// A message that was taken out of the inbox.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TakenMessage {
    pub(crate) class: PeerInputClass,
    pub(crate) arrived: DateTime<Utc>,
    pub(crate) ended: DateTime<Utc>,
}

impl PendingItems {
    /// Number of pending approvals and of queued messages.
    pub(crate) fn len(&self) -> (usize, usize) {
        (self.requested.len(), self.arrived.len())
    }

    pub(crate) fn ask(&mut self, id: &ApprovalId, at: DateTime<Utc>) {
        if self.requested.len() < WAITING_MAX {
            self.requested.entry(id.clone()).or_insert(at);
        }
    }

    pub(crate) fn decide(&mut self, decided: &ApprovalDecided, at: DateTime<Utc>) -> ApprovalEnded {
        let requested = self.requested.remove(&decided.approval_id);
        ApprovalEnded { status: decided.decision.into(), requested, ended: at }
    }

    pub(crate) fn queue(&mut self, queued: &MessageQueued, at: DateTime<Utc>) {
        if self.arrived.len() < WAITING_MAX {
            self.arrived.entry(queued.id).or_insert((queued.class, at));
        }
    }

    pub(crate) fn take(&mut self, id: InteractionId, at: DateTime<Utc>) -> Option<TakenMessage> {
        let (class, arrived) = self.arrived.remove(&id)?;
        Some(TakenMessage { class, arrived, ended: at })
    }

    /// The message was removed unread.
    pub(crate) fn forget(&mut self, id: InteractionId) {
        self.arrived.remove(&id);
    }

    /// The task ended: its approvals are void and its messages are dropped.
    pub(crate) fn end(&mut self, at: DateTime<Utc>) -> impl Iterator<Item = ApprovalEnded> + use<> {
        self.arrived.clear();
        let left: Vec<_> = self.requested.drain().map(|(_, requested)| requested).collect();
        left.into_iter().map(move |requested| ApprovalEnded {
            status: ApprovalStatus::Void,
            requested: Some(requested),
            ended: at,
        })
    }
}
