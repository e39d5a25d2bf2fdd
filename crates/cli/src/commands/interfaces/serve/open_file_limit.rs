//! The limit of open files: each connection is one. It is raised as far as the system allows. When that is
//! not enough, connections wait like those above the maximum.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::failure::Failure;

/// Open files beside connections: the journal, tools, models.
const OTHER_FILES: u64 = 1024;

/// Where the number of connections comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ConnectionLimit {
    /// The user requested it: a smaller number is an error.
    Requested,
    /// The default: a smaller number is accepted.
    Default,
}

/// Raises the limit of open files for this number of connections.
pub(super) fn raise_file_limit(connections: u64, limit: ConnectionLimit) -> Result<(), Failure> {
    let needed = connections + OTHER_FILES;
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let allowed = maximum.unwrap_or(u64::MAX);
    if needed > allowed && limit == ConnectionLimit::Requested {
        return Err(Failure::usage(format!(
            "{connections} connections need {needed} open files, and the system allows {allowed}: \
             raise `ulimit -Hn`, or use a smaller --connections-max"
        )));
    }
    if current.is_some_and(|current| current < needed.min(allowed)) {
        let limit = Rlimit { current: Some(needed.min(allowed)), maximum };
        if let Err(error) = setrlimit(Resource::Nofile, limit) {
            tracing::warn!(%error, "cannot raise the limit of open files");
        }
    }
    Ok(())
}
