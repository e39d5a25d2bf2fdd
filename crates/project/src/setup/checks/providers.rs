//! Providers of models.

use serde::Serialize;

use super::check::Check;
use crate::error::ProjectError;
use crate::models::{Models, Route, list_models};
use crate::settings::{Key, ProviderConfig, without_secrets};

/// The check of a provider.
#[derive(Debug, Serialize)]
pub struct ProviderCheck {
    /// Its name in the configuration.
    pub name: String,
    /// The API that it speaks.
    pub kind: &'static str,
    /// Its address, without what may be secret.
    pub address: String,
    /// The result.
    #[serde(flatten)]
    pub check: Check,
}

/// Asks each provider for its models.
pub(super) async fn check(models: &Models) -> Result<Vec<ProviderCheck>, ProjectError> {
    let scripts = antiphon_scripted::Script::BUILTIN.join(", ");
    let mut found = vec![ProviderCheck {
        name: "scripted".to_owned(),
        kind: "scripted",
        address: "built in".to_owned(),
        check: Check::ready(format!("offline; scripts: {scripts}")),
    }];
    for (name, provider) in &models.settings().providers {
        found.push(ProviderCheck {
            name: name.clone(),
            kind: provider.kind.as_str(),
            address: without_secrets(&provider.base_url),
            check: check_provider(name, provider, models).await?,
        });
    }
    Ok(found)
}

async fn check_provider(
    name: &str,
    provider: &ProviderConfig,
    models: &Models,
) -> Result<Check, ProjectError> {
    if let Err(refused) = models.settings().policy.check_provider(name, models.settings()) {
        return Ok(Check::not_configured(refused.to_string()));
    }
    Ok(match &provider.key {
        Key::Missing { variable } => {
            Check::not_configured("no key").with_remedy(format!("set {variable} to use it"))
        }
        Key::Set { .. } | Key::NotNeeded => {
            match list_models(provider, models.transport()?).await {
                Ok(listed) => Check::ready(format!("answers; models: {}", listed.len())),
                Err(error) => Check::failed(error.to_string()),
            }
        }
    })
}

/// The default model, and the reason when it cannot be reached.
pub(super) fn default_model(models: &Models) -> String {
    let default = models.settings().default_model();
    let Some(model) = default.model() else {
        return "none; set a key such as ANTHROPIC_API_KEY, or run `antiphon init`".to_owned();
    };
    match models.provider(model, &Route::default()) {
        Ok(_) => model.to_string(),
        Err(error) => format!("{model}: {error}"),
    }
}
