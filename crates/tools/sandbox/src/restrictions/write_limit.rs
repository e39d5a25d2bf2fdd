//! Landlock: a second limit on writing, independent of mounts, and a limit on signals and abstract
//! sockets.

use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, PathBeneath, Ruleset, RulesetAttr, RulesetCreatedAttr, RulesetError,
    RulesetStatus, Scope,
};
use rustix::fs::OFlags;

use crate::pinned_folder::open_below;
use crate::sandbox_error::{LANDLOCK_REMEDY, Step};
use crate::{SandboxError, UnixSockets};

/// The newest interface version this code uses. On an older kernel the mounts remain as protection.
const KNOWN: ABI = ABI::V9;

/// Whether Landlock keeps commands from the sockets of programs outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SocketLimit {
    /// A command reaches only sockets that were made in the sandbox.
    Own,
    /// The kernel is too old for that.
    None,
}

/// Lets this process and every process it starts write only below `folders`, and start only
/// `programs` or those below them. After this nothing can be mounted.
pub(crate) fn only_below(
    folders: &[PathBuf],
    programs: Option<&[PathBuf]>,
    unix_sockets: UnixSockets,
) -> Result<SocketLimit, SandboxError> {
    let step = "restrict writes with landlock";
    let writing = AccessFs::from_write(KNOWN);
    // Sockets of the same sandbox need no rule. A rule would open those of other programs as well.
    let granted = match unix_sockets {
        UnixSockets::Refused => writing & !AccessFs::ResolveUnix,
        UnixSockets::Allowed => writing,
    };
    let handled = if programs.is_some() { writing | AccessFs::Execute } else { writing };
    let create = || -> Result<_, RulesetError> {
        Ruleset::default().handle_access(handled)?.scope(Scope::from_all(KNOWN))?.create()
    };
    let mut rules = create().during(step)?;
    for folder in folders {
        // A command in another sandbox may have put a link in place of the folder.
        let beneath = open_below(Path::new("/"), folder, OFlags::PATH);
        let beneath = beneath.during(format!("open `{}`", folder.display()))?;
        rules = rules.add_rule(PathBeneath::new(beneath, granted)).during(step)?;
    }
    for program in programs.unwrap_or_default() {
        let beneath = open_below(Path::new("/"), program, OFlags::PATH);
        let beneath = beneath.during(format!("open `{}`", program.display()))?;
        rules = rules.add_rule(PathBeneath::new(beneath, AccessFs::Execute)).during(step)?;
    }
    let status = rules.restrict_self().during(step)?;
    match status.ruleset {
        RulesetStatus::FullyEnforced => Ok(SocketLimit::Own),
        RulesetStatus::PartiallyEnforced => Ok(SocketLimit::None),
        RulesetStatus::NotEnforced => Err(SandboxError::Unavailable {
            what: "landlock",
            reason: format!("{:?}", status.landlock),
            remedy: LANDLOCK_REMEDY,
        }),
    }
}
