//! Everything a server is made of: its doors, and what may be beside them. Without keys only the token
//! opens; without telemetry nothing is counted, and `/metrics` is not there; without
//! webhooks no event comes in.

use antiphon_telemetry::Telemetry;

use crate::doors::ServerDeps;
use crate::keys::Keys;
use crate::webhooks::Webhooks;

/// Everything a server is made of. Doors alone are one.
pub struct ServerConfig {
    /// What stands behind the door.
    pub doors: ServerDeps,
    /// Who comes in beside whoever has the token.
    pub keys: Option<Keys>,
    /// Who counts. Whoever made it has it follow the journal.
    pub telemetry: Option<Telemetry>,
    /// Who may send events, each with a secret of its own.
    pub webhooks: Option<Webhooks>,
}

impl From<ServerDeps> for ServerConfig {
    fn from(doors: ServerDeps) -> Self {
        Self { doors, keys: None, telemetry: None, webhooks: None }
    }
}
