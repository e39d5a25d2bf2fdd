//! Replaces one field of front matter. The caller parses the result and refuses it when anything else
//! changed, because YAML has more forms than this code knows.

use antiphon_core::AgentDefinition;
use serde_json::Value;

use super::edit::FENCE;

/// Front matter, fences included, with `line` in place of `field`.
pub(super) fn replace_field(front: &str, field: &str, line: &str) -> String {
    let lines: Vec<&str> = front.split_inclusive('\n').collect();
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

/// The old definition with only these fields, and the context if given, taken from the new one.
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
    let is_changed = |field: &str| fields.iter().any(|(changed, _)| *changed == field);
    if is_changed("description") {
        merged.description = new.description;
    }
    // `model` may be a list that names the fallbacks too.
    if is_changed("model") || is_changed("fallbacks") {
        (merged.model, merged.fallbacks) = (new.model, new.fallbacks);
    }
    if is_changed("tools") {
        merged.tools = new.tools;
    }
    if is_changed("parallel_tools") {
        merged.parallel_tools = new.parallel_tools;
    }
    if is_changed("agents") {
        merged.agents = new.agents;
    }
    if is_changed("runtimes") {
        merged.runtimes = new.runtimes;
    }
    if is_changed("limits") {
        merged.limits = new.limits;
    }
    if is_changed("silent_intents") {
        merged.silent_intents = new.silent_intents;
    }
    if is_changed("intents") {
        merged.intents = new.intents;
    }
    if is_changed("output_schema") {
        merged.output_schema = new.output_schema;
    }
    merged
}
