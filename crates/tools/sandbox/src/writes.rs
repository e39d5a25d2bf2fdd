//! Landlock: a second limit on what is written, independent of mounts, and on whom signals and
//! abstract sockets reach.

use std::path::PathBuf;

use landlock::{
    ABI, Access, AccessFs, PathBeneath, PathFd, Ruleset, RulesetAttr, RulesetCreatedAttr,
    RulesetError, RulesetStatus, Scope,
};

use crate::SandboxError;
use crate::sandbox_error::{LANDLOCK_REMEDY, Step};

/// The newest interface this was written for. Of what the kernel lacks, the mounts keep the rest.
const KNOWN: ABI = ABI::V9;

/// Lets this process and all that it starts write beneath `folders` and nowhere else. From now on
/// nothing can be mounted.
pub(crate) fn only_beneath(folders: &[PathBuf]) -> Result<(), SandboxError> {
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
