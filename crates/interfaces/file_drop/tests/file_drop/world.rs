//! A project with a door, and somebody behind it who remembers what was asked.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};

use antiphon_core::{Command, InteractionId, TaskId};
use antiphon_file_drop::{
    Done, DoneStatus, Order, OrderError, Orders, Response, Settings, Tally, Wait, answer_waiting,
    watch,
};
use async_trait::async_trait;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// How long anything may take.
pub(crate) const PATIENCE: Duration = Duration::from_secs(50);

/// Carries out orders by writing them down, each key once.
pub(crate) struct Book {
    pages: Mutex<Pages>,
    /// Who is held up has to wait for a permit.
    pub(crate) gate: Semaphore,
}

#[derive(Default)]
struct Pages {
    effects: Vec<(String, Order)>,
    by_key: BTreeMap<String, Done>,
    calls: usize,
    begun: Vec<String>,
    under_way: usize,
    most_under_way: usize,
    held: BTreeSet<String>,
    unavailable: usize,
}

impl Default for Book {
    fn default() -> Self {
        Self { pages: Mutex::default(), gate: Semaphore::new(0) }
    }
}

impl Book {
    fn with<T>(&self, look: impl FnOnce(&mut Pages) -> T) -> T {
        look(&mut self.pages.lock().unwrap())
    }

    /// Every order that had an effect, in order, with who asked for it.
    pub(crate) fn effects(&self) -> Vec<(String, Order)> {
        self.with(|pages| pages.effects.clone())
    }

    /// How often an order was asked for, with an effect or not.
    pub(crate) fn calls(&self) -> usize {
        self.with(|pages| pages.calls)
    }

    /// Whom orders were begun for, those included that wait at the gate.
    pub(crate) fn begun(&self) -> Vec<String> {
        self.with(|pages| pages.begun.clone())
    }

    pub(crate) fn most_under_way(&self) -> usize {
        self.with(|pages| pages.most_under_way)
    }

    /// Holds up orders for this agent, or this task.
    pub(crate) fn hold(&self, whom: &str) {
        self.with(|pages| pages.held.insert(whom.to_owned()));
    }

    /// Is not there for the next so many calls.
    pub(crate) fn unavailable(&self, times: usize) {
        self.with(|pages| pages.unavailable = times);
    }

    pub(crate) fn is_available(&self) -> bool {
        self.with(|pages| pages.unavailable == 0)
    }
}

#[async_trait]
impl Orders for Book {
    async fn carry_out(
        &self,
        order: Order,
        requester: &str,
        key: &str,
    ) -> Result<Done, OrderError> {
        let whom = whom(&order);
        let held = self.with(|pages| {
            pages.calls += 1;
            pages.begun.push(whom.clone());
            pages.under_way += 1;
            pages.most_under_way = pages.most_under_way.max(pages.under_way);
            pages.held.contains(&whom)
        });
        assert_ne!(whom, "fatal", "somebody made a mistake");
        if held {
            self.gate.acquire().await.unwrap().forget();
        }
        self.with(|pages| {
            pages.under_way -= 1;
            if pages.unavailable > 0 {
                pages.unavailable -= 1;
                return Err(OrderError::Unavailable { reason: "out for lunch".to_owned() });
            }
            if whom == "nobody" {
                let message = "there is no agent `nobody`: see `antiphon agents list`".to_owned();
                return Err(OrderError::Refused { code: "NOT_FOUND".to_owned(), message });
            }
            if let Some(done) = pages.by_key.get(key) {
                return Ok(done.clone());
            }
            let done = done(&order, pages.effects.len());
            pages.effects.push((requester.to_owned(), order));
            pages.by_key.insert(key.to_owned(), done.clone());
            Ok(done)
        })
    }
}

/// Whom an order is about.
pub(crate) fn whom(order: &Order) -> String {
    match order {
        Order::Control(
            Command::SpawnAgent { name, .. }
            | Command::StopAgent { name }
            | Command::UpdateAgentContext { name, .. },
        ) => name.clone(),
        Order::Send { to, .. } => to.to_string(),
        Order::Invoke { agent, .. } => agent.clone().unwrap_or_default(),
        Order::Cancel { task_id } => task_id.to_string(),
    }
}

/// What comes of an order: the nth.
fn done(order: &Order, nth: usize) -> Done {
    let task = |nth: usize| TaskId::parse(&format!("task-{nth}")).unwrap();
    let agent = Some(whom(order)).filter(|agent| !agent.is_empty());
    let done = |status| Done { agent: agent.clone(), ..Done::new(status) };
    match order {
        Order::Control(Command::SpawnAgent { .. }) => {
            Done { task_id: Some(task(nth)), ..done(DoneStatus::Started) }
        }
        Order::Control(Command::StopAgent { .. }) => done(DoneStatus::Stopped),
        Order::Control(Command::UpdateAgentContext { .. }) => done(DoneStatus::Updated),
        Order::Send { .. } => {
            let id = InteractionId(Uuid::from_u128(7));
            Done { interaction_id: Some(id), ..done(DoneStatus::Accepted) }
        }
        Order::Invoke { wait: Wait::No, .. } => {
            Done { task_id: Some(task(nth)), ..done(DoneStatus::Accepted) }
        }
        Order::Invoke { wait: Wait::ForResult, prompt, .. } => {
            let result = Some(json!({"echo": prompt}));
            Done { task_id: Some(task(nth)), result, ..done(DoneStatus::Completed) }
        }
        Order::Cancel { task_id } => {
            Done { task_id: Some(task_id.clone()), ..Done::new(DoneStatus::Canceled) }
        }
    }
}

