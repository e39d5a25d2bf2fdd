//! Where traces are exported to. Headers for the collector come from the environment and are never
//! printed.

use antiphon_telemetry::{Exporter, ExporterConfig};
use secrecy::SecretString;
use serde::Deserialize;

use crate::environment::Environment;
use crate::error::ProjectError;

/// Where traces are exported to.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TelemetryConfig {
    /// Address of the collector; without one, no traces are exported.
    otlp_endpoint: Option<String>,
    /// The variable that holds its headers: `name=value,name=value`.
    otlp_headers_env: Option<String>,
}

impl TelemetryConfig {
    /// The exporter; `None` when no collector is configured.
    pub fn exporter(&self, environment: &Environment) -> Result<Option<Exporter>, ProjectError> {
        let refuse = |reason: String| ProjectError::InvalidInput(format!("[telemetry]: {reason}"));
        let Some(endpoint) = &self.otlp_endpoint else {
            return match self.otlp_headers_env {
                Some(_) => Err(refuse("`otlp_headers_env` needs an `otlp_endpoint`".to_owned())),
                None => Ok(None),
            };
        };
        let headers = self.otlp_headers_env.as_deref().map(|name| headers(name, environment));
        let headers = headers.transpose().map_err(refuse)?;
        let config = ExporterConfig {
            headers: headers.unwrap_or_default(),
            ..ExporterConfig::new(endpoint.as_str())
        };
        Exporter::new(config).map(Some).map_err(|error| refuse(error.to_string()))
    }
}

fn headers(named: &str, environment: &Environment) -> Result<Vec<(String, SecretString)>, String> {
    let text = environment.text(named).ok_or_else(|| format!("{named} is not set"))?;
    let pairs = text.split(',').map(|pair| {
        // The pair itself is left out: it may hold a key.
        let (name, value) = pair
            .split_once('=')
            .ok_or_else(|| format!("{named} must be `name=value`, separated by commas"))?;
        Ok((name.trim().to_owned(), SecretString::from(value.trim())))
    });
    pairs.collect()
}
