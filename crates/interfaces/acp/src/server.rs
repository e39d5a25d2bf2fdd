//! Reads the requests of an editor and answers them. Requests run side by side; a session has one turn at a time.

use std::collections::HashMap;
use std::io;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use antiphon_core::port::SessionQuery;
use antiphon_core::{ModelRef, SessionId, TaskId};
use antiphon_interface_transport::Interface;
use antiphon_process::{Connection, Participant};
use antiphon_project::environment::{Environment, Questions};
use antiphon_project::project::Project;
use antiphon_project::{prompt_commands, session_summary};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use uuid::Uuid;

use crate::commands;
use crate::config_options::{self, modes, options};
use crate::line_reader::{LINE_BYTES_MAX, Line, next_line};
use crate::prompt_content::PromptContent;
use crate::replay;
use crate::schema::{
    AgentCapabilities, CancelNotification, CloseSessionRequest, CloseSessionResponse,
    ConfigOptionUpdate, CurrentModeUpdate, Error, Implementation, InitializeRequest,
    InitializeResponse, ListSessionsRequest, ListSessionsResponse, LoadSessionRequest,
    LoadSessionResponse, NewSessionRequest, NewSessionResponse, PromptCapabilities, PromptRequest,
    PromptResponse, ProtocolVersion, ResumeSessionRequest, ResumeSessionResponse,
    SessionCapabilities, SessionCloseCapabilities, SessionInfo, SessionListCapabilities,
    SessionResumeCapabilities, SessionUpdate, SetSessionConfigOptionRequest,
    SetSessionConfigOptionResponse, SetSessionModeRequest, SetSessionModeResponse,
};
use crate::session::{Session, SessionChoice};
use crate::turn::{self, failed, last_task};
use crate::wire::{Editor, Incoming, QUEUE_LINES_MAX};

/// Requests that run at a time. One more is refused.
const REQUESTS_MAX: usize = 64;

/// Sessions that an editor may have open. One more is refused.
const SESSIONS_MAX: usize = 256;

