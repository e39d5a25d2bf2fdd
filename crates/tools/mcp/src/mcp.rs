//! The servers' tools, behind the port that all tools are behind.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use antiphon_core::port::{Progress, ToolContext, ToolError, ToolExecutor};
use antiphon_core::{Effect, RawJson, Tool, ToolResult};
use async_trait::async_trait;
use futures_util::FutureExt as _;
use futures_util::future::join_all;
use tokio::time::timeout;

use crate::call::{Call, Ended};
use crate::catalog::Entry;
use crate::config::{Launch, McpConfig};
use crate::connection::Surroundings;
use crate::http::Http;
use crate::server::Server;
use crate::shared::Shared;
use crate::status::ServerStatus;

/// What the servers get of the world around them.
#[derive(Default)]
pub struct McpOptions {
    /// Our own environment. Servers inherit a few named variables of it, and tokens are looked up
    /// in it.
    pub environment: BTreeMap<String, String>,
    /// The folder that servers may know as the workspace.
    pub workspace: Option<PathBuf>,
    /// Where lists of tools are kept between runs; nowhere if absent.
    pub cache_file: Option<PathBuf>,
}

/// The tools of all configured servers. Dropped, the servers' processes are killed; to let them end
/// in peace, [`shut it down`](Mcp::shutdown) first.
pub struct Mcp {
    shared: Arc<Shared>,
}

impl Mcp {
    /// Prepares the servers of `config`. Nothing is started.
    pub fn new(config: McpConfig, options: McpOptions) -> Self {
        let http = Http::new(config.0.values().filter_map(|server| match &server.launch {
            Launch::Http(http) => Some(&http.url),
            Launch::Stdio(_) => None,
        }));
        let surroundings =
            Surroundings { environment: options.environment, workspace: options.workspace, http };
        let servers = config
            .0
            .into_iter()
            .map(|(name, config)| (name.clone(), Arc::new(Server::new(name, config))));
        let shared = Shared::new(surroundings, servers.collect(), options.cache_file);
        Self { shared: Arc::new(shared) }
    }

    /// Fills the list of tools: from what is known of before, and for the other servers by starting
    /// them, all at once. Returns when each is ready or has failed, or after `within`; servers that
    /// take longer go on starting, and their tools appear when they are ready.
    pub async fn connect_all(&self, within: Duration) {
        let shared = &self.shared;
        shared.begun.get_or_init(|| begin(shared)).await;
        let unknown = shared.servers.values().filter(|server| server.entries().is_empty());
        // Whether each is there shows in its status.
        let _ = timeout(within, join_all(unknown.map(|server| server.connection()))).await;
    }

    /// How each server is doing, in the order of their names.
    pub fn status(&self) -> Vec<ServerStatus> {
        self.shared.servers.values().map(|server| server.status()).collect()
    }

    /// Ends all servers: closes the connections, asks the processes to end, and kills what is left
    /// when `deadline` is over. Calls under way fail.
    pub async fn shutdown(&self, deadline: Duration) {
        self.shared.stop.cancel();
        self.shared.tracker.close();
        let _ = timeout(deadline, self.shared.tracker.wait()).await;
        self.kill();
    }

    fn kill(&self) {
        for server in self.shared.servers.values() {
            server.kill();
        }
    }

    fn find(&self, tool: &str) -> Result<Arc<Entry>, ToolError> {
        let catalog = self.shared.catalog();
        let found = catalog.get(tool).cloned();
        found.ok_or_else(|| ToolError::Unknown { name: tool.to_owned() })
    }

