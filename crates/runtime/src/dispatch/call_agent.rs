//! The `call_agent` tool: its definition. `arguments` reads its calls.

mod arguments;

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, PoisonError};

use antiphon_core::{AgentDefinition, RawJson, Tool};
use serde_json::{Value, json};

pub(crate) use arguments::read;

/// Name of the tool that calls agents.
pub(crate) const CALL_AGENT: &str = "call_agent";

/// Maximum number of agents that the tool describes; further ones are only named.
const DESCRIBED_MAX: usize = 64;

/// Most definitions in memory. Tasks of one agent share one.
const CACHED_MAX: usize = 64;

/// Definitions of the tool, each built once: it describes the agents that a task may call.
#[derive(Default)]
pub(crate) struct CallAgentTools(Mutex<VecDeque<CachedTool>>);

/// The definition for callers of these agents, as they are defined now.
struct CachedTool {
    callable: Vec<Arc<AgentDefinition>>,
    ad_hoc: bool,
    tool: Arc<Tool>,
}

impl CallAgentTools {
    /// The tool, for a caller of these agents and, if `ad_hoc`, of agents made on the spot.
    pub(crate) fn tool(
        &self,
        callable: Vec<Arc<AgentDefinition>>,
        ad_hoc: bool,
    ) -> Option<Arc<Tool>> {
        let mut cached = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = cached.iter().find(|known| {
            let mut pairs = known.callable.iter().zip(&callable);
            known.ad_hoc == ad_hoc
                && known.callable.len() == callable.len()
                && pairs.all(|(one, other)| Arc::ptr_eq(one, other))
        });
        if let Some(known) = known {
            return Some(Arc::clone(&known.tool));
        }
        let tool = Arc::new(definition(&callable, ad_hoc)?);
        cached.truncate(CACHED_MAX - 1);
        cached.push_front(CachedTool { callable, ad_hoc, tool: Arc::clone(&tool) });
        Some(tool)
    }
}

fn definition(callable: &[Arc<AgentDefinition>], ad_hoc: bool) -> Option<Tool> {
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
    for (index, agent) in callable.iter().enumerate() {
        let about = if index < DESCRIBED_MAX { agent.description.as_str() } else { "" };
        let lead = if index == 0 { "\n\nAgents:\n" } else { "\n" };
        // Writing to a String cannot fail.
        let _ = write!(description, "{lead}- {}: {about}", agent.name);
    }
    let names: Vec<&str> = callable.iter().map(|agent| agent.name.as_str()).collect();
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
    target.insert("tools".to_owned(), tools_parameter());
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
    json!({ "type": "object", "properties": properties, "additionalProperties": false })
}

fn tools_parameter() -> Value {
    let about = "Tools of your client that it may use beside its own: `inherit` (all), `none`, or a \
                 list of names. With `system_prompt`: all the tools it has, at most yours.";
    let list = json!({ "type": "array", "items": { "type": "string" } });
    json!({ "anyOf": [{ "enum": ["inherit", "none"] }, list], "description": about })
}
