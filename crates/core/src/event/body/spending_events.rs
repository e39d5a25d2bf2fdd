//! Used tokens, and raised spend limits.

use serde::{Deserialize, Serialize};

use crate::Usage;

event_structs! {
    /// A model call used tokens.
    UsageRecorded {
        /// Model, as `PROVIDER/MODEL`.
        model: String,
        /// Tokens used.
        usage: Usage,
        /// Purpose of the call. Absent: a step of the task.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        purpose: Option<Purpose>,
    }
    /// The spend limits of this day and its month were raised.
    BudgetRaised {
        /// Amount, in billionths of a US dollar.
        nano_usd: u64,
        /// Id of the API key whose limits are raised. Absent: the total limits.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        payer: Option<String>,
        /// Name of the person or program that raised the limits.
        by: String,
        /// Comment. Absent: none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        comment: Option<String>,
    }
}

impl UsageRecorded {
    /// The name that its tokens are summed under: its model. An answer whose tokens were not counted has a name of its
    /// own, which no model has and which has no price: a sum of counted tokens would hide that its cost is unknown.
    pub fn summed_under(&self) -> String {
        let is_counted = self.usage != Usage::default();
        if is_counted || self.purpose != Some(Purpose::Superseded) {
            return self.model.clone();
        }
        format!("{} (uncounted)", self.model)
    }
}

/// Purpose of a model call that is not a step of the task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// A summary of the conversation.
    Compaction,
    /// An answer that broke off and was asked for again, or whose tokens were not counted. It is no
    /// turn.
    Superseded,
}