    /// Makes a call, on a server that is started for it if need be. Safe to cancel.
    async fn call(
        &self,
        entry: Arc<Entry>,
        arguments: &RawJson,
        progress: Progress,
    ) -> Result<ToolResult, ToolError> {
        let name = &entry.tool.name;
        let unavailable = |reason: String| ToolError::Unavailable {
            tool: name.clone(),
            reason: format!("the MCP server `{}` is not there: {reason}", entry.server),
        };
        let Some(server) = self.shared.servers.get(&entry.server) else {
            return Err(unavailable("it is not configured".to_owned()));
        };
        let _place =
            server.calls.acquire().await.map_err(|error| unavailable(error.to_string()))?;
        let mut not_sent = String::new();
        // A connection may break just before it is used; a second one that does is a reason to stop.
        for _ in 0..2 {
            let connection = server.connection().await.map_err(unavailable)?;
            // The server may have been started just now, and have other tools than before.
            let current = self.find(name)?;
            check(&current, arguments)?;
            let call = Call {
                tool: &current.offered,
                arguments,
                progress: progress.clone(),
                timeout: server.config.timeout,
                timeout_max: server.config.timeout_max,
                tracker: &self.shared.tracker,
            };
            match call.make(&connection).await {
                Ended::Answered(result) => return Ok(result),
                Ended::NotSent(reason) if connection.traffic.gone.is_cancelled() => {
                    not_sent = reason;
                }
                Ended::NotSent(reason) => return Err(unavailable(reason)),
                Ended::Lost => return Ok(lost(&entry)),
                Ended::TimedOut { after, silent } => {
                    if silent && connection.group.is_some() {
                        // Nothing at all came from it in all this time: it hangs.
                        connection.traffic.gone.cancel();
                    }
                    return Ok(timed_out(&entry, after));
                }
            }
        }
        Err(unavailable(not_sent))
    }
}

#[async_trait]
impl ToolExecutor for Mcp {
    fn tools(&self) -> Vec<Tool> {
        self.shared.catalog().tools()
    }

    fn effect(&self, tool: &str) -> Option<Effect> {
        self.shared.catalog().get(tool).map(|entry| entry.effect)
    }

    async fn execute(
        &self,
        tool: &str,
        arguments: &RawJson,
        context: ToolContext,
    ) -> Result<ToolResult, ToolError> {
        let mut cancel = context.cancel;
        if (&mut cancel).now_or_never().is_some() {
            return Err(ToolError::Canceled);
        }
        let entry = self.find(tool)?;
        check(&entry, arguments)?;
        tokio::select! {
            biased;
            () = &mut cancel => Err(ToolError::Canceled),
            result = self.call(entry, arguments, context.progress) => result,
        }
    }
}

impl Drop for Mcp {
    fn drop(&mut self) {
        self.shared.stop.cancel();
        self.kill();
    }
}

impl fmt::Debug for Mcp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mcp").field("servers", &self.status()).finish_non_exhaustive()
    }
}

/// Recalls what is known of the servers and begins to look after them.
async fn begin(shared: &Arc<Shared>) {
    let recalling = Arc::clone(shared);
    // What cannot be recalled is asked for.
    let _ = tokio::task::spawn_blocking(move || recalling.recall()).await;
    for server in shared.servers.values() {
        let supervised = Arc::clone(server).supervise(Arc::clone(shared), shared.stop.clone());
        shared.tracker.spawn(supervised);
    }
}

fn check(entry: &Entry, arguments: &RawJson) -> Result<(), ToolError> {
    match entry.schema.complaint(arguments) {
        None => Ok(()),
        Some(reason) => Err(ToolError::InvalidArguments { tool: entry.tool.name.clone(), reason }),
    }
}

fn lost(entry: &Entry) -> ToolResult {
    ToolResult::failed(format!(
        "The MCP server `{}` died during the call, outcome unknown: what it was asked to do may or may not \
         have been done. Look before you try again; the next call starts it anew.",
        entry.server
    ))
}

fn timed_out(entry: &Entry, after: Duration) -> ToolResult {
    ToolResult::failed(format!(
        "The MCP server `{}` did not answer within {} s and was told to stop, outcome unknown: what it was \
         asked to do may or may not have been done. Look before you try again, or ask for less at a time.",
        entry.server,
        after.as_secs()
    ))
}
