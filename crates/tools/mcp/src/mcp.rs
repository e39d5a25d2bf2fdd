//! The tools of all servers as a `ToolExecutor`.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use antiphon_core::port::{
    CutOffCall, CutOffOutcome, Progress, ToolContext, ToolError, ToolExecutor,
};
use antiphon_core::{Effect, RawJson, TaskId, Tool, ToolResult};
use async_trait::async_trait;
use futures_util::FutureExt as _;
use futures_util::future::join_all;
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::catalog::CatalogEntry;
use crate::config::{Launch, McpConfig};
use crate::connection::ConnectionContext;
use crate::connection::call::{Call, CallOutcome};
use crate::server::Server;
use crate::server::shared_state::SharedState;
use crate::server::status::ServerStatus;
use crate::transport::http::Http;

/// Field of the note about a call of a tool that may be called twice.
const REPEATABLE: &str = "repeatable";

/// Environment that servers run in.
#[derive(Default)]
pub struct McpOptions {
    /// Variables of this process. Servers inherit the permitted ones; bearer tokens are read from
    /// it.
    pub environment: BTreeMap<String, String>,
    /// The workspace folder that servers may ask for; absent: they get none.
    pub workspace: Option<PathBuf>,
    /// File that caches tool lists between runs; absent: no cache.
    pub cache_file: Option<PathBuf>,
    /// Folder of the tokens of `antiphon mcp login`; absent: no server is logged in.
    pub token_folder: Option<PathBuf>,
}

/// The tools of all configured servers. On drop, kills the servers' processes; call
/// [`shutdown`](Mcp::shutdown) first for a clean exit.
pub struct Mcp {
    shared: Arc<SharedState>,
}

impl Mcp {
    /// Prepares the servers of `config`. Starts nothing.
    pub fn new(config: McpConfig, options: McpOptions) -> Self {
        let http = Http::new(config.0.values().filter_map(|server| match &server.launch {
            Launch::Http(http) => Some(&http.url),
            Launch::Stdio(_) => None,
        }));
        let connection_context = ConnectionContext {
            environment: options.environment,
            workspace: options.workspace,
            http,
            token_folder: options.token_folder,
        };
        let servers = config
            .0
            .into_iter()
            .map(|(name, config)| (name.clone(), Arc::new(Server::new(name, config))));
        let shared = SharedState::new(connection_context, servers.collect(), options.cache_file);
        Self { shared: Arc::new(shared) }
    }

    /// Fills the list of tools from the cache, and starts the servers that are not cached, all in
    /// parallel. Returns when each is ready or has failed, or after `within`. Slower servers
    /// continue to start, and their tools appear when they are ready.
    pub async fn connect_all(&self, within: Duration) {
        let shared = &self.shared;
        shared.initialized.get_or_init(|| begin(shared)).await;
        let unknown = shared.servers.values().filter(|server| server.entries().is_empty());
        // The status of each server reports a failure.
        let _ = timeout(within, join_all(unknown.map(|server| server.connection()))).await;
    }

    /// Status of each server, sorted by name.
    pub fn status(&self) -> Vec<ServerStatus> {
        self.shared.servers.values().map(|server| server.status()).collect()
    }

    /// Stops all servers: closes the connections, terminates the processes, and kills the remaining
    /// ones after `deadline`. Pending calls fail.
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

    fn find(&self, tool: &str) -> Result<Arc<CatalogEntry>, ToolError> {
        let catalog = self.shared.catalog();
        let found = catalog.get(tool).cloned();
        found.ok_or_else(|| ToolError::Unknown { name: tool.to_owned() })
    }

