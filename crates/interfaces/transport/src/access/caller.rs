//! The caller of a request: the owner, who has the token, or the holder of an API key.
//!
//! A caller without valid credentials always gets the same response, for every kind of fault. Only a file
//! of keys that cannot be read has its own status, 503, because the key may be valid.
//!
//! | request                                                            | needs                       |
//! |--------------------------------------------------------------------|-----------------------------|
//! | `GET`, `HEAD`, `OPTIONS`                                           | level `read`                |
//! | any other method                                                   | level `write`               |
//! | a handler with a [`Decider`]                                       | level `admin`, a person     |
//! | a change through a route that is not writable by agents' keys      | a person                    |

use std::sync::Arc;

use antiphon_core::{AgentName, ErrorCode, Provenance, Sender, SourceName, TaskSummary};
use antiphon_keys::{
    KeyGrant, KeyHolder, KeyRefusal, KeyScope, Level, Peer, RateDecision, parse_authorization,
};
use antiphon_project::Principal;
use axum::extract::FromRequestParts;
use axum::http::Method;
use axum::http::request::Parts;
use chrono::{DateTime, Utc};

use crate::access::key_watch::KeyWatch;
use crate::api_error::ApiError;
use crate::openapi::{GenContext, LEVEL, Operation, OperationInput};
use crate::state::AppState;

/// The name of the owner in recorded decisions.
const OWNER: &str = "http";

/// The caller of a request, as a handler takes it.
#[derive(Debug, Clone)]
pub enum Caller {
    /// The owner, who has the token and may do everything.
    Owner,
    /// The holder of an API key.
    Key(Box<KeyGrant>),
}

/// The check of an API key.
pub(crate) struct KeyCheck {
    /// The verdict of its rate limit.
    pub(crate) verdict: RateDecision,
    /// Tells when the key no longer allows what it allowed.
    pub(crate) watch: Arc<KeyWatch>,
}

impl Caller {
    /// The caller with these credentials, and the check of a key. Wrong credentials are counted.
    pub(crate) fn authenticate(
        state: &Arc<AppState>,
        authorization: &str,
        peer: Peer,
        now: DateTime<Utc>,
    ) -> Result<(Self, Option<KeyCheck>), ApiError> {
        let credentials = authorization.as_bytes();
        if state.deps.token.matches(credentials) {
            return Ok((Self::Owner, None));
        }
        let wrong = |log: &dyn Fn()| {
            let verdict = state.wrong_keys.count(peer, now);
            if verdict.is_allowed() {
                log();
                unauthorized()
            } else {
                ApiError::too_many_wrong_keys(&verdict)
            }
        };
        let Some(keys) = &state.keys else { return Err(wrong(&|| {})) };
        let presented = parse_authorization(credentials).map_err(|_| wrong(&|| {}))?;
        let id = presented.claimed_id();
        let allowed = keys.ring.check(&presented).map_err(|refused| match refused {
            KeyRefusal::Unknown
            | KeyRefusal::Expired
            | KeyRefusal::Revoked
            | KeyRefusal::Malformed => {
                wrong(&|| tracing::info!(key.id = %id, reason = %refused, "a key was refused"))
            }
            KeyRefusal::Unavailable { reason } => {
                tracing::warn!(reason, "API keys cannot be read: none is accepted");
                let message =
                    "API keys cannot be checked now: see the server's log, or retry later";
                ApiError::new(ErrorCode::ServiceUnavailable, message)
            }
        })?;
        let verdict = keys.limiter.check(allowed.id, allowed.rate_per_minute, now);
        let watch = Arc::new(KeyWatch::new(state, presented, allowed.clone()));
        Ok((Self::Key(Box::new(allowed)), Some(KeyCheck { verdict, watch })))
    }

    /// Refuses a request that needs a higher level than the key has (of a person: `level`), and a change by
    /// an agent's key through a route that is not `agent_writable`.
    pub(crate) fn check_allowed(
        &self,
        method: &Method,
        level: Level,
        agent_writable: bool,
    ) -> Result<(), ApiError> {
        let Self::Key(allowed) = self else { return Ok(()) };
        // No level allows an agent to decide.
        let needed = if self.agent().is_some() { level_for(method) } else { level };
        if !allowed.may(needed) {
            return Err(too_low(needed, allowed.level));
        }
        if self.agent().is_some() && needed != Level::Read && !agent_writable {
            let message = "an agent's key may only read, send messages in its own name, and create tasks \
                           within the agent's own permissions";
            return Err(ApiError::new(ErrorCode::Forbidden, message));
        }
        Ok(())
    }

    /// The agent that the key was issued to; absent for a person.
    pub fn agent(&self) -> Option<&AgentName> {
        match self {
            Self::Owner => None,
            Self::Key(allowed) => match &allowed.holder {
                KeyHolder::Person => None,
                KeyHolder::Agent(agent) => Some(agent),
            },
        }
    }

    /// Id of the key that pays for the caller's tasks; absent for the owner.
    pub fn payer(&self) -> Option<String> {
        match self {
            Self::Owner => None,
            Self::Key(allowed) => Some(allowed.id.to_string()),
        }
    }

