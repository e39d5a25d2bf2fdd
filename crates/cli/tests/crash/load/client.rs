//! Clients that repeat a request with its idempotency key until it is answered, and watchers that
//! reconnect with their last event.

use std::sync::Mutex;
use std::thread::Scope;

use serde_json::{Value, json};

use super::http::Response;
use super::server::RestartingServer;

/// What a client requests.
#[derive(Debug, Clone, Copy)]
pub(crate) enum RequestKind {
    /// A task, of an agent or of none.
    Task(Option<&'static str>),
    /// A chat with one response.
    Chat,
    /// A chat with a streamed response.
    StreamedChat,
}

/// A request and its answer.
#[derive(Debug)]
pub(crate) struct AnsweredRequest {
    pub(crate) word: String,
    pub(crate) kind: RequestKind,
    pub(crate) task: String,
    /// The text of the answer.
    pub(crate) content: String,
    /// How often the request was sent.
    pub(crate) attempts: usize,
}

/// The events a watcher got of a task.
#[derive(Debug)]
pub(crate) struct WatchedTask {
    pub(crate) task: String,
    pub(crate) events: Vec<Value>,
    /// How often the watcher connected.
    pub(crate) connections: usize,
}

/// Everything the clients and watchers got.
#[derive(Default)]
pub(crate) struct Records {
    pub(crate) answered: Mutex<Vec<AnsweredRequest>>,
    pub(crate) watched: Mutex<Vec<WatchedTask>>,
    pub(crate) errors: Mutex<Vec<String>>,
}

impl Records {
    /// Records a result. An error stops all clients.
    fn record<T>(
        &self,
        server: &RestartingServer,
        list: &Mutex<Vec<T>>,
        result: Result<Option<T>, String>,
    ) {
        match result {
            Ok(Some(item)) => list.lock().unwrap().push(item),
            Ok(None) => {}
            Err(error) => {
                self.errors.lock().unwrap().push(error);
                server.close();
            }
        }
    }
}

/// Sends a request and waits for the answer, while a watcher follows the task.
pub(crate) fn request<'scope>(
    server: &'scope RestartingServer,
    records: &'scope Records,
    scope: &'scope Scope<'scope, '_>,
    word: String,
    kind: RequestKind,
) {
    let answered = match kind {
        RequestKind::Task(agent) => task(server, &word, agent, |id| {
            let id = id.to_owned();
            scope.spawn(move || watch(server, records, scope, id));
        }),
        RequestKind::Chat | RequestKind::StreamedChat => chat(server, &word, kind, |id| {
            let id = id.to_owned();
            scope.spawn(move || watch(server, records, scope, id));
        }),
    };
    records.record(server, &records.answered, answered);
}

/// A task: accepted once, then waited for.
fn task(
    server: &RestartingServer,
    word: &str,
    agent: Option<&str>,
    accepted: impl FnOnce(&str),
) -> Result<Option<AnsweredRequest>, String> {
    let mut body = json!({ "message": word });
    if let Some(agent) = agent {
        body["agent"] = json!(agent);
    }
    let (key, body) = (format!("idempotency-key: {word}\r\n"), body.to_string());
    let (mut attempts, mut id) = (0, None::<String>);
    let mut accepted = Some(accepted);
    // Once more after it was accepted: the task is the same.
    while attempts < 2 || id.is_none() {
        let Some(response) = server.request("POST", "/v1/tasks", &key, &body) else {
            return Ok(None);
        };
        attempts += 1;
        let status = response.status;
        let Ok(text) = response.text() else { continue };
        let body: Value = serde_json::from_str(&text).unwrap_or_default();
        let Some(now) = body["task_id"].as_str().filter(|_| [200, 201].contains(&status)) else {
            return Err(format!("{word} was answered with {status}: {text}"));
        };
        match &id {
            Some(before) if before != now => {
                return Err(format!("{word} is {before}, and is {now} when it is repeated"));
            }
            Some(_) if status != 200 => return Err(format!("{word} was created twice: {text}")),
            Some(_) => {}
            None => {
                id = Some(now.to_owned());
                if let Some(accepted) = accepted.take() {
                    accepted(now);
                }
            }
        }
    }
    let Some(task) = id else { return Ok(None) };
    result(server, &task).map(|content| {
        let (word, kind) = (word.to_owned(), RequestKind::Task(None));
        content.map(|content| AnsweredRequest { word, kind, task, content, attempts })
    })
}

/// Waits until a task has completed. Returns its result.
fn result(server: &RestartingServer, task: &str) -> Result<Option<String>, String> {
    let path = format!("/v1/tasks/{task}/rest?wait_s=5");
    loop {
        let Some(response) = server.request("GET", &path, "", "") else { return Ok(None) };
        let status = response.status;
        let Ok(text) = response.text() else { continue };
        let body: Value = serde_json::from_str(&text).unwrap_or_default();
        match (status, body["rests"].as_bool()) {
            (200, Some(false)) => {}
            (200, Some(true)) if body["status"] == "completed" => break,
            // A server that shuts down has suspended it; the next one resumes it.
            (409, None) if body["details"]["cause"] == "at_rest" => {}
            _ => return Err(format!("{task} stopped with {status}: {text}")),
        }
    }
    loop {
        let Some(response) = server.request("GET", &format!("/v1/tasks/{task}"), "", "") else {
            return Ok(None);
        };
        let status = response.status;
        let Ok(text) = response.text() else { continue };
        let body: Value = serde_json::from_str(&text).unwrap_or_default();
        let Some(result) = body["result"].as_str().filter(|_| status == 200) else {
            return Err(format!("{task} is shown with {status}: {text}"));
        };
        return Ok(Some(result.to_owned()));
    }
}

