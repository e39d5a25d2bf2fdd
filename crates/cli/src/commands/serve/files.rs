//! Room for connections: each is an open file. The limit of this process is raised as far as it may be;
//! when that is not enough, the connections that do not fit wait like those beyond the maximum.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::failure::Failure;

/// Files that are open beside connections: the journal, tools, models.
const FILES_BESIDE: u64 = 1024;

/// Whose number it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wanted {
    /// Somebody asked for so many: fewer will not do.
    Asked,
    /// It is what a server has anyway.
    Default,
}

/// Makes room for so many connections.
pub(super) fn make_room(connections: u64, wanted: Wanted) -> Result<(), Failure> {
    let needed = connections + FILES_BESIDE;
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let allowed = maximum.unwrap_or(u64::MAX);
    if needed > allowed && wanted == Wanted::Asked {
        return Err(Failure::usage(format!(
            "{connections} connections need {needed} open files, and the system allows {allowed}: \
             raise `ulimit -Hn`, or say --connections-max with a smaller number"
        )));
    }
    if current.is_some_and(|current| current < needed.min(allowed)) {
        let limit = Rlimit { current: Some(needed.min(allowed)), maximum };
        if let Err(error) = setrlimit(Resource::Nofile, limit) {
            tracing::warn!(%error, "the limit of open files stays as it is");
        }
    }
    Ok(())
}
