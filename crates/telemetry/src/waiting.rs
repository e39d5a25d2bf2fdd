//! What waits in one task for somebody: questions for a person, and what arrived for the agent.

use std::collections::HashMap;

use antiphon_core::{
    ApprovalDecided, ApprovalId, ApprovalStatus, InteractionId, MessageQueued, PeerInputClass,
};
use chrono::{DateTime, Utc};

/// Questions and arrivals that are followed, each, by task. Of more nobody knows how long they
/// waited.
pub(crate) const WAITING_MAX: usize = 4096;

/// What waits.
#[derive(Debug, Default)]
pub(crate) struct Waiting {
    asked: HashMap<ApprovalId, DateTime<Utc>>,
    arrived: HashMap<InteractionId, (PeerInputClass, DateTime<Utc>)>,
}

/// A question that waits no more.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ApprovalEnded {
    pub(crate) status: ApprovalStatus,
    /// When it was asked, if that was seen.
    pub(crate) asked: Option<DateTime<Utc>>,
    pub(crate) ended: DateTime<Utc>,
}

/// Something that arrived and was taken.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Taken {
    pub(crate) class: PeerInputClass,
    pub(crate) arrived: DateTime<Utc>,
    pub(crate) ended: DateTime<Utc>,
}

impl Waiting {
    /// How many questions and arrivals wait.
    pub(crate) fn len(&self) -> (usize, usize) {
        (self.asked.len(), self.arrived.len())
    }

    pub(crate) fn ask(&mut self, id: &ApprovalId, at: DateTime<Utc>) {
        if self.asked.len() < WAITING_MAX {
            self.asked.entry(id.clone()).or_insert(at);
        }
    }

    pub(crate) fn decide(&mut self, decided: &ApprovalDecided, at: DateTime<Utc>) -> ApprovalEnded {
        let asked = self.asked.remove(&decided.approval_id);
        ApprovalEnded { status: decided.decision.into(), asked, ended: at }
    }

    pub(crate) fn queue(&mut self, queued: &MessageQueued, at: DateTime<Utc>) {
        if self.arrived.len() < WAITING_MAX {
            self.arrived.entry(queued.id).or_insert((queued.class, at));
        }
    }

    pub(crate) fn take(&mut self, id: InteractionId, at: DateTime<Utc>) -> Option<Taken> {
        let (class, arrived) = self.arrived.remove(&id)?;
        Some(Taken { class, arrived, ended: at })
    }

    /// Nobody reads it any more.
    pub(crate) fn forget(&mut self, id: InteractionId) {
        self.arrived.remove(&id);
    }

    /// Their task ended: nobody answers, and nobody reads.
    pub(crate) fn end(&mut self, at: DateTime<Utc>) -> impl Iterator<Item = ApprovalEnded> + use<> {
        self.arrived.clear();
        let left: Vec<_> = self.asked.drain().map(|(_, asked)| asked).collect();
        left.into_iter().map(move |asked| ApprovalEnded {
            status: ApprovalStatus::Void,
            asked: Some(asked),
            ended: at,
        })
    }
}
