//! What a call says piece by piece. The beginning of a secret at the end of a piece is held back until it is
//! known whether it is one; it is never longer than the longest secret.

use std::sync::{Mutex, PoisonError};

use super::Secrets;

pub(super) struct Flow {
    secrets: Secrets,
    held: Mutex<String>,
}

impl Flow {
    pub(super) fn new(secrets: Secrets) -> Self {
        Self { secrets, held: Mutex::new(String::new()) }
    }

    /// The next piece: what of it may be said.
    pub(super) fn feed(&self, text: &str) -> String {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        held.push_str(text);
        self.secrets.redact(&mut held);
        let end = held.len() - self.secrets.begun(&held);
        let rest = held.split_off(end);
        std::mem::replace(&mut *held, rest)
    }

    /// Nothing follows: what was held back is no secret.
    pub(super) fn finish(&self) -> String {
        std::mem::take(&mut self.held.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
