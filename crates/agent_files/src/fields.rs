//! The fields of front matter.
//!
//! An unknown field, or a field without a value, is refused: otherwise a misspelled limit would silently not
//! apply.

use std::collections::BTreeMap;

use antiphon_core::{
    AgentDefinition, AgentName, CallableAgents, DESCRIPTION_BYTES_MAX, ModelRef, Profile, RawJson,
    RunnerConfig, Runtime, visible,
};

use crate::list::{Word, bounded, text, words};
use crate::parse::ReadReferenced;
use crate::problem::AgentFileError;
use crate::yaml::{Field, Node, Value};
use crate::{limits, schema};

/// Names of the fields.
pub const FIELDS: [&str; 13] = [
    "name",
    "description",
    "profile",
    "model",
    "fallbacks",
    "tools",
    "parallel_tools",
    "agents",
    "runtimes",
    "limits",
    "silent_intents",
    "intents",
    "output_schema",
];

/// The value of `agents` that allows every agent.
const ANY_AGENT: &str = "any";

/// Longest name of a tool or of a kind of runner, in bytes.
const PLAIN_NAME_BYTES_MAX: usize = 64;

/// Most intents with schemas.
pub const INTENTS_MAX: usize = 64;

/// Reads the fields of an agent, without its context.
pub(crate) fn read(
    name: AgentName,
    fields: &[Field],
    read_referenced: &mut ReadReferenced<'_>,
) -> Result<AgentDefinition, AgentFileError> {
    let mut agent = AgentDefinition::new(name, "");
    let mut fallbacks = Vec::new();
    for field in fields {
        if field.value.is_null() && FIELDS.contains(&field.name.as_str()) {
            let reason = format!("`{}` has no value: give one or omit the field", field.name);
            return Err(AgentFileError::new(field.line, reason));
        }
        match field.name.as_str() {
            "name" => check_name(&agent.name, field)?,
            "description" => agent.description = description(field)?,
            "profile" => agent.profile = profile(field)?,
            "model" => {
                let mut models = models(field)?.into_iter();
                let none =
                    || AgentFileError::new(field.line, "`model` is empty: name one or omit it");
                agent.model = Some(models.next().ok_or_else(none)?);
                agent.fallbacks = models.collect();
            }
            "fallbacks" => fallbacks = models(field)?,
            "tools" => agent.tools = Some(tools(field)?),
            "parallel_tools" => agent.parallel_tools = tools(field)?,
            "agents" => agent.agents = may_call(field)?,
            "runtimes" => agent.runtimes = runtimes(field)?,
            "limits" => agent.limits = limits::read(field)?,
            "silent_intents" => {
                agent.silent_intents = words(field)?.into_iter().map(|word| word.text).collect();
            }
            "intents" => agent.intents = intents(field, read_referenced)?,
            "output_schema" => agent.output_schema = Some(schema::read(field, read_referenced)?),
            other => {
                let known = FIELDS.join(", ");
                let reason = format!("there is no field `{other}`; there are {known}");
                return Err(AgentFileError::new(field.line, reason));
            }
        }
    }
    agent.fallbacks.extend(fallbacks);
    if agent.description.is_empty() {
        let reason = "`description` is missing: agents that may call it read it";
        return Err(AgentFileError::new(1, reason));
    }
    Ok(agent)
}

fn check_name(name: &AgentName, field: &Field) -> Result<(), AgentFileError> {
    let found = AgentName::parse(text(&field.name, &field.value)?);
    let found = found.map_err(|error| AgentFileError::new(field.line, error.to_string()))?;
    if found != *name {
        let reason =
            format!("`name` is `{found}`, but the file is `{name}.md`: make them the same");
        return Err(AgentFileError::new(field.line, reason));
    }
    Ok(())
}

fn description(field: &Field) -> Result<String, AgentFileError> {
    let found = visible(text(&field.name, &field.value)?);
    let found = found.trim();
    if found.is_empty() {
        return Err(AgentFileError::new(field.line, "`description` is blank"));
    }
    if found.len() > DESCRIPTION_BYTES_MAX {
        let reason = format!("`description` has more than {DESCRIPTION_BYTES_MAX} bytes");
        return Err(AgentFileError::new(field.line, reason));
    }
    Ok(found.to_owned())
}

fn profile(field: &Field) -> Result<Profile, AgentFileError> {
    match text(&field.name, &field.value)? {
        "native" => Ok(Profile::Native),
        other => Err(AgentFileError::new(
            field.line,
            format!("there is no profile `{other}`; there is `native`"),
        )),
    }
}

