//! Everything a server is made of: its doors, and what may be beside them. Without keys only the token
//! opens; without telemetry nothing is counted, and `/metrics` is not there.

use antiphon_telemetry::Telemetry;

use crate::doors::Doors;
use crate::keys::Keys;

/// Everything a server is made of. Doors alone are one.
pub struct House {
    /// What stands behind the door.
    pub doors: Doors,
    /// Who comes in beside whoever has the token.
    pub keys: Option<Keys>,
    /// Who counts. Whoever made it has it follow the journal.
    pub telemetry: Option<Telemetry>,
}

impl From<Doors> for House {
    fn from(doors: Doors) -> Self {
        Self { doors, keys: None, telemetry: None }
    }
}