/// A project, with or without somebody who watches it.
pub(crate) struct World {
    folder: TempDir,
    pub(crate) settings: Settings,
    pub(crate) book: Arc<Book>,
    stop: CancellationToken,
    watching: JoinSet<()>,
}

impl World {
    /// Nobody watches yet; the folder of the requester `boss` is there.
    pub(crate) fn new() -> Self {
        let world = Self {
            folder: tempfile::tempdir().unwrap(),
            settings: Settings { settle: Duration::from_millis(150), ..Settings::default() },
            book: Arc::default(),
            stop: CancellationToken::new(),
            watching: JoinSet::new(),
        };
        fs::create_dir_all(world.path("")).unwrap();
        world
    }

    /// Watched, and ready: everything that is there was looked at.
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
        self.book.with(|pages| {
            pages.effects.retain(|(_, order)| whom(order) != "ready");
            pages.begun.retain(|whom| whom != "ready");
            pages.calls -= 1;
        });
    }

    /// Watches, from now on.
    pub(crate) fn begin(&mut self) {
        self.stop = CancellationToken::new();
        let (settings, stop) = (self.settings.clone(), self.stop.clone());
        let watching = watch(self.project().to_owned(), settings, self.book.clone(), stop);
        self.watching.spawn(async { watching.await.unwrap() });
    }

    /// Nobody watches any more.
    pub(crate) async fn end(&mut self) {
        self.stop.cancel();
        while let Some(ended) = self.watching.join_next().await {
            ended.unwrap();
        }
    }

    /// Ends without a word, as by a kill.
    pub(crate) async fn kill(&mut self) {
        self.watching.shutdown().await;
    }

    /// Answers what is there.
    pub(crate) async fn pass(&self) -> Tally {
        let stop = CancellationToken::new();
        let (settings, orders) = (self.settings.clone(), self.book.clone());
        answer_waiting(self.project(), settings, orders, stop).await.unwrap()
    }

    pub(crate) fn project(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn requests(&self) -> PathBuf {
        self.project().join(".antiphon/requests")
    }

    /// A file of the requester `boss`.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.requests().join("boss").join(name)
    }

    /// Writes a request elsewhere and renames it in.
    pub(crate) fn drop(&self, name: &str, text: &str) {
        let elsewhere = self.project().join(format!("{}.part", Uuid::new_v4()));
        fs::write(&elsewhere, text).unwrap();
        fs::rename(elsewhere, self.path(name)).unwrap();
    }

    /// The same, written a while ago.
    pub(crate) fn drop_old(&self, name: &str, text: &str) {
        let elsewhere = self.project().join(format!("{}.part", Uuid::new_v4()));
        fs::write(&elsewhere, text).unwrap();
        let file = fs::File::options().write(true).open(&elsewhere).unwrap();
        file.set_modified(SystemTime::now() - Duration::from_secs(1)).unwrap();
        fs::rename(elsewhere, self.path(name)).unwrap();
    }

    /// Everything that is in the folder of `boss`, in order.
    pub(crate) fn names(&self) -> Vec<String> {
        names(&self.path(""))
    }

    /// The response to `<stem>.json`, as it stands there.
    pub(crate) async fn response(&self, stem: &str) -> Response {
        response_at(&self.path(&format!("{stem}.response.json"))).await
    }

    /// The same without what is different each time.
    pub(crate) async fn told(&self, stem: &str) -> Value {
        told(self.response(stem).await)
    }

    /// Waits until the response to `<stem>.json` is another than `before`.
    pub(crate) async fn next_response(&self, stem: &str, before: &Response) -> Response {
        let path = self.path(&format!("{stem}.response.json"));
        until(|| read(&path).filter(|now| now != before)).await
    }
}

/// A response without what is different each time: when, which file, and its digest.
pub(crate) fn told(response: Response) -> Value {
    let mut told = serde_json::to_value(response).unwrap();
    let fields = told.as_object_mut().unwrap();
    assert!(fields.remove("time").is_some());
    fields.remove("file");
    fields.remove("digest");
    told
}

pub(crate) async fn response_at(path: &Path) -> Response {
    until(|| read(path)).await
}

/// A response that is there. One that is there is whole.
pub(crate) fn read(path: &Path) -> Option<Response> {
    let text = fs::read(path).ok()?;
    Some(serde_json::from_slice(&text).unwrap())
}

/// Waits until there is something to see. Files tell nobody, so it is looked for.
pub(crate) async fn until<T>(mut look: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + PATIENCE;
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

/// The order that it becomes.
pub(crate) fn stopped(agent: &str) -> (String, Order) {
    let order = Order::Control(Command::StopAgent { name: agent.to_owned() });
    ("boss".to_owned(), order)
}