/// A chat, repeated until the answer is complete.
fn chat(
    server: &RestartingServer,
    word: &str,
    kind: RequestKind,
    accepted: impl FnOnce(&str),
) -> Result<Option<AnsweredRequest>, String> {
    let stream = matches!(kind, RequestKind::StreamedChat);
    let messages = json!([{ "role": "user", "content": word }]);
    let body = json!({ "model": "scripted/load", "messages": messages, "stream": stream });
    let (key, body) = (format!("idempotency-key: {word}\r\n"), body.to_string());
    let (mut attempts, mut task, mut received) = (0, None::<String>, String::new());
    let mut accepted = Some(accepted);
    loop {
        let path = "/v1/chat/completions";
        let Some(mut response) = server.request("POST", path, &key, &body) else { return Ok(None) };
        attempts += 1;
        if response.status != 200 {
            let status = response.status;
            return Err(format!("{word} was answered with {status}: {:?}", response.text()));
        }
        let Some(now) = response.task.clone() else { return Err(format!("{word} names no task")) };
        if *task.get_or_insert_with(|| now.clone()) != now {
            return Err(format!("{word} is {task:?}, and is {now} when it is repeated"));
        }
        if let Some(accepted) = accepted.take() {
            accepted(&now);
        }
        let (text, complete) = if stream {
            streamed_text(&mut response)?
        } else {
            (response.text().ok().as_deref().and_then(chat_text).unwrap_or_default(), true)
        };
        // An incomplete answer is the beginning of the complete one.
        if !text.starts_with(&received) && !received.starts_with(&text) {
            return Err(format!("{word} was answered with {received:?}, then with {text:?}"));
        }
        if complete && !text.is_empty() {
            return Ok(Some(AnsweredRequest {
                word: word.to_owned(),
                kind,
                task: now,
                content: text,
                attempts,
            }));
        }
        received = if text.len() > received.len() { text } else { received };
    }
}

/// The text of a chat response; `None` when it is incomplete.
fn chat_text(text: &str) -> Option<String> {
    let body: Value = serde_json::from_str(text).ok()?;
    body["choices"][0]["message"]["content"].as_str().map(str::to_owned)
}

/// The text of a streamed response, and whether it is complete.
fn streamed_text(response: &mut Response) -> Result<(String, bool), String> {
    let mut text = String::new();
    while let Some(lines) = response.event() {
        for data in lines.iter().filter_map(|line| line.strip_prefix("data: ")) {
            if data == "[DONE]" {
                return Ok((text, true));
            }
            let chunk: Value = serde_json::from_str(data).map_err(|error| error.to_string())?;
            if chunk["error"]["code"] == "closing" {
                return Ok((text, false));
            }
            let Some(choice) = chunk["choices"].get(0) else { return Err(data.to_owned()) };
            text.push_str(choice["delta"]["content"].as_str().unwrap_or_default());
        }
    }
    Ok((text, false))
}

/// Watches a task and its descendants to their ends.
fn watch<'scope>(
    server: &'scope RestartingServer,
    records: &'scope Records,
    scope: &'scope Scope<'scope, '_>,
    task: String,
) {
    let watched = watch_events(server, task, |child| {
        let child = child.to_owned();
        scope.spawn(move || watch(server, records, scope, child));
    });
    records.record(server, &records.watched, watched);
}

fn watch_events(
    server: &RestartingServer,
    task: String,
    dispatched: impl Fn(&str),
) -> Result<Option<WatchedTask>, String> {
    let (path, mut events) = (format!("/v1/tasks/{task}/events"), Vec::<Value>::new());
    let (mut ended, mut connections) = (false, 0);
    loop {
        let last = match events.len() {
            0 => String::new(),
            seen => format!("last-event-id: {seen}\r\n"),
        };
        let Some(mut response) = server.request("GET", &path, &last, "") else { return Ok(None) };
        connections += 1;
        match response.status {
            200 => {}
            204 if ended => return Ok(Some(WatchedTask { task, events, connections })),
            // A child is dispatched before it is created.
            404 if events.is_empty() => continue,
            status => {
                let seen = events.len();
                return Err(format!("{task} behind {seen}: {status}: {:?}", response.text()));
            }
        }
        while let Some(lines) = response.event() {
            let part = |name: &str| lines.iter().find_map(|line| line.strip_prefix(name));
            let next = (events.len() + 1).to_string();
            if part("id: ") != Some(next.as_str()) || ended {
                return Err(format!("{task}: {lines:?} came instead of {next}"));
            }
            let event: Value = part("data: ")
                .and_then(|data| serde_json::from_str(data).ok())
                .ok_or_else(|| format!("{task}: {lines:?} is no event"))?;
            for child in event["data"]["children"].as_array().into_iter().flatten() {
                dispatched(child.as_str().unwrap_or_default());
            }
            let status = event["data"]["status"].as_str().unwrap_or_default();
            ended = event["type"] == "status_changed"
                && ["completed", "failed", "canceled"].contains(&status);
            events.push(event);
        }
    }
}
