//! The client side of a connection: capabilities, and answers to requests of the server.
//!
//! A server may ask for the workspace. The client declines requests for a model's answer
//! (sampling) and for user input (elicitation).

use std::path::Path;

use rmcp::model::{ClientCapabilities, ClientConfig, Implementation, ProtocolVersion};
use rmcp::service::RequestContext;
use rmcp::{ClientHandler, ErrorData, RoleClient};

/// Client handler of one connection.
#[derive(Debug, Clone)]
pub(crate) struct McpClient {
    /// The workspace as a `file:` URL, if servers may know it.
    root: Option<String>,
}

impl McpClient {
    pub(crate) fn new(workspace: Option<&Path>) -> Self {
        let root = workspace.and_then(|path| reqwest::Url::from_directory_path(path).ok());
        // Without the trailing slash, like most clients.
        Self { root: root.map(|url| url.as_str().trim_end_matches('/').to_owned()) }
    }
}

#[expect(deprecated, reason = "servers still ask for roots")]
impl ClientHandler for McpClient {
    async fn list_roots(
        &self,
        _context: RequestContext<RoleClient>,
    ) -> Result<rmcp::model::ListRootsResult, ErrorData> {
        let roots = self.root.iter().map(rmcp::model::Root::new).collect();
        Ok(rmcp::model::ListRootsResult::new(roots))
    }

    fn get_info(&self) -> ClientConfig {
        let mut capabilities = ClientCapabilities::default();
        if self.root.is_some() {
            capabilities.roots = Some(rmcp::model::RootsCapabilities::default());
        }
        let name = Implementation::new("antiphon", env!("CARGO_PKG_VERSION"));
        ClientConfig::new(capabilities, name)
            .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
    }
}
