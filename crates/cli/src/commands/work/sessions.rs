//! `antiphon sessions`: conversations.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use antiphon_core::port::{Clock, SessionQuery, SystemClock};
use antiphon_core::{Session, SessionId, SessionSummary};
use antiphon_process::{Connection, ProjectAccess, Twice};
use antiphon_project::environment::Environment;
use antiphon_project::project::Project;
use antiphon_project::saved_session;
use antiphon_project::session_names::SessionNames;
use antiphon_view::conversation_text;
use antiphon_view::display::escaped_path;
use antiphon_view::text::one_line;
use clap::Subcommand;
use uuid::Uuid;

use crate::failure::Failure;
use crate::terminal;

/// List, show, export, import and fork conversations.
#[derive(Debug, Subcommand)]
#[command(after_help = "\
Name a conversation by its id, a prefix of it, its name, `last`, or a session file.

Examples:
  antiphon sessions list
  antiphon sessions show last
  antiphon sessions export last talk.json
  antiphon sessions import talk.json
  antiphon sessions name last parser
  antiphon sessions fork last             # try something else from here
  antiphon run --session last \"Go on\"
  antiphon sessions show --json talk.json | jq .messages")]
pub(crate) enum Sessions {
    /// List conversations, the newest first.
    List {
        /// Only conversations whose newest task is older than that of this one: the next page.
        #[arg(long, value_name = "SESSION")]
        cursor: Option<String>,
        /// Most conversations to list.
        #[arg(long, default_value = "20", value_name = "N")]
        limit: NonZeroUsize,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Show the messages of a conversation.
    #[command(after_help = "\
Examples:
  antiphon sessions show last")]
    Show {
        /// Id of the conversation, a prefix of it, `last`, or a session file.
        session: String,
        /// Print it as JSON, in the form of a session file.
        #[arg(long)]
        json: bool,
    },
    /// Write a conversation to a session file (version 1).
    #[command(after_help = "\
Examples:
  antiphon sessions export last talk.json")]
    Export {
        /// Id of the conversation, a prefix of it, `last`, or a session file.
        session: String,
        /// Path of the file; standard output when absent.
        file: Option<PathBuf>,
    },
    /// Record the conversation of a session file in the journal, to continue it.
    #[command(after_help = "\
Examples:
  antiphon sessions import talk.json")]
    Import {
        /// A session file (version 1).
        file: PathBuf,
    },
    /// Name a conversation, to find it again by its name. Without a name, take it away.
    #[command(after_help = "\
Examples:
  antiphon sessions name last \"the parser\"
  antiphon run --session \"the parser\" \"Go on\"")]
    Name {
        /// Id of the conversation, a prefix of it, its name, or `last`.
        session: String,
        /// The name: at most 80 characters.
        name: Option<String>,
    },
    /// Start a new conversation with the messages of another one. Nothing is copied.
    #[command(after_help = "\
Examples:
  antiphon sessions fork last")]
    Fork {
        /// Id of the conversation, a prefix of it, `last`, or a session file.
        session: String,
    },
}

impl Sessions {
    pub(crate) async fn run_in_folder(self, environment: &Environment) -> Result<(), Failure> {
        match &self {
            // An import may be the first thing of a project.
            Self::Import { file } => {
                let session = from_file(file)?;
                let project = Project::find(environment)?;
                import(&ProjectAccess::Folder { project, environment }, session).await
            }
            // A session file needs no project.
            Self::Show { session, .. } | Self::Export { session, .. } if is_file(session) => {
                let session = from_file(Path::new(session))?;
                self.print(&session)
            }
            Self::List { .. }
            | Self::Show { .. }
            | Self::Export { .. }
            | Self::Name { .. }
            | Self::Fork { .. } => self.run(ProjectAccess::of_folder(environment)?).await,
        }
    }

    pub(crate) async fn run(self, access: ProjectAccess<'_>) -> Result<(), Failure> {
        match &self {
            Self::List { cursor, limit, json } => {
                let connection = access.read()?;
                let before = match cursor {
                    Some(name) => Some(find(&access, &connection, name).await?.last_task),
                    None => None,
                };
                let names = names(&access).map(|names| names.all()).unwrap_or_default();
                let query = SessionQuery { before, limit: *limit };
                list(&connection, query, *json, &names).await
            }
            Self::Name { session, name } => {
                let summary = find(&access, &access.read()?, session).await?;
                let names = names(&access).ok_or_else(|| {
                    Failure::usage("names are kept on this machine: leave --server out")
                })?;
                Ok(names.set(&summary.session_id, name.as_deref())?)
            }
            Self::Show { session, .. } | Self::Export { session, .. } => {
                let session = load(&access, session).await?;
                self.print(&session)
            }
            Self::Import { file } => import(&access, from_file(file)?).await,
            Self::Fork { session } => {
                let summary = find(&access, &access.read()?, session).await?;
                let key = Uuid::new_v4().to_string();
                let fork = async |connection: &Connection| connection.fork(&summary, &key).await;
                let (connection, id) = access.changed(Twice::IsOnce, fork).await?;
                terminal::print(&how_to_continue(&connection, &id));
                Ok(())
            }
        }
    }

