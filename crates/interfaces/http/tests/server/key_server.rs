//! A server with keys, the file they are in, and a clock that the test sets.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use antiphon_core::port::{Clock, SystemClock};
use antiphon_interface_transport::{Keys, ServerConfig, ServerDeps, ServerLimits};
use antiphon_keys::{Key, KeyRing, Level, NewKey, RELOAD_EVERY, SpendLimits};
use antiphon_runtime::{Budget, SpendLimitSource};
use chrono::{DateTime, Utc};
use secrecy::ExposeSecret;
use serde_json::Value;
use tempfile::TempDir;

use crate::client::{Reply, request, say};
use crate::world::{TOKEN, TestServer, server_config};

/// A clock that the test sets.
struct Wall(Mutex<DateTime<Utc>>);

impl Clock for Wall {
    fn now(&self) -> DateTime<Utc> {
        *self.0.lock().unwrap()
    }
}

/// What keys may spend.
struct Paying(KeyRing);

impl SpendLimitSource for Paying {
    fn limits(&self, payer: &str) -> SpendLimits {
        payer.parse().map(|id| self.0.spend_of(id)).unwrap_or_default()
    }

    fn limited(&self) -> Vec<(String, SpendLimits)> {
        let keys = self.0.list().unwrap().into_iter().filter(|key| !key.spend.is_empty());
        keys.map(|key| (key.id.to_string(), key.spend)).collect()
    }
}

/// A server, and keys that another process changes beside it.
pub(crate) struct Keyed {
    pub(crate) server: TestServer,
    /// The keys as that process sees them.
    pub(crate) beside: KeyRing,
    path: PathBuf,
    clock: Arc<Wall>,
    _folder: TempDir,
}

impl Keyed {
    pub(crate) async fn new() -> Self {
        Self::with(ServerLimits::default()).await
    }

    pub(crate) async fn with(limits: ServerLimits) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("keys.json");
        let clock = Arc::new(Wall(Mutex::new(SystemClock.now())));
        let ring = || KeyRing::open_at(&path, Arc::clone(&clock) as Arc<dyn Clock>).unwrap();
        let keys = Keys::new(ring()).unwrap();
        let config = |deps| {
            let deps = ServerDeps { limits, ..deps };
            ServerConfig { keys: Some(keys), ..server_config(deps) }
        };
        let server = TestServer::with_config(config).await;
        Self { server, beside: ring(), path, clock, _folder: folder }
    }

    /// Where answers cost something, and keys may have budgets.
    pub(crate) async fn paying(total: SpendLimits) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("keys.json");
        let clock = Arc::new(Wall(Mutex::new(SystemClock.now())));
        let ring = || KeyRing::open_at(&path, Arc::clone(&clock) as Arc<dyn Clock>).unwrap();
        let keys = Keys::new(ring()).unwrap();
        let config = |deps| ServerConfig { keys: Some(keys), ..server_config(deps) };
        let budget = Budget { total, spend_limits: Arc::new(Paying(ring())), ceiling: None };
        let server = TestServer::paying(budget, config).await;
        Self { server, beside: ring(), path, clock, _folder: folder }
    }

    /// A key, which the server knows.
    pub(crate) fn make(&self, new: NewKey) -> (Key, String) {
        let (key, secret) = self.beside.create(new).unwrap();
        self.look();
        (key, secret.expose_secret().to_owned())
    }

    pub(crate) fn person(&self, level: Level) -> String {
        self.make(NewKey::new("somebody".parse().unwrap(), level)).1
    }

    /// Lets so much time pass that the server looks at the file.
    pub(crate) fn look(&self) {
        self.turn(RELOAD_EVERY);
    }

    pub(crate) fn turn(&self, time: std::time::Duration) {
        *self.clock.0.lock().unwrap() += time;
    }

    pub(crate) fn now(&self) -> DateTime<Utc> {
        self.clock.now()
    }

    pub(crate) fn chmod(&self, mode: u32) {
        fs::set_permissions(&self.path, fs::Permissions::from_mode(mode)).unwrap();
    }

    /// Changes the text of the file, as a person with an editor does.
    pub(crate) fn edit(&self, from: &str, to: &str) {
        let text = fs::read_to_string(&self.path).unwrap();
        assert!(text.contains(from), "{text}");
        fs::write(&self.path, text.replace(from, to)).unwrap();
        self.look();
    }

    /// Asks until the response has another status.
    pub(crate) async fn retry(&self, key: &str, path: &str, status: u16) -> Reply {
        loop {
            let reply = self.ask(key, "GET", path, None).await;
            if reply.status != status {
                return reply;
            }
            tokio::task::yield_now().await;
        }
    }

    /// Posts a task until the response has another status.
    pub(crate) async fn retry_post(&self, key: &str, task: &Value, status: u16) -> Reply {
        loop {
            let reply = self.ask(key, "POST", "/v1/tasks", Some(task)).await;
            if reply.status != status {
                return reply;
            }
            tokio::task::yield_now().await;
        }
    }

    pub(crate) async fn ask(
        &self,
        key: &str,
        method: &str,
        path: &str,
        body: Option<&Value>,
    ) -> Reply {
        let body = body.map(Value::to_string);
        let text = request(self.server.address, method, path, body.as_deref());
        say(self.server.address, &text.replacen(TOKEN, key, 1)).await
    }
}
