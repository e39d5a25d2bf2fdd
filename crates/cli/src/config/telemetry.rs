//! Where traces go, as the user says. Headers for the collector are read from the environment, and never
//! printed.

use antiphon_telemetry::{Exporter, ExporterConfig};
use secrecy::SecretString;
use serde::Deserialize;

use super::variable;
use crate::failure::Failure;

/// Where traces go.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct TelemetryConfig {
    /// The address of a collector; without it there are no traces.
    otlp_endpoint: Option<String>,
    /// The variable that holds headers for it: `name=value,name=value`.
    otlp_headers_env: Option<String>,
}

impl TelemetryConfig {
    /// Who sends traces, if anybody does.
    pub(crate) fn exporter(&self) -> Result<Option<Exporter>, Failure> {
        let refuse = |reason: String| Failure::usage(format!("[telemetry]: {reason}"));
        let Some(endpoint) = &self.otlp_endpoint else {
            return match self.otlp_headers_env {
                Some(_) => Err(refuse("`otlp_headers_env` needs an `otlp_endpoint`".to_owned())),
                None => Ok(None),
            };
        };
        let headers = self.otlp_headers_env.as_deref().map(headers).transpose().map_err(refuse)?;
        let config = ExporterConfig {
            headers: headers.unwrap_or_default(),
            ..ExporterConfig::new(endpoint.as_str())
        };
        Exporter::new(config).map(Some).map_err(|error| refuse(error.to_string()))
    }
}

fn headers(named: &str) -> Result<Vec<(String, SecretString)>, String> {
    let text = variable(named).ok_or_else(|| format!("{named} is not set"))?;
    let pairs = text.split(',').map(|pair| {
        // Not the pair itself: it may hold a key.
        let (name, value) = pair.split_once('=').ok_or_else(|| {
            format!("{named} has to be `name=value`, and more of them after commas")
        })?;
        Ok((name.trim().to_owned(), SecretString::from(value.trim())))
    });
    pairs.collect()
}
