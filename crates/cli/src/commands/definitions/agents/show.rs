//! `antiphon agents show`: the definition of one agent.

use antiphon_api::AgentDetail;
use antiphon_core::{
    CallableAgents, Cost, ModelRef, Profile, RawJson, RunnerConfig, Runtime, SilentIntents,
    TaskLimits,
};
use serde::Serialize;
use serde_json::{Value, json};

use super::{Row, joined, origin, row};
use crate::failure::Failure;
use crate::terminal;

/// The definition of an agent in JSON.
#[derive(Serialize)]
struct Detail<'a> {
    #[serde(flatten)]
    row: Row<'a>,
    profile: Profile,
    tools: Tools,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    parallel_tools: &'a [String],
    agents: &'a CallableAgents,
    runtimes: Vec<Value>,
    limits: &'a TaskLimits,
    silent_intents: &'a SilentIntents,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_schema: Option<&'a RawJson>,
    context: &'a str,
}

/// The tools an agent names, and which of them are available.
#[derive(Serialize)]
struct Tools {
    /// Absent when the agent has every tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    wanted: Option<Vec<String>>,
    /// Tools it gets from a caller that has every tool.
    here: Vec<String>,
    /// Tools it names that are not available here.
    missing: Vec<String>,
}

impl Tools {
    fn of(wanted: Option<&[String]>, here: Vec<String>) -> Self {
        let Some(wanted) = wanted else { return Self { wanted: None, here, missing: Vec::new() } };
        let (here, missing) = wanted.iter().cloned().partition(|name| here.contains(name));
        Self { wanted: Some(wanted.to_vec()), here, missing }
    }

    fn line(&self) -> String {
        let here = joined(&self.here, "none");
        let all = if self.wanted.is_none() { "every tool, here " } else { "" };
        let missing = match self.missing.as_slice() {
            [] => String::new(),
            missing => format!("; not available: {}", missing.join(", ")),
        };
        format!("{all}{here}{missing}")
    }
}

/// Prints one agent.
pub(super) fn show(agent: &AgentDetail, json: bool) -> Result<(), Failure> {
    let here = agent.available_tools.clone().unwrap_or_default();
    let tools = Tools::of(agent.tools.as_deref(), here);
    if json {
        let detail = Detail {
            row: row(agent),
            profile: agent.profile,
            tools,
            parallel_tools: &agent.parallel_tools,
            agents: &agent.agents,
            runtimes: agent.runtimes.iter().map(runtime_json).collect(),
            limits: &agent.limits,
            silent_intents: &agent.silent_intents,
            output_schema: agent.output_schema.as_ref(),
            context: agent.context.as_deref().unwrap_or_default(),
        };
        terminal::print(&terminal::json(&detail)?);
        return Ok(());
    }
    terminal::print(&described(agent, &tools));
    Ok(())
}

fn described(agent: &AgentDetail, tools: &Tools) -> String {
    let models: Vec<String> =
        agent.model.iter().chain(&agent.fallbacks).map(ModelRef::to_string).collect();
    let runtimes: Vec<String> = agent.runtimes.iter().map(runtime_text).collect();
    let may_call = match &agent.agents {
        CallableAgents::Any => "any agent".to_owned(),
        CallableAgents::Only(names) => joined(names, "none"),
    };
    let profile = match agent.profile {
        Profile::Native => "native",
    };
    let mut rows = vec![
        ("file", format!("{} ({})", agent.path, origin(agent))),
        ("profile", profile.to_owned()),
        ("model", joined(&models, "the caller's")),
        ("tools", tools.line()),
        ("may call", may_call),
        ("runs", joined(&runtimes, "local")),
        ("limits", limits(&agent.limits)),
    ];
    let parallel = &agent.parallel_tools;
    rows.extend((!parallel.is_empty()).then(|| ("side by side", parallel.join(", "))));
    rows.extend(agent.shadows.iter().map(|path| ("shadows", path.clone())));
    let dropped = agent.imported.iter().flat_map(|imported| &imported.dropped);
    rows.extend(dropped.map(|line| ("not used", line.clone())));
    let silent = words(&agent.silent_intents);
    rows.extend((!silent.is_empty()).then(|| ("silent", silent.join(", "))));
    rows.extend(agent.output_schema.iter().map(|schema| ("result", schema.to_string())));
    let rows: Vec<[String; 2]> =
        rows.into_iter().map(|(name, value)| [name.to_owned(), value]).collect();
    let context = agent.context.as_deref().unwrap_or_default();
    format!("{}\n\n{}\n{context}\n", agent.description, terminal::table(&rows))
}

/// The runtime of this process has no configuration.
fn is_local(runtime: &RunnerConfig) -> bool {
    runtime.kind == Runtime::Local.kind()
}

fn runtime_json(runtime: &RunnerConfig) -> Value {
    if is_local(runtime) {
        return json!({ "kind": runtime.kind });
    }
    json!({ "kind": runtime.kind, "config": runtime.config })
}

fn runtime_text(runtime: &RunnerConfig) -> String {
    let is_configured = runtime.config.as_object().is_some_and(|map| !map.is_empty());
    if is_configured && !is_local(runtime) {
        return format!("{} {}", runtime.kind, runtime.config);
    }
    runtime.kind.clone()
}

fn limits(limits: &TaskLimits) -> String {
    let cost = limits.cost_nano_usd_max.map(|nano| Cost { nano_usd: nano.get() }.to_string());
    let number = |number: Option<std::num::NonZeroU32>| number.map(|number| number.to_string());
    let known = [
        ("turns", number(limits.turns_max)),
        ("tokens of an answer", number(limits.answer_tokens_max)),
        ("calls of tools", number(limits.tool_calls_max)),
        ("tokens", limits.tokens_max.map(|tokens| tokens.to_string())),
        ("in total", cost),
        ("seconds", number(limits.wall_clock_s_max)),
        ("levels of tasks", number(limits.depth_max)),
        ("tasks at a time", number(limits.fan_out_max)),
        ("tasks", number(limits.tasks_max)),
    ];
    let set = known.into_iter().filter_map(|(of, limit)| Some(format!("{} {of}", limit?)));
    joined(&set.collect::<Vec<_>>(), "none")
}

/// The intents of a set. Only its JSON form lists them.
fn words(intents: &SilentIntents) -> Vec<String> {
    let words = serde_json::to_value(intents).and_then(serde_json::from_value);
    words.unwrap_or_default()
}
