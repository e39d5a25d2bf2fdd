//! A tool as its server offers it, reduced to what is used of it. It can be written down.

use rmcp::model;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// One tool of a server's list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Offer {
    /// What the server calls it.
    pub(crate) name: String,
    /// What it does, in the server's words.
    pub(crate) description: String,
    /// What it takes.
    pub(crate) schema: Map<String, Value>,
    /// The server says that it changes nothing.
    #[serde(default)]
    pub(crate) read_only: bool,
    /// The server says that twice is the same as once.
    #[serde(default)]
    pub(crate) idempotent: bool,
}

impl From<model::Tool> for Offer {
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
