//! Spend limits: shown and raised. Only a person with level `admin` may raise one.

use std::sync::Arc;

use antiphon_interface_transport::openapi::{ApiRouter, DescribeRoute, Tag, get_with, post_with};
use antiphon_interface_transport::{ApiError, AppState, Caller, Decider, Json, idempotency};
use antiphon_keys::KeyId;
use antiphon_project::nano_usd;
use antiphon_runtime::{Allowance, BudgetStatus};
use axum::extract::State;
use axum::http::HeaderMap;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

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

/// By how much to raise the spend limits of the current day and month.
#[derive(Deserialize, JsonSchema)]
#[schemars(example = json!({ "usd": 2.5, "comment": "To finish the release." }))]
struct Allowing {
    /// Amount in US dollars, from 0.000000001 to 1000000.
    #[schemars(range(min = 0.000_000_001, max = 1_000_000.0))]
    usd: f64,
    /// Id of the API key whose limits are raised; the limits of all together when absent.
    #[schemars(with = "Option<String>")]
    key_id: Option<KeyId>,
    /// Reason, for people; at most 4096 bytes.
    comment: Option<String>,
}

/// Raises the limits. The change is durable before the response.
async fn allow(
    State(state): State<Arc<AppState>>,
    Decider { by }: Decider,
    caller: Caller,
    headers: HeaderMap,
    Json(allowing): Json<Allowing>,
) -> Result<axum::Json<BudgetStatus>, ApiError> {
    if allowing.comment.as_ref().is_some_and(|comment| comment.len() > COMMENT_BYTES_MAX) {
        return Err(ApiError::invalid(format!("`comment`: at most {COMMENT_BYTES_MAX} bytes")));
    }
    let allowance = Allowance {
        payer: allowing.key_id.map(String::from),
        by_nano_usd: nano_usd(allowing.usd)
            .ok_or_else(|| ApiError::invalid("`usd`: from 0.000000001 to 1000000 dollars"))?,
        by,
        comment: allowing.comment,
        key: idempotency::key(&caller, "http-budget", &headers)?,
    };
    Ok(axum::Json(state.deps.orchestrator.allow(allowance).await?))
}
