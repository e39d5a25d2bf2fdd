//! Asking a server for its tools.

use std::collections::HashSet;

use rmcp::RoleClient;
use rmcp::model::{ClientRequest, ListToolsRequest, PaginatedRequestParams, ServerResult};
use rmcp::service::{Peer, PeerRequestOptions, ServiceError};

use crate::config::ServerConfig;
use crate::offer::Offer;

/// Most tools of one server. The rest is left out.
pub const TOOLS_MAX: usize = 256;

/// Most pages of a list.
pub const PAGES_MAX: usize = 64;

/// The tools the user lets a server offer. Whoever calls this sets a time limit.
pub(crate) async fn list(
    peer: &Peer<RoleClient>,
    config: &ServerConfig,
) -> Result<Vec<Offer>, ServiceError> {
    if peer.peer_info().is_some_and(|info| info.capabilities.tools.is_none()) {
        return Ok(Vec::new());
    }
    let wanted = |name: &str| {
        (config.allow.is_empty() || config.allow.matches(name)) && !config.deny.matches(name)
    };
    let mut offers = Vec::new();
    let mut cursors = HashSet::new();
    let mut cursor: Option<String> = None;
    for _ in 0..PAGES_MAX {
        let page = page(peer, cursor.take()).await?;
        for tool in page.tools.into_iter().filter(|tool| wanted(&tool.name)) {
            if offers.len() == TOOLS_MAX {
                tracing::warn!(
                    "an MCP server lists more than {TOOLS_MAX} tools: the rest is left out"
                );
                return Ok(offers);
            }
            offers.push(Offer::from(tool));
        }
        match page.next_cursor {
            // A cursor that comes again would lead in a circle.
            Some(next) if !next.is_empty() && cursors.insert(next.clone()) => cursor = Some(next),
            Some(_) | None => return Ok(offers),
        }
    }
    tracing::warn!(
        "an MCP server lists its tools on more than {PAGES_MAX} pages: the rest is left out"
    );
    Ok(offers)
}

async fn page(
    peer: &Peer<RoleClient>,
    cursor: Option<String>,
) -> Result<rmcp::model::ListToolsResult, ServiceError> {
    let params = PaginatedRequestParams::default().with_cursor(cursor);
    let request = ListToolsRequest::with_param(params);
    let options = PeerRequestOptions::no_options();
    // Not `list_tools`, which may answer from a memory of its own.
    let asked =
        peer.send_request_with_option(ClientRequest::ListToolsRequest(request), options).await?;
    let ServerResult::ListToolsResult(list) = asked.await_response().await? else {
        return Err(ServiceError::UnexpectedResponse);
    };
    Ok(list)
}
