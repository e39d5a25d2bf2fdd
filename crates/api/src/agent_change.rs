//! A change of an agent's definition, with the fields of its file (docs/agents.md).

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

/// A change of an agent's definition. An absent field stays as it is; `null` removes it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct AgentChange {
    /// System prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<String>,
    /// What the agent does, for its callers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Model that answers, as `PROVIDER/MODEL`.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub model: Option<Value>,
    /// Models to try when the model does not answer, in order.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub fallbacks: Option<Value>,
    /// Names of its tools.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub tools: Option<Value>,
    /// Names of tools that change something and whose calls of one answer run side by side.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub parallel_tools: Option<Value>,
    /// The agents it may call: a list of names, or `any`.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub agents: Option<Value>,
    /// Runners to try, in order of preference.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub runtimes: Option<Value>,
    /// Limits of its tasks: `turns`, `cost_usd`, …
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub limits: Option<Value>,
    /// Intents of requests that never wake the agent.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub silent_intents: Option<Value>,
    /// JSON Schemas of the parameters of requests, by intent.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub intents: Option<Value>,
    /// JSON Schema of its results.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
}

impl AgentChange {
    /// The front matter fields that are present, in the order of the file. `context` is the body of the
    /// file and not among them.
    pub fn fields(&self) -> Vec<(&'static str, Value)> {
        let description = self.description.as_deref().map(Value::from);
        [
            ("description", &description),
            ("model", &self.model),
            ("fallbacks", &self.fallbacks),
            ("tools", &self.tools),
            ("parallel_tools", &self.parallel_tools),
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

/// Reads `null` as `Some(Null)`, so that it differs from an absent field.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}
