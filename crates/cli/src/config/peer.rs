//! Other orchestrators, as the user names them. A token is read when it is needed.

use std::path::PathBuf;

use secrecy::SecretString;
use serde::Deserialize;

use super::variable;
use crate::failure::Failure;

/// Another orchestrator, that runs tasks for this one.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PeerConfig {
    pub(crate) url: String,
    /// The variable that holds its token.
    pub(super) token_env: Option<String>,
    /// Or the file that does: `.antiphon/token` of its project.
    token_file: Option<PathBuf>,
}

impl PeerConfig {
    /// Its token, from where the user says.
    pub(crate) fn token(&self, name: &str) -> Result<SecretString, Failure> {
        let refuse = |reason: String| Failure::usage(format!("[peers.{name}]: {reason}"));
        let text = match (&self.token_env, &self.token_file) {
            (Some(named), None) => {
                variable(named).ok_or_else(|| refuse(format!("{named} is not set")))?
            }
            (None, Some(path)) => std::fs::read_to_string(path)
                .map_err(|error| refuse(format!("{}: {error}", path.display())))?,
            (None, None) | (Some(_), Some(_)) => {
                return Err(refuse("give `token_env` or `token_file`".to_owned()));
            }
        };
        Ok(SecretString::from(text.trim()))
    }
}
