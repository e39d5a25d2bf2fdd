//! Usage reports: tokens, calls and cost by day, model, agent and payer.

use std::collections::BTreeMap;

use antiphon_core::{Account, Cost, DayRange, PriceTable, SpendWindow, Spent, Usage};
use antiphon_runtime::{Orchestrator, OrchestratorError};
use chrono::{DateTime, NaiveDate, Utc};
use schemars::JsonSchema;
use serde::Serialize;

/// Days of one report, at most.
pub const USAGE_DAYS_MAX: i64 = 366;

/// Rows of one report, at most. An interface refuses a longer report.
pub const USAGE_ROWS_MAX: usize = 10_000;

/// A column that a report groups by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UsageBy {
    /// Day, in UTC.
    Day,
    /// Model, as `PROVIDER/MODEL`.
    Model,
    /// Name of the agent.
    Agent,
    /// Id of the API key that pays.
    Payer,
}

impl UsageBy {
    /// All columns.
    pub const ALL: [Self; 4] = [Self::Day, Self::Model, Self::Agent, Self::Payer];

    /// Name of the column in queries and reports.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Day => "day",
            Self::Model => "model",
            Self::Agent => "agent",
            Self::Payer => "payer",
        }
    }

    /// Columns from names separated by commas.
    pub fn parse(words: &str) -> Result<Vec<Self>, String> {
        let one = |word: &str| {
            let found = Self::ALL.into_iter().find(|by| by.as_str() == word.trim());
            found.ok_or_else(|| format!("`{word}` is none of day, model, agent, payer"))
        };
        words.split(',').map(one).collect()
    }
}

/// What the models used in a range of days, and what it costs at the current prices.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct UsageReport {
    /// First day of the report, in UTC.
    pub from: NaiveDate,
    /// Last day of the report, in UTC.
    pub to: NaiveDate,
    /// One row per group, ordered by day, payer, agent and model.
    pub rows: Vec<UsageRow>,
    /// Sum of all rows.
    pub totals: UsageRow,
}

/// One group of a usage report. The fields of columns that are not grouped by are absent.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, JsonSchema)]
pub struct UsageRow {
    /// Day in UTC, when grouped by `day`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub day: Option<NaiveDate>,
    /// `PROVIDER/MODEL`, when grouped by `model`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Name of the agent, when grouped by `agent`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Id of the API key that pays, when grouped by `payer`; absent for the owner.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payer: Option<String>,
    /// Number of model calls.
    pub calls: u64,
    /// Tokens of the calls.
    #[serde(flatten)]
    pub usage: Usage,
    /// Cost of the calls with a known price, in billionths of a US dollar; absent when no price is known.
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
    fn add(&mut self, spent: &Spent, prices: &PriceTable) {
        self.calls = self.calls.saturating_add(spent.calls);
        self.usage += spent.usage;
        match spent.cost(prices) {
            Some(cost) => *self.cost_nano_usd.get_or_insert_default() += cost,
            None => self.unpriced_calls = self.unpriced_calls.saturating_add(spent.calls),
        }
    }
}

type Group = (Option<NaiveDate>, Option<String>, Option<String>, Option<String>);

fn group(account: &Account, by: &[UsageBy]) -> Group {
    let has = |column| by.contains(&column);
    (
        has(UsageBy::Day).then_some(account.day),
        account.payer.clone().filter(|_| has(UsageBy::Payer)),
        has(UsageBy::Agent).then(|| account.agent.clone()),
        has(UsageBy::Model).then(|| account.model.clone()),
    )
}

/// The usage of `days`, grouped by the columns in `by`.
pub async fn usage_report(
    orchestrator: &Orchestrator,
    days: DayRange,
    by: &[UsageBy],
) -> Result<UsageReport, OrchestratorError> {
    let found = orchestrator.spending(days).await?;
    let prices = orchestrator.prices();
    let mut rows: BTreeMap<Group, UsageRow> = BTreeMap::new();
    let mut totals = UsageRow::default();
    for spent in &found.spent {
        let group = group(&spent.account, by);
        let (day, payer, agent, model) = group.clone();
        let row = rows.entry(group);
        row.or_insert_with(|| UsageRow { day, model, agent, payer, ..UsageRow::default() })
            .add(spent, prices);
        totals.add(spent, prices);
    }
    if found.spent.is_empty() {
        totals.cost_nano_usd = Some(Cost::default());
    }
    Ok(UsageReport { from: days.from, to: days.to, rows: rows.into_values().collect(), totals })
}

/// The days from `from` to `to`. Defaults to the current month up to today.
pub fn usage_days(
    from: Option<NaiveDate>,
    to: Option<NaiveDate>,
    now: DateTime<Utc>,
) -> Result<DayRange, String> {
    let to = to.unwrap_or_else(|| now.date_naive());
    let from = from.unwrap_or_else(|| SpendWindow::Month.first_day(now).min(to));
    if from > to {
        return Err("`from` is after `to`".to_owned());
    }
    if (to - from).num_days() >= USAGE_DAYS_MAX {
        return Err(format!("at most {USAGE_DAYS_MAX} days"));
    }
    Ok(DayRange { from, to })
}
