//! A task of a list in JSON.

use antiphon_core::{Cost, PriceTable, TaskSummary};
use antiphon_runtime::is_resident;
use serde::Serialize;

/// A task in JSON.
#[derive(Serialize)]
pub(super) struct ListedTask<'a> {
    #[serde(flatten)]
    summary: &'a TaskSummary,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) cost: Option<Cost>,
    /// Whether it is a resident task of a live agent.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    resident: bool,
}

pub(super) fn listed_task<'a>(summary: &'a TaskSummary, prices: &PriceTable) -> ListedTask<'a> {
    let cost = antiphon_runtime::cost(&summary.spent, prices).ok();
    ListedTask { summary, cost, resident: is_resident(summary) }
}
