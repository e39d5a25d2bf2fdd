//! Requests that open, list, change and close sessions.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use antiphon_core::port::SessionQuery;
use antiphon_core::{Message, ModelRef, SessionId, TaskId};
use antiphon_process::{Connection, Participant};
use antiphon_project::environment::Environment;
use antiphon_project::project::Project;
use antiphon_project::{prompt_commands, session_summary};
use serde::Deserialize;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::commands;
use crate::config_options::{self, modes, options};
use crate::replay;
use crate::schema::{
    CloseSessionRequest, CloseSessionResponse, ConfigOptionUpdate, CurrentModeUpdate, Error,
    ListSessionsRequest, ListSessionsResponse, LoadSessionRequest, LoadSessionResponse,
    NewSessionRequest, NewSessionResponse, ResumeSessionRequest, ResumeSessionResponse,
    SessionInfo, SessionUpdate, SetSessionConfigOptionRequest, SetSessionConfigOptionResponse,
    SetSessionModeRequest, SetSessionModeResponse,
};
use crate::server::{Answer, Server, details, lock, parse, value};
use crate::session::{Session, SessionChoice};
use crate::turn::{failed, last_task};
use crate::v2::{self, SessionState};
use crate::version::Version;

/// Sessions that an editor may have open. One more is refused.
const SESSIONS_MAX: usize = 256;

/// Sessions on a page of a list.
const PAGE: NonZeroUsize = NonZeroUsize::new(50).unwrap();

/// Where a session is opened, in version 2.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct OpenRequest {
    session_id: Option<String>,
    cwd: PathBuf,
    #[serde(default)]
    mcp_servers: Vec<Value>,
    replay_from: Option<ReplayFrom>,
}

/// From where the messages of a session are shown.
#[derive(Debug, Deserialize)]
struct ReplayFrom {
    #[serde(rename = "type")]
    kind: String,
}

impl From<NewSessionRequest> for OpenRequest {
    fn from(request: NewSessionRequest) -> Self {
        let mcp_servers = request.mcp_servers.iter().map(|server| json!(server)).collect();
        Self { session_id: None, cwd: request.cwd, mcp_servers, replay_from: None }
    }
}

impl Server {
    pub(crate) async fn new_session(&self, params: Value) -> Result<Answer, Error> {
        let request: OpenRequest = match self.editor.version() {
            Version::V1 => parse::<NewSessionRequest>(params)?.into(),
            Version::V2 => parse(params)?,
        };
        warn_of_servers(request.mcp_servers.len());
        let id = SessionId::parse(&Uuid::new_v4().to_string());
        let id = id.map_err(|error| details(&error.to_string()))?;
        let session = self.open(id, &request.cwd).await?;
        let session = self.insert(session)?;
        if self.editor.version() == Version::V2 {
            let mut answer = opened_v2(&session);
            answer["sessionId"] = json!(session.id.to_string());
            return Ok((answer, None));
        }
        let answer = NewSessionResponse::new(session.id.to_string());
        let answer = value(&answer.modes(modes(&session)).config_options(options(&session)))?;
        Ok((answer, commands::update(&session)))
    }

    /// Opens a session, and shows its messages before the answer.
    pub(crate) async fn load(&self, request: LoadSessionRequest) -> Result<Answer, Error> {
        warn_of_servers(request.mcp_servers.len());
        let session = self.stored(&request.session_id.0, &request.cwd).await?;
        self.replay(&session).await?;
        let session = self.insert(session)?;
        let answer = LoadSessionResponse::new().modes(modes(&session));
        let answer = value(&answer.config_options(options(&session)))?;
        Ok((answer, commands::update(&session)))
    }

