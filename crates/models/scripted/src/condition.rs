//! Conditions of a reply. All given conditions must hold; without any, the reply always matches.

use std::num::NonZeroU32;

use serde::Deserialize;

use crate::request_facts::RequestFacts;

/// The `when` of a reply.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Condition {
    turn: Option<usize>,
    tool_results: Option<usize>,
    results_since_user: Option<usize>,
    last_user_contains: Option<String>,
    last_result_contains: Option<String>,
    last_result_is_error: Option<bool>,
    system_contains: Option<String>,
    tool_offered: Option<String>,
    attempt: Option<NonZeroU32>,
}

impl Condition {
    pub(crate) fn fits(&self, facts: &RequestFacts<'_>) -> bool {
        let result = facts.last_result.as_ref();
        let contains = |part: &Option<String>, text: Option<&str>| {
            part.as_deref().is_none_or(|part| text.is_some_and(|text| text.contains(part)))
        };
        self.turn.is_none_or(|turn| turn == facts.turn)
            && self.tool_results.is_none_or(|n| n == facts.tool_results)
            && self.results_since_user.is_none_or(|n| n == facts.results_since_user)
            && contains(&self.last_user_contains, facts.last_user.as_deref())
            && contains(&self.last_result_contains, result.map(|result| result.text.as_str()))
            && self
                .last_result_is_error
                .is_none_or(|wanted| result.is_some_and(|result| result.is_error == wanted))
            && contains(&self.system_contains, Some(&facts.request.system_prompt))
            && self
                .tool_offered
                .as_ref()
                .is_none_or(|name| facts.request.tools.iter().any(|tool| tool.name == *name))
            && self.attempt.is_none_or(|attempt| facts.attempt == Some(attempt.get()))
    }

    /// Whether there is no condition, so that every request matches.
    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    pub(crate) fn asks_attempt(&self) -> bool {
        self.attempt.is_some()
    }
}
