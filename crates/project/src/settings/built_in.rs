//! Built-in prices, context windows and default models: data with a date, which `scripts/update-prices` writes.

use std::collections::BTreeMap;

use antiphon_core::{ModelRef, PriceTable};
use chrono::NaiveDate;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::{ContextWindows, ModelConfig};
use crate::error::ProjectError;

const PRICES: &str = include_str!("../../data/prices.toml");
const WINDOWS: &str = include_str!("../../data/windows.toml");
const DEFAULTS: &str = include_str!("../../data/defaults.toml");

/// After this many days, prices may have changed.
const PRICES_OLD_DAYS: i64 = 180;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Prices {
    date: NaiveDate,
    source: String,
    models: PriceTable,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Windows {
    #[serde(rename = "date")]
    _date: NaiveDate,
    #[serde(rename = "source")]
    _source: String,
    #[serde(rename = "windows")]
    tokens: BTreeMap<String, u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Defaults {
    #[serde(rename = "date")]
    _date: NaiveDate,
    #[serde(rename = "source")]
    _source: String,
    models: BTreeMap<String, String>,
}

/// Where the built-in prices come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PriceSource {
    /// The day they were read.
    pub date: NaiveDate,
    /// The list they were read from.
    pub source: String,
}

impl PriceSource {
    /// The source of the built-in prices.
    pub fn built_in() -> Result<Self, ProjectError> {
        let Prices { date, source, models: _ } = read("prices", PRICES)?;
        Ok(Self { date, source })
    }

    /// Whether the prices may have changed by `today`.
    pub fn is_old(&self, today: NaiveDate) -> bool {
        (today - self.date).num_days() > PRICES_OLD_DAYS
    }
}

fn read<T: DeserializeOwned>(what: &str, text: &str) -> Result<T, ProjectError> {
    toml::from_str(text)
        .map_err(|error| ProjectError::Failed(format!("the built-in {what}: {error}")))
}

/// The default model of a provider.
pub(super) fn default_model_of(provider: &str) -> Option<ModelRef> {
    let defaults: Defaults = read("default models", DEFAULTS).ok()?;
    let model = defaults.models.get(provider)?;
    ModelRef::parse(&format!("{provider}/{model}")).ok()
}

/// Built-in prices; the user's own replace them.
pub(super) fn prices(models: &BTreeMap<ModelRef, ModelConfig>) -> Result<PriceTable, ProjectError> {
    let mut prices = built_in_prices()?;
    let own = models
        .iter()
        .filter_map(|(model, config)| config.price.map(|price| (model.clone(), price)));
    prices.extend(own.collect());
    Ok(prices)
}

/// Prices without those of the user.
pub(crate) fn built_in_prices() -> Result<PriceTable, ProjectError> {
    let Prices { models: mut prices, date: _, source: _ } = read("prices", PRICES)?;
    // `openai-responses` serves the same models through another API.
    let on_responses = prices.iter().filter(|(model, _)| model.provider() == "openai");
    let on_responses = on_responses.filter_map(|(model, price)| {
        Some((ModelRef::parse(&format!("openai-responses/{}", model.model())).ok()?, *price))
    });
    prices.extend(on_responses.collect());
    Ok(prices)
}

pub(super) fn context_windows(
    models: &BTreeMap<ModelRef, ModelConfig>,
) -> Result<ContextWindows, ProjectError> {
    let known: Windows = read("windows", WINDOWS)?;
    let own = models
        .iter()
        .filter_map(|(model, config)| Some((model.clone(), config.context_tokens?.get())));
    Ok(ContextWindows { own: own.collect(), known: known.tokens })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_default_model_has_a_price_and_a_window() {
        let prices = built_in_prices().unwrap();
        let windows = context_windows(&BTreeMap::new()).unwrap();
        for provider in super::super::default_model::ORDER {
            let model = default_model_of(provider).unwrap();
            assert!(prices.price(&model).is_some(), "{model}");
            assert!(windows.of(&model).is_some(), "{model}");
        }
    }

    #[test]
    fn prices_are_old_after_half_a_year() {
        let source = PriceSource::built_in().unwrap();
        let after = |days| source.date + chrono::Days::new(days);
        assert!(!source.is_old(after(180)));
        assert!(source.is_old(after(181)));
    }
}
