//! A tool from a server's list, reduced to the fields in use. Serializable for the cache.

use rmcp::model;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// One tool from the list of a server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct ListedTool {
    /// Name on the server.
    pub(crate) name: String,
    /// Description from the server.
    pub(crate) description: String,
    /// JSON Schema of the arguments.
    pub(crate) schema: Map<String, Value>,
    /// The server declares that the tool changes nothing.
    #[serde(default)]
    pub(crate) read_only: bool,
    /// The server declares that calling the tool twice has the effect of calling it once.
    #[serde(default)]
    pub(crate) idempotent: bool,
}

impl From<model::Tool> for ListedTool {
    fn from(tool: model::Tool) -> Self {
        let annotations = tool.annotations.unwrap_or_default();
        let description = tool.description.map(String::from).filter(|text| !text.trim().is_empty());
        let title = tool.title.or(annotations.title);
        Self {
            name: tool.name.into_owned(),
            description: description.or(title).unwrap_or_default(),
            schema: tool.input_schema.as_ref().clone(),
            read_only: annotations.read_only_hint == Some(true),
            idempotent: annotations.idempotent_hint == Some(true),
        }
    }
}
