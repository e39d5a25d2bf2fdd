//! `GET /v1/usage`: usage and cost.

use std::sync::Arc;

use antiphon_api::{UsageBy, UsageQuery, UsageReport};
use antiphon_core::port::{Clock, SystemClock};
use antiphon_interface_transport::openapi::{ApiRouter, DescribeRoute, Tag, get_with};
use antiphon_interface_transport::{ApiError, AppState, QueryParams};
use antiphon_project::{USAGE_ROWS_MAX, usage_days, usage_report};
use axum::extract::State;

pub(crate) fn routes() -> ApiRouter<Arc<AppState>> {
    let usage = get_with(usage, |route| {
        route.describe("usage", Tag::Money, "Usage in tokens, and its cost.")
    });
    ApiRouter::new().api_route("/v1/usage", usage)
}

pub(crate) async fn usage(
    State(state): State<Arc<AppState>>,
    QueryParams(query): QueryParams<UsageQuery>,
) -> Result<axum::Json<UsageReport>, ApiError> {
    let days = usage_days(query.from, query.to, SystemClock.now()).map_err(ApiError::invalid)?;
    let by = query.by.as_deref().map_or_else(|| Ok(vec![UsageBy::Day]), UsageBy::parse);
    let by = by.map_err(|error| ApiError::invalid(format!("`by`: {error}")))?;
    let report = usage_report(&state.deps.orchestrator, days, &by).await?;
    if report.rows.len() > USAGE_ROWS_MAX {
        let message = format!(
            "the report has more than {USAGE_ROWS_MAX} rows: ask for fewer days or columns"
        );
        return Err(ApiError::invalid(message));
    }
    Ok(axum::Json(report))
}
