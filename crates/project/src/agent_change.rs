//! A change of an agent definition, with the fields of its file (docs/agents.md).

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// Fields of an agent definition (docs/agents.md). An absent field stays as it is; `null` removes the field.
#[derive(Debug, Clone, PartialEq, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AgentChange {
    /// Body of the definition: the instructions of the agent.
    #[serde(default)]
    pub context: Option<String>,
    /// What the agent is for; other agents read it when they choose one.
    #[serde(default)]
    pub description: Option<String>,
    /// The model, as `PROVIDER/MODEL`; the caller's model when unset.
    #[serde(default, deserialize_with = "present")]
    pub model: Option<Value>,
    /// List of models, as `PROVIDER/MODEL`, that are tried in order when the model fails.
    #[serde(default, deserialize_with = "present")]
    pub fallbacks: Option<Value>,
    /// List of tool names, of those that its caller has; all of the caller's when unset.
    #[serde(default, deserialize_with = "present")]
    pub tools: Option<Value>,
    /// Agents that it may call: a list of names, or `any`.
    #[serde(default, deserialize_with = "present")]
    pub agents: Option<Value>,
    /// List of runtimes, the preferred one first; local when unset.
    #[serde(default, deserialize_with = "present")]
    pub runtimes: Option<Value>,
    /// Limits of its tasks: `turns`, `cost_usd`, …
    #[serde(default, deserialize_with = "present")]
    pub limits: Option<Value>,
    /// List of intents whose requests do not wake the agent.
    #[serde(default, deserialize_with = "present")]
    pub silent_intents: Option<Value>,
    /// JSON Schemas of the parameters of requests, by intent.
    #[serde(default, deserialize_with = "present")]
    pub intents: Option<Value>,
    /// JSON Schema that the result of its tasks has to match.
    #[serde(default, deserialize_with = "present")]
    pub output_schema: Option<Value>,
}

impl AgentChange {
    /// The fields to set, in the order of the file; `null` removes a field.
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

/// Tells `null` apart from an absent field.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}
