//! Other orchestrators the user has named. A token file is read when the token is needed.

use std::path::PathBuf;

use secrecy::SecretString;
use serde::Deserialize;

use crate::environment::Environment;
use crate::error::ProjectError;

/// Another orchestrator that runs tasks for this one.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PeerConfig {
    /// Address of its HTTP API.
    pub url: String,
    pub(super) token_env: Option<String>,
    token_file: Option<PathBuf>,
}

impl PeerConfig {
    /// Its token, from `token_env` or `token_file`. `name` is the peer's name, which errors quote.
    pub fn token(
        &self,
        name: &str,
        environment: &Environment,
    ) -> Result<SecretString, ProjectError> {
        let place = format!("[peers.{name}]");
        token(&place, self.token_env.as_ref(), self.token_file.as_ref(), environment)
    }
}

/// The token of a place in the settings, from a variable or a file.
pub(super) fn token(
    place: &str,
    variable: Option<&String>,
    file: Option<&PathBuf>,
    environment: &Environment,
) -> Result<SecretString, ProjectError> {
    let refuse = |reason: String| ProjectError::InvalidInput(format!("{place}: {reason}"));
    let text = match (variable, file) {
        (Some(named), None) => {
            environment.text(named).ok_or_else(|| refuse(format!("{named} is not set")))?
        }
        (None, Some(path)) => std::fs::read_to_string(path)
            .map_err(|error| refuse(format!("{}: {error}", path.display())))?,
        (None, None) | (Some(_), Some(_)) => {
            return Err(refuse("give `token_env` or `token_file`".to_owned()));
        }
    };
    Ok(SecretString::from(text.trim()))
}
