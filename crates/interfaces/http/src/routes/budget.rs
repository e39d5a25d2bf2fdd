//! Spend limits: shown and raised. Only a person with level `admin` may raise one.

use std::sync::Arc;

use antiphon_api::AllowSpending;
use antiphon_interface_transport::openapi::{ApiRouter, DescribeRoute, Tag, get_with, post_with};
use antiphon_interface_transport::{ApiError, AppState, Caller, Decider, Json, idempotency};
use antiphon_keys::{KeyId, KeyIdError};
use antiphon_project::nano_usd;
use antiphon_runtime::{BudgetStatus, LimitRaise};
use axum::extract::State;
use axum::http::HeaderMap;

/// Longest comment, in bytes.
pub const COMMENT_BYTES_MAX: usize = 4096;

pub(crate) fn routes() -> ApiRouter<Arc<AppState>> {
    let show = get_with(show, |route| {
        route.describe("show_budget", Tag::Money, "Spend limits, and what was spent.")
    });
    let allow = post_with(allow, |route| {
        let summary = "Raises the spend limits of the current day and month. Tasks that wait for budget resume.";
        route
            .describe("allow_spending", Tag::Money, summary)
            .with_idempotency_key()
            .fails(&[404, 409, 422])
    });
    ApiRouter::new().api_route("/v1/budget", show).api_route("/v1/budget/allow", allow)
}

async fn show(State(state): State<Arc<AppState>>) -> Result<axum::Json<BudgetStatus>, ApiError> {
    Ok(axum::Json(state.deps.orchestrator.budget().await?))
}

/// Raises the limits. The change is durable before the response.
async fn allow(
    State(state): State<Arc<AppState>>,
    Decider { by }: Decider,
    caller: Caller,
    headers: HeaderMap,
    Json(allowing): Json<AllowSpending>,
) -> Result<axum::Json<BudgetStatus>, ApiError> {
    if allowing.comment.as_ref().is_some_and(|comment| comment.len() > COMMENT_BYTES_MAX) {
        return Err(ApiError::invalid(format!("`comment`: at most {COMMENT_BYTES_MAX} bytes")));
    }
    let key_id: Option<KeyId> =
        allowing.key_id.map(|id| id.parse()).transpose().map_err(invalid_key_id)?;
    let raise = LimitRaise {
        payer: key_id.map(String::from),
        by_nano_usd: nano_usd(allowing.usd)
            .ok_or_else(|| ApiError::invalid("`usd`: from 0.000000001 to 1000000 dollars"))?,
        by,
        comment: allowing.comment,
        key: idempotency::key(&caller, "http-budget", &headers)?,
    };
    Ok(axum::Json(state.deps.orchestrator.allow(raise).await?))
}

fn invalid_key_id(error: KeyIdError) -> ApiError {
    ApiError::invalid(format!("`key_id`: {error}"))
}
