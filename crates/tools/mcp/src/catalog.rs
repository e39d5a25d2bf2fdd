//! The tools of all servers at one moment. It does not change: a new list makes a new catalog.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use antiphon_core::{Effect, Tool, visible};

use crate::config::{ServerConfig, ServerName};
use crate::name::tool_name;
use crate::offer::Offer;
use crate::schema::Schema;

/// Longest description of a tool, in bytes. The rest is cut off.
pub const DESCRIPTION_BYTES_MAX: usize = 4096;

/// Most that the tools of one server may take of a prompt, in bytes. The rest is left out: all agents
/// would pay for it with every request.
pub const LIST_BYTES_MAX: usize = 256 * 1024;

/// One tool, ready to be shown and called.
#[derive(Debug)]
pub(crate) struct Entry {
    /// As the model is told of it.
    pub(crate) tool: Tool,
    /// Whose it is.
    pub(crate) server: ServerName,
    /// What its server calls it.
    pub(crate) offered: String,
    pub(crate) effect: Effect,
    pub(crate) schema: Schema,
}

/// All tools, by the name the model uses: the order is that of the names.
#[derive(Debug, Default)]
pub(crate) struct Catalog(BTreeMap<String, Arc<Entry>>);

impl Catalog {
    pub(crate) fn new(lists: impl IntoIterator<Item = Arc<[Arc<Entry>]>>) -> Self {
        let entries = lists.into_iter().flat_map(|list| list.iter().cloned().collect::<Vec<_>>());
        Self(entries.map(|entry| (entry.tool.name.clone(), entry)).collect())
    }

    pub(crate) fn tools(&self) -> Vec<Tool> {
        self.0.values().map(|entry| entry.tool.clone()).collect()
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Arc<Entry>> {
        self.0.get(name)
    }
}

/// What of a server's offers can be used.
pub(crate) fn entries(
    server: &ServerName,
    config: &ServerConfig,
    offers: &[Offer],
) -> Arc<[Arc<Entry>]> {
    let mut sorted: Vec<&Offer> = offers.iter().collect();
    // A name that needed no change goes before one that was made to look like it.
    sorted
        .sort_by_key(|offer| (!tool_name(server, &offer.name).ends_with(&offer.name), &offer.name));
    let mut taken = HashSet::new();
    let mut bytes = 0;
    let mut entries = Vec::with_capacity(sorted.len());
    for offer in sorted {
        let entry = entry(server, config, offer).and_then(|entry| {
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
            Err(reason) => left_out(server, &tool_name(server, &offer.name), &reason),
        }
    }
    entries.sort_by(|a, b| a.tool.name.cmp(&b.tool.name));
    entries.into()
}

fn entry(server: &ServerName, config: &ServerConfig, offer: &Offer) -> Result<Entry, String> {
    let schema = Schema::read(&offer.schema)?;
    let name = tool_name(server, &offer.name);
    if let Some(note) = &schema.note {
        tracing::warn!(mcp.server = %server, tool.name = %name, "cannot use its schema: {note}");
    }
    let tool = Tool {
        name,
        description: description(server, offer, &schema),
        parameters: schema.shown.clone(),
    };
    let effect = effect(config, offer);
    Ok(Entry { tool, server: server.clone(), offered: offer.name.clone(), effect, schema })
}

/// What a tool does to the world: on the user's word, or on the server's if the user trusts it.
fn effect(config: &ServerConfig, offer: &Offer) -> Effect {
    if config.read_only.matches(&offer.name) || (config.trusted && offer.read_only) {
        Effect::ReadOnly
    } else if config.trusted && offer.idempotent {
        Effect::Idempotent
    } else {
        Effect::SideEffect
    }
}

fn description(server: &ServerName, offer: &Offer, schema: &Schema) -> String {
    let mut text = visible(&offer.description);
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

fn left_out(server: &ServerName, tool: &str, reason: &str) {
    tracing::warn!(mcp.server = %server, tool.name = %tool, "a tool is left out: {reason}");
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn config(text: &str) -> ServerConfig {
        serde_json::from_str(text).unwrap()
    }

    fn offer(name: &str) -> Offer {
        Offer {
            name: name.to_owned(),
            description: "does\u{200b} things".to_owned(),
            schema: json!({"type": "object"}).as_object().unwrap().clone(),
            read_only: true,
            idempotent: true,
        }
    }

    fn effects(config: &ServerConfig) -> Vec<Effect> {
        let server = "s".parse().unwrap();
        let list = entries(&server, config, &[offer("a"), offer("b")]);
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
        let offers = [offer("a b"), offer(&disguised), offer(&disguised)];
        let list = entries(&server, &config(r#"{"command":"x"}"#), &offers);
        let offered: Vec<&str> = list.iter().map(|entry| entry.offered.as_str()).collect();
        assert_eq!(offered, [disguised.as_str()]);
    }

    #[test]
    fn the_list_as_a_whole_is_bounded() {
        let offers: Vec<Offer> = (0..200)
            .map(|i| Offer { description: "x".repeat(4000), ..offer(&format!("t{i:03}")) })
            .collect();
        let list = entries(&"s".parse().unwrap(), &config(r#"{"command":"x"}"#), &offers);
        let bytes: usize = list.iter().map(|entry| entry.tool.description.len()).sum();
        assert!(list.len() > 50 && bytes < LIST_BYTES_MAX, "{}", list.len());
        assert_eq!(list[0].offered, "t000");
    }

    #[test]
    fn descriptions_are_labeled_bounded_and_visible() {
        let mut long = offer("long");
        long.description = "ä".repeat(DESCRIPTION_BYTES_MAX);
        let server: ServerName = "s".parse().unwrap();
        let list = entries(&server, &config(r#"{"command":"x"}"#), &[offer("a"), long]);
        assert_eq!(list[0].tool.description, "[from the MCP server `s`] does things");
        assert!(list[1].tool.description.len() < DESCRIPTION_BYTES_MAX + 100);
        assert!(list[1].tool.description.ends_with("[…]"));
    }
}
