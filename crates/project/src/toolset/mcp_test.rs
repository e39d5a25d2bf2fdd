//! One MCP server, started to see whether it works.

use antiphon_core::ToolExecutor as _;
use antiphon_mcp::{Launch, Mcp, McpConfig, McpOptions, ServerConfig};

use super::mcp_pool::{CONNECT_TIMEOUT, LOGINS, SHUTDOWN_TIMEOUT, with_folders};
use crate::project::Project;
use crate::settings::{UserSettings, without_secrets};
use crate::state::state_base;

/// What a server offers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TestedServer {
    /// Names of its tools, as agents call them.
    pub tools: Vec<String>,
    /// Its last error.
    pub error: Option<String>,
}

/// Starts a configured server, lists its tools and stops it. `None` when no server has this name.
pub async fn test_server(
    project: &Project,
    settings: &UserSettings,
    name: &str,
) -> Option<TestedServer> {
    let mut config = McpConfig(settings.mcp.0.clone());
    config.0.retain(|known, _| known.as_str() == name);
    let server = config.0.values().next()?;
    let within = server.start_timeout.max(CONNECT_TIMEOUT);
    let config = with_folders(config, &settings.environment, project.root());
    let mut variables = settings.environment.texts();
    variables.retain(|name, _| config.uses_variable(name));
    // Without the cache of tool lists: the server itself is asked.
    let options = McpOptions {
        environment: variables,
        workspace: Some(project.root().to_owned()),
        cache_file: None,
        token_folder: state_base(&settings.environment).ok().map(|base| base.join(LOGINS)),
    };
    let servers = Mcp::new(config, options);
    servers.connect_all(within).await;
    let tools = servers.tools().iter().map(|tool| tool.name.clone()).collect();
    let error = servers.status().into_iter().find_map(|status| status.last_error);
    servers.shutdown(SHUTDOWN_TIMEOUT).await;
    Some(TestedServer { tools, error })
}

/// The command line or the address of a server, without variables, headers, and what may be secret in addresses.
pub fn server_target(server: &ServerConfig) -> String {
    match &server.launch {
        Launch::Stdio(stdio) => {
            let words = std::iter::once(&stdio.command).chain(&stdio.args);
            words.map(|word| without_secrets(word)).collect::<Vec<_>>().join(" ")
        }
        Launch::Http(http) => without_secrets(http.url.as_str()),
    }
}
