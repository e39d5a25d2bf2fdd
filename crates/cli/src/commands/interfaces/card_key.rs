//! `antiphon keys card`: the public key of this project's agent cards.

use antiphon_a2a_api::CardKey;
use antiphon_project::project::Project;
use clap::Args;

use crate::failure::Failure;
use crate::terminal;

/// Print the public key that agent cards of this project are signed with (see docs/a2a.md).
#[derive(Debug, Args)]
#[command(after_help = "\
The key is created when there is none. It stays in the state folder (`antiphon projects show`), where only you can read it. Give its public part
to clients that check cards: a set of JSON Web Keys, for ES256. The server has it at /.well-known/jwks.json, too.

Examples:
  antiphon keys card > jwks.json")]
pub(crate) struct CardKeyOf {}

impl CardKeyOf {
    pub(crate) fn run(project: &Project) -> Result<(), Failure> {
        project.prepare()?;
        let key = CardKey::in_state(project.state());
        let key = key.map_err(|error| Failure::failed(error.to_string()))?;
        terminal::print(&format!("{:#}\n", key.public()));
        Ok(())
    }
}
