//! What may be spent: how it stands, and letting more be spent. Only a person allows more.

use std::collections::BTreeMap;
use std::sync::Arc;

use aide::axum::ApiRouter;
use aide::axum::routing::{get_with, post_with};
use antiphon_api::AllowSpending;
use antiphon_core::{BudgetStatus, Cost};
use antiphon_keys::{KeyId, KeyIdError};
use antiphon_runtime::{Allowance, BudgetSpent};
use axum::extract::State;
use axum::http::HeaderMap;
use chrono::{DateTime, SecondsFormat, Utc};

use crate::api_error::ApiError;
use crate::caller::{Caller, Decider};
use crate::idempotency;
use crate::json::Json;
use crate::openapi::{Tag, Telling};
use crate::room::AppState;

/// Longest comment, in bytes.
pub const COMMENT_BYTES_MAX: usize = 4096;

pub(crate) fn routes() -> ApiRouter<Arc<AppState>> {
    let show = get_with(show, |route| {
        route.told("show_budget", Tag::Money, "What may be spent, and what was.")
    });
    let allow = post_with(allow, |route| {
        let summary = "Lets more be spent in this day and month: what waits for it goes on.";
        route.told("allow_spending", Tag::Money, summary).keyed().fails(&[404, 409, 422])
    });
    ApiRouter::new().api_route("/v1/budget", show).api_route("/v1/budget/allow", allow)
}

/// How the budget stands.
pub(crate) async fn show(
    State(room): State<Arc<AppState>>,
) -> Result<axum::Json<BudgetStatus>, ApiError> {
    Ok(axum::Json(room.doors.orchestrator.budget().await?))
}

/// Lets more be spent. When this is answered, the journal has it.
pub(crate) async fn allow(
    State(room): State<Arc<AppState>>,
    Decider { by }: Decider,
    caller: Caller,
    headers: HeaderMap,
    Json(allowing): Json<AllowSpending>,
) -> Result<axum::Json<BudgetStatus>, ApiError> {
    if allowing.comment.as_ref().is_some_and(|comment| comment.len() > COMMENT_BYTES_MAX) {
        return Err(ApiError::invalid(format!("`comment`: {COMMENT_BYTES_MAX} bytes at most")));
    }
    let key_id: Option<KeyId> =
        allowing.key_id.map(|id| id.parse()).transpose().map_err(bad_key)?;
    let allowance = Allowance {
        payer: key_id.map(String::from),
        by_nano_usd: nano_usd(allowing.usd).ok_or_else(|| {
            ApiError::invalid("`usd`: an amount from 0.000000001 to 1000000 dollars")
        })?,
        by,
        comment: allowing.comment,
        key: idempotency::key(&caller, "http-budget", &headers)?,
    };
    Ok(axum::Json(room.doors.orchestrator.allow(allowance).await?))
}

fn bad_key(error: KeyIdError) -> ApiError {
    ApiError::invalid(format!("`key_id`: {error}"))
}

/// Dollars in the smallest unit there is, if that is an amount somebody may name.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the number was checked to be from 1 to 10^15"
)]
pub fn nano_usd(usd: f64) -> Option<u64> {
    let nano = (usd * 1e9).round();
    (1.0..=1e15).contains(&nano).then_some(nano as u64)
}

/// `1.5`: dollars without more digits than there are.
pub fn dollars(cost: Cost) -> String {
    let text = format!("{}.{:09}", cost.nano_usd / 1_000_000_000, cost.nano_usd % 1_000_000_000);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// What a client is told who may not spend more.
pub(crate) fn details(spent: &BudgetSpent) -> BTreeMap<String, String> {
    let resets_at = spent.resets_at.to_rfc3339_opts(SecondsFormat::AutoSi, true);
    let mut details: BTreeMap<String, String> = [
        ("cause", "budget".to_owned()),
        ("scope", spent.scope.as_str().to_owned()),
        ("period", spent.window.as_str().to_owned()),
        ("limit_usd", dollars(spent.limit)),
        ("spent_usd", dollars(spent.spent)),
        ("resets_at", resets_at),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into();
    if let Some(id) = spent.scope.key_id() {
        details.insert("key_id".to_owned(), id.to_owned());
    }
    details
}

/// When to ask again, in whole seconds.
pub(crate) fn retry_after_s(spent: &BudgetSpent, now: DateTime<Utc>) -> u64 {
    let wait = (spent.resets_at - now).to_std().unwrap_or_default();
    wait.as_secs().saturating_add(1)
}
