//! Reads the requests of an editor and answers them. Requests run side by side; a session has one turn at a time.

use std::collections::HashMap;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use antiphon_interface_transport::Interface;
use antiphon_process::Participant;
use antiphon_project::environment::{Environment, Questions};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::commands;
use crate::initialize;
use crate::line_reader::{LINE_BYTES_MAX, Line, next_line};
use crate::prompt_answer::PromptAnswer;
use crate::prompt_content::PromptContent;
use crate::schema::{CancelNotification, Error, PromptRequest, SessionUpdate};
use crate::session::{Session, SessionChoice};
use crate::turn::{self, last_task};
use crate::version::Version;
use crate::wire::{Editor, Incoming, QUEUE_LINES_MAX};

/// Requests that run at a time. One more is refused.
const REQUESTS_MAX: usize = 64;

/// What the agent of an editor is started with.
pub struct AcpConfig {
    /// What the process was started with.
    pub environment: Environment,
    /// What other processes get on the project's socket while this one owns the journal.
    pub interface: fn() -> Interface,
    /// What the first tasks of a session work with.
    pub choice: SessionChoice,
}

/// Serves an editor until its input ends, or `stop` resolves. Tasks that run then are interrupted: they go on with the next prompt of
/// their session. Behind the end of the input, tasks of processes that were killed go on here until `stop` resolves.
pub async fn serve(
    config: AcpConfig,
    input: impl AsyncRead + Unpin,
    output: impl AsyncWrite + Unpin + Send + 'static,
    stop: impl Future<Output = ()>,
) -> io::Result<()> {
    let (lines, queue) = mpsc::channel(QUEUE_LINES_MAX);
    let mut writer = JoinSet::new();
    writer.spawn(write_lines(queue, output));
    let environment = Environment { questions: Questions::default(), ..config.environment };
    let config = AcpConfig { environment, ..config };
    let (sessions, participants) = (Mutex::default(), Mutex::default());
    let editor = Arc::new(Editor::new(lines));
    let server = Arc::new(Server { config, editor, sessions, participants });
    let mut requests = JoinSet::new();
    let mut input = BufReader::new(input);
    let mut stop = std::pin::pin!(stop);
    let mut is_initialized = false;
    let mut is_stopped = false;
    let ended = loop {
        while requests.try_join_next().is_some() {}
        let line = tokio::select! {
            line = next_line(&mut input, LINE_BYTES_MAX) => line,
            () = &mut stop => {
                is_stopped = true;
                break Ok(());
            }
        };
        match line {
            Ok(Line::End) => break Ok(()),
            Err(error) => break Err(error),
            Ok(Line::TooLong) => {
                let reason = format!("a message may have {LINE_BYTES_MAX} bytes at most");
                let error = Error::invalid_request().data(json!({ "details": reason }));
                server.editor.answer(&Value::Null, Err(error)).await;
            }
            Ok(Line::Whole(line)) if line.iter().all(u8::is_ascii_whitespace) => {}
            Ok(Line::Whole(line)) => {
                server.line(&line, &mut requests, &mut is_initialized).await;
            }
        }
    };
    let participants = server.end(&mut requests).await;
    drop(server);
    while writer.join_next().await.is_some() {}
    if is_stopped {
        for participant in participants {
            participant.leave().await;
        }
        return ended;
    }
    let mut remaining = JoinSet::new();
    for participant in participants {
        let tasks = participant.into_remaining().await;
        tasks.map(|tasks| remaining.spawn(tasks.report_and_run()));
    }
    tokio::select! {
        () = async { while remaining.join_next().await.is_some() {} } => {}
        () = stop => {}
    }
    ended
}

async fn write_lines(mut queue: mpsc::Receiver<String>, mut output: impl AsyncWrite + Unpin) {
    while let Some(mut line) = queue.recv().await {
        line.push('\n');
        let written = output.write_all(line.as_bytes()).await;
        if written.is_err() || (queue.is_empty() && output.flush().await.is_err()) {
            return;
        }
    }
}

