//! Who asks: whoever has the token, or somebody with a key.
//!
//! A stranger gets one answer, whatever is wrong with what they show. Only a file of keys that cannot
//! be used is told apart, as 503: the key may be good.
//!
//! | asks for                                | needs                                         |
//! |-----------------------------------------|-----------------------------------------------|
//! | `GET`, `HEAD`, `OPTIONS`                | `read`                                        |
//! | any other method                        | `write`                                       |
//! | a [`Decider`]                           | `admin`, and no agent's key                   |
//! | a change that is not one of [`AGENTS`]  | no agent's key                                |

use aide::OperationInput;
use aide::generate::GenContext;
use aide::openapi::Operation;
use antiphon_core::{AgentName, ErrorCode, Sender, SourceName};
use antiphon_keys::{Holder, KeyGrant, KeyRefusal, Level, Verdict, parse_authorization};
use axum::extract::FromRequestParts;
use axum::http::Method;
use axum::http::request::Parts;
use chrono::{DateTime, Utc};

use crate::api_error::ApiError;
use crate::openapi::LEVEL;
use crate::room::AppState;

/// Who answered, as the journal says it of whoever has the token.
const BY: &str = "http";

/// What an agent's key may do beside looking: say something, with its name on it, and give work that has no
/// more than the agent. By any other way it could have others do what it may not.
const AGENTS: [&str; 4] =
    ["/v1/agents/{name}/inbox", "/v1/tasks", "/v1/tasks/{id}/messages", "/v1/chat/completions"];

/// Who asks.
#[derive(Debug, Clone)]
pub(crate) enum Caller {
    /// Whoever has the token: everything is theirs.
    Owner,
    /// Somebody with a key.
    Key(Box<KeyGrant>),
}

impl Caller {
    /// Who shows this, and how often they came if that is limited.
    pub(crate) fn admit(
        room: &AppState,
        authorization: &str,
        now: DateTime<Utc>,
    ) -> Result<(Self, Option<Verdict>), ApiError> {
        let shown = authorization.as_bytes();
        if room.doors.token.is_shown_by(shown) {
            return Ok((Self::Owner, None));
        }
        let Some(keys) = &room.keys else { return Err(unauthorized()) };
        let presented = parse_authorization(shown).map_err(|_| unauthorized())?;
        let id = presented.claimed_id();
        let allowed = keys.ring.check(&presented).map_err(|refused| match refused {
            KeyRefusal::Unknown
            | KeyRefusal::Expired
            | KeyRefusal::Revoked
            | KeyRefusal::Malformed => {
                tracing::info!(key.id = %id, reason = %refused, "a key was refused");
                unauthorized()
            }
            KeyRefusal::Unavailable { reason } => {
                tracing::warn!(reason, "nobody with a key comes in");
                let message =
                    "keys cannot be checked now: look into the server's log, or try later";
                ApiError::new(ErrorCode::ServiceUnavailable, message)
            }
        })?;
        let verdict = keys.limiter.check(allowed.id, allowed.rate_per_minute, now);
        Ok((Self::Key(Box::new(allowed)), Some(verdict)))
    }

    /// Whether they may ask with this method, for what is at this route.
    pub(crate) fn may_ask(&self, method: &Method, route: Option<&str>) -> Result<(), ApiError> {
        let Self::Key(allowed) = self else { return Ok(()) };
        let needed = level_for(method);
        if !allowed.may(needed) {
            return Err(too_low(needed, allowed.level));
        }
        let open = needed == Level::Read || route.is_some_and(|route| AGENTS.contains(&route));
        if self.agent().is_some() && !open {
            let message = "an agent's key looks, says something in its own name, and gives work that \
                           has no more than the agent";
            return Err(ApiError::new(ErrorCode::Forbidden, message));
        }
        Ok(())
    }

    /// The agent whose key it is; a person when absent.
    pub(crate) fn agent(&self) -> Option<&AgentName> {
        match self {
            Self::Owner => None,
            Self::Key(allowed) => match &allowed.holder {
                Holder::Person => None,
                Holder::Agent(agent) => Some(agent),
            },
        }
    }

    /// Who pays for what they ask for; the owner when there is no name.
    pub(crate) fn payer(&self) -> Option<String> {
        match self {
            Self::Owner => None,
            Self::Key(allowed) => Some(allowed.id.to_string()),
        }
    }

    /// Who an interaction is from, when its sender does not say. An agent does not speak as the user.
    pub(crate) fn speaks_as(&self) -> Result<Sender, ApiError> {
        let Some(agent) = self.agent() else { return Ok(Sender::User) };
        let source = SourceName::parse(agent.as_str());
        source.map(Sender::External).map_err(|error| ApiError::invalid(error.to_string()))
    }
}

/// What a key needs for this method.
pub(crate) fn level_for(method: &Method) -> Level {
    let looks = [Method::GET, Method::HEAD, Method::OPTIONS].contains(method);
    if looks { Level::Read } else { Level::Write }
}

impl OperationInput for Caller {}

impl<S: Send + Sync> FromRequestParts<S> for Caller {
    type Rejection = ApiError;

    /// Nobody is known where nobody was asked: then nothing is done.
    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        parts.extensions.get::<Self>().cloned().ok_or_else(unauthorized)
    }
}

/// Somebody who may answer what a person is asked.
#[derive(Debug)]
pub(crate) struct Decider {
    /// Who, as the journal says it.
    pub(crate) by: String,
}

impl<S: Send + Sync> FromRequestParts<S> for Decider {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let allowed = match Caller::from_request_parts(parts, state).await? {
            Caller::Owner => return Ok(Self { by: BY.to_owned() }),
            Caller::Key(allowed) => allowed,
        };
        if allowed.may_decide(Level::Admin) {
            return Ok(Self { by: format!("{BY}, key {} ({})", allowed.id, allowed.name) });
        }
        Err(match allowed.holder {
            Holder::Agent(_) => {
                let message = "an agent's key decides nothing that a person is asked";
                ApiError::new(ErrorCode::Forbidden, message)
            }
            Holder::Person => too_low(Level::Admin, allowed.level),
        })
    }
}

impl OperationInput for Decider {
    fn operation_input(_: &mut GenContext, operation: &mut Operation) {
        operation.extensions.insert(LEVEL.to_owned(), Level::Admin.to_string().into());
    }
}

fn too_low(needed: Level, level: Level) -> ApiError {
    let message = format!("this needs a key of level `{needed}`, and yours is `{level}`");
    ApiError::new(ErrorCode::Forbidden, message)
}

fn unauthorized() -> ApiError {
    let message =
        "the token or key is missing or not good: send one as `Authorization: Bearer KEY`";
    ApiError::new(ErrorCode::Unauthorized, message)
}
