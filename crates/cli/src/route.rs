//! How the model of a task is reached, when it is not as configured. It is kept with the task, so
//! that whoever takes it up again reaches the same one.

use std::path::{Path, PathBuf};

use antiphon_core::RawJson;
use serde::{Deserialize, Serialize};

use crate::failure::Failure;

/// How the model of a task is reached, and what is kept of it beside the journal.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Route {
    /// A script in place of a built-in one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) script: Option<PathBuf>,
    /// Every exchange is written there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) record: Option<PathBuf>,
    /// Answers come from there, and nobody is asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) replay: Option<PathBuf>,
    /// How often to try again, in place of what is configured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) retries: Option<usize>,
    /// The conversation is saved there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) save: Option<PathBuf>,
}

impl Route {
    /// The same from any folder.
    pub(crate) fn absolute(self) -> Result<Self, Failure> {
        let absolute = |path: Option<PathBuf>| path.as_deref().map(absolute).transpose();
        Ok(Self {
            script: absolute(self.script)?,
            record: absolute(self.record)?,
            replay: absolute(self.replay)?,
            retries: self.retries,
            save: absolute(self.save)?,
        })
    }

    /// As it is kept; nothing when everything is as configured.
    pub(crate) fn kept(&self) -> Option<RawJson> {
        if *self == Self::default() { None } else { RawJson::of(self).ok() }
    }

    /// From what was kept.
    pub(crate) fn of(kept: Option<&RawJson>) -> Result<Self, String> {
        let unknown = |error| format!("it was begun by another version of Antiphon: {error}");
        kept.map_or_else(|| Ok(Self::default()), |kept| kept.to().map_err(unknown))
    }
}

fn absolute(path: &Path) -> Result<PathBuf, Failure> {
    std::path::absolute(path)
        .map_err(|error| Failure::usage(format!("cannot use {}: {error}", path.display())))
}
