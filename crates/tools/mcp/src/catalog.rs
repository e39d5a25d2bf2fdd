//! Immutable snapshot of the tools of all servers. A changed list yields a new catalog.
//!
//! | file          | subject                          |
//! |---------------|----------------------------------|
//! | `listing`     | asks a server for its tools      |
//! | `listed_tool` | a tool from a server's list      |
//! | `schema`      | the schema of a tool's arguments |
//! | `name`        | names of tools for the model     |
//! | `cache`       | tool lists on disk               |

pub(crate) mod cache;
pub(crate) mod listed_tool;
pub(crate) mod listing;
pub(crate) mod name;
pub(crate) mod schema;

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use antiphon_core::{Effect, Tool, visible};

use crate::catalog::listed_tool::ListedTool;
use crate::catalog::name::tool_name;
use crate::catalog::schema::Schema;
use crate::config::{ServerConfig, ServerName};

/// Longest description of a tool, in bytes. The rest is truncated.
pub const DESCRIPTION_BYTES_MAX: usize = 4096;

/// Most bytes of a prompt for the tools of one server. Further tools are omitted, because every
/// request of every agent would pay for them.
pub const LIST_BYTES_MAX: usize = 256 * 1024;

/// One tool that can be called.
#[derive(Debug)]
pub(crate) struct CatalogEntry {
    /// Definition for the model.
    pub(crate) tool: Arc<Tool>,
    /// The server that runs the tool.
    pub(crate) server: ServerName,
    /// Name of the tool on the server.
    pub(crate) remote_name: String,
    pub(crate) effect: Effect,
    /// The server declares that a second call does no harm. It decides whether a call that was cut off
    /// runs again, and nothing else: a server that lies about it could as well act twice on one call.
    pub(crate) repeatable: bool,
    pub(crate) schema: Schema,
}

/// All tools by their name for the model, sorted by name.
#[derive(Debug, Default)]
pub(crate) struct Catalog(BTreeMap<String, Arc<CatalogEntry>>);

impl Catalog {
    pub(crate) fn new(lists: impl IntoIterator<Item = Arc<[Arc<CatalogEntry>]>>) -> Self {
        let entries = lists.into_iter().flat_map(|list| list.iter().cloned().collect::<Vec<_>>());
        Self(entries.map(|entry| (entry.tool.name.clone(), entry)).collect())
    }