    /// The sender of messages that name none. An agent never speaks as the user.
    pub fn sender(&self) -> Result<Sender, ApiError> {
        Ok(self.principal().sender()?)
    }

    /// Who decides, as an interface records it: the owner, or a person whose key has level `admin`. `None`: the caller
    /// may not decide.
    pub fn decider(&self, interface: &str) -> Option<String> {
        match self {
            Self::Owner => Some(interface.to_owned()),
            Self::Key(allowed) => allowed
                .may_decide(Level::Admin)
                .then(|| format!("{interface}, key {} ({})", allowed.id, allowed.name)),
        }
    }

    /// The payer of the only tasks that the caller may see, on every interface: the id of a key of scope `own`. `None`
    /// when the native API shows it those of all payers.
    pub fn own_payer(&self) -> Option<String> {
        match self {
            Self::Owner => None,
            Self::Key(allowed) => match allowed.scope {
                KeyScope::All => None,
                KeyScope::Own => self.payer(),
            },
        }
    }

    /// The payer of the only tasks that the caller may see and continue through an interface for foreign clients: the
    /// key itself, of whatever scope and level, so that programs with different keys do not mix up their work. `None`
    /// for the owner, who sees those of all payers.
    pub fn seen_payer(&self) -> Option<String> {
        self.payer()
    }

    /// Whether the caller may see a task of this payer through an interface for foreign clients.
    pub fn may_see_payer(&self, payer: Option<&str>) -> bool {
        self.seen_payer().is_none_or(|own| payer == Some(own.as_str()))
    }

    /// Whether the caller may see a root task through an interface for foreign clients.
    pub fn may_see(&self, task: &TaskSummary) -> bool {
        task.parent.is_none() && self.may_see_payer(task.payer.as_deref())
    }

    /// Where a message comes from that the caller sends in the name of a source: it is no word of a person.
    pub fn provenance_of(&self, source: &SourceName) -> Provenance {
        let provenance = self.principal().provenance();
        if provenance.is_person() { Provenance::Event(source.to_string()) } else { provenance }
    }

    /// On whose authority the request is made.
    pub fn principal(&self) -> Principal {
        let is_admin = match self {
            Self::Owner => false,
            Self::Key(allowed) => allowed.may_decide(Level::Admin),
        };
        Principal { key_id: self.payer(), agent: self.agent().cloned(), is_admin }
    }
}

/// The level that a key needs for a method.
pub(crate) fn level_for(method: &Method) -> Level {
    let reads = [Method::GET, Method::HEAD, Method::OPTIONS].contains(method);
    if reads { Level::Read } else { Level::Write }
}

impl OperationInput for Caller {}

impl<S: Send + Sync> FromRequestParts<S> for Caller {
    type Rejection = ApiError;

    /// Fails on a route without authentication, where no caller is known.
    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        parts.extensions.get::<Self>().cloned().ok_or_else(unauthorized)
    }
}

/// Another process of the owner: it has the token, and came through the project's socket. It may give a task what
/// its own process has, which no network request may.
#[derive(Debug)]
pub struct OwnProcess;

impl<S: Send + Sync> FromRequestParts<S> for OwnProcess {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let is_owner = matches!(Caller::from_request_parts(parts, state).await?, Caller::Owner);
        match parts.extensions.get::<Peer>() {
            Some(Peer::Socket) if is_owner => Ok(Self),
            Some(Peer::Socket | Peer::Address(_)) | None => {
                let message = "only the project's socket takes this, with the owner's token";
                Err(ApiError::new(ErrorCode::Forbidden, message))
            }
        }
    }
}

impl OperationInput for OwnProcess {}

/// A person with level `admin`, who may decide. Recorded with each decision.
#[derive(Debug)]
pub struct Decider {
    /// Name of the decider in the journal.
    pub by: String,
}

impl<S: Send + Sync> FromRequestParts<S> for Decider {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let caller = Caller::from_request_parts(parts, state).await?;
        if let Some(by) = caller.decider(OWNER) {
            return Ok(Self { by });
        }
        let Caller::Key(allowed) = caller else { return Err(unauthorized()) };
        Err(match allowed.holder {
            KeyHolder::Agent(_) => {
                let message = "an agent's key may not decide: use a person's key";
                ApiError::new(ErrorCode::Forbidden, message)
            }
            KeyHolder::Person => too_low(Level::Admin, allowed.level),
        })
    }
}

impl OperationInput for Decider {
    fn operation_input(_: &mut GenContext, operation: &mut Operation) {
        operation.extensions.insert(LEVEL.to_owned(), Level::Admin.to_string().into());
    }
}

fn too_low(needed: Level, level: Level) -> ApiError {
    let message = format!("this needs a key of level `{needed}`; yours is `{level}`");
    ApiError::new(ErrorCode::Forbidden, message)
}

/// The response to missing and to wrong credentials.
pub(crate) fn unauthorized() -> ApiError {
    let message = "Missing or invalid token: send a token or key as `Authorization: Bearer KEY`";
    ApiError::new(ErrorCode::Unauthorized, message)
}
