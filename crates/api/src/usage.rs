//! Usage: what was spent, in tokens and in money.

use antiphon_core::{AccountSpending, Cost, PriceTable, Usage};
use chrono::NaiveDate;
use serde::{Deserialize, Serialize};

/// Which usage to report, and how to group it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UsageQuery {
    /// First day, in UTC; the first day of this month when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<NaiveDate>,
    /// Last day, in UTC; today when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<NaiveDate>,
    /// Groups, separated by commas: `day`, `model`, `agent`, `payer`; `day` when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
}

/// What the rows of a report are grouped by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UsageBy {
    /// Day, in UTC.
    Day,
    /// Model.
    Model,
    /// Agent.
    Agent,
    /// API key that pays, or the owner.
    Payer,
}

impl UsageBy {
    /// All groups.
    pub const ALL: [Self; 4] = [Self::Day, Self::Model, Self::Agent, Self::Payer];

    /// The value in a query.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Day => "day",
            Self::Model => "model",
            Self::Agent => "agent",
            Self::Payer => "payer",
        }
    }

    /// Reads groups that are separated by commas. The error names the unknown one.
    pub fn parse(words: &str) -> Result<Vec<Self>, String> {
        let one = |word: &str| {
            let found = Self::ALL.into_iter().find(|by| by.as_str() == word.trim());
            found.ok_or_else(|| format!("`{word}` is none of day, model, agent, payer"))
        };
        words.split(',').map(one).collect()
    }
}

/// What was spent, with costs at today's prices.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UsageReport {
    /// First day, in UTC.
    pub from: NaiveDate,
    /// Last day, in UTC.
    pub to: NaiveDate,
    /// One row per group, sorted by the groups.
    pub rows: Vec<UsageRow>,
    /// Sum of all rows.
    pub totals: UsageRow,
}

/// Usage of one group.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UsageRow {
    /// The day; absent unless grouped by `day`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub day: Option<NaiveDate>,
    /// The model; absent unless grouped by `model`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The agent; absent unless grouped by `agent`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Id of the API key that pays; grouped by `payer`, the owner when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payer: Option<String>,
    /// Number of model calls.
    pub calls: u64,
    /// Tokens.
    #[serde(flatten)]
    pub usage: Usage,
    /// Cost of the calls with a known price, in billionths of a US dollar; `null` when no price is known.
    pub cost_nano_usd: Option<Cost>,
    /// Number of calls without a known price; absent when zero.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unpriced_calls: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature is serde's")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl UsageRow {
    /// Adds the usage of one account at these prices.
    pub fn add(&mut self, spent: &AccountSpending, prices: &PriceTable) {
        self.calls = self.calls.saturating_add(spent.calls);
        self.usage += spent.usage;
        match spent.cost(prices) {
            Some(cost) => *self.cost_nano_usd.get_or_insert_default() += cost,
            None => self.unpriced_calls = self.unpriced_calls.saturating_add(spent.calls),
        }
    }
}
