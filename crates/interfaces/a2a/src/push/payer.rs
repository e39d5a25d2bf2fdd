//! Whether the payer of a configuration may still have it.

use std::sync::Arc;

use antiphon_keys::{KeyHolder, KeyId, KeyRefusal, KeyRing, Level};
use antiphon_runtime::Orchestrator;

/// Where updates come from, and the keys that configurations belong to. Cheap to clone.
#[derive(Clone)]
pub(crate) struct PushSource {
    pub(crate) orchestrator: Orchestrator,
    pub(crate) keys: Option<Arc<KeyRing>>,
}

/// Whether a payer may have configurations now.
pub(super) enum Verdict {
    Allowed,
    /// No more, for this reason.
    Lost(String),
    /// The keys cannot be read, for this reason: nothing is delivered, and nothing dropped.
    Unknown(String),
}

impl PushSource {
    /// Looks at the key, or at none for the owner.
    pub(super) fn verdict(&self, payer: Option<&str>) -> Verdict {
        let Some(payer) = payer else { return Verdict::Allowed };
        let id = payer.parse::<KeyId>().ok();
        let granted = match (&self.keys, id) {
            (Some(keys), Some(id)) => keys.grant_of(id),
            (None, _) | (_, None) => Err(KeyRefusal::Unknown),
        };
        match granted {
            Ok(grant) if grant.holder != KeyHolder::Person => {
                Verdict::Lost("the key is an agent's".to_owned())
            }
            Ok(grant) if !grant.may(Level::Write) => {
                Verdict::Lost("the key may only read".to_owned())
            }
            Ok(_) => Verdict::Allowed,
            Err(KeyRefusal::Unavailable { reason }) => Verdict::Unknown(reason),
            Err(refusal) => Verdict::Lost(refusal.to_string()),
        }
    }
}