    /// Prints or exports a session.
    fn print(&self, session: &Session) -> Result<(), Failure> {
        match self {
            Self::Export { file: Some(file), .. } => {
                saved_session::export(session, file)?;
                let message_count = terminal::count(session.messages.len() as u64, "message");
                terminal::print(&format!("{message_count} written to {}\n", escaped_path(file)));
            }
            Self::Show { json: true, .. } | Self::Export { file: None, .. } => {
                terminal::print(&saved_session::to_json(session)?);
            }
            Self::Show { json: false, .. }
            | Self::List { .. }
            | Self::Import { .. }
            | Self::Name { .. }
            | Self::Fork { .. } => terminal::print(&readable(session)),
        }
        Ok(())
    }
}

async fn list(
    connection: &Connection,
    query: SessionQuery,
    json: bool,
    names: &BTreeMap<SessionId, String>,
) -> Result<(), Failure> {
    let limit = query.limit;
    let one_more = SessionQuery { limit: limit.saturating_add(1), ..query };
    let mut sessions = connection.sessions(one_more).await?;
    let left_out = sessions.len() > limit.get();
    sessions.truncate(limit.get());
    terminal::print(&if json { terminal::json(&sessions)? } else { table(&sessions, names) });
    if let Some(last) = sessions.last().filter(|_| left_out) {
        let last = &last.session_id;
        terminal::note(&format!("the newest {limit}; see more with --limit or --cursor {last}\n"));
    }
    Ok(())
}

async fn import(access: &ProjectAccess<'_>, session: Session) -> Result<(), Failure> {
    let key = Uuid::new_v4().to_string();
    let import = async |connection: &Connection| connection.import(session.clone(), &key).await;
    let (connection, id) = access.changed(Twice::IsOnce, import).await?;
    terminal::print(&how_to_continue(&connection, &id));
    Ok(())
}

/// How to continue a session.
fn how_to_continue(connection: &Connection, id: &SessionId) -> String {
    match connection {
        Connection::Server(server, _) if server.is_named() => format!(
            "session {id}: continue it with a task of this `session_id` (POST {}/v1/tasks)\n",
            server.client.endpoint()
        ),
        Connection::Local(_) | Connection::Server(..) => {
            format!("session {id}: continue it with `antiphon run --session {id}`\n")
        }
    }
}

/// Whether the name is the path of a session file.
pub(super) fn is_file(name: &str) -> bool {
    name.contains(['/', '.']) || Path::new(name).exists()
}

/// Reads a session file.
pub(super) fn from_file(path: &Path) -> Result<Session, Failure> {
    Ok(saved_session::from_file(path)?)
}

/// Reads a session from its file or from the project.
async fn load(access: &ProjectAccess<'_>, name: &str) -> Result<Session, Failure> {
    if is_file(name) {
        return from_file(Path::new(name));
    }
    let connection = access.read()?;
    let summary = find(access, &connection, name).await?;
    Ok(connection.session(summary).await?)
}

/// The names of the project's conversations, which are kept on this machine.
fn names(access: &ProjectAccess<'_>) -> Option<SessionNames> {
    match access {
        ProjectAccess::Folder { project, .. } => Some(SessionNames::new(project.state())),
        ProjectAccess::Server { .. } => None,
    }
}

/// The id of the conversation that the user calls so; what was typed when there is none.
pub(super) fn id_of_name(project: &Project, typed: String) -> String {
    let named = SessionNames::new(project.state()).session(&typed);
    named.map_or(typed, |session| session.to_string())
}

/// The conversation with this name, id or prefix of an id.
async fn find(
    access: &ProjectAccess<'_>,
    connection: &Connection,
    name: &str,
) -> Result<SessionSummary, Failure> {
    let named = names(access).and_then(|names| names.session(name));
    let id = named.map(|session| session.to_string());
    Ok(connection.find_session(id.as_deref().unwrap_or(name)).await?)
}

fn table(sessions: &[SessionSummary], names: &BTreeMap<SessionId, String>) -> String {
    let now = SystemClock.now();
    let mut lines = vec![["SESSION", "STATUS", "AGE", "TASKS", ""].map(str::to_owned)];
    lines.extend(sessions.iter().map(|session| {
        [
            session.session_id.to_string(),
            session.status.as_str().to_owned(),
            terminal::age(now - session.updated_at),
            session.tasks.to_string(),
            match names.get(&session.session_id) {
                Some(name) => one_line(name),
                None => one_line(&session.title).chars().take(60).collect(),
            },
        ]
    }));
    terminal::table(&lines)
}

fn readable(session: &Session) -> String {
    let mut text = format!(
        "session {}, {}, {} to {}\n",
        session.id,
        terminal::count(session.messages.len() as u64, "message"),
        session.created_at.format("%F %T"),
        session.updated_at.format("%F %T"),
    );
    text.push_str(&conversation_text::conversation(&session.system_prompt, &session.messages));
    text
}
