//! A project with a file-drop service and an implementation of `OrderExecutor` that records its calls.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};

use antiphon_core::port::OrderExecutor;
use antiphon_core::{
    Command, InteractionId, Order, OrderError, OrderResult, OrderStatus, TaskId, Wait,
};
use antiphon_file_drop::{FileDropSettings, PassCounts, Response, answer_waiting, watch};
use async_trait::async_trait;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// Longest wait for anything.
pub(crate) const WAIT_MAX: Duration = Duration::from_secs(50);

/// Records each order once per key.
pub(crate) struct RecordingOrders {
    log: Mutex<OrderLog>,
    /// Orders for a blocked target wait for a permit.
    pub(crate) gate: Semaphore,
}

#[derive(Default)]
struct OrderLog {
    effects: Vec<(String, Order)>,
    by_key: BTreeMap<String, OrderResult>,
    calls: usize,
    started: Vec<String>,
    running: usize,
    most_running: usize,
    held: BTreeSet<String>,
    unavailable: usize,
}

impl Default for RecordingOrders {
    fn default() -> Self {
        Self { log: Mutex::default(), gate: Semaphore::new(0) }
    }
}

impl RecordingOrders {
    fn with<T>(&self, look: impl FnOnce(&mut OrderLog) -> T) -> T {
        look(&mut self.log.lock().unwrap())
    }

    /// Every order that had an effect, in order, with its requester.
    pub(crate) fn effects(&self) -> Vec<(String, Order)> {
        self.with(|log| log.effects.clone())
    }

    /// Number of calls, with an effect or without.
    pub(crate) fn calls(&self) -> usize {
        self.with(|log| log.calls)
    }

    /// Targets of all calls, including those that wait at the gate.
    pub(crate) fn started(&self) -> Vec<String> {
        self.with(|log| log.started.clone())
    }

    pub(crate) fn most_running(&self) -> usize {
        self.with(|log| log.most_running)
    }

    /// Blocks orders for this agent or task at the gate.
    pub(crate) fn hold(&self, target: &str) {
        self.with(|log| log.held.insert(target.to_owned()));
    }

    /// The next `times` calls are refused as unavailable.
    pub(crate) fn unavailable(&self, times: usize) {
        self.with(|log| log.unavailable = times);
    }

    pub(crate) fn is_available(&self) -> bool {
        self.with(|log| log.unavailable == 0)
    }
}

#[async_trait]
impl OrderExecutor for RecordingOrders {
    async fn execute(
        &self,
        order: Order,
        requester: &str,
        key: &str,
    ) -> Result<OrderResult, OrderError> {
        let target = target(&order);
        let held = self.with(|log| {
            log.calls += 1;
            log.started.push(target.clone());
            log.running += 1;
            log.most_running = log.most_running.max(log.running);
            log.held.contains(&target)
        });
        assert_ne!(target, "fatal", "a bug");
        if held {
            self.gate.acquire().await.unwrap().forget();
        }
        self.with(|log| {
            log.running -= 1;
            if log.unavailable > 0 {
                log.unavailable -= 1;
                return Err(OrderError::Unavailable { reason: "out for lunch".to_owned() });
            }
            if target == "nobody" {
                let message = "there is no agent `nobody`: see `antiphon agents list`".to_owned();
                return Err(OrderError::Refused { code: "NOT_FOUND".to_owned(), message });
            }
            if let Some(done) = log.by_key.get(key) {
                return Ok(done.clone());
            }
            let done = done(&order, log.effects.len());
            log.effects.push((requester.to_owned(), order));
            log.by_key.insert(key.to_owned(), done.clone());
            Ok(done)
        })
    }
}

/// The agent or task that an order concerns.
pub(crate) fn target(order: &Order) -> String {
    match order {
        Order::Control(
            Command::SpawnAgent { name, .. }
            | Command::StopAgent { name }
            | Command::UpdateAgentContext { name, .. },
        ) => name.clone(),
        Order::Send { to, .. } => to.to_string(),
        Order::Invoke { agent, .. } => agent.clone().unwrap_or_default(),
        Order::Respond { request_id, .. } => request_id.to_string(),
        Order::Cancel { task_id } => task_id.to_string(),
    }
}

/// The result of the `nth` order.
fn done(order: &Order, nth: usize) -> OrderResult {
    let task = |nth: usize| TaskId::parse(&format!("task-{nth}")).unwrap();
    let agent = Some(target(order)).filter(|agent| !agent.is_empty());
    let done = |status| OrderResult { agent: agent.clone(), ..OrderResult::new(status) };
    match order {
        Order::Control(Command::SpawnAgent { .. }) => {
            OrderResult { task_id: Some(task(nth)), ..done(OrderStatus::Started) }
        }
        Order::Control(Command::StopAgent { .. }) => done(OrderStatus::Stopped),
        Order::Control(Command::UpdateAgentContext { .. }) => done(OrderStatus::Updated),
        Order::Send { .. } => {
            let id = InteractionId(Uuid::from_u128(7));
            OrderResult { interaction_id: Some(id), ..done(OrderStatus::Accepted) }
        }
        Order::Invoke { wait: Wait::No, .. } => {
            OrderResult { task_id: Some(task(nth)), ..done(OrderStatus::Accepted) }
        }
        Order::Invoke { wait: Wait::ForResult, prompt, .. } => {
            let result = Some(json!({"echo": prompt}));
            OrderResult { task_id: Some(task(nth)), result, ..done(OrderStatus::Completed) }
        }
        Order::Respond { .. } => OrderResult::new(OrderStatus::Answered),
        Order::Cancel { task_id } => OrderResult {
            task_id: Some(task_id.clone()),
            ..OrderResult::new(OrderStatus::Canceled)
        },
    }
}