    /// Sends the messages of a session.
    async fn replay(&self, session: &Session) -> Result<(), Error> {
        let connection = session.participant.connection().await.map_err(failed)?;
        let summary = session_summary(connection.reader(), &session.id).await;
        let summary = summary.map_err(|error| failed(error.into()))?;
        let summary = summary.ok_or_else(|| Error::session_not_found(session.id.to_string()))?;
        let stored = connection.session(summary).await.map_err(failed)?;
        let root = session.participant.project().root().to_owned();
        for message in &stored.messages {
            if let (Version::V2, Message::User(user)) = (self.editor.version(), &**message) {
                self.editor.update_v2(session.id.as_str(), v2::user_message(user)).await;
                continue;
            }
            for update in replay::updates(message, &root) {
                self.editor.update(session.id.as_str(), update).await;
            }
        }
        Ok(())
    }

    pub(crate) async fn resume(&self, request: ResumeSessionRequest) -> Result<Answer, Error> {
        warn_of_servers(request.mcp_servers.len());
        let session = self.stored(&request.session_id.0, &request.cwd).await?;
        let session = self.insert(session)?;
        let answer = ResumeSessionResponse::new().modes(modes(&session));
        let answer = value(&answer.config_options(options(&session)))?;
        Ok((answer, commands::update(&session)))
    }

    /// Opens a session, shows its messages if they are asked for, and then its state.
    pub(crate) async fn resume_v2(&self, request: OpenRequest) -> Result<Answer, Error> {
        warn_of_servers(request.mcp_servers.len());
        let id = request.session_id.as_deref().ok_or_else(|| details("`sessionId` is missing"))?;
        let from = request.replay_from.as_ref().map(|from| from.kind.as_str());
        if from.is_some_and(|from| from != "start") {
            return Err(details("`replayFrom` has to be of the type `start`"));
        }
        let session = self.stored(id, &request.cwd).await?;
        if from.is_some() {
            self.replay(&session).await?;
        }
        let session = self.insert(session)?;
        let state = if session.is_running() { SessionState::Running } else { SessionState::Idle };
        self.editor.update_v2(session.id.as_str(), state.update()).await;
        Ok((opened_v2(&session), None))
    }

    pub(crate) fn set_mode(&self, request: SetSessionModeRequest) -> Result<Answer, Error> {
        let session = self.session(&request.session_id.0)?;
        config_options::set_mode(&session, &request.mode_id.0)?;
        let update = SessionUpdate::ConfigOptionUpdate(ConfigOptionUpdate::new(options(&session)));
        let answer = value(&SetSessionModeResponse::new())?;
        Ok((answer, Some((session.id.to_string(), update))))
    }

    pub(crate) fn set_config_option(
        &self,
        request: SetSessionConfigOptionRequest,
    ) -> Result<Answer, Error> {
        let session = self.session(&request.session_id.0)?;
        config_options::set(&session, &request.config_id.0, &request.value)?;
        if self.editor.version() == Version::V2 {
            return Ok((json!({ "configOptions": v2::options(&options(&session)) }), None));
        }
        let mode = config_options::current_mode(&session).to_string();
        let update = SessionUpdate::CurrentModeUpdate(CurrentModeUpdate::new(mode));
        let answer = value(&SetSessionConfigOptionResponse::new(options(&session)))?;
        let is_mode = &*request.config_id.0 == "mode";
        Ok((answer, is_mode.then(|| (session.id.to_string(), update))))
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

    pub(crate) async fn list(&self, request: ListSessionsRequest) -> Result<Value, Error> {
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

    pub(crate) fn close(&self, request: CloseSessionRequest) -> Result<Value, Error> {
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
}

/// What an editor learns of a session that it opens, in version 2.
fn opened_v2(session: &Session) -> Value {
    let mut answer = json!({ "configOptions": v2::options(&options(session)) });
    if let Some((_, SessionUpdate::AvailableCommandsUpdate(update))) = commands::update(session) {
        answer["availableCommands"] = v2::commands(&update);
    }
    answer
}

fn warn_of_servers(count: usize) {
    if count > 0 {
        tracing::warn!(
            "MCP servers of the editor are not used: configure them in Antiphon (docs/mcp.md)"
        );
    }
}
