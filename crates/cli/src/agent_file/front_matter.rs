//! One field of front matter in place of another. What is made is read again by the caller, who refuses
//! whatever is not what was meant: a file can be written in more ways than are known here.

use antiphon_core::AgentDefinition;
use serde_json::Value;

use super::FENCE;

/// Front matter, fences included, with `line` in place of what it says of `field`.
pub(super) fn with(front: &str, field: &str, line: &str) -> String {
    let lines: Vec<&str> = front.split_inclusive('\n').collect();
    // The last is the fence.
    let (fence, lines) = lines.split_last().unwrap_or((&FENCE, &[]));
    let begins = |text: &&str| {
        text.strip_prefix(field).is_some_and(|rest| rest.trim_start().starts_with(':'))
    };
    let Some(start) = lines.iter().position(begins) else {
        return format!("{}{line}{fence}", lines.concat());
    };
    let goes_on = |text: &&str| {
        text.trim().is_empty() || text.starts_with([' ', '\t']) || text.starts_with('-')
    };
    let mut end = start + 1 + lines[start + 1..].iter().take_while(|text| goes_on(text)).count();
    while end > start + 1 && lines[end - 1].trim().is_empty() {
        end -= 1;
    }
    format!("{}{line}{}{fence}", lines[..start].concat(), lines[end..].concat())
}

/// An agent as it was, but for what was said otherwise.
pub(super) fn merged(
    old: &AgentDefinition,
    new: &AgentDefinition,
    fields: &[(&'static str, Value)],
    context: Option<&str>,
) -> AgentDefinition {
    let (mut merged, new) = (old.clone(), new.clone());
    if context.is_some() {
        merged.context = new.context;
    }
    let is_said = |field: &str| fields.iter().any(|(said, _)| *said == field);
    if is_said("description") {
        merged.description = new.description;
    }
    // A list of models names the fallbacks, too.
    if is_said("model") || is_said("fallbacks") {
        (merged.model, merged.fallbacks) = (new.model, new.fallbacks);
    }
    if is_said("tools") {
        merged.tools = new.tools;
    }
    if is_said("agents") {
        merged.agents = new.agents;
    }
    if is_said("runtimes") {
        merged.runtimes = new.runtimes;
    }
    if is_said("limits") {
        merged.limits = new.limits;
    }
    if is_said("silent_intents") {
        merged.silent_intents = new.silent_intents;
    }
    if is_said("intents") {
        merged.intents = new.intents;
    }
    if is_said("output_schema") {
        merged.output_schema = new.output_schema;
    }
    merged
}
