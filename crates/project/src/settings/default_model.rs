//! The model of a task that names none: the user's choice, else the default model of a provider whose key is set.
//!
//! The default model of each provider is in `data/defaults.toml`. With the keys of several providers and no choice, the first in the order of [`ORDER`] is used.

use antiphon_core::ModelRef;

use super::{Key, UserSettings, built_in};
use crate::error::ProjectError;

/// Providers whose key alone chooses a model, in the order in which they are preferred.
pub(super) const ORDER: [&str; 3] = ["anthropic", "openai", "gemini"];

/// The model of a task that names none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DefaultModel {
    /// `ANTIPHON_MODEL`, or `model` of the user's or the project's settings.
    Chosen(ModelRef),
    /// The default model of the only provider with a key.
    OfKey(KeyModel),
    /// The default models of several providers with keys; the first is used.
    OfSeveralKeys {
        /// The one that is used.
        used: KeyModel,
        /// The others.
        others: Vec<KeyModel>,
    },
    /// There is neither a choice nor a key.
    Absent,
}

/// The default model of a provider whose key is set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyModel {
    /// The model.
    pub model: ModelRef,
    /// The environment variable with the key; absent when the key is in the user's settings.
    pub variable: Option<String>,
}

impl KeyModel {
    /// Where the key is.
    pub fn key_place(&self) -> &str {
        self.variable.as_deref().unwrap_or("the key in your settings")
    }
}

impl DefaultModel {
    /// The model, if there is one.
    pub fn model(&self) -> Option<&ModelRef> {
        match self {
            Self::Chosen(model) => Some(model),
            Self::OfKey(used) | Self::OfSeveralKeys { used, .. } => Some(&used.model),
            Self::Absent => None,
        }
    }

    /// What the user has to know when the model was not chosen: which one is used, and why.
    pub fn note(&self) -> Option<String> {
        let using = |used: &KeyModel| format!("using {} ({})", used.model, used.key_place());
        match self {
            Self::OfKey(used) => Some(using(used)),
            Self::OfSeveralKeys { used, others } => {
                let others: Vec<&str> = others.iter().map(|it| it.model.provider()).collect();
                Some(format!(
                    "{}; there is a key for {} too: choose with `antiphon init` or --model",
                    using(used),
                    others.join(" and ")
                ))
            }
            Self::Chosen(_) | Self::Absent => None,
        }
    }
}

/// Why a task cannot start when nothing names its model, and what to do.
pub fn no_model() -> ProjectError {
    ProjectError::InvalidInput(NO_MODEL.to_owned())
}

/// The text of [`no_model`].
const NO_MODEL: &str = "no model is configured: set a key (ANTHROPIC_API_KEY, OPENAI_API_KEY or GEMINI_API_KEY), \
     run `antiphon init`, or name a model: `--model scripted/hello` answers without a key; \
     `antiphon demo` shows Antiphon offline";

/// The built-in script that stands in where a script or a recording answers and no model is named.
#[expect(clippy::expect_used, reason = "the literal names a model")]
pub(crate) fn scripted() -> ModelRef {
    ModelRef::parse("scripted/hello").expect("the literal names a model")
}

impl UserSettings {
    /// The model of a task that names none.
    pub fn default_model(&self) -> DefaultModel {
        if let Some(model) = &self.default_model {
            return DefaultModel::Chosen(model.clone());
        }
        let mut found = ORDER.iter().filter_map(|name| self.model_of_key(name));
        match (found.next(), found.collect::<Vec<_>>()) {
            (None, _) => DefaultModel::Absent,
            (Some(used), others) if others.is_empty() => DefaultModel::OfKey(used),
            (Some(used), others) => DefaultModel::OfSeveralKeys { used, others },
        }
    }

    /// The default model of a provider, if its key is set and the policy of this machine allows the model.
    fn model_of_key(&self, provider: &str) -> Option<KeyModel> {
        let variable = match &self.providers.get(provider)?.key {
            Key::Set { variable, .. } => variable.clone(),
            Key::Missing { .. } | Key::NotNeeded => return None,
        };
        let model = built_in::default_model_of(provider)?;
        self.policy.check_model(&model, self).ok()?;
        Some(KeyModel { model, variable })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::environment::Environment;

    fn found(variables: &[&str], text: &str) -> DefaultModel {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config.toml");
        std::fs::write(&path, text).unwrap();
        let variables = variables.iter().map(|name| (name.into(), "a-key".into())).collect();
        let environment = Environment { variables, ..Environment::default() };
        UserSettings::load_file(&path, &environment).unwrap().default_model()
    }

    fn providers(model: &DefaultModel) -> Vec<&str> {
        match model {
            DefaultModel::Chosen(model) => vec![model.provider()],
            DefaultModel::OfKey(used) => vec![used.model.provider()],
            DefaultModel::OfSeveralKeys { used, others } => {
                [used].into_iter().chain(others).map(|it| it.model.provider()).collect()
            }
            DefaultModel::Absent => Vec::new(),
        }
    }

    #[test]
    fn keys_choose_the_model_in_a_fixed_order_unless_the_user_has_chosen() {
        assert_eq!(found(&[], ""), DefaultModel::Absent);
        assert_eq!(providers(&found(&["GEMINI_API_KEY"], "")), ["gemini"]);
        let all = ["GEMINI_API_KEY", "OPENAI_API_KEY", "ANTHROPIC_API_KEY"];
        assert_eq!(providers(&found(&all, "")), ["anthropic", "openai", "gemini"]);
        assert_eq!(providers(&found(&all, "model = 'a/b'")), ["a"]);
    }

    #[test]
    fn the_note_names_the_model_and_the_key_but_never_its_value() {
        let note = found(&["OPENAI_API_KEY"], "").note().unwrap();
        assert!(note.starts_with("using openai/") && note.ends_with("(OPENAI_API_KEY)"), "{note}");
        let own = found(&[], "[providers.openai]\napi_key = 'sk-secret'\n").note().unwrap();
        assert!(own.ends_with("(the key in your settings)"), "{own}");
    }
}
