//! The `call_agent` tool: its definition. `arguments` reads its calls.

mod arguments;

use std::collections::{BTreeSet, VecDeque};
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, PoisonError};

use antiphon_core::port::{AgentList, Agents};
use antiphon_core::{AgentDefinition, CallableAgents, RawJson, Tool};
use serde_json::{Value, json};

pub(crate) use arguments::read;

use crate::inbox::peer_tools::PEERS;

/// Name of the tool that calls agents.
pub(crate) const CALL_AGENT: &str = "call_agent";

/// Maximum number of agents that the tool describes. A model finds further ones with the tool `peers`.
pub(crate) const DESCRIBED_MAX: usize = 64;

/// Most definitions in memory. Tasks of one agent share one.
const CACHED_MAX: usize = 64;

/// Definitions of the tool, each built once: it describes the agents that a task may call.
#[derive(Default)]
pub(crate) struct CallAgentTools(Mutex<VecDeque<CachedTool>>);

/// The definition for callers of these agents, as they are defined now.
struct CachedTool {
    callable: AgentList,
    ad_hoc: bool,
    tool: Arc<Tool>,
}

impl CachedTool {
    fn is_for(&self, callable: &AgentList, ad_hoc: bool) -> bool {
        let same = || {
            let mut pairs = self.callable.iter().zip(callable.iter());
            self.callable.len() == callable.len()
                && pairs.all(|(one, other)| Arc::ptr_eq(one, other))
        };
        self.ad_hoc == ad_hoc && (Arc::ptr_eq(&self.callable, callable) || same())
    }
}

impl CallAgentTools {
    /// The tool, for a caller that may call these agents.
    pub(crate) fn tool(&self, agents: &dyn Agents, allowed: &CallableAgents) -> Option<Arc<Tool>> {
        let ad_hoc = allowed.allows(None);
        let callable = callable(agents, allowed);
        let mut cached = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = cached.iter().find(|known| known.is_for(&callable, ad_hoc)) {
            return Some(Arc::clone(&known.tool));
        }
        let tool = Arc::new(definition(&callable, ad_hoc)?);
        cached.truncate(CACHED_MAX - 1);
        cached.push_front(CachedTool { callable, ad_hoc, tool: Arc::clone(&tool) });
        Some(tool)
    }
}

/// The agents that a caller may call, ordered by name.
pub(crate) fn callable(agents: &dyn Agents, allowed: &CallableAgents) -> AgentList {
    match allowed {
        CallableAgents::Any => agents.list(),
        CallableAgents::Only(names) => {
            let names: BTreeSet<&String> = names.iter().collect();
            names.into_iter().filter_map(|name| agents.find(name)).collect()
        }
    }
}

fn definition(callable: &[Arc<AgentDefinition>], ad_hoc: bool) -> Option<Tool> {
    let mut description = "Has other agents work for you, side by side if there are several `targets`. An agent knows \
        only its `prompt`, unless `context` is `inherited`. Example: {\"targets\": [{\"agent\": \"NAME\", \"prompt\": \
        \"Review src/lib.rs for off-by-one errors. List them with line numbers.\"}]}"
        .to_owned();
    if ad_hoc {
        description
            .push_str(" With `system_prompt` in place of `agent` you make an agent for this call.");
    }
    let described = &callable[..callable.len().min(DESCRIBED_MAX)];
    for (index, agent) in described.iter().enumerate() {
        let about = agent.description.as_str();
        let lead = if index == 0 { "\n\nAgents:\n" } else { "\n" };
        // Writing to a String cannot fail.
        let _ = write!(description, "{lead}- {}: {about}", agent.name);
    }
    let more = callable.len() - described.len();
    if more > 0 {
        let _ = write!(
            description,
            "\n\nThere are {more} more: find them with `{PEERS}` and a `filter`, then name one as `agent`."
        );
    }
    let names: Vec<&str> = described.iter().map(|agent| agent.name.as_str()).collect();
    let agent = match (names.is_empty(), more) {
        (true, _) => None,
        (false, 0) => Some(json!({ "type": "string", "enum": names })),
        (false, _) => Some(json!({ "type": "string", "description": "The agent's name." })),
    };
    let parameters = RawJson::of(&parameters(agent, ad_hoc)).ok()?;
    Some(Tool { name: CALL_AGENT.to_owned(), description, parameters })
}

