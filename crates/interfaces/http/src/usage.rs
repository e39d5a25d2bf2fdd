//! What was spent: by day, model, agent and payer, in tokens and in money.

use std::collections::BTreeMap;
use std::sync::Arc;

use aide::axum::ApiRouter;
use aide::axum::routing::get_with;
use antiphon_core::port::{Clock, SystemClock};
use antiphon_core::{Account, AccountSpending, Cost, DayRange, PriceTable, SpendWindow, Usage};
use antiphon_runtime::{Orchestrator, OrchestratorError};
use axum::extract::State;
use chrono::{DateTime, NaiveDate, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::api_error::ApiError;
use crate::named::Asked;
use crate::openapi::{Tag, Telling};
use crate::room::AppState;

/// Days of one report, at most.
pub const USAGE_DAYS_MAX: i64 = 366;

/// Rows of one report, at most. A longer one is refused.
pub const USAGE_ROWS_MAX: usize = 10_000;

/// What a report tells apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UsageBy {
    /// Days, of UTC.
    Day,
    /// Models.
    Model,
    /// Agents.
    Agent,
    /// Who pays.
    Payer,
}

impl UsageBy {
    /// Every one.
    pub const ALL: [Self; 4] = [Self::Day, Self::Model, Self::Agent, Self::Payer];

    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Day => "day",
            Self::Model => "model",
            Self::Agent => "agent",
            Self::Payer => "payer",
        }
    }

    /// From words with commas between them.
    pub fn parse(words: &str) -> Result<Vec<Self>, String> {
        let one = |word: &str| {
            let found = Self::ALL.into_iter().find(|by| by.as_str() == word.trim());
            found.ok_or_else(|| format!("`{word}` is none of day, model, agent, payer"))
        };
        words.split(',').map(one).collect()
    }
}

/// What was spent, and what that cost at the prices of today.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct UsageReport {
    /// The first day.
    pub from: NaiveDate,
    /// The last.
    pub to: NaiveDate,
    /// In the order of what they are told apart by.
    pub rows: Vec<UsageRow>,
    /// All of them together.
    pub totals: UsageRow,
}

/// One line of it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, JsonSchema)]
pub struct UsageRow {
    /// The day.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub day: Option<NaiveDate>,
    /// The model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The key; in a list of payers, the owner when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payer: Option<String>,
    /// Answers of models.
    pub calls: u64,
    /// Tokens.
    #[serde(flatten)]
    pub usage: Usage,
    /// What those cost whose price is known; nothing is known when absent.
    pub cost_nano_usd: Option<Cost>,
    /// Answers of which nobody knows what they cost.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unpriced_calls: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature is serde's")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl UsageRow {
    fn add(&mut self, spent: &AccountSpending, prices: &PriceTable) {
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
    let told = |what| by.contains(&what);
    (
        told(UsageBy::Day).then_some(account.day),
        account.payer.clone().filter(|_| told(UsageBy::Payer)),
        told(UsageBy::Agent).then(|| account.agent.clone()),
        told(UsageBy::Model).then(|| account.model.clone()),
    )
}

/// What was spent in these days, told apart as asked.
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

/// The days that are meant: this month, unless somebody says otherwise.
pub fn usage_days(
    from: Option<NaiveDate>,
    to: Option<NaiveDate>,
    now: DateTime<Utc>,
) -> Result<DayRange, String> {
    let to = to.unwrap_or_else(|| now.date_naive());
    let from = from.unwrap_or_else(|| SpendWindow::Month.first_day(now).min(to));
    if from > to {
        return Err("`from` is behind `to`".to_owned());
    }
    if (to - from).num_days() >= USAGE_DAYS_MAX {
        return Err(format!("{USAGE_DAYS_MAX} days at most"));
    }
    Ok(DayRange { from, to })
}

pub(crate) fn routes() -> ApiRouter<Arc<AppState>> {
    let usage = get_with(usage, |route| {
        route.told("usage", Tag::Money, "What was spent, in tokens and in money.")
    });
    ApiRouter::new().api_route("/v1/usage", usage)
}

/// What of it.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct UsageQuery {
    /// The first day; the first of this month when absent.
    from: Option<NaiveDate>,
    /// The last; today when absent.
    to: Option<NaiveDate>,
    /// What to tell apart, with commas between them: `day`, `model`, `agent`, `payer`; days when absent.
    by: Option<String>,
}

pub(crate) async fn usage(
    State(room): State<Arc<AppState>>,
    Asked(query): Asked<UsageQuery>,
) -> Result<axum::Json<UsageReport>, ApiError> {
    let days = usage_days(query.from, query.to, SystemClock.now()).map_err(ApiError::invalid)?;
    let by = query.by.as_deref().map_or_else(|| Ok(vec![UsageBy::Day]), UsageBy::parse);
    let by = by.map_err(|error| ApiError::invalid(format!("`by`: {error}")))?;
    let report = usage_report(&room.doors.orchestrator, days, &by).await?;
    if report.rows.len() > USAGE_ROWS_MAX {
        let message = format!("more than {USAGE_ROWS_MAX} rows: ask for fewer days, or by less");
        return Err(ApiError::invalid(message));
    }
    Ok(axum::Json(report))
}
