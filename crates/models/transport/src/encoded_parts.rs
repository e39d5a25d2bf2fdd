//! What a provider keeps encoded between requests: most of a request is the same as in the one before it.

use crate::history_cache::HistoryCache;
use crate::tool_list_cache::ToolListCache;

/// Parts of requests of one provider. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct EncodedParts {
    /// The beginnings of conversations.
    pub histories: HistoryCache,
    /// Lists of tools.
    pub tools: ToolListCache,
}
