//! The `call_agent` tool: its definition, and reading its arguments.

use std::fmt::Write as _;
use std::num::NonZeroU32;

use antiphon_core::{
    AgentRef, ContextScope, Executor, ExecutorHint, Invocation, Join, RawJson, RunnerConfig,
    Target, Tool, ToolPolicy, UserMessage, ValidInvocation,
};
use chrono::{DateTime, Utc};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::dispatch::refusal::Refusal;

/// Name of the tool that calls agents.
pub(crate) const CALL_AGENT: &str = "call_agent";

/// Maximum number of agents that the tool describes; further ones are only named.
const DESCRIBED_MAX: usize = 64;

/// An agent that may be called: name and description.
pub(crate) type Callable = (String, String);

/// The tool, for a caller of these agents.
pub(crate) fn tool(callable: &[Callable], ad_hoc: bool) -> Option<Tool> {
    let mut description =
        "Has other agents do something for you. Give one `agent` and a `prompt`, \
        or several `targets` that work side by side. They know nothing but what you tell them, \
        unless `context` is `inherited`. With join `detached` you get task ids at once and hear of \
        the results later; with context `shared` the other takes over from you for good."
            .to_owned();
    if ad_hoc {
        description.push_str(
            " In place of `agent` you may write a `system_prompt` for an agent made on the spot.",
        );
    }
    for (index, (name, about)) in callable.iter().enumerate() {
        let about = if index < DESCRIBED_MAX { about.as_str() } else { "" };
        let lead = if index == 0 { "\n\nAgents:\n" } else { "\n" };
        // Writing to a String cannot fail.
        let _ = write!(description, "{lead}- {name}: {about}");
    }
    let names: Vec<&str> = callable.iter().map(|(name, _)| name.as_str()).collect();
    let parameters = RawJson::of(&parameters(&names, ad_hoc)).ok()?;
    Some(Tool { name: CALL_AGENT.to_owned(), description, parameters })
}

fn parameters(names: &[&str], ad_hoc: bool) -> Value {
    let mut target = serde_json::Map::new();
    target.insert("agent".to_owned(), json!({ "type": "string", "enum": names }));
    if names.is_empty() {
        target.clear();
    }
    if ad_hoc {
        let about = "In place of `agent`: who it is and how it works.";
        target
            .insert("system_prompt".to_owned(), json!({ "type": "string", "description": about }));
    }
    let about = "What it is to do, with everything it has to know.";
    target.insert("prompt".to_owned(), json!({ "type": "string", "description": about }));
    let about = "JSON Schema of its result.";
    target.insert("output_schema".to_owned(), json!({ "type": "object", "description": about }));
    let about = "It is given up after so many seconds.";
    target.insert(
        "timeout_s".to_owned(),
        json!({ "type": "integer", "minimum": 1, "description": about }),
    );
    let executor = json!({
        "type": "string",
        "description": "Where it runs: `auto`, `local`, or a runner such as `sandbox`.",
    });
    target.insert("executor".to_owned(), executor);
    let targets = json!({
        "type": "array",
        "items": { "type": "object", "properties": target, "required": ["prompt"] },
        "description": "In place of `agent` and `prompt`: several at once.",
    });
    let mut properties = target;
    properties.insert("targets".to_owned(), targets);
    let about = "What they see first: your prompt, your history too, or (`shared`) the other \
                 takes your place.";
    let scopes = ["independent", "inherited", "shared"];
    properties.insert("context".to_owned(), json!({ "enum": scopes, "description": about }));
    let about = "`single`: one result; `all`: every result, in order; `any`: the first success; \
                 `quorum`: so many successes; `detached`: go on and hear later. The default fits \
                 the number of targets.";
    properties.insert(
        "join".to_owned(),
        json!({
            "anyOf": [
                { "enum": ["single", "all", "any", "detached"] },
                { "type": "object", "properties": { "quorum": { "type": "object", "properties":
                    { "n": { "type": "integer", "minimum": 1 } }, "required": ["n"] } },
                  "required": ["quorum"] },
            ],
            "description": about,
        }),
    );
    let about = "The tools they may use: `inherit` (yours), `none`, or a list of names.";
    let list = json!({ "type": "array", "items": { "type": "string" } });
    let tools = json!({ "anyOf": [{ "enum": ["inherit", "none"] }, list], "description": about });
    properties.insert("tools".to_owned(), tools);
    json!({ "type": "object", "properties": properties, "additionalProperties": false })
}