/// A project, with or without a running service.
pub(crate) struct World {
    folder: TempDir,
    pub(crate) settings: FileDropSettings,
    pub(crate) orders: Arc<RecordingOrders>,
    stop: CancellationToken,
    watching: JoinSet<()>,
}

impl World {
    /// No service runs yet; the folder of the requester `boss` exists.
    pub(crate) fn new() -> Self {
        let world = Self {
            folder: tempfile::tempdir().unwrap(),
            settings: FileDropSettings {
                settle: Duration::from_millis(150),
                ..FileDropSettings::default()
            },
            orders: Arc::default(),
            stop: CancellationToken::new(),
            watching: JoinSet::new(),
        };
        fs::create_dir_all(world.path("")).unwrap();
        world
    }

    /// A service runs and has scanned everything.
    pub(crate) async fn watched() -> Self {
        let mut world = Self::new();
        world.start().await;
        world
    }

    pub(crate) async fn start(&mut self) {
        self.begin();
        let ready = self.path("ready.json");
        self.drop("ready.json", r#"{"action":"cancel","taskId":"ready"}"#);
        self.response("ready").await;
        fs::remove_file(ready).unwrap();
        fs::remove_file(self.path("ready.response.json")).unwrap();
        self.orders.with(|log| {
            log.effects.retain(|(_, order)| target(order) != "ready");
            log.started.retain(|target| target != "ready");
            log.calls -= 1;
        });
    }

    /// Starts the service.
    pub(crate) fn begin(&mut self) {
        self.stop = CancellationToken::new();
        let (settings, stop) = (self.settings.clone(), self.stop.clone());
        let watching = watch(self.project().to_owned(), settings, self.orders.clone(), stop);
        self.watching.spawn(async { watching.await.unwrap() });
    }

    /// Stops the service.
    pub(crate) async fn end(&mut self) {
        self.stop.cancel();
        while let Some(ended) = self.watching.join_next().await {
            ended.unwrap();
        }
    }

    /// Ends the service as a kill would.
    pub(crate) async fn kill(&mut self) {
        self.watching.shutdown().await;
    }

    /// Answers the present requests.
    pub(crate) async fn pass(&self) -> PassCounts {
        let stop = CancellationToken::new();
        let (settings, orders) = (self.settings.clone(), self.orders.clone());
        answer_waiting(self.project(), settings, orders, stop).await.unwrap()
    }

    pub(crate) fn project(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn requests(&self) -> PathBuf {
        self.project().join(".antiphon/requests")
    }

    /// Path of a file of the requester `boss`.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.requests().join("boss").join(name)
    }

    /// Writes a request elsewhere and renames it into the folder.
    pub(crate) fn drop(&self, name: &str, text: &str) {
        let elsewhere = self.project().join(format!("{}.part", Uuid::new_v4()));
        fs::write(&elsewhere, text).unwrap();
        fs::rename(elsewhere, self.path(name)).unwrap();
    }

    /// The same, modified a second ago.
    pub(crate) fn drop_old(&self, name: &str, text: &str) {
        let elsewhere = self.project().join(format!("{}.part", Uuid::new_v4()));
        fs::write(&elsewhere, text).unwrap();
        let file = fs::File::options().write(true).open(&elsewhere).unwrap();
        file.set_modified(SystemTime::now() - Duration::from_secs(1)).unwrap();
        fs::rename(elsewhere, self.path(name)).unwrap();
    }

    /// All names in the folder of `boss`, sorted.
    pub(crate) fn names(&self) -> Vec<String> {
        names(&self.path(""))
    }

    /// Waits for the response to `<stem>.json`.
    pub(crate) async fn response(&self, stem: &str) -> Response {
        response_at(&self.path(&format!("{stem}.response.json"))).await
    }

    /// The response without the fields that differ each time.
    pub(crate) async fn comparable(&self, stem: &str) -> Value {
        comparable(self.response(stem).await)
    }

    /// Waits until the response to `<stem>.json` differs from `before`.
    pub(crate) async fn next_response(&self, stem: &str, before: &Response) -> Response {
        let path = self.path(&format!("{stem}.response.json"));
        until(|| read(&path).filter(|now| now != before)).await
    }
}

/// A response without the fields that differ each time: time, file and digest.
pub(crate) fn comparable(response: Response) -> Value {
    let mut answer = serde_json::to_value(response).unwrap();
    let fields = answer.as_object_mut().unwrap();
    assert!(fields.remove("time").is_some());
    fields.remove("file");
    fields.remove("digest");
    answer
}

pub(crate) async fn response_at(path: &Path) -> Response {
    until(|| read(path)).await
}

/// The response at `path`, if it exists. An existing one is complete.
pub(crate) fn read(path: &Path) -> Option<Response> {
    let text = fs::read(path).ok()?;
    Some(serde_json::from_slice(&text).unwrap())
}

/// Polls until there is a value.
pub(crate) async fn until<T>(mut look: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + WAIT_MAX;
    loop {
        if let Some(seen) = look() {
            return seen;
        }
        assert!(Instant::now() < end, "nothing came of it");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

pub(crate) fn names(folder: &Path) -> Vec<String> {
    let name = |entry: fs::DirEntry| entry.file_name().to_string_lossy().into_owned();
    let mut names: Vec<String> = fs::read_dir(folder).unwrap().flatten().map(name).collect();
    names.sort();
    names
}

/// A request to stop an agent.
pub(crate) fn stop(agent: &str) -> String {
    json!({"action": "stop_agent", "name": agent}).to_string()
}

/// The order of that request.
pub(crate) fn stopped(agent: &str) -> (String, Order) {
    let order = Order::Control(Command::StopAgent { name: agent.to_owned() });
    ("boss".to_owned(), order)
}
