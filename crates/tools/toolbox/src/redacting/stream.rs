//! Redacts text that arrives in pieces. Text at the end of a piece that may be the start of a secret is
//! held back until the next piece decides it; it is never longer than the longest secret.

use std::sync::{Mutex, PoisonError};

use antiphon_core::redaction::Secrets;

pub(super) struct StreamRedactor {
    secrets: Secrets,
    held: Mutex<String>,
}

impl StreamRedactor {
    pub(super) fn new(secrets: Secrets) -> Self {
        Self { secrets, held: Mutex::new(String::new()) }
    }

    /// Takes the next piece. Returns the text that is safe to show.
    pub(super) fn feed(&self, text: &str) -> String {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        held.push_str(text);
        self.secrets.redact(&mut held);
        let end = held.len() - self.secrets.partial_suffix_bytes(&held);
        let rest = held.split_off(end);
        std::mem::replace(&mut *held, rest)
    }

    /// Ends the text. Returns the text that was held back: it is no secret.
    pub(super) fn finish(&self) -> String {
        std::mem::take(&mut self.held.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
