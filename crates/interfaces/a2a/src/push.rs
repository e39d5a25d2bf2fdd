//! Push notifications: their configurations, in private files, and their delivery.
//!
//! A configuration is stored until its client deletes it, and for a day after the end of its task was delivered or its
//! receiver was given up. Each update of its task is posted in order, and the next one
//! only when that was received: after a crash the last one may come twice, and none is lost. A receiver that does not
//! answer is tried six times; then the delivery ends until the server starts again.
//!
//! A configuration belongs to its payer, the key that set it: no other caller changes it, and only the owner sees it too,
//! without its secrets. Before each attempt, and when the server starts, the key must still be valid; otherwise the
//! configuration is dropped.

mod delivery;
mod payer;

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use a2a::{TaskPushNotificationConfig, error_code};
use antiphon_core::port::{Clock as _, SystemClock};
use antiphon_core::{Seq, TaskId};
use antiphon_outbound::{OutboundError, OutboundRules};
use antiphon_private_file::{Durability, create_folder, open, write_atomic};
use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use url::Url;
use uuid::Uuid;

use crate::error::A2aError;
pub(crate) use crate::push::payer::PushSource;
use crate::push::payer::Verdict;

/// Configurations of one task, at most.
const PER_TASK_MAX: usize = 16;

/// Configurations of the tasks of one API key, or of the owner, at most.
const PER_PAYER_MAX: usize = 1000;

/// Configurations of all tasks, at most.
const CONFIGS_MAX: usize = 10_000;

/// How long a configuration is kept that has nothing more to deliver.
const KEPT: TimeDelta = TimeDelta::days(1);

/// Longest token or credentials, in bytes.
const SECRET_BYTES_MAX: usize = 4096;

/// Largest file of a configuration, in bytes.
const FILE_BYTES_MAX: u64 = 64 * 1024;

/// Why stored configurations cannot be read.
#[derive(Debug)]
pub struct PushError(String);

impl std::fmt::Display for PushError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for PushError {}

/// A configuration as it is stored.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct StoredConfig {
    config: TaskPushNotificationConfig,
    /// The last event whose updates were delivered.
    delivered: Seq,
    /// Whether the end of the task was delivered.
    done: bool,
    /// The API key that created it; absent for the owner.
    #[serde(default)]
    payer: Option<String>,
    /// Since when it has nothing to deliver, or its receiver does not answer.
    #[serde(default)]
    over_at: Option<DateTime<Utc>>,
    #[serde(skip)]
    deleted: CancellationToken,
}

type Key = (TaskId, String);

/// Configurations of push notifications, and their delivery. Cheap to clone.
#[derive(Clone)]
pub(crate) struct PushService {
    inner: Arc<Inner>,
}

struct Inner {
    folder: PathBuf,
    rules: OutboundRules,
    configs: Mutex<BTreeMap<Key, StoredConfig>>,
    tracker: TaskTracker,
    stop: CancellationToken,
}