/// Sessions on a page of a list.
const PAGE: NonZeroUsize = NonZeroUsize::new(50).unwrap();

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
/// their session.
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
    let ended = loop {
        while requests.try_join_next().is_some() {}
        let line = tokio::select! {
            line = next_line(&mut input, LINE_BYTES_MAX) => line,
            () = &mut stop => break Ok(()),
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
    server.end(&mut requests).await;
    drop(server);
    while writer.join_next().await.is_some() {}
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

struct Server {
    config: AcpConfig,
    editor: Arc<Editor>,
    sessions: Mutex<HashMap<String, Arc<Session>>>,
    /// One for each project that an open session belongs to.
    participants: Mutex<HashMap<PathBuf, Participant>>,
}

impl Server {
    async fn line(
        self: &Arc<Self>,
        line: &[u8],
        requests: &mut JoinSet<()>,
        is_initialized: &mut bool,
    ) {
        // A list would be read as the fields of a message, in order.
        let is_object = line.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'{');
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
        requests.spawn(async move {
            let ended = turn::run(Arc::clone(&editor), &running, content).await;
            drop(running);
            editor.answer(&id, ended.and_then(|stop| value(&PromptResponse::new(stop)))).await;
        });
    }

    /// The answer to a request, and an update of a session that follows it.
    async fn answer(&self, method: &str, params: Value) -> Result<Answer, Error> {
        match method {
            "initialize" => Ok((value(&initialized(&parse(params)?))?, None)),
            "authenticate" => Err(details("no authentication is needed")),
            "session/new" => self.new_session(parse(params)?).await,
            "session/load" => self.load(parse(params)?).await,
            "session/resume" => self.resume(parse(params)?).await,
            "session/list" => Ok((self.list(parse(params)?).await?, None)),
            "session/close" => Ok((self.close(parse(params)?)?, None)),
            "session/set_mode" => {
                let request: SetSessionModeRequest = parse(params)?;
                let session = self.session(&request.session_id.0)?;
                config_options::set_mode(&session, &request.mode_id.0)?;
                let update =
                    SessionUpdate::ConfigOptionUpdate(ConfigOptionUpdate::new(options(&session)));
                let answer = value(&SetSessionModeResponse::new())?;
                Ok((answer, Some((session.id.to_string(), update))))
            }
            "session/set_config_option" => {
                let request: SetSessionConfigOptionRequest = parse(params)?;
                let session = self.session(&request.session_id.0)?;
                config_options::set(&session, &request.config_id.0, &request.value)?;
                let mode = config_options::current_mode(&session).to_string();
                let update = SessionUpdate::CurrentModeUpdate(CurrentModeUpdate::new(mode));
                let answer = value(&SetSessionConfigOptionResponse::new(options(&session)))?;
                let is_mode = &*request.config_id.0 == "mode";
                Ok((answer, is_mode.then(|| (session.id.to_string(), update))))
            }
            _ => Err(Error::method_not_found().data(json!({ "method": method }))),
        }
    }

    async fn new_session(&self, request: NewSessionRequest) -> Result<Answer, Error> {
        warn_of_servers(request.mcp_servers.len());
        let id = SessionId::parse(&Uuid::new_v4().to_string());
        let id = id.map_err(|error| details(&error.to_string()))?;
        let session = self.open(id, &request.cwd).await?;
        let session = self.insert(session)?;
        let answer = NewSessionResponse::new(session.id.to_string());
        let answer = value(&answer.modes(modes(&session)).config_options(options(&session)))?;
        Ok((answer, commands::update(&session)))
    }

    /// Opens a session, and shows its messages before the answer.
    async fn load(&self, request: LoadSessionRequest) -> Result<Answer, Error> {
        warn_of_servers(request.mcp_servers.len());
        let session = self.stored(&request.session_id.0, &request.cwd).await?;
        let connection = session.participant.connection().await.map_err(failed)?;
        let summary = session_summary(connection.reader(), &session.id).await;
        let summary = summary.map_err(|error| failed(error.into()))?;
        let summary =
            summary.ok_or_else(|| Error::session_not_found(request.session_id.clone()))?;
        let stored = connection.session(summary).await.map_err(failed)?;
        let root = session.participant.project().root().to_owned();
        for message in &stored.messages {
            for update in replay::updates(message, &root) {
                self.editor.update(session.id.as_str(), update).await;
            }
        }
        let session = self.insert(session)?;
        let answer = LoadSessionResponse::new().modes(modes(&session));
        let answer = value(&answer.config_options(options(&session)))?;
        Ok((answer, commands::update(&session)))
    }

    async fn resume(&self, request: ResumeSessionRequest) -> Result<Answer, Error> {
        warn_of_servers(request.mcp_servers.len());
        let session = self.stored(&request.session_id.0, &request.cwd).await?;
        let session = self.insert(session)?;
        let answer = ResumeSessionResponse::new().modes(modes(&session));
        let answer = value(&answer.config_options(options(&session)))?;
        Ok((answer, commands::update(&session)))
    }

    /// A session that the journal of the folder's project has.
    async fn stored(&self, id: &str, folder: &Path) -> Result<Arc<Session>, Error> {
        let known = SessionId::parse(id).map_err(|error| details(&error.to_string()))?;
        let session = self.open(known, folder).await?;
        let connection = session.participant.connection().await.map_err(failed)?;
        match last_task(&connection, &session).await.map_err(failed)? {
            Some(_) => Ok(session),
            None => Err(Error::session_not_found(id.to_owned())),
        }
    }

    async fn list(&self, request: ListSessionsRequest) -> Result<Value, Error> {
        let here = || self.config.environment.current_dir.clone();
        let folder = request.cwd.or_else(here).ok_or_else(|| details("there is no folder"))?;
        let participant = self.participant(&folder)?;
        let connection = participant.connection().await.map_err(failed)?;
        let before = request.cursor.map(|cursor| TaskId::parse(&cursor)).transpose();
        let before = before.map_err(|_| details("the cursor is of no list"))?;
        let query = SessionQuery { before, limit: PAGE };
        let found = connection.sessions(query).await.map_err(failed)?;
        let root = participant.project().root();
        let next = (found.len() == PAGE.get()).then(|| found.last()).flatten();
        let next = next.map(|session| session.last_task.to_string());
        let sessions = found.into_iter().map(|session| {
            SessionInfo::new(session.session_id.to_string(), root)
                .title(session.title)
                .updated_at(session.updated_at.to_rfc3339())
        });
        value(&ListSessionsResponse::new(sessions.collect()).next_cursor(next))
    }

    fn close(&self, request: CloseSessionRequest) -> Result<Value, Error> {
        let session = self.session(&request.session_id.0)?;
        session.cancel_turn();
        lock(&self.sessions).remove(session.id.as_str());
        value(&CloseSessionResponse::new())
    }

    /// A session in a folder, with what can be chosen for it.
    async fn open(&self, id: SessionId, folder: &Path) -> Result<Arc<Session>, Error> {
        let participant = self.participant(folder)?;
        let settings = participant.project().settings(participant.environment()).map_err(failed)?;
        let mut models: Vec<ModelRef> = settings.models.keys().cloned().collect();
        let default = settings.default_model();
        if let Some(model) = default.model().filter(|model| !models.contains(model)) {
            models.insert(0, model.clone());
        }
        let Connection::Server(server, _) = participant.connection().await.map_err(failed)? else {
            return Err(details("the journal has no owner"));
        };
        let agents = server.answer(server.client.agents().await).map_err(failed)?.agents;
        let agents = agents.into_iter().map(|agent| (agent.name.to_string(), agent.description));
        let commands = prompt_commands::list(participant.project(), &settings);
        let offered = (agents.collect(), models, commands);
        let choice = self.config.choice.clone();
        let mode = choice.mode.or(Some(settings.permissions.mode));
        let choice = SessionChoice { mode, ..choice };
        Ok(Arc::new(Session::new(id, (participant, folder.to_owned()), offered, choice)))
    }

    fn participant(&self, folder: &Path) -> Result<Participant, Error> {
        if !folder.is_absolute() || !folder.is_dir() {
            return Err(details("`cwd` has to be the absolute path of a folder"));
        }
        let current_dir = Some(folder.to_owned());
        let environment = Environment { current_dir, ..self.config.environment.clone() };
        let project = Project::find(&environment).map_err(failed)?;
        let root = project.root().to_owned();
        let interface = self.config.interface;
        let mut participants = lock(&self.participants);
        let participant = participants.entry(root);
        Ok(participant.or_insert_with(|| Participant::new(project, environment, interface)).clone())
    }

    /// Adds a session. One that is open in this folder already stays, with its turn and its choices.
    fn insert(&self, session: Arc<Session>) -> Result<Arc<Session>, Error> {
        let mut sessions = lock(&self.sessions);
        match sessions.get(session.id.as_str()) {
            Some(known) if known.folder == session.folder => return Ok(Arc::clone(known)),
            Some(known) if known.is_running() => {
                let reason = "a prompt of this session runs in another folder: cancel it first";
                return Err(details(reason));
            }
            None if sessions.len() >= SESSIONS_MAX => {
                return Err(details("too many sessions are open: close one"));
            }
            Some(_) | None => {}
        }
        sessions.insert(session.id.to_string(), Arc::clone(&session));
        Ok(session)
    }

    fn session(&self, id: &str) -> Result<Arc<Session>, Error> {
        let session = lock(&self.sessions).get(id).cloned();
        session.ok_or_else(|| Error::session_not_found(id.to_owned()))
    }

    /// The editor is gone: its tasks are interrupted, and the journal is free for others.
    async fn end(&self, requests: &mut JoinSet<()>) {
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
        let participants: Vec<Participant> =
            lock(&self.participants).drain().map(|(_, it)| it).collect();
        for participant in participants {
            participant.leave().await;
        }
    }
}

type Answer = (Value, Option<(String, SessionUpdate)>);

fn initialized(_: &InitializeRequest) -> InitializeResponse {
    let prompts = PromptCapabilities::new().image(true).embedded_context(true);
    let sessions = SessionCapabilities::new()
        .list(SessionListCapabilities::new())
        .resume(SessionResumeCapabilities::new())
        .close(SessionCloseCapabilities::new());
    let capabilities = AgentCapabilities::new()
        .load_session(true)
        .prompt_capabilities(prompts)
        .session_capabilities(sessions);
    let info = Implementation::new("antiphon", env!("CARGO_PKG_VERSION"));
    InitializeResponse::new(ProtocolVersion::V1)
        .agent_capabilities(capabilities)
        .agent_info(info.title("Antiphon".to_owned()))
}

fn warn_of_servers(count: usize) {
    if count > 0 {
        tracing::warn!(
            "MCP servers of the editor are not used: configure them in Antiphon (docs/mcp.md)"
        );
    }
}

fn parse<T: DeserializeOwned>(params: Value) -> Result<T, Error> {
    serde_json::from_value(params).map_err(|error| details(&error.to_string()))
}

fn value(answer: &impl serde::Serialize) -> Result<Value, Error> {
    serde_json::to_value(answer).map_err(|error| details(&error.to_string()))
}

fn details(reason: &str) -> Error {
    Error::invalid_params().data(json!({ "details": reason }))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
