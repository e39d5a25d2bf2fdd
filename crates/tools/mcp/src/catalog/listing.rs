//! Lists the tools of a server.

use std::collections::HashSet;

use rmcp::RoleClient;
use rmcp::model::{ClientRequest, ListToolsRequest, PaginatedRequestParams, ServerResult};
use rmcp::service::{Peer, PeerRequestOptions, ServiceError};

use crate::catalog::listed_tool::ListedTool;
use crate::config::ServerConfig;

/// Most tools of one server. Further tools are omitted.
pub const TOOLS_MAX: usize = 256;

/// Most pages of a list. Further pages are omitted.
pub const PAGES_MAX: usize = 64;

/// The tools of a server that the user's configuration permits. The caller sets a time limit.
pub(crate) async fn list(
    peer: &Peer<RoleClient>,
    config: &ServerConfig,
) -> Result<Vec<ListedTool>, ServiceError> {
    if peer.peer_info().is_some_and(|info| info.capabilities.tools.is_none()) {
        return Ok(Vec::new());
    }
    let permitted = |name: &str| {
        (config.allow.is_empty() || config.allow.matches(name)) && !config.deny.matches(name)
    };
    let mut listed_tools = Vec::new();
    let mut cursors = HashSet::new();
    let mut cursor: Option<String> = None;
    for _ in 0..PAGES_MAX {
        let page = page(peer, cursor.take()).await?;
        for tool in page.tools.into_iter().filter(|tool| permitted(&tool.name)) {
            if listed_tools.len() == TOOLS_MAX {
                tracing::warn!(
                    "an MCP server lists more than {TOOLS_MAX} tools: the rest is left out"
                );
                return Ok(listed_tools);
            }
            listed_tools.push(ListedTool::from(tool));
        }
        match page.next_cursor {
            // A repeated cursor would loop.
            Some(next) if !next.is_empty() && cursors.insert(next.clone()) => cursor = Some(next),
            Some(_) | None => return Ok(listed_tools),
        }
    }
    tracing::warn!(
        "an MCP server lists its tools on more than {PAGES_MAX} pages: the rest is left out"
    );
    Ok(listed_tools)
}

async fn page(
    peer: &Peer<RoleClient>,
    cursor: Option<String>,
) -> Result<rmcp::model::ListToolsResult, ServiceError> {
    let params = PaginatedRequestParams::default().with_cursor(cursor);
    let request = ListToolsRequest::with_param(params);
    let options = PeerRequestOptions::no_options();
    // Not `list_tools`, which may answer from its own cache.
    let sent =
        peer.send_request_with_option(ClientRequest::ListToolsRequest(request), options).await?;
    let ServerResult::ListToolsResult(list) = sent.await_response().await? else {
        return Err(ServiceError::UnexpectedResponse);
    };
    Ok(list)
}
