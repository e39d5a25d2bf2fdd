//! What models of other programs are called here.

use std::collections::BTreeMap;

use antiphon_core::ModelRef;

use crate::fields::{Fields, quoted};

/// What short names stand for.
const ALIASES: &str = include_str!("../data/model_aliases.toml");

/// Finds the model here that another program's name stands for, or says why there is none.
pub type ModelNames<'a> = dyn Fn(&str) -> Result<ModelRef, String> + 'a;

/// The model that a name stands for, without the user's own aliases: a short name, PROVIDER/MODEL, or a model of a
/// family that one provider has.
pub fn built_in_model(name: &str) -> Option<ModelRef> {
    let aliases: BTreeMap<String, ModelRef> = toml::from_str(ALIASES).unwrap_or_default();
    if let Some(model) = aliases.get(&name.to_ascii_lowercase()) {
        return Some(model.clone());
    }
    if name.contains('/') {
        return ModelRef::parse(name).ok();
    }
    let families = [("claude-", "anthropic"), ("gpt-", "openai"), ("gemini-", "gemini")];
    let (_, provider) = families.iter().find(|(family, _)| name.starts_with(family))?;
    ModelRef::parse(&format!("{provider}/{name}")).ok()
}

/// The model of a file; `None` for the caller's.
pub(crate) fn model(fields: &mut Fields, names: &ModelNames<'_>) -> Option<ModelRef> {
    let name = fields.text("model")?;
    if ["inherit", "default"].contains(&name.to_ascii_lowercase().as_str()) {
        return None;
    }
    match names(&name) {
        Ok(model) => Some(model),
        Err(reason) => {
            fields
                .drop_field("model", &format!("{}: {reason}; the caller's is used", quoted(&name)));
            None
        }
    }
}