impl PushService {
    /// Reads the stored configurations. A file that is damaged is left out, and logged.
    pub(crate) fn open(folder: PathBuf, rules: OutboundRules) -> Result<Self, PushError> {
        let wrong = |error: std::io::Error| PushError(format!("{}: {error}", folder.display()));
        create_folder(&folder).map_err(wrong)?;
        let mut configs = BTreeMap::new();
        let now = SystemClock.now();
        for entry in std::fs::read_dir(&folder).map_err(wrong)? {
            let path = entry.map_err(wrong)?.path();
            if path.extension().is_none_or(|end| end != "json") {
                continue;
            }
            match read(&path) {
                Ok((_, stored)) if stored.is_outdated(now) => remove(&path),
                Ok((key, mut stored)) => {
                    // A file of an earlier version does not say since when.
                    if stored.done && stored.over_at.is_none() {
                        stored.over_at = Some(now);
                    }
                    configs.insert(key, stored);
                }
                Err(reason) => {
                    tracing::warn!(path = %path.display(), reason, "a push configuration is damaged");
                }
            }
        }
        let inner = Inner {
            folder,
            rules,
            configs: Mutex::new(configs),
            tracker: TaskTracker::new(),
            stop: CancellationToken::new(),
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Goes on with what was not delivered.
    pub(crate) fn resume(&self, source: &PushSource) {
        let mut configs = self.configs();
        configs.retain(|key, stored| match source.verdict(stored.payer.as_deref()) {
            Verdict::Lost(reason) => {
                log_drop(key, &reason);
                remove(&self.path(key));
                false
            }
            Verdict::Allowed | Verdict::Unknown(_) => true,
        });
        for (key, stored) in configs.iter().filter(|(_, stored)| !stored.done) {
            self.deliver(source.clone(), key.clone(), stored.clone());
        }
    }

    pub(crate) async fn shutdown(&self) {
        self.inner.stop.cancel();
        self.inner.tracker.close();
        self.inner.tracker.wait().await;
    }

    /// Checks a configuration before anything is done.
    pub(crate) fn check(&self, config: &TaskPushNotificationConfig) -> Result<Url, A2aError> {
        let wrong = |reason: String| A2aError::param("url", reason);
        let url = Url::parse(&config.url).map_err(|error| wrong(error.to_string()))?;
        self.inner.rules.check(&url).map_err(|error| wrong(error.to_string()))?;
        let credentials = config.authentication.as_ref();
        let texts = [
            ("token", config.token.as_deref()),
            ("authentication.scheme", credentials.map(|given| given.scheme.as_str())),
            (
                "authentication.credentials",
                credentials.and_then(|given| given.credentials.as_deref()),
            ),
            ("id", config.id.as_deref()),
        ];
        for (field, text) in texts {
            let Some(text) = text else { continue };
            if text.len() > SECRET_BYTES_MAX || !text.chars().all(|c| (' '..='~').contains(&c)) {
                let reason = format!("at most {SECRET_BYTES_MAX} printable ASCII characters");
                return Err(A2aError::param(field, reason));
            }
        }
        Ok(url)
    }

    /// Stores a configuration, or replaces the one of its id, and begins to deliver. It is durable when this returns.
    pub(crate) async fn create(
        &self,
        source: PushSource,
        payer: Option<String>,
        task_id: &TaskId,
        config: TaskPushNotificationConfig,
    ) -> Result<TaskPushNotificationConfig, A2aError> {
        let url = self.check(&config)?;
        if let Err(OutboundError::Refused { reason }) = self.inner.rules.client(&url).await {
            return Err(A2aError::param("url", reason));
        }
        let id =
            config.id.filter(|id| !id.is_empty()).unwrap_or_else(|| Uuid::new_v4().to_string());
        let config = TaskPushNotificationConfig {
            id: Some(id.clone()),
            task_id: task_id.to_string(),
            tenant: None,
            ..config
        };
        let key = (task_id.clone(), id);
        let stored = StoredConfig {
            config: config.clone(),
            delivered: Seq(0),
            done: false,
            payer,
            over_at: None,
            deleted: CancellationToken::new(),
        };
        {
            let mut configs = self.configs();
            self.drop_outdated(&mut configs);
            if configs.get(&key).is_some_and(|known| known.payer != stored.payer) {
                return Err(of_another());
            }
            check_room(&configs, &key, stored.payer.as_deref())?;
            self.write(&key, &stored)?;
            if let Some(replaced) = configs.insert(key.clone(), stored.clone()) {
                replaced.deleted.cancel();
            }
        }
        self.deliver(source, key, stored);
        Ok(config)
    }

    pub(crate) fn get(
        &self,
        payer: Option<&str>,
        task_id: &TaskId,
        id: &str,
    ) -> Result<TaskPushNotificationConfig, A2aError> {
        let found = self.configs().get(&(task_id.clone(), id.to_owned())).cloned();
        let none = || {
            A2aError::new(
                error_code::TASK_NOT_FOUND,
                "there is no such push notification configuration",
            )
        };
        found.and_then(|stored| stored.shown_to(payer)).ok_or_else(none)
    }

    pub(crate) fn list(
        &self,
        payer: Option<&str>,
        task_id: &TaskId,
    ) -> Vec<TaskPushNotificationConfig> {
        let first = (task_id.clone(), String::new());
        let configs = self.configs();
        let of_task = configs.range(first..).take_while(|((task, _), _)| task == task_id);
        of_task.filter_map(|(_, stored)| stored.shown_to(payer)).collect()
    }

    /// Deletes a configuration. One that does not exist, or that the caller does not see, is as good as deleted.
    pub(crate) fn delete(
        &self,
        payer: Option<&str>,
        task_id: &TaskId,
        id: &str,
    ) -> Result<(), A2aError> {
        let key = (task_id.clone(), id.to_owned());
        let mut configs = self.configs();
        if let Some(stored) = configs.get(&key).filter(|stored| stored.payer.as_deref() != payer) {
            return if stored.shown_to(payer).is_some() { Err(of_another()) } else { Ok(()) };
        }
        if let Some(stored) = configs.remove(&key) {
            stored.deleted.cancel();
        }
        match std::fs::remove_file(self.path(&key)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(storage(&error)),
            Ok(()) | Err(_) => Ok(()),
        }
    }

    fn drop_outdated(&self, configs: &mut BTreeMap<Key, StoredConfig>) {
        let now = SystemClock.now();
        configs.retain(|key, stored| {
            let is_outdated = stored.is_outdated(now);
            if is_outdated {
                stored.deleted.cancel();
                remove(&self.path(key));
            }
            !is_outdated
        });
    }

    /// Records how far the updates of a configuration were delivered, unless it was deleted or replaced.
    fn record(&self, key: &Key, delivered: Seq, done: bool) {
        let mut configs = self.configs();
        let Some(stored) = configs.get_mut(key).filter(|stored| !stored.deleted.is_cancelled())
        else {
            return;
        };
        (stored.delivered, stored.done) = (delivered, done);
        stored.over_at = done.then(|| SystemClock.now());
        let stored = stored.clone();
        if let Err(error) = self.write(key, &stored) {
            tracing::warn!(task.id = %key.0, ?error, "a delivery was not recorded: it may be repeated");
        }
    }

    /// Drops a configuration whose key may no longer have it, unless it was deleted or replaced.
    fn drop_lost(&self, key: &Key, reason: &str) {
        let mut configs = self.configs();
        if configs.get(key).is_some_and(|stored| !stored.deleted.is_cancelled()) {
            log_drop(key, reason);
            configs.remove(key);
            remove(&self.path(key));
        }
    }

    /// Records that the receiver of a configuration was given up, or that its task is gone.
    fn give_up(&self, key: &Key) {
        let mut configs = self.configs();
        let given_up = configs.get_mut(key).filter(|stored| !stored.deleted.is_cancelled());
        let Some(stored) = given_up.filter(|stored| stored.over_at.is_none()) else { return };
        stored.over_at = Some(SystemClock.now());
        let stored = stored.clone();
        if let Err(error) = self.write(key, &stored) {
            tracing::warn!(task.id = %key.0, ?error, "a push configuration was not recorded");
        }
    }

    fn write(&self, key: &Key, stored: &StoredConfig) -> Result<(), A2aError> {
        let bytes = serde_json::to_vec(stored).unwrap_or_default();
        write_atomic(&self.path(key), &bytes, Durability::Synced).map_err(|error| storage(&error))
    }

    /// The name of the file does not depend on what a client writes.
    fn path(&self, (task_id, id): &Key) -> PathBuf {
        let name = Uuid::new_v5(&Uuid::NAMESPACE_OID, format!("{task_id}\n{id}").as_bytes());
        self.inner.folder.join(format!("{name}.json"))
    }

    fn configs(&self) -> std::sync::MutexGuard<'_, BTreeMap<Key, StoredConfig>> {
        self.inner.configs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn deliver(&self, source: PushSource, key: Key, stored: StoredConfig) {
        let service = self.clone();
        let deleted = stored.deleted.clone();
        self.inner.tracker.spawn(async move {
            let stop = service.inner.stop.clone();
            let delivering = delivery::deliver(&service, &source, &key, stored);
            tokio::select! {
                () = stop.cancelled() => {}
                () = deleted.cancelled() => {}
                () = delivering => {}
            }
        });
    }
}

impl StoredConfig {
    /// The configuration as a caller sees it who sees its task; `None` if another key set it, or the owner.
    fn shown_to(&self, payer: Option<&str>) -> Option<TaskPushNotificationConfig> {
        if self.payer.as_deref() == payer {
            return Some(self.config.clone());
        }
        let mut shown = self.config.clone();
        shown.token = None;
        if let Some(authentication) = &mut shown.authentication {
            authentication.credentials = None;
        }
        payer.is_none().then_some(shown)
    }

    fn is_outdated(&self, now: DateTime<Utc>) -> bool {
        self.over_at.is_some_and(|over_at| now - over_at > KEPT)
    }
}

/// Whether there is room for the configuration of this key, which may exist.
fn check_room(
    configs: &BTreeMap<Key, StoredConfig>,
    key: &Key,
    payer: Option<&str>,
) -> Result<(), A2aError> {
    let refuse = |of: &str| {
        let message = format!("{of} too many push notification configurations: delete one");
        Err(A2aError::new(error_code::UNSUPPORTED_OPERATION, message))
    };
    if configs.contains_key(key) {
        return Ok(());
    }
    if configs.keys().filter(|(task, _)| *task == key.0).count() >= PER_TASK_MAX {
        return refuse("the task has");
    }
    let of_payer = configs.values().filter(|stored| stored.payer.as_deref() == payer);
    if of_payer.count() >= PER_PAYER_MAX {
        return refuse("the API key has");
    }
    if configs.len() >= CONFIGS_MAX { refuse("the server has") } else { Ok(()) }
}

fn of_another() -> A2aError {
    let message = "another caller set the push notification configuration of this id, and only it may change it";
    A2aError::unsupported(message)
}

fn log_drop(key: &Key, reason: &str) {
    tracing::warn!(task.id = %key.0, reason, "a push configuration was dropped");
}

/// Removes the file of a configuration that is over.
fn remove(path: &Path) {
    if let Err(error) = std::fs::remove_file(path) {
        tracing::warn!(path = %path.display(), %error, "a push configuration was not removed");
    }
}

fn storage(error: &std::io::Error) -> A2aError {
    let message = format!("the push notification configuration cannot be stored: {error}");
    A2aError::new(error_code::INTERNAL_ERROR, message)
}

fn read(path: &Path) -> Result<(Key, StoredConfig), String> {
    let mut text = String::new();
    let file = open(path).map_err(|error| error.to_string())?;
    file.take(FILE_BYTES_MAX).read_to_string(&mut text).map_err(|error| error.to_string())?;
    let stored: StoredConfig = serde_json::from_str(&text).map_err(|error| error.to_string())?;
    let task_id = TaskId::parse(&stored.config.task_id).map_err(|error| error.to_string())?;
    let id = stored.config.id.clone().unwrap_or_default();
    Ok(((task_id, id), stored))
}
