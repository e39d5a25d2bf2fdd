//! Those who ask, each under a key, again and again until they have their answer; and those who watch,
//! who come back with the last event they saw.

use std::sync::Mutex;
use std::thread::Scope;

use serde_json::{Value, json};

use super::site::Site;

/// What somebody asks for.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Asks {
    /// A task, for an agent or for nobody in particular.
    Task(Option<&'static str>),
    /// A chat, answered in one piece.
    Whole,
    /// A chat, answered as it is said.
    Streamed,
}

/// What somebody was told.
#[derive(Debug)]
pub(crate) struct Told {
    pub(crate) word: String,
    pub(crate) asks: Asks,
    pub(crate) task: String,
    /// What the answer says.
    pub(crate) content: String,
    /// How often it had to be asked for.
    pub(crate) attempts: usize,
}

/// What somebody saw of a task, event by event.
#[derive(Debug)]
pub(crate) struct Watched {
    pub(crate) task: String,
    pub(crate) events: Vec<Value>,
    /// How often they had to come back.
    pub(crate) returns: usize,
}

/// Everything that was told and seen.
#[derive(Default)]
pub(crate) struct Notes {
    pub(crate) told: Mutex<Vec<Told>>,
    pub(crate) watched: Mutex<Vec<Watched>>,
    pub(crate) wrong: Mutex<Vec<String>>,
}

impl Notes {
    /// Keeps what somebody came to, or what was wrong: then all may go.
    fn keep<T>(&self, site: &Site, list: &Mutex<Vec<T>>, came: Result<Option<T>, String>) {
        match came {
            Ok(Some(told)) => list.lock().unwrap().push(told),
            Ok(None) => {}
            Err(wrong) => {
                self.wrong.lock().unwrap().push(wrong);
                site.close();
            }
        }
    }
}

/// Asks for something and waits for it, while somebody watches what becomes of it.
pub(crate) fn ask<'scope>(
    site: &'scope Site,
    notes: &'scope Notes,
    scope: &'scope Scope<'scope, '_>,
    word: String,
    asks: Asks,
) {
    let told = match asks {
        Asks::Task(agent) => task(site, &word, agent, |id| {
            let id = id.to_owned();
            scope.spawn(move || watch(site, notes, scope, id));
        }),
        Asks::Whole | Asks::Streamed => chat(site, &word, asks, |id| {
            let id = id.to_owned();
            scope.spawn(move || watch(site, notes, scope, id));
        }),
    };
    notes.keep(site, &notes.told, told);
}

