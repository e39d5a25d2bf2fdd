//! Reads the arguments of `call_agent`: one target, or a list of targets, each in the form that the tool description asks for
//! (`agent` or `system_prompt`, and `prompt`) or as the contract writes it
//! (`agent: {type, …}` and `message`). What is wrong is refused with the name of the argument, the value, and
//! what is allowed.

use std::num::NonZeroU32;

use antiphon_core::{
    AgentRef, ContextScope, Executor, ExecutorHint, InputBlock, Invocation, Join, RawJson,
    RunnerConfig, Target, ToolPolicy, UserMessage, ValidInvocation,
};
use chrono::{DateTime, Utc};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::dispatch::refusal::DispatchRefusal;

/// The arguments of a call. Each is read by itself, so that what is wrong can be named.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    agent: Option<Value>,
    system_prompt: Option<String>,
    prompt: Option<String>,
    message: Option<Value>,
    output_schema: Option<Value>,
    timeout_s: Option<NonZeroU32>,
    executor: Option<Value>,
    tools: Option<Value>,
    targets: Option<Vec<Value>>,
    context: Option<Value>,
    join: Option<Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct TargetArguments {
    agent: Option<Value>,
    system_prompt: Option<String>,
    prompt: Option<String>,
    message: Option<Value>,
    output_schema: Option<Value>,
    timeout_s: Option<NonZeroU32>,
    executor: Option<Value>,
    tools: Option<Value>,
}

/// Reads the arguments of a call.
pub(crate) fn read(
    arguments: &RawJson,
    now: DateTime<Utc>,
) -> Result<ValidInvocation, DispatchRefusal> {
    let Arguments {
        agent,
        system_prompt,
        prompt,
        message,
        output_schema,
        timeout_s,
        executor,
        tools,
        targets,
        context,
        join,
    } = arguments.to().map_err(|error| refuse(error.to_string()))?;
    let context = context.map_or(Ok(ContextScope::default()), |json| value("context", json))?;
    let join: Option<Join> = join.map(|json| value("join", json)).transpose()?;
    let alone = agent.is_some() || system_prompt.is_some() || prompt.is_some() || message.is_some();
    let targets = match targets {
        Some(_) if alone => {
            return Err(refuse("give `agent` and `prompt`, or `targets`, not both"));
        }
        Some(targets) => {
            let read = |(index, json)| {
                let place = format!("targets[{index}]");
                let mut target: TargetArguments = value(&place, json)?;
                // Values beside the targets hold for each target that sets none.
                target.output_schema = target.output_schema.or_else(|| output_schema.clone());
                target.timeout_s = target.timeout_s.or(timeout_s);
                target.executor = target.executor.or_else(|| executor.clone());
                target.tools = target.tools.or_else(|| tools.clone());
                target.target(now).map_err(|refusal| at(&place, refusal))
            };
            targets.into_iter().enumerate().map(read).collect::<Result<Vec<_>, _>>()?
        }
        None => {
            let target = TargetArguments {
                agent,
                system_prompt,
                prompt,
                message,
                output_schema,
                timeout_s,
                executor,
                tools,
            };
            vec![target.target(now)?]
        }
    };
    let usual = if targets.len() == 1 { Join::Single } else { Join::All };
    let invocation = Invocation {
        targets,
        context,
        join: join.unwrap_or(usual),
        executor: ExecutorHint::Auto,
        tools: ToolPolicy::Inherit,
    };
    Ok(invocation.validate()?)
}