/// Schemas of request parameters by intent.
fn intents(
    field: &Field,
    read_referenced: &mut ReadReferenced<'_>,
) -> Result<BTreeMap<String, RawJson>, AgentFileError> {
    let Value::Map(fields) = &field.value.value else {
        let reason = "`intents` has an intent and its JSON Schema on each line";
        return Err(AgentFileError::new(field.line, reason));
    };
    if fields.len() > INTENTS_MAX {
        let reason = format!("`intents` has more than {INTENTS_MAX} entries");
        return Err(AgentFileError::new(field.line, reason));
    }
    let schema = |field: &Field| Ok((field.name.clone(), schema::read(field, read_referenced)?));
    fields.iter().map(schema).collect()
}

fn models(field: &Field) -> Result<Vec<ModelRef>, AgentFileError> {
    let model = |Word { line, text }| {
        ModelRef::parse(&text).map_err(|error| AgentFileError::new(line, error.to_string()))
    };
    words(field)?.into_iter().map(model).collect()
}

fn tools(field: &Field) -> Result<Vec<String>, AgentFileError> {
    let tool = |Word { line, text }| {
        if is_plain_name(&text) {
            return Ok(text);
        }
        let reason = format!("`{text}` is not a tool name: use letters, digits, `_` and `-`");
        Err(AgentFileError::new(line, reason))
    };
    words(field)?.into_iter().map(tool).collect()
}

fn may_call(field: &Field) -> Result<CallableAgents, AgentFileError> {
    if matches!(&field.value.value, Value::Text { text, .. } if text.trim() == ANY_AGENT) {
        return Ok(CallableAgents::Any);
    }
    let name = |Word { line, text }| {
        let name = AgentName::parse(&text).map(String::from);
        name.map_err(|error| AgentFileError::new(line, error.to_string()))
    };
    words(field)?.into_iter().map(name).collect::<Result<_, _>>().map(CallableAgents::Only)
}

fn runtimes(field: &Field) -> Result<Vec<Runtime>, AgentFileError> {
    let found: Vec<Runtime> = match &field.value.value {
        Value::List(items) => items.iter().map(runtime).collect::<Result<_, _>>()?,
        Value::Text { .. } => {
            let words = words(field)?.into_iter();
            words.map(|Word { line, text }| plain_runtime(line, &text)).collect::<Result<_, _>>()?
        }
        Value::Map(_) => return Err(AgentFileError::new(field.line, "`runtimes` takes a list")),
    };
    bounded(field, found.len())?;
    if found.is_empty() {
        return Err(AgentFileError::new(
            field.line,
            "`runtimes` is empty: the agent could run nowhere",
        ));
    }
    Ok(found)
}

fn runtime(item: &Node) -> Result<Runtime, AgentFileError> {
    let fields = match &item.value {
        Value::Map(fields) => fields,
        Value::Text { .. } => return plain_runtime(item.line, text("runtimes", item)?.trim()),
        Value::List(_) => {
            return Err(AgentFileError::new(item.line, "a runtime is `KIND` or `kind: KIND`"));
        }
    };
    let (mut kind, mut config) = (None, None);
    for field in fields {
        match field.name.as_str() {
            "kind" => kind = Some(plain_runtime(field.line, text("kind", &field.value)?.trim())?),
            "config" if matches!(field.value.value, Value::Map(_)) => {
                config = Some((field.line, field.value.to_json()?));
            }
            "config" => return Err(AgentFileError::new(field.line, "`config` takes fields")),
            other => {
                let reason = format!("a runtime has no field `{other}`; there are kind, config");
                return Err(AgentFileError::new(field.line, reason));
            }
        }
    }
    match (kind, config) {
        (None, _) => Err(AgentFileError::new(item.line, "the runtime has no `kind`")),
        (Some(kind), None) => Ok(kind),
        (Some(Runtime::Local), Some((line, _))) => {
            Err(AgentFileError::new(line, "`local` takes no `config`"))
        }
        (Some(Runtime::Runner(RunnerConfig { kind, .. })), Some((_, config))) => {
            Ok(Runtime::Runner(RunnerConfig::new(kind).with_config(config)))
        }
    }
}

fn plain_runtime(line: usize, kind: &str) -> Result<Runtime, AgentFileError> {
    match kind {
        "local" => Ok(Runtime::Local),
        kind if is_plain_name(kind) => Ok(Runtime::Runner(RunnerConfig::new(kind))),
        kind => {
            let reason = format!("`{kind}` is not a runtime: use `local` or the kind of a runner");
            Err(AgentFileError::new(line, reason))
        }
    }
}

/// Whether a text is a valid name of a tool or runner.
fn is_plain_name(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-".contains(c);
    !name.is_empty() && name.len() <= PLAIN_NAME_BYTES_MAX && name.chars().all(plain)
}