    /// Makes a call. Starts the server if it is not running. Safe to cancel.
    async fn call(
        &self,
        entry: Arc<CatalogEntry>,
        arguments: &RawJson,
        progress: Progress,
    ) -> Result<ToolResult, ToolError> {
        let name = &entry.tool.name;
        let unavailable = |reason: String| ToolError::Unavailable {
            tool: name.clone(),
            reason: format!("the MCP server `{}` is not available: {reason}", entry.server),
        };
        let Some(server) = self.shared.servers.get(&entry.server) else {
            return Err(unavailable("it is not configured".to_owned()));
        };
        let _slot = server.calls.acquire().await.map_err(|error| unavailable(error.to_string()))?;
        let mut not_sent = String::new();
        // A connection may break just before its use, so retry once.
        for _ in 0..2 {
            let connection = server.connection().await.map_err(unavailable)?;
            // A server that has just started may have other tools than before.
            let current = self.find(name)?;
            check(&current, arguments)?;
            let call = Call {
                tool: &current.remote_name,
                arguments,
                progress: progress.clone(),
                timeout: server.config.timeout,
                timeout_max: server.config.timeout_max,
                tracker: &self.shared.tracker,
            };
            match call.make(&connection).await {
                CallOutcome::Answered(result) => return Ok(result),
                CallOutcome::NotSent(reason) if connection.traffic.closed.is_cancelled() => {
                    not_sent = reason;
                }
                CallOutcome::NotSent(reason) => return Err(unavailable(reason)),
                CallOutcome::Lost => return Ok(lost(&entry)),
                CallOutcome::TimedOut { after, silent } => {
                    if silent && connection.group.is_some() {
                        // The server sent nothing during the whole call: it hangs.
                        connection.traffic.closed.cancel();
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
    fn tools(&self) -> Vec<Arc<Tool>> {
        self.shared.catalog().tools()
    }

    fn effect(&self, tool: &str) -> Option<Effect> {
        self.shared.catalog().get(tool).map(|entry| entry.effect)
    }

    /// Notes that the server declares the tool repeatable at the start: what it declares later counts
    /// only if it did so before.
    async fn start_note(&self, tool: &str, _: &RawJson, _: &TaskId) -> Option<Value> {
        let repeatable = self.shared.catalog().get(tool).is_some_and(|entry| entry.repeatable);
        repeatable.then(|| json!({ REPEATABLE: true }))
    }

    async fn inspect_cut_off(&self, tool: &str, _: &RawJson, call: &CutOffCall) -> CutOffOutcome {
        let before = call.note.as_ref().is_some_and(|note| note[REPEATABLE] == true);
        let now = self.shared.catalog().get(tool).is_some_and(|entry| entry.repeatable);
        if before && now {
            CutOffOutcome::MayRun
        } else {
            CutOffOutcome::Unknown { known: String::new() }
        }
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

/// Loads the cache and starts the supervisor of each server.
async fn begin(shared: &Arc<SharedState>) {
    let loading = Arc::clone(shared);
    // Servers that are not in the cache are started to list their tools.
    let _ = tokio::task::spawn_blocking(move || loading.load_cached()).await;
    for server in shared.servers.values() {
        let supervised = Arc::clone(server).supervise(Arc::clone(shared), shared.stop.clone());
        shared.tracker.spawn(supervised);
    }
}

fn check(entry: &CatalogEntry, arguments: &RawJson) -> Result<(), ToolError> {
    match entry.schema.violation(arguments) {
        None => Ok(()),
        Some(reason) => Err(ToolError::InvalidArguments { tool: entry.tool.name.clone(), reason }),
    }
}

fn lost(entry: &CatalogEntry) -> ToolResult {
    ToolResult::failed(format!(
        "The MCP server `{}` died during the call, outcome unknown: the call may or may not have taken \
        effect. Check before you try again; the next call restarts the server.",
        entry.server
    ))
}

fn timed_out(entry: &CatalogEntry, after: Duration) -> ToolResult {
    ToolResult::failed(format!(
        "The MCP server `{}` did not answer within {} s and the call was canceled, outcome unknown: it may \
        or may not have taken effect. Check before you try again, or ask for less at a time.",
        entry.server,
        after.as_secs()
    ))
}
