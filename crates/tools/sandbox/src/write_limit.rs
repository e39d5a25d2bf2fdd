//! Landlock: a second limit on writing, independent of mounts, and a limit on signals and abstract
//! sockets.

use std::path::PathBuf;

use landlock::{
    ABI, Access, AccessFs, PathBeneath, PathFd, Ruleset, RulesetAttr, RulesetCreatedAttr,
    RulesetError, RulesetStatus, Scope,
};

use crate::SandboxError;
use crate::sandbox_error::{LANDLOCK_REMEDY, Step};

/// The newest interface version this code uses. On an older kernel the mounts remain as protection.
const KNOWN: ABI = ABI::V9;

/// Lets this process and every process it starts write only below `folders`. After this nothing can
/// be mounted.
pub(crate) fn only_below(folders: &[PathBuf]) -> Result<(), SandboxError> {
    let step = "restrict writes with landlock";
    let writing = AccessFs::from_write(KNOWN);
    let create = || -> Result<_, RulesetError> {
        Ruleset::default().handle_access(writing)?.scope(Scope::from_all(KNOWN))?.create()
    };
    let mut rules = create().during(step)?;
    for folder in folders {
        let beneath = PathFd::new(folder).during(format!("open `{}`", folder.display()))?;
        rules = rules.add_rule(PathBeneath::new(beneath, writing)).during(step)?;
    }
    let status = rules.restrict_self().during(step)?;
    match status.ruleset {
        RulesetStatus::FullyEnforced | RulesetStatus::PartiallyEnforced => Ok(()),
        RulesetStatus::NotEnforced => Err(SandboxError::Unavailable {
            what: "landlock",
            reason: format!("{:?}", status.landlock),
            remedy: LANDLOCK_REMEDY,
        }),
    }
}