/// A task: accepted once, then waited for.
fn task(
    site: &Site,
    word: &str,
    agent: Option<&str>,
    accepted: impl FnOnce(&str),
) -> Result<Option<Told>, String> {
    let mut body = json!({ "message": word });
    if let Some(agent) = agent {
        body["agent"] = json!(agent);
    }
    let (key, body) = (format!("idempotency-key: {word}\r\n"), body.to_string());
    let (mut attempts, mut id) = (0, None::<String>);
    let mut accepted = Some(accepted);
    // Once more after it was accepted: it is the same.
    while attempts < 2 || id.is_none() {
        let Some(answer) = site.ask("POST", "/v1/tasks", &key, &body) else { return Ok(None) };
        attempts += 1;
        let status = answer.status;
        let Ok(text) = answer.text() else { continue };
        let said: Value = serde_json::from_str(&text).unwrap_or_default();
        let Some(now) = said["task_id"].as_str().filter(|_| [200, 201].contains(&status)) else {
            return Err(format!("{word} was answered with {status}: {text}"));
        };
        match &id {
            Some(before) if before != now => {
                return Err(format!("{word} is {before}, and is {now} when it is asked again"));
            }
            Some(_) if status != 200 => return Err(format!("{word} was made twice: {text}")),
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
    rest(site, &task).map(|content| {
        let (word, asks) = (word.to_owned(), Asks::Task(None));
        content.map(|content| Told { word, asks, task, content, attempts })
    })
}

/// Waits until a task has ended. Says how.
fn rest(site: &Site, task: &str) -> Result<Option<String>, String> {
    let path = format!("/v1/tasks/{task}/rest?wait_s=5");
    loop {
        let Some(answer) = site.ask("GET", &path, "", "") else { return Ok(None) };
        let status = answer.status;
        let Ok(text) = answer.text() else { continue };
        let said: Value = serde_json::from_str(&text).unwrap_or_default();
        match (status, said["rests"].as_bool()) {
            (200, Some(false)) => {}
            (200, Some(true)) if said["status"] == "completed" => break,
            // Those who end do not work on it any more; the next one does.
            (409, None) if said["details"]["cause"] == "at_rest" => {}
            _ => return Err(format!("{task} rests with {status}: {text}")),
        }
    }
    loop {
        let Some(answer) = site.ask("GET", &format!("/v1/tasks/{task}"), "", "") else {
            return Ok(None);
        };
        let status = answer.status;
        let Ok(text) = answer.text() else { continue };
        let said: Value = serde_json::from_str(&text).unwrap_or_default();
        let Some(result) = said["result"].as_str().filter(|_| status == 200) else {
            return Err(format!("{task} is shown with {status}: {text}"));
        };
        return Ok(Some(result.to_owned()));
    }
}

/// A chat, asked again until the whole answer is there.
fn chat(
    site: &Site,
    word: &str,
    asks: Asks,
    accepted: impl FnOnce(&str),
) -> Result<Option<Told>, String> {
    let stream = matches!(asks, Asks::Streamed);
    let messages = json!([{ "role": "user", "content": word }]);
    let body = json!({ "model": "scripted/load", "messages": messages, "stream": stream });
    let (key, body) = (format!("idempotency-key: {word}\r\n"), body.to_string());
    let (mut attempts, mut task, mut heard) = (0, None::<String>, String::new());
    let mut accepted = Some(accepted);
    loop {
        let path = "/v1/chat/completions";
        let Some(mut answer) = site.ask("POST", path, &key, &body) else { return Ok(None) };
        attempts += 1;
        if answer.status != 200 {
            let status = answer.status;
            return Err(format!("{word} was answered with {status}: {:?}", answer.text()));
        }
        let Some(now) = answer.task.clone() else { return Err(format!("{word} names no task")) };
        if *task.get_or_insert_with(|| now.clone()) != now {
            return Err(format!("{word} is {task:?}, and is {now} when it is asked again"));
        }
        if let Some(accepted) = accepted.take() {
            accepted(&now);
        }
        let (said, whole) = if stream {
            streamed(&mut answer)?
        } else {
            (answer.text().ok().as_deref().and_then(whole).unwrap_or_default(), true)
        };
        // What broke off was the beginning of the same.
        if !said.starts_with(&heard) && !heard.starts_with(&said) {
            return Err(format!("{word} was answered with {heard:?}, then with {said:?}"));
        }
        if whole && !said.is_empty() {
            return Ok(Some(Told {
                word: word.to_owned(),
                asks,
                task: now,
                content: said,
                attempts,
            }));
        }
        heard = if said.len() > heard.len() { said } else { heard };
    }
}

/// The content of an answer in one piece; nothing when it broke off, or the server ended.
fn whole(text: &str) -> Option<String> {
    let said: Value = serde_json::from_str(text).ok()?;
    said["choices"][0]["message"]["content"].as_str().map(str::to_owned)
}

/// What a stream said, and whether it said that this was all.
fn streamed(answer: &mut super::wire::Answer) -> Result<(String, bool), String> {
    let mut said = String::new();
    while let Some(lines) = answer.event() {
        for data in lines.iter().filter_map(|line| line.strip_prefix("data: ")) {
            if data == "[DONE]" {
                return Ok((said, true));
            }
            let chunk: Value = serde_json::from_str(data).map_err(|error| error.to_string())?;
            if chunk["error"]["code"] == "closing" {
                return Ok((said, false));
            }
            let Some(choice) = chunk["choices"].get(0) else { return Err(data.to_owned()) };
            said.push_str(choice["delta"]["content"].as_str().unwrap_or_default());
        }
    }
    Ok((said, false))
}

/// Watches a task to its end, and everything that it dispatches.
fn watch<'scope>(
    site: &'scope Site,
    notes: &'scope Notes,
    scope: &'scope Scope<'scope, '_>,
    task: String,
) {
    let seen = watched(site, task, |child| {
        let child = child.to_owned();
        scope.spawn(move || watch(site, notes, scope, child));
    });
    notes.keep(site, &notes.watched, seen);
}

fn watched(
    site: &Site,
    task: String,
    dispatched: impl Fn(&str),
) -> Result<Option<Watched>, String> {
    let (path, mut events) = (format!("/v1/tasks/{task}/events"), Vec::<Value>::new());
    let (mut ended, mut returns) = (false, 0);
    loop {
        let last = match events.len() {
            0 => String::new(),
            seen => format!("last-event-id: {seen}\r\n"),
        };
        let Some(mut answer) = site.ask("GET", &path, &last, "") else { return Ok(None) };
        returns += 1;
        match answer.status {
            200 => {}
            204 if ended => return Ok(Some(Watched { task, events, returns })),
            // A child is named before it is there.
            404 if events.is_empty() => continue,
            status => {
                let seen = events.len();
                return Err(format!("{task} behind {seen}: {status}: {:?}", answer.text()));
            }
        }
        while let Some(lines) = answer.event() {
            let part = |name: &str| lines.iter().find_map(|line| line.strip_prefix(name));
            let next = (events.len() + 1).to_string();
            if part("id: ") != Some(next.as_str()) || ended {
                return Err(format!("{task}: {lines:?} came where {next} should"));
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
