//! The MCP servers of all processes whose tasks run here. Processes whose configuration is the same, and the variables
//! that the servers get, share them. Servers that no process uses any more are ended.

use std::collections::BTreeMap;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use antiphon_core::port::{CutOffCall, CutOffOutcome, ToolContext, ToolError, ToolExecutor};
use antiphon_core::{Effect, RawJson, TaskId, Tool, ToolResult, visible};
use antiphon_mcp::{Launch, Mcp, McpConfig, McpOptions, ServerStatus};
use async_trait::async_trait;
use serde_json::Value;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use uuid::Uuid;

use crate::environment::{Environment, Warnings};
use crate::project::Project;
use crate::settings::UserSettings;
use crate::state::state_base;

/// How long MCP servers whose tools are not cached may take to list them.
pub(super) const CONNECT_TIMEOUT: Duration = Duration::from_secs(20);

/// How long MCP servers may take to stop.
pub(super) const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);

/// Folder of logins to MCP servers, in the user's state folder.
pub(super) const LOGINS: &str = "mcp-logins";

/// The MCP servers of all processes whose tasks run here.
#[derive(Debug)]
pub struct McpPool {
    workspace: PathBuf,
    cache_file: PathBuf,
    state: Arc<PoolState>,
}

#[derive(Debug, Default)]
struct PoolState {
    entries: Mutex<Vec<PoolEntry>>,
    /// Notified when the last user of an entry is gone.
    unused: Notify,
}

/// The servers of one configuration.
struct PoolEntry {
    config: McpConfig,
    /// The variables that the servers get.
    variables: BTreeMap<String, String>,
    servers: Arc<Mcp>,
    /// Number of [`UsedServers`].
    users: usize,
}

/// The MCP servers of a configuration while they are used. The pool ends them after the last user.
#[derive(Debug)]
pub struct UsedServers {
    servers: Arc<Mcp>,
    pool: Arc<PoolState>,
}

impl std::fmt::Debug for PoolEntry {
    /// Without the variables: they hold keys.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PoolEntry").field("servers", &self.servers).finish_non_exhaustive()
    }
}

impl McpPool {
    /// No servers yet.
    pub fn new(project: &Project) -> Self {
        let cache_file = project.state().join("mcp-tools.json");
        Self { workspace: project.root().to_owned(), cache_file, state: Arc::default() }
    }

    /// The servers that the settings of a process name, which may not be connected yet; `None` when they name none.
    pub(crate) fn servers(&self, settings: &UserSettings) -> Option<Arc<UsedServers>> {
        if settings.mcp.0.is_empty() {
            return None;
        }
        let config = with_folders(settings.mcp.clone(), &settings.environment, &self.workspace);
        let mut variables = settings.environment.texts();
        variables.retain(|name, _| config.uses_variable(name));
        let mut entries = self.state.entries();
        let used = |servers| Arc::new(UsedServers { servers, pool: Arc::clone(&self.state) });
        let same = |entry: &&mut PoolEntry| entry.config == config && entry.variables == variables;
        if let Some(entry) = entries.iter_mut().find(same) {
            entry.users += 1;
            return Some(used(Arc::clone(&entry.servers)));
        }
        let options = McpOptions {
            environment: variables.clone(),
            workspace: Some(self.workspace.clone()),
            cache_file: Some(self.cache_file.clone()),
            token_folder: state_base(&settings.environment).ok().map(|base| base.join(LOGINS)),
        };
        let servers = Arc::new(Mcp::new(config.clone(), options));
        let kept = Arc::clone(&servers);
        entries.push(PoolEntry { config, variables, servers: kept, users: 1 });
        Some(used(servers))
    }

    /// The same, once each server has listed its tools or has failed. Warns about servers without tools.
    pub async fn connect(&self, settings: &UserSettings) -> Option<Arc<UsedServers>> {
        let servers = self.servers(settings)?;
        connect_servers(&servers, &settings.environment.warnings).await;
        Some(servers)
    }

