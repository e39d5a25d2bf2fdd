//! The answer to `initialize`: the version, and what can be asked for.

use serde_json::Value;

use crate::schema::{
    AgentCapabilities, Error, Implementation, InitializeRequest, InitializeResponse,
    PromptCapabilities, ProtocolVersion, SessionCapabilities, SessionCloseCapabilities,
    SessionListCapabilities, SessionResumeCapabilities,
};
use crate::server::{parse, value};
use crate::v2;
use crate::version::Version;

pub(crate) fn answer(version: Version, params: Value) -> Result<Value, Error> {
    match version {
        Version::V1 => {
            parse::<InitializeRequest>(params)?;
            value(&response())
        }
        Version::V2 => Ok(v2::initialized()),
    }
}

fn response() -> InitializeResponse {
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
