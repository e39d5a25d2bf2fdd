//! What was spent: by day, model, agent and payer, in tokens and in money.

use std::collections::BTreeMap;
use std::sync::Arc;

use aide::axum::ApiRouter;
use aide::axum::routing::get_with;
use antiphon_api::UsageQuery;
pub use antiphon_api::{UsageBy, UsageReport, UsageRow};
use antiphon_core::port::{Clock, SystemClock};
use antiphon_core::{Account, Cost, DayRange, SpendWindow};
use antiphon_runtime::{Orchestrator, OrchestratorError};
use axum::extract::State;
use chrono::{DateTime, NaiveDate, Utc};

use crate::api_error::ApiError;
use crate::named::Asked;
use crate::openapi::{Tag, Telling};
use crate::room::AppState;

/// Days of one report, at most.
pub const USAGE_DAYS_MAX: i64 = 366;

/// Rows of one report, at most. A longer one is refused.
pub const USAGE_ROWS_MAX: usize = 10_000;

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
