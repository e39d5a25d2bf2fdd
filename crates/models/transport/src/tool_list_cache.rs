//! Encoded lists of tools. Every step of a task repeats the same list, often with long schemas.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use antiphon_core::{ProviderError, Tool};
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};

/// Most lists in memory. The one that was not used for longest goes first.
const LISTS_MAX: usize = 32;

/// Most bytes of encoded lists in memory.
pub const TOOL_LIST_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Encodes the lists of tools of one provider.
#[derive(Clone, Default)]
pub struct ToolListCache(Arc<Mutex<VecDeque<EncodedList>>>);

struct EncodedList {
    tools: Vec<Arc<Tool>>,
    json: Arc<RawValue>,
}

impl ToolListCache {
    /// The JSON of what `encode` makes of the tools. `None` without tools.
    ///
    /// `encode` has to make the same of the same tools each time.
    pub fn json<'a, T: Serialize>(
        &self,
        tools: &'a [Arc<Tool>],
        encode: impl FnOnce(&'a [Arc<Tool>]) -> T,
    ) -> Result<Option<Arc<RawValue>>, ProviderError> {
        if tools.is_empty() {
            return Ok(None);
        }
        if let Some(json) = self.find(tools) {
            return Ok(Some(json));
        }
        let invalid =
            |error: serde_json::Error| ProviderError::InvalidRequest { message: error.to_string() };
        let json: Arc<RawValue> = to_raw_value(&encode(tools)).map_err(invalid)?.into();
        self.keep(EncodedList { tools: tools.to_vec(), json: Arc::clone(&json) });
        Ok(Some(json))
    }

    fn find(&self, tools: &[Arc<Tool>]) -> Option<Arc<RawValue>> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let index = kept.iter().position(|list| {
            let mut pairs = list.tools.iter().zip(tools);
            list.tools.len() == tools.len()
                && pairs.all(|(one, other)| Arc::ptr_eq(one, other) || one == other)
        })?;
        let list = kept.remove(index)?;
        let json = Arc::clone(&list.json);
        kept.push_front(list);
        Some(json)
    }

    fn keep(&self, list: EncodedList) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.push_front(list);
        let mut bytes = 0;
        let fits = |list: &EncodedList| {
            bytes += list.json.get().len();
            bytes <= TOOL_LIST_BYTES_MAX
        };
        let fitting = kept.iter().take(LISTS_MAX).map(fits).take_while(|fits| *fits).count();
        kept.truncate(fitting);
    }
}

impl fmt::Debug for ToolListCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ToolListCache")
    }
}

#[cfg(test)]
mod tests {
    use antiphon_core::RawJson;

    use super::*;

    fn tool(name: &str, description: &str) -> Arc<Tool> {
        let parameters = RawJson::parse(r#"{"type":"object"}"#).unwrap();
        Arc::new(Tool { name: name.to_owned(), description: description.to_owned(), parameters })
    }

    /// The JSON of a list, and whether it was encoded for this request.
    fn json(cache: &ToolListCache, tools: &[Arc<Tool>]) -> (String, bool) {
        let mut is_new = false;
        let json = cache.json(tools, |tools| {
            is_new = true;
            tools.iter().map(|tool| &**tool).collect::<Vec<_>>()
        });
        (json.unwrap().unwrap().get().to_owned(), is_new)
    }

    #[test]
    fn a_list_is_encoded_once_and_again_when_a_tool_of_it_changes() {
        let cache = ToolListCache::default();
        assert!(cache.json(&[], |_| "not called").unwrap().is_none());
        let mut tools = vec![tool("read", "Reads."), tool("edit", "Edits.")];
        let (first, is_new) = json(&cache, &tools);
        assert!(is_new);
        assert_eq!(first, serde_json::to_string(&[&*tools[0], &*tools[1]]).unwrap());
        assert_eq!(json(&cache, &tools), (first.clone(), false));
        let equal = [tool("read", "Reads."), tool("edit", "Edits.")];
        assert_eq!(json(&cache, &equal), (first.clone(), false));
        tools[1] = tool("edit", "Edits a file.");
        let (changed, is_new) = json(&cache, &tools);
        assert!(is_new && changed.contains("Edits a file."));
        assert!(json(&cache, &tools[..1]).1, "a part of a list is another list");
        assert_eq!(json(&cache, &equal), (first, false));
    }

    #[test]
    fn the_lists_in_memory_are_bounded() {
        let cache = ToolListCache::default();
        for number in 0..2 * LISTS_MAX {
            json(&cache, &[tool(&number.to_string(), "")]);
        }
        assert_eq!(cache.0.lock().unwrap().len(), LISTS_MAX);
        for number in 0..3 {
            let long = "x".repeat(TOOL_LIST_BYTES_MAX / 2 - 1024);
            json(&cache, &[tool(&number.to_string(), &long)]);
        }
        assert_eq!(cache.0.lock().unwrap().len(), 2);
    }
}