impl TargetArguments {
    fn target(self, now: DateTime<Utc>) -> Result<Target, DispatchRefusal> {
        let tools = self.tools.map(policy).transpose()?;
        let agent = match (self.agent, self.system_prompt) {
            (Some(_), Some(_)) => return Err(refuse("give `agent` or `system_prompt`, not both")),
            (Some(Value::String(agent_id)), None) => AgentRef::Named { agent_id },
            (Some(json @ Value::Object(_)), None) => value("agent", json)?,
            (Some(json), None) => {
                let forms = "a name, {\"type\":\"named\",\"agent_id\"} or \
                             {\"type\":\"ad_hoc\",\"system_prompt\",\"tools\"?}";
                return Err(refuse(format!("`agent` is {forms}, not {json}")));
            }
            // Its tools are those that the call names.
            (None, Some(system_prompt)) => {
                AgentRef::AdHoc { system_prompt, tools: tools.as_ref().and_then(own_tools) }
            }
            (None, None) => return Err(refuse("`agent` is missing: name the agent to call")),
        };
        let schema = |schema: Value| {
            RawJson::of(&schema)
                .map_err(|error| DispatchRefusal::BadSchema { reason: error.to_string() })
        };
        Ok(Target {
            agent,
            message: message(self.prompt, self.message, now)?,
            executor: self.executor.map(executor).transpose()?,
            output_schema: self.output_schema.map(schema).transpose()?,
            timeout_s: self.timeout_s,
            tools,
        })
    }
}

fn message(
    prompt: Option<String>,
    message: Option<Value>,
    now: DateTime<Utc>,
) -> Result<UserMessage, DispatchRefusal> {
    let field = if prompt.is_some() { "prompt" } else { "message" };
    let message = match (prompt, message) {
        (Some(_), Some(_)) => return Err(refuse("give `prompt` or `message`, not both")),
        (Some(prompt), None) => UserMessage::text(prompt, now),
        (None, Some(json)) => UserMessage::from_input(json, now)
            .map_err(|error| refuse(format!("`message`: {error}")))?,
        (None, None) => return Err(refuse("`prompt` is missing: say what to do")),
    };
    let is_blank = |block: &InputBlock| match block {
        InputBlock::Text(text) => text.text.trim().is_empty(),
        InputBlock::Image(_) => false,
    };
    if message.content.iter().all(is_blank) {
        return Err(refuse(format!("`{field}`: it is empty: say what to do")));
    }
    Ok(message)
}

/// The tools of an ad-hoc agent whose call says `tools`; its caller's when absent.
fn own_tools(policy: &ToolPolicy) -> Option<Vec<String>> {
    match policy {
        ToolPolicy::Inherit => None,
        ToolPolicy::Exact { tools } => Some(tools.clone()),
        ToolPolicy::None => Some(Vec::new()),
    }
}

fn policy(json: Value) -> Result<ToolPolicy, DispatchRefusal> {
    match json {
        Value::Object(_) => value("tools", json),
        Value::Array(_) => Ok(ToolPolicy::Exact { tools: value("tools", json)? }),
        Value::String(word) if word == "inherit" => Ok(ToolPolicy::Inherit),
        Value::String(word) if word == "none" => Ok(ToolPolicy::None),
        Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) => Err(refuse(format!(
            "`tools` is `inherit`, `none`, a list of names or \
             {{\"kind\":\"exact\",\"tools\":[…]}}, not {json}"
        ))),
    }
}

fn executor(json: Value) -> Result<ExecutorHint, DispatchRefusal> {
    match json {
        Value::Object(_) => value("executor", json),
        Value::String(word) if word == "auto" => Ok(ExecutorHint::Auto),
        Value::String(word) if word == "local" => Ok(ExecutorHint::Force(Executor::Local)),
        Value::String(kind) => {
            Ok(ExecutorHint::Force(Executor::Remote { runner: RunnerConfig::new(kind) }))
        }
        Value::Array(_) | Value::Null | Value::Bool(_) | Value::Number(_) => Err(refuse(format!(
            "`executor` is `auto`, `local`, the kind of a runner, or {{\"kind\":\"auto\"}} or \
             {{\"kind\":\"force\",\"type\":\"local\" or \"remote\"}}, not {json}"
        ))),
    }
}

fn value<T: DeserializeOwned>(place: &str, json: Value) -> Result<T, DispatchRefusal> {
    serde_json::from_value(json).map_err(|error| refuse(format!("`{place}`: {error}")))
}

fn refuse(reason: impl Into<String>) -> DispatchRefusal {
    DispatchRefusal::Arguments { reason: reason.into() }
}

/// A refusal of arguments, with the target that they belong to.
fn at(place: &str, refusal: DispatchRefusal) -> DispatchRefusal {
    let DispatchRefusal::Arguments { reason } = refusal else { return refusal };
    refuse(format!("{place}: {reason}"))
}
