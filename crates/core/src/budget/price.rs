//! Prices of models and costs of answers.
//!
//! Prices are data: a table from model names to US dollars per million tokens. The built-in one is
//! `crates/project/data/prices.toml`, and settings add to it. A model without a price has an unknown cost,
//! which is not the same as no cost.

use std::collections::BTreeMap;
use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign};

use serde::{Deserialize, Serialize};

use crate::{ModelRef, Usage};

/// An amount of money, in billionths of a US dollar: one token of a cheap model costs a few.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize,
)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct Cost {
    /// Billionths of a US dollar.
    pub nano_usd: u64,
}

impl Add for Cost {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { nano_usd: self.nano_usd.saturating_add(other.nano_usd) }
    }
}

impl AddAssign for Cost {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sum for Cost {
    fn sum<I: Iterator<Item = Self>>(costs: I) -> Self {
        costs.fold(Self::default(), Add::add)
    }
}

/// `$0.0123`: four decimals, more for amounts below a hundredth of a cent.
impl fmt::Display for Cost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (dollars, nano) = (self.nano_usd / 1_000_000_000, self.nano_usd % 1_000_000_000);
        if dollars == 0 && nano != 0 && nano < 100_000 {
            write!(f, "$0.{nano:09}")
        } else {
            write!(f, "${dollars}.{:04}", nano / 100_000)
        }
    }
}

/// Prices of a model's tokens, in US dollars per million tokens, from 0 to 100,000.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Price {
    /// Price of tokens read.
    pub input: UsdPerMillion,
    /// Price of tokens written.
    pub output: UsdPerMillion,
    /// Price of tokens read from the cache. Absent: as `input`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_read: Option<UsdPerMillion>,
    /// Price of tokens written to the cache. Absent: as `input`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write: Option<UsdPerMillion>,
}

impl Price {
    /// Cost of `usage`.
    pub fn cost(&self, usage: Usage) -> Cost {
        let of = |tokens: u64, price: UsdPerMillion| Cost { nano_usd: price.cost_nano_usd(tokens) };
        of(usage.input_tokens, self.input)
            + of(usage.output_tokens, self.output)
            + of(usage.cache_read_tokens.unwrap_or_default(), self.cache_read.unwrap_or(self.input))
            + of(
                usage.cache_write_tokens.unwrap_or_default(),
                self.cache_write.unwrap_or(self.input),
            )
    }
}

/// US dollars per million tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "f64", into = "f64")]
pub struct UsdPerMillion {
    /// 10^-15 dollars: a millionth of [`Cost`]'s unit, so that no price in use is rounded.
    femto_usd_per_token: u64,
}

impl UsdPerMillion {
    fn cost_nano_usd(self, tokens: u64) -> u64 {
        let femto = u128::from(tokens) * u128::from(self.femto_usd_per_token);
        u64::try_from(femto.div_ceil(1_000_000)).unwrap_or(u64::MAX)
    }
}

/// The number is not a price.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
#[error("a price is from 0 to 100000 US dollars per million tokens, not {found}")]
pub struct PriceError {
    /// The number that was found.
    pub found: f64,
}

impl TryFrom<f64> for UsdPerMillion {
    type Error = PriceError;

    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the number was checked to be from 0 to 10^14"
    )]
    fn try_from(usd: f64) -> Result<Self, PriceError> {
        if !(0.0..=100_000.0).contains(&usd) {
            return Err(PriceError { found: usd });
        }
        Ok(Self { femto_usd_per_token: (usd * 1e9).round() as u64 })
    }
}

impl From<UsdPerMillion> for f64 {
    #[expect(clippy::cast_precision_loss, reason = "at most 10^14, which is exact")]
    fn from(price: UsdPerMillion) -> Self {
        price.femto_usd_per_token as Self / 1e9
    }
}

/// Prices by model.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PriceTable(BTreeMap<ModelRef, Price>);

impl PriceTable {
    /// The price of a model: its own, or that of the longest name in the table that the
    /// model's name continues with a date or version (`claude-sonnet-4-5-20250929`).
    pub fn price(&self, model: &ModelRef) -> Option<Price> {
        let dated = |known: &ModelRef| {
            known.provider() == model.provider()
                && model.model().strip_prefix(known.model()).is_some_and(is_version)
        };
        let own = self.0.get(model);
        let nearest = || self.0.iter().filter(|(known, _)| dated(known));
        own.or_else(|| nearest().max_by_key(|(known, _)| known.model().len()).map(|(_, p)| p))
            .copied()
    }

    /// Cost of an answer; `None` when the model has no price.
    pub fn cost(&self, model: &ModelRef, usage: Usage) -> Option<Cost> {
        self.price(model).map(|price| price.cost(usage))
    }

    /// Adds the prices of `other`, which win over those here.
    pub fn extend(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    /// Every price, by model.
    pub fn iter(&self) -> impl Iterator<Item = (&ModelRef, &Price)> {
        self.0.iter()
    }
}

impl FromIterator<(ModelRef, Price)> for PriceTable {
    fn from_iter<I: IntoIterator<Item = (ModelRef, Price)>>(prices: I) -> Self {
        Self(prices.into_iter().collect())
    }
}

/// `-20250929`, `-2025-08-07`, `-001`, `-latest`, `@20250929`: the same model, another date.
fn is_version(rest: &str) -> bool {
    let Some(rest) = rest.strip_prefix(['-', '@']) else { return false };
    rest == "latest"
        || rest == "preview"
        || (rest.len() >= 3 && rest.chars().all(|c| c.is_ascii_digit() || c == '-'))
}