    /// Ends servers as soon as no process uses them; never returns.
    pub(crate) async fn end_unused(&self) {
        loop {
            self.state.unused.notified().await;
            let unused: Vec<PoolEntry> =
                self.state.entries().extract_if(.., |entry| entry.users == 0).collect();
            shut_down(unused).await;
        }
    }

    /// Ends all servers.
    pub async fn close(&self) {
        let all = std::mem::take(&mut *self.state.entries());
        shut_down(all).await;
    }
}

impl PoolState {
    fn entries(&self) -> MutexGuard<'_, Vec<PoolEntry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Deref for UsedServers {
    type Target = Mcp;

    fn deref(&self) -> &Mcp {
        &self.servers
    }
}

impl Drop for UsedServers {
    fn drop(&mut self) {
        let mut entries = self.pool.entries();
        let own = entries.iter_mut().find(|entry| Arc::ptr_eq(&entry.servers, &self.servers));
        // The pool may have ended them.
        let Some(entry) = own else { return };
        entry.users -= 1;
        if entry.users == 0 {
            self.pool.unused.notify_one();
        }
    }
}

#[async_trait]
impl ToolExecutor for UsedServers {
    fn tools(&self) -> Vec<Arc<Tool>> {
        self.servers.tools()
    }

    fn effect(&self, tool: &str) -> Option<Effect> {
        self.servers.effect(tool)
    }

    async fn start_note(&self, tool: &str, arguments: &RawJson, task_id: &TaskId) -> Option<Value> {
        self.servers.start_note(tool, arguments, task_id).await
    }

    async fn execute(
        &self,
        tool: &str,
        arguments: &RawJson,
        context: ToolContext,
    ) -> Result<ToolResult, ToolError> {
        self.servers.execute(tool, arguments, context).await
    }

    async fn inspect_cut_off(
        &self,
        tool: &str,
        arguments: &RawJson,
        call: &CutOffCall,
    ) -> CutOffOutcome {
        self.servers.inspect_cut_off(tool, arguments, call).await
    }

    async fn settled(&self, tool: &str, task_id: &TaskId, call_uuid: Uuid) {
        self.servers.settled(tool, task_id, call_uuid).await;
    }

    async fn release(&self, task_id: &TaskId) {
        self.servers.release(task_id).await;
    }
}

/// Waits until each server has listed its tools or has failed. Warns about servers without tools.
pub(crate) async fn connect_servers(servers: &UsedServers, warnings: &Warnings) {
    servers.connect_all(CONNECT_TIMEOUT).await;
    for warning in unavailable_servers(servers) {
        warnings.report(&warning);
    }
}

/// The servers with the folder that each starts in. Many programs (`npx`, `python -m`) run what they find in theirs,
/// and a project may be a clone that the user does not trust: it is the project only if the configuration says so.
/// Servers of trusted settings of a project already have their folder.
pub(super) fn with_folders(
    mut config: McpConfig,
    environment: &Environment,
    root: &Path,
) -> McpConfig {
    let home = environment.home().or_else(|| environment.account_home.clone());
    let home = home.filter(|home| home.is_dir()).unwrap_or_else(|| PathBuf::from("/"));
    for server in config.0.values_mut() {
        if let Launch::Stdio(stdio) = &mut server.launch {
            stdio.cwd = Some(stdio.cwd.take().map_or_else(|| home.clone(), |cwd| root.join(cwd)));
        }
    }
    config
}

/// A warning for each server without tools.
pub(crate) fn unavailable_servers(servers: &Mcp) -> Vec<String> {
    let warning = |server: ServerStatus| {
        let error = server.last_error.filter(|_| server.tools == 0)?;
        Some(format!("MCP server `{}` is unavailable: {}", server.name, visible(&error)))
    };
    servers.status().into_iter().filter_map(warning).collect()
}

async fn shut_down(entries: Vec<PoolEntry>) {
    let mut ending = JoinSet::new();
    for entry in entries {
        ending.spawn(async move { entry.servers.shutdown(SHUTDOWN_TIMEOUT).await });
    }
    while ending.join_next().await.is_some() {}
}
