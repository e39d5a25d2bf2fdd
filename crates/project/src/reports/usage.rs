//! Usage reports: tokens, calls and cost by day, model, agent and payer.

use std::collections::BTreeMap;

use antiphon_api::{UsageBy, UsageReport, UsageRow};
use antiphon_core::{Account, Cost, DayRange, SpendWindow};
use antiphon_runtime::{Orchestrator, OrchestratorError};
use chrono::{DateTime, NaiveDate, Utc};

/// Days of one report, at most.
pub const USAGE_DAYS_MAX: i64 = 366;

/// Rows of one report, at most. An interface refuses a longer report.
pub const USAGE_ROWS_MAX: usize = 10_000;

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