pub(crate) struct Server {
    pub(crate) config: AcpConfig,
    pub(crate) editor: Arc<Editor>,
    pub(crate) sessions: Mutex<HashMap<String, Arc<Session>>>,
    /// One for each project that an open session belongs to.
    pub(crate) participants: Mutex<HashMap<PathBuf, Participant>>,
}

impl Server {
    async fn line(
        self: &Arc<Self>,
        line: &[u8],
        requests: &mut JoinSet<()>,
        is_initialized: &mut bool,
    ) {
        let begin = line.iter().find(|byte| !byte.is_ascii_whitespace());
        if begin == Some(&b'[') && self.editor.version() == Version::V2 {
            return self.batch(line, requests, is_initialized).await;
        }
        // A list would be read as the fields of a message, in order.
        let is_object = begin == Some(&b'{');
        let incoming: Incoming = match serde_json::from_slice(line) {
            Ok(incoming) if is_object => incoming,
            Ok(_) => {
                let reason = "expected one JSON-RPC message";
                let error = Error::parse_error().data(json!({ "details": reason }));
                return self.editor.answer(&Value::Null, Err(error)).await;
            }
            Err(error) => {
                let error = Error::parse_error().data(json!({ "details": error.to_string() }));
                return self.editor.answer(&Value::Null, Err(error)).await;
            }
        };
        self.message(incoming, requests, is_initialized).await;
    }

    /// A batch of messages, which version 2 has. Each is answered by itself, as soon as its answer is known.
    async fn batch(
        self: &Arc<Self>,
        line: &[u8],
        requests: &mut JoinSet<()>,
        is_initialized: &mut bool,
    ) {
        let messages: Vec<Value> = match serde_json::from_slice(line) {
            Ok(messages) => messages,
            Err(error) => {
                let error = Error::parse_error().data(json!({ "details": error.to_string() }));
                return self.editor.answer(&Value::Null, Err(error)).await;
            }
        };
        let invalid = |reason: &str| Error::invalid_request().data(json!({ "details": reason }));
        if messages.is_empty() {
            let error = invalid("a batch has one message at least");
            return self.editor.answer(&Value::Null, Err(error)).await;
        }
        for message in messages {
            match Some(message).filter(Value::is_object).map(serde_json::from_value) {
                Some(Ok(incoming)) => self.message(incoming, requests, is_initialized).await,
                Some(Err(_)) | None => {
                    let error = invalid("an entry of the batch is no JSON-RPC message");
                    self.editor.answer(&Value::Null, Err(error)).await;
                }
            }
        }
    }

    async fn message(
        self: &Arc<Self>,
        incoming: Incoming,
        requests: &mut JoinSet<()>,
        is_initialized: &mut bool,
    ) {
        let Some(method) = incoming.method.clone() else {
            return self.editor.answered(incoming);
        };
        let Some(id) = incoming.id else { return self.notified(&method, incoming.params) };
        if !*is_initialized && method != "initialize" {
            let error = Error::invalid_request().data(json!({ "details": "initialize first" }));
            return self.editor.answer(&id, Err(error)).await;
        }
        *is_initialized = true;
        if requests.len() >= REQUESTS_MAX {
            let reason = format!("{REQUESTS_MAX} requests run already");
            let error = Error::internal_error().data(json!({ "details": reason }));
            return self.editor.answer(&id, Err(error)).await;
        }
        if method == "initialize" {
            // Before the next line is read: it may be of this version already.
            self.editor.choose_version(Version::negotiated(&incoming.params));
        }
        if method == "session/prompt" {
            return self.prompt(id, incoming.params, requests).await;
        }
        let server = Arc::clone(self);
        requests.spawn(async move {
            let answer = server.answer(&method, incoming.params).await;
            let after = answer.as_ref().ok().and_then(|(_, after)| after.clone());
            server.editor.answer(&id, answer.map(|(answer, _)| answer)).await;
            if let Some((session_id, update)) = after {
                server.editor.update(&session_id, update).await;
            }
        });
    }

