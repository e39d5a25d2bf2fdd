//! How a task reaches its model, where that differs from the settings. It is recorded with the task, so
//! that a process that resumes the task reaches the same model.

use std::path::PathBuf;

use antiphon_core::RawJson;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::environment::Environment;
use crate::error::ProjectError;
use crate::task::task_process::TaskProcess;

/// How a task reaches its model, and which files are written beside the journal.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Route {
    /// A script that replaces the built-in one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub script: Option<PathBuf>,
    /// File that every exchange with the model is appended to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub record: Option<PathBuf>,
    /// Recording that answers in place of the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replay: Option<PathBuf>,
    /// Attempts after the first, in place of the configured number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retries: Option<usize>,
    /// Session file that the conversation is saved to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub save: Option<PathBuf>,
    /// When the session that is saved began, if it began in a file. Absent: with its first message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub began: Option<DateTime<Utc>>,
    /// What the process that asked for the task gave to it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub process: Option<TaskProcess>,
}

impl Route {
    /// The same route with absolute paths.
    pub fn absolute(self, environment: &Environment) -> Result<Self, ProjectError> {
        let absolute =
            |path: Option<PathBuf>| path.map(|path| environment.absolute(&path)).transpose();
        Ok(Self {
            script: absolute(self.script)?,
            record: absolute(self.record)?,
            replay: absolute(self.replay)?,
            retries: self.retries,
            save: absolute(self.save)?,
            began: self.began,
            process: self.process,
        })
    }

    /// The recorded form; `None` when everything is as configured.
    pub fn to_json(&self) -> Option<RawJson> {
        if *self == Self::default() { None } else { RawJson::of(self).ok() }
    }

    /// Reads the recorded form. An unknown field is an error: another version of Antiphon wrote it.
    pub fn parse(recorded: Option<&RawJson>) -> Result<Self, String> {
        let unknown = |error| format!("another version of Antiphon created the task: {error}");
        recorded.map_or_else(|| Ok(Self::default()), |recorded| recorded.to().map_err(unknown))
    }
}