fn parameters(agent: Option<Value>, ad_hoc: bool) -> Value {
    let text = |about: &str| json!({ "type": "string", "description": about });
    let mut target = serde_json::Map::new();
    target.extend(agent.map(|agent| ("agent".to_owned(), agent)));
    if ad_hoc {
        let about = "Who a new agent is and how it works.";
        target.insert("system_prompt".to_owned(), text(about));
    }
    let fields = [
        ("prompt", text("The work, with everything the agent has to know.")),
        ("output_schema", json!({ "type": "object", "description": "JSON Schema of its result." })),
        ("timeout_s", json!({ "type": "integer", "minimum": 1 })),
        ("executor", text("`auto`, `local`, or a runner such as `sandbox`.")),
        ("tools", tools_parameter(ad_hoc)),
    ];
    target.extend(fields.map(|(name, schema)| (name.to_owned(), schema)));
    let scopes = ["independent", "inherited", "shared"];
    let about = "What they know: their prompt; your history too; or (`shared`) one agent takes over \
                 from you for good.";
    let join = json!({
        "anyOf": [
            { "enum": ["single", "all", "any", "detached"] },
            { "type": "object", "properties": { "quorum": { "type": "object", "properties":
                { "n": { "type": "integer", "minimum": 1 } }, "required": ["n"] } },
              "required": ["quorum"] },
        ],
        "description": "What you wait for: `single` or `all` results (default), `any` success, `quorum` successes; \
                        `detached` returns task ids, and the results reach you later.",
    });
    json!({
        "type": "object",
        "properties": {
            "targets": { "type": "array", "minItems": 1, "items":
                { "type": "object", "properties": target, "required": ["prompt"] } },
            "context": { "enum": scopes, "description": about },
            "join": join,
        },
        "required": ["targets"],
        "additionalProperties": false,
    })
}

fn tools_parameter(ad_hoc: bool) -> Value {
    let mut about =
        "Tools of your client to lend it: `inherit` (all), `none`, or names.".to_owned();
    if ad_hoc {
        about.push_str(" With `system_prompt`: all tools it has, at most yours.");
    }
    let list = json!({ "type": "array", "items": { "type": "string" } });
    json!({ "anyOf": [{ "enum": ["inherit", "none"] }, list], "description": about })
}

#[cfg(test)]
mod tests {
    use antiphon_core::AgentName;
    use antiphon_core::port::PromptSource;

    use super::*;

    struct Defined(AgentList);

    impl Agents for Defined {
        fn find(&self, name: &str) -> Option<Arc<AgentDefinition>> {
            self.0.iter().find(|agent| agent.name.as_str() == name).cloned()
        }

        fn list(&self) -> AgentList {
            Arc::clone(&self.0)
        }

        fn system_prompt(&self, _: PromptSource<'_>) -> String {
            String::new()
        }
    }

    fn defined(count: usize) -> Defined {
        let agent = |number| {
            let name = AgentName::parse(&format!("agent-{number:05}")).unwrap();
            let description = format!("Does {number}.");
            Arc::new(AgentDefinition { description, ..AgentDefinition::new(name, String::new()) })
        };
        Defined((0..count).map(agent).collect())
    }

    fn bytes(tool: &Tool) -> usize {
        tool.description.len() + tool.parameters.as_str().len()
    }

    #[test]
    fn a_request_does_not_grow_with_the_number_of_agents() {
        let tools = CallAgentTools::default();
        let (few, many) = (defined(DESCRIBED_MAX), defined(10_000));
        let few = tools.tool(&few, &CallableAgents::Any).unwrap();
        let tool = tools.tool(&many, &CallableAgents::Any).unwrap();
        assert!(bytes(&tool) <= bytes(&few), "{} {}", bytes(&few), bytes(&tool));
        assert!(tool.description.contains("There are 9936 more"), "{}", tool.description);
        assert!(
            few.parameters.as_str().contains("enum") && few.description.contains("agent-00063")
        );
        assert!(!tool.parameters.as_str().contains("agent-00000"), "any name can be given");
        let again = tools.tool(&many, &CallableAgents::Any).unwrap();
        assert!(Arc::ptr_eq(&tool, &again), "it is built once");
    }

    #[test]
    fn a_caller_of_some_agents_reads_of_them_alone() {
        let (tools, agents) = (CallAgentTools::default(), defined(200));
        let only = ["agent-00150", "gone", "agent-00003"].map(str::to_owned).to_vec();
        let tool = tools.tool(&agents, &CallableAgents::Only(only)).unwrap();
        let names = r#""enum":["agent-00003","agent-00150"]"#;
        assert!(tool.parameters.as_str().contains(names), "{}", tool.parameters.as_str());
    }
}
