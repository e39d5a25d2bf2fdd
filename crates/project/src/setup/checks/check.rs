//! One check: what was found, and what to do.

use std::fmt;

use serde::Serialize;

/// Whether something works.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CheckStatus {
    /// It works.
    Ready,
    /// It is not configured: a key is missing, for example.
    NotConfigured,
    /// It is configured, and does not work.
    Failed,
}

/// The result of one check. It displays as a line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Check {
    /// Path of the file that was checked; absent when it is no file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Whether it works.
    pub status: CheckStatus,
    /// What was found.
    pub detail: String,
    /// What to do; absent when there is nothing to do, or `detail` says it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
}

impl Check {
    fn new(status: CheckStatus, detail: impl Into<String>) -> Self {
        Self { path: None, status, detail: detail.into(), remedy: None }
    }

    pub(super) fn ready(detail: impl Into<String>) -> Self {
        Self::new(CheckStatus::Ready, detail)
    }

    pub(super) fn not_configured(detail: impl Into<String>) -> Self {
        Self::new(CheckStatus::NotConfigured, detail)
    }

    pub(super) fn failed(detail: impl Into<String>) -> Self {
        Self::new(CheckStatus::Failed, detail)
    }

    pub(super) fn with_remedy(self, remedy: impl Into<String>) -> Self {
        Self { remedy: Some(remedy.into()), ..self }
    }
}

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.detail)?;
        match &self.remedy {
            Some(remedy) => write!(f, ": {remedy}"),
            None => Ok(()),
        }
    }
}

/// `1 rule`, `2 rules`.
pub(super) fn count(number: usize, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}
