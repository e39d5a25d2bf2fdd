//! Sessions of clients of 2025-11-25 and older: who began each, and how many there may be.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use antiphon_interface_transport::Caller;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::Response;
use rmcp::transport::streamable_http_server::SessionManager as _;
use rmcp::transport::streamable_http_server::session::SessionId;
use rmcp::transport::streamable_http_server::session::local::{LocalSessionManager, SessionConfig};
use tokio::sync::Mutex;

/// Header with the id of a session.
pub(super) const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");

/// Sessions of one caller, at most. The oldest one ends when one more begins.
const PER_CALLER_MAX: usize = 64;

/// Sessions of all callers, at most. The oldest one ends when one more begins.
const SESSIONS_MAX: usize = 1024;

/// A session that nothing is sent in for so long ends. A call may run that long without a word.
const IDLE_MAX: Duration = Duration::from_secs(24 * 3600);

/// The sessions of all callers.
pub(super) struct Sessions {
    manager: Arc<LocalSessionManager>,
    /// The oldest first.
    begun: Mutex<VecDeque<Begun>>,
}

struct Begun {
    id: SessionId,
    /// Id of the caller's key; absent for the owner.
    caller: Option<String>,
}

impl Sessions {
    pub(super) fn new() -> Self {
        let mut config = SessionConfig::default();
        config.keep_alive = Some(IDLE_MAX);
        let mut manager = LocalSessionManager::default();
        manager.session_config = config;
        Self { manager: Arc::new(manager), begun: Mutex::default() }
    }

    pub(super) fn manager(&self) -> Arc<LocalSessionManager> {
        Arc::clone(&self.manager)
    }

    /// Refuses a request in a session of another caller, as one in a session that does not exist.
    pub(super) async fn check(&self, caller: &Caller, headers: &HeaderMap) -> Result<(), Response> {
        let Some(id) = headers.get(SESSION_ID) else { return Ok(()) };
        let none = || {
            super::error(
                StatusCode::NOT_FOUND,
                "there is no such session: begin a new one with `initialize`",
            )
        };
        let id = id.to_str().map_err(|_| none())?;
        let payer = caller.payer();
        let begun = self.begun.lock().await;
        let is_own = |session: &Begun| *session.id == *id && session.caller == payer;
        if begun.iter().any(is_own) { Ok(()) } else { Err(none()) }
    }

    /// A caller has begun a session.
    pub(super) async fn begun(&self, caller: &Caller, id: &HeaderValue) {
        let Ok(id) = id.to_str() else { return };
        let caller = caller.payer();
        let mut begun = self.begun.lock().await;
        let open = self.manager.sessions.read().await;
        begun.retain(|session| open.contains_key(&session.id));
        drop(open);
        let of_caller = begun.iter().filter(|session| session.caller == caller).count();
        let oldest = if of_caller >= PER_CALLER_MAX {
            begun.iter().position(|session| session.caller == caller)
        } else {
            (begun.len() >= SESSIONS_MAX).then_some(0)
        };
        if let Some(oldest) = oldest.and_then(|oldest| begun.remove(oldest)) {
            // It may have ended just now.
            let _ = self.manager.close_session(&oldest.id).await;
        }
        begun.push_back(Begun { id: id.into(), caller });
    }
}