/// The arguments as the model writes them: one target, or a list of targets.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    agent: Option<String>,
    system_prompt: Option<String>,
    prompt: Option<String>,
    output_schema: Option<Value>,
    timeout_s: Option<NonZeroU32>,
    executor: Option<ExecutorArgument>,
    targets: Option<Vec<TargetArguments>>,
    #[serde(default)]
    context: ContextScope,
    join: Option<Join>,
    tools: Option<ToolsArgument>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct TargetArguments {
    agent: Option<String>,
    system_prompt: Option<String>,
    prompt: Option<String>,
    output_schema: Option<Value>,
    timeout_s: Option<NonZeroU32>,
    executor: Option<ExecutorArgument>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum ToolsArgument {
    Word(String),
    Names(Vec<String>),
    Policy(ToolPolicy),
}

#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
enum ExecutorArgument {
    Word(String),
    Hint(ExecutorHint),
}

/// Reads the arguments of a call.
pub(crate) fn read(arguments: &RawJson, now: DateTime<Utc>) -> Result<ValidInvocation, Refusal> {
    let refuse = |reason: String| Refusal::Arguments { reason };
    let arguments: Arguments = arguments.to().map_err(|error| refuse(error.to_string()))?;
    let Arguments { agent, system_prompt, prompt, output_schema, timeout_s, executor, .. } =
        arguments;
    let Arguments { targets, context, join, tools, .. } = arguments;
    let alone = agent.is_some() || system_prompt.is_some() || prompt.is_some();
    let targets = match targets {
        Some(_) if alone => {
            return Err(refuse("give `agent` and `prompt`, or `targets`, not both".to_owned()));
        }
        Some(mut targets) => {
            // Values beside the targets hold for each target that sets none.
            for target in &mut targets {
                target.output_schema = target.output_schema.take().or(output_schema.clone());
                target.timeout_s = target.timeout_s.or(timeout_s);
                target.executor = target.executor.take().or(executor.clone());
            }
            targets
        }
        None => vec![TargetArguments {
            agent,
            system_prompt,
            prompt,
            output_schema,
            timeout_s,
            executor,
        }],
    };
    let usual = if targets.len() == 1 { Join::Single } else { Join::All };
    let targets = targets.into_iter().map(|target| target.target(now));
    let invocation = Invocation {
        targets: targets.collect::<Result<_, _>>()?,
        context,
        join: join.unwrap_or(usual),
        executor: ExecutorHint::Auto,
        tools: tools.map_or(Ok(ToolPolicy::Inherit), ToolsArgument::policy)?,
    };
    Ok(invocation.validate()?)
}

impl TargetArguments {
    fn target(self, now: DateTime<Utc>) -> Result<Target, Refusal> {
        let refuse = |reason: &str| Refusal::Arguments { reason: reason.to_owned() };
        let agent = match (self.agent, self.system_prompt) {
            (Some(_), Some(_)) => {
                return Err(refuse("give `agent` or `system_prompt`, not both"));
            }
            (Some(agent_id), None) => AgentRef::Named { agent_id },
            (None, Some(system_prompt)) => AgentRef::AdHoc { system_prompt, tools: None },
            (None, None) => return Err(refuse("`agent` is missing: say who shall do it")),
        };
        let prompt = self.prompt.filter(|prompt| !prompt.trim().is_empty());
        let prompt = prompt.ok_or_else(|| refuse("`prompt` is missing: say what to do"))?;
        let schema = |schema: Value| {
            RawJson::of(&schema).map_err(|error| Refusal::BadSchema { reason: error.to_string() })
        };
        Ok(Target {
            agent,
            message: UserMessage::text(prompt, now),
            executor: self.executor.map(ExecutorArgument::hint),
            output_schema: self.output_schema.map(schema).transpose()?,
            timeout_s: self.timeout_s,
        })
    }
}

impl ToolsArgument {
    fn policy(self) -> Result<ToolPolicy, Refusal> {
        match self {
            Self::Policy(policy) => Ok(policy),
            Self::Names(tools) => Ok(ToolPolicy::Exact { tools }),
            Self::Word(word) if word == "inherit" => Ok(ToolPolicy::Inherit),
            Self::Word(word) if word == "none" => Ok(ToolPolicy::None),
            Self::Word(word) => Err(Refusal::Arguments {
                reason: format!("`tools` is `inherit`, `none` or a list of names, not `{word}`"),
            }),
        }
    }
}

impl ExecutorArgument {
    fn hint(self) -> ExecutorHint {
        match self {
            Self::Hint(hint) => hint,
            Self::Word(word) if word == "auto" => ExecutorHint::Auto,
            Self::Word(word) if word == "local" => ExecutorHint::Force(Executor::Local),
            Self::Word(kind) => {
                ExecutorHint::Force(Executor::Remote { runner: RunnerConfig::new(kind) })
            }
        }
    }
}
