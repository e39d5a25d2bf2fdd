//! What a user reads when another process runs the tasks of the project from now on.

use antiphon_project::project::Project;

use crate::connection::Ownership;

/// Another process runs the tasks of the project.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OwnerChange {
    /// This one, which was a client before.
    Here,
    /// The process with this id.
    Process(u32),
}

impl OwnerChange {
    /// What a front end says.
    pub fn text(self) -> String {
        let next = match self {
            Self::Here => "this one goes on".to_owned(),
            Self::Process(id) => format!("process {id} goes on with them"),
        };
        format!("the process that ran the tasks of this project has ended; {next}")
    }
}

/// The owner that the user of this process was told of last.
pub(crate) struct KnownOwner(Option<u32>);

impl KnownOwner {
    /// Nothing is to be said about the owner at the start.
    pub(crate) fn new(project: &Project, is_owner: bool) -> Self {
        Self(owner(project, is_owner))
    }

    /// Unknown: a server that the user named stays the owner.
    pub(crate) fn none() -> Self {
        Self(None)
    }

    /// The next owner, once. A process that gave the journal to a server itself says nothing.
    pub(crate) fn take_change(&mut self, project: &Project, is_owner: bool) -> Option<OwnerChange> {
        let own = std::process::id();
        let now = owner(project, is_owner)?;
        let before = self.0.replace(now)?;
        match now {
            _ if now == before || before == own => None,
            _ if now == own => Some(OwnerChange::Here),
            other => Some(OwnerChange::Process(other)),
        }
    }
}

fn owner(project: &Project, is_owner: bool) -> Option<u32> {
    if is_owner { Some(std::process::id()) } else { Ownership::owner_id(project) }
}
