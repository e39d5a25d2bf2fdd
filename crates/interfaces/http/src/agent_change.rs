//! What is to be said of an agent, in the words of its file (docs/agents.md).

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// What is to be said of an agent. What is absent stays as it is; `null` is taken away.
#[derive(Debug, Clone, PartialEq, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AgentChange {
    /// What it is told before anything else.
    #[serde(default)]
    pub context: Option<String>,
    /// What it is good for.
    #[serde(default)]
    pub description: Option<String>,
    /// Who answers, as `PROVIDER/MODEL`.
    #[serde(default, deserialize_with = "said")]
    pub model: Option<Value>,
    /// Who answers when that one cannot, in order.
    #[serde(default, deserialize_with = "said")]
    pub fallbacks: Option<Value>,
    /// The tools it gets, of those its caller has.
    #[serde(default, deserialize_with = "said")]
    pub tools: Option<Value>,
    /// The agents it may call: a list, or `any`.
    #[serde(default, deserialize_with = "said")]
    pub agents: Option<Value>,
    /// Where it may run, the best first.
    #[serde(default, deserialize_with = "said")]
    pub runtimes: Option<Value>,
    /// How far it may go: `turns`, `cost_usd`, …
    #[serde(default, deserialize_with = "said")]
    pub limits: Option<Value>,
    /// Requests that never wake it.
    #[serde(default, deserialize_with = "said")]
    pub silent_intents: Option<Value>,
    /// JSON Schemas of what comes with requests, by their intents.
    #[serde(default, deserialize_with = "said")]
    pub intents: Option<Value>,
    /// JSON Schema of its result.
    #[serde(default, deserialize_with = "said")]
    pub output_schema: Option<Value>,
}

impl AgentChange {
    /// The fields of the file that are said, in its order.
    pub fn fields(&self) -> Vec<(&'static str, Value)> {
        let description = self.description.as_deref().map(Value::from);
        [
            ("description", &description),
            ("model", &self.model),
            ("fallbacks", &self.fallbacks),
            ("tools", &self.tools),
            ("agents", &self.agents),
            ("runtimes", &self.runtimes),
            ("limits", &self.limits),
            ("silent_intents", &self.silent_intents),
            ("intents", &self.intents),
            ("output_schema", &self.output_schema),
        ]
        .into_iter()
        .filter_map(|(field, value)| value.clone().map(|value| (field, value)))
        .collect()
    }
}

/// `null` is something that was said.
fn said<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}