    fn notified(&self, method: &str, params: Value) {
        if method != "session/cancel" {
            return;
        }
        let Ok(cancel) = serde_json::from_value::<CancelNotification>(params) else { return };
        if let Ok(session) = self.session(&cancel.session_id.0) {
            session.cancel_turn();
        }
    }

    /// The turn is known before the next line is read, so that a cancel finds it.
    async fn prompt(self: &Arc<Self>, id: Value, params: Value, requests: &mut JoinSet<()>) {
        let begun = parse::<PromptRequest>(params).and_then(|request| {
            let session = self.session(&request.session_id.0)?;
            let content = PromptContent::parse(commands::expanded(&session, request.prompt)?)?;
            let running = session.begin_turn().ok_or_else(|| {
                details("another prompt of this session runs: wait for it, or cancel it")
            })?;
            Ok((running, content))
        });
        let (running, content) = match begun {
            Ok(begun) => begun,
            Err(error) => return self.editor.answer(&id, Err(error)).await,
        };
        let editor = Arc::clone(&self.editor);
        let mut answer = PromptAnswer::new(Arc::clone(&editor), id, running.session.id.to_string());
        requests.spawn(async move {
            let ended = turn::run(editor, &running, content, &mut answer).await;
            drop(running);
            answer.ended(ended).await;
        });
    }

    /// The answer to a request, and an update of a session that follows it.
    async fn answer(&self, method: &str, params: Value) -> Result<Answer, Error> {
        let version = self.editor.version();
        match (method, version) {
            ("initialize", _) => Ok((initialize::answer(version, params)?, None)),
            ("authenticate", Version::V1) => Err(details("no authentication is needed")),
            ("session/new", _) => self.new_session(params).await,
            ("session/load", Version::V1) => self.load(parse(params)?).await,
            ("session/resume", Version::V1) => self.resume(parse(params)?).await,
            ("session/resume", Version::V2) => self.resume_v2(parse(params)?).await,
            ("session/list", _) => Ok((self.list(parse(params)?).await?, None)),
            ("session/close", _) => Ok((self.close(parse(params)?)?, None)),
            ("session/set_mode", Version::V1) => self.set_mode(parse(params)?),
            ("session/set_config_option", _) => self.set_config_option(parse(params)?),
            _ => Err(Error::method_not_found().data(json!({ "method": method }))),
        }
    }

    pub(crate) fn session(&self, id: &str) -> Result<Arc<Session>, Error> {
        let session = lock(&self.sessions).get(id).cloned();
        session.ok_or_else(|| Error::session_not_found(id.to_owned()))
    }

    /// The editor is gone: its tasks are interrupted. Returns this process in each of its projects.
    async fn end(&self, requests: &mut JoinSet<()>) -> Vec<Participant> {
        requests.shutdown().await;
        let sessions: Vec<Arc<Session>> = lock(&self.sessions).drain().map(|(_, it)| it).collect();
        for session in sessions {
            let Ok(connection) = session.participant.connection().await else { continue };
            let last = last_task(&connection, &session).await;
            if let Ok(Some(last)) = last
                && !last.status.is_terminal()
                && let Err(error) = connection.interrupt(&last.task_id).await
            {
                tracing::debug!(%error, "a task was not interrupted");
            }
        }
        lock(&self.participants).drain().map(|(_, participant)| participant).collect()
    }
}

/// The answer to a request, and an update of a session that follows it.
pub(crate) type Answer = (Value, Option<(String, SessionUpdate)>);

pub(crate) fn parse<T: DeserializeOwned>(params: Value) -> Result<T, Error> {
    serde_json::from_value(params).map_err(|error| details(&error.to_string()))
}

pub(crate) fn value(answer: &impl serde::Serialize) -> Result<Value, Error> {
    serde_json::to_value(answer).map_err(|error| details(&error.to_string()))
}

pub(crate) fn details(reason: &str) -> Error {
    Error::invalid_params().data(json!({ "details": reason }))
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
