//! Limits of an agent. Each is a positive number; an absent one does not limit.

use std::num::NonZeroU64;
use std::str::FromStr;

use antiphon_core::TaskLimits;

use crate::list::text;
use crate::problem::AgentFileError;
use crate::yaml::{Field, Value};

/// Names of the limits.
pub const LIMITS: [&str; 9] = [
    "turns",
    "answer_tokens",
    "tool_calls",
    "tokens",
    "cost_usd",
    "wall_clock_s",
    "depth",
    "fan_out",
    "tasks",
];

/// Digits of a US dollar behind the point.
const NANO_DIGITS: usize = 9;

/// Most US dollars.
const USD_MAX: u64 = 1_000_000;

pub(crate) fn read(field: &Field) -> Result<TaskLimits, AgentFileError> {
    let Value::Map(fields) = &field.value.value else {
        return Err(AgentFileError::new(field.line, "`limits` takes fields, such as `turns: 20`"));
    };
    let mut limits = TaskLimits::default();
    for limit in fields {
        match limit.name.as_str() {
            "turns" => limits.turns_max = positive(limit)?,
            "answer_tokens" => limits.answer_tokens_max = positive(limit)?,
            "tool_calls" => limits.tool_calls_max = positive(limit)?,
            "tokens" => limits.tokens_max = positive(limit)?,
            "cost_usd" => limits.cost_nano_usd_max = Some(nano_usd(limit)?),
            "wall_clock_s" => limits.wall_clock_s_max = positive(limit)?,
            "depth" => limits.depth_max = positive(limit)?,
            "fan_out" => limits.fan_out_max = positive(limit)?,
            "tasks" => limits.tasks_max = positive(limit)?,
            other => {
                let known = LIMITS.join(", ");
                let reason = format!("there is no limit `{other}`; there are {known}");
                return Err(AgentFileError::new(limit.line, reason));
            }
        }
    }
    Ok(limits)
}

/// `T` is a number that is not zero.
fn positive<T: FromStr>(limit: &Field) -> Result<Option<T>, AgentFileError> {
    let found = text(&limit.name, &limit.value)?;
    found.parse().map(Some).map_err(|_| {
        let reason = format!("`{}` takes a whole number from 1 on, not `{found}`", limit.name);
        AgentFileError::new(limit.value.line, reason)
    })
}

fn nano_usd(limit: &Field) -> Result<NonZeroU64, AgentFileError> {
    let found = text(&limit.name, &limit.value)?;
    exact_nano(found).ok_or_else(|| {
        let reason =
            format!("`cost_usd` takes an amount from 0.000000001 to {USD_MAX}, not `{found}`");
        AgentFileError::new(limit.value.line, reason)
    })
}

/// Digit by digit: a float would not hold every amount.
fn exact_nano(text: &str) -> Option<NonZeroU64> {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let digits = |text: &str| text.chars().all(|c| c.is_ascii_digit());
    if !digits(whole) || !digits(part) || part.len() > NANO_DIGITS || whole.len() + part.len() == 0
    {
        return None;
    }
    let whole: u64 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let part: u64 = format!("{part:0<NANO_DIGITS$}").parse().ok()?;
    let nano = whole.checked_mul(10_u64.pow(9))?.checked_add(part)?;
    NonZeroU64::new(nano).filter(|nano| nano.get() <= USD_MAX * 10_u64.pow(9))
}