    pub(crate) fn tools(&self) -> Vec<Arc<Tool>> {
        self.0.values().map(|entry| Arc::clone(&entry.tool)).collect()
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Arc<CatalogEntry>> {
        self.0.get(name)
    }
}

/// Catalog entries for the usable tools of a server. Logs the tools it omits.
pub(crate) fn entries(
    server: &ServerName,
    config: &ServerConfig,
    listed_tools: &[ListedTool],
) -> Arc<[Arc<CatalogEntry>]> {
    let mut sorted: Vec<&ListedTool> = listed_tools.iter().collect();
    // An unchanged name wins over an adapted name that collides with it.
    sorted.sort_by_key(|listed| {
        (!tool_name(server, &listed.name).ends_with(&listed.name), &listed.name)
    });
    let mut taken = HashSet::new();
    let mut bytes = 0;
    let mut entries = Vec::with_capacity(sorted.len());
    for listed in sorted {
        let entry = entry(server, config, listed).and_then(|entry| {
            let tool = &entry.tool;
            let size = tool.name.len() + tool.description.len() + tool.parameters.as_str().len();
            if bytes + size > LIST_BYTES_MAX {
                return Err(format!("the list is longer than {LIST_BYTES_MAX} bytes"));
            }
            if !taken.insert(tool.name.clone()) {
                return Err("another tool has its name".to_owned());
            }
            bytes += size;
            Ok(entry)
        });
        match entry {
            Ok(entry) => entries.push(Arc::new(entry)),
            Err(reason) => log_omitted(server, &tool_name(server, &listed.name), &reason),
        }
    }
    entries.sort_by(|a, b| a.tool.name.cmp(&b.tool.name));
    entries.into()
}

fn entry(
    server: &ServerName,
    config: &ServerConfig,
    listed: &ListedTool,
) -> Result<CatalogEntry, String> {
    let schema = Schema::read(&listed.schema)?;
    let name = tool_name(server, &listed.name);
    if let Some(note) = &schema.note {
        tracing::warn!(mcp.server = %server, tool.name = %name, "cannot use its schema: {note}");
    }
    let tool = Tool {
        name,
        description: description(server, listed, &schema),
        parameters: schema.shown.clone(),
    };
    let effect = effect(config, listed);
    Ok(CatalogEntry {
        tool: Arc::new(tool),
        server: server.clone(),
        remote_name: listed.name.clone(),
        effect,
        repeatable: listed.read_only || listed.idempotent,
        schema,
    })
}

/// Effect of a tool: from the configuration, or declared by the server if the user trusts it.
fn effect(config: &ServerConfig, listed: &ListedTool) -> Effect {
    if config.read_only.matches(&listed.name) || (config.trusted && listed.read_only) {
        Effect::ReadOnly
    } else if config.trusted && listed.idempotent {
        Effect::Idempotent
    } else {
        Effect::SideEffect
    }
}

fn description(server: &ServerName, listed: &ListedTool, schema: &Schema) -> String {
    let mut text = visible(&listed.description);
    if text.len() > DESCRIPTION_BYTES_MAX {
        text.truncate(text.floor_char_boundary(DESCRIPTION_BYTES_MAX));
        text.push_str(" […]");
    }
    let note = match &schema.note {
        Some(_) => {
            "\nThe server's own description of the arguments cannot be used; it checks them itself."
        }
        None => "",
    };
    format!("[from the MCP server `{server}`] {}{note}", text.trim())
}

fn log_omitted(server: &ServerName, tool: &str, reason: &str) {
    tracing::warn!(mcp.server = %server, tool.name = %tool, "a tool is left out: {reason}");
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn config(text: &str) -> ServerConfig {
        serde_json::from_str(text).unwrap()
    }

    fn listed(name: &str) -> ListedTool {
        ListedTool {
            name: name.to_owned(),
            description: "does\u{200b} things".to_owned(),
            schema: json!({"type": "object"}).as_object().unwrap().clone(),
            read_only: true,
            idempotent: true,
        }
    }

    fn effects(config: &ServerConfig) -> Vec<Effect> {
        let server = "s".parse().unwrap();
        let list = entries(&server, config, &[listed("a"), listed("b")]);
        list.iter().map(|entry| entry.effect).collect()
    }

    #[test]
    fn the_servers_word_counts_only_when_the_user_says_so() {
        let none = config(r#"{"command":"x"}"#);
        let listed = config(r#"{"command":"x","read_only":["b"]}"#);
        let trusted = config(r#"{"command":"x","trusted":true}"#);
        assert_eq!(effects(&none), [Effect::SideEffect, Effect::SideEffect]);
        assert_eq!(effects(&listed), [Effect::SideEffect, Effect::ReadOnly]);
        assert_eq!(effects(&trusted), [Effect::ReadOnly, Effect::ReadOnly]);
    }

    #[test]
    fn of_two_tools_with_one_name_the_one_that_had_it_first_stays() {
        let server: ServerName = "s".parse().unwrap();
        let disguised = tool_name(&server, "a b").strip_prefix("mcp__s__").unwrap().to_owned();
        let listed_tools = [listed("a b"), listed(&disguised), listed(&disguised)];
        let list = entries(&server, &config(r#"{"command":"x"}"#), &listed_tools);
        let remote_name: Vec<&str> = list.iter().map(|entry| entry.remote_name.as_str()).collect();
        assert_eq!(remote_name, [disguised.as_str()]);
    }

    #[test]
    fn the_list_as_a_whole_is_bounded() {
        let listed_tools: Vec<ListedTool> = (0..200)
            .map(|i| ListedTool { description: "x".repeat(4000), ..listed(&format!("t{i:03}")) })
            .collect();
        let list = entries(&"s".parse().unwrap(), &config(r#"{"command":"x"}"#), &listed_tools);
        let bytes: usize = list.iter().map(|entry| entry.tool.description.len()).sum();
        assert!(list.len() > 50 && bytes < LIST_BYTES_MAX, "{}", list.len());
        assert_eq!(list[0].remote_name, "t000");
    }

    #[test]
    fn descriptions_are_labeled_bounded_and_visible() {
        let mut long = listed("long");
        long.description = "ä".repeat(DESCRIPTION_BYTES_MAX);
        let server: ServerName = "s".parse().unwrap();
        let list = entries(&server, &config(r#"{"command":"x"}"#), &[listed("a"), long]);
        assert_eq!(list[0].tool.description, "[from the MCP server `s`] does things");
        assert!(list[1].tool.description.len() < DESCRIPTION_BYTES_MAX + 100);
        assert!(list[1].tool.description.ends_with("[…]"));
    }
}
