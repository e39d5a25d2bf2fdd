//! A number that a call gives.

use std::ops::RangeInclusive;

use antiphon_core::ToolError;

/// The number `name` of a call, which has a default and limits.
pub(crate) fn within(
    tool: &str,
    name: &str,
    given: Option<u64>,
    default: u64,
    limits: RangeInclusive<u64>,
) -> Result<usize, ToolError> {
    let number = given.unwrap_or(default);
    if limits.contains(&number) {
        return Ok(usize::try_from(number).unwrap_or(usize::MAX));
    }
    Err(ToolError::InvalidArguments {
        tool: tool.to_owned(),
        reason: format!("`{name}` is {number}: it must be {} to {}", limits.start(), limits.end()),
    })
}
