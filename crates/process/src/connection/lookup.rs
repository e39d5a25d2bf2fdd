//! Finds what a user names: an approval or a session, by its id, a prefix of it, or `last`.

use std::num::NonZeroUsize;

use antiphon_core::port::{ApprovalSelector, SessionQuery, TaskQuery, TaskSelector};
use antiphon_core::{Approval, ApprovalId, SessionSummary};
use antiphon_project::error::ProjectError;

use super::Connection;

/// The name of the newest one.
const LAST: &str = "last";

/// Sessions that are read at a time in search of the last one. Those of the tasks below its task come first.
const PAGE: NonZeroUsize = NonZeroUsize::new(100).unwrap();

/// Sessions that are searched, at most.
const SESSIONS_MAX: NonZeroUsize = NonZeroUsize::new(100_000).unwrap();

impl Connection {
    /// The approval of this id, pending or decided; or the only pending one whose id begins so; or the newest pending
    /// one, `last`.
    pub async fn find_approval(&self, name: &str) -> Result<Approval, ProjectError> {
        let none = || ProjectError::InvalidInput(format!("there is no pending approval `{name}`"));
        let pending = self.approvals(ApprovalSelector::Pending).await?;
        if name == LAST {
            return pending.into_iter().next_back().ok_or_else(none);
        }
        let mut matching =
            pending.into_iter().filter(|approval| approval.approval_id.is_named_by(name));
        match (matching.next(), matching.next()) {
            (Some(one), None) => Ok(one),
            (Some(_), Some(_)) => Err(ProjectError::InvalidInput(format!(
                "more than one approval begins with `{name}`"
            ))),
            (None, _) => {
                // It may be decided already: then the decision reports that.
                let id = ApprovalId::parse(name).map_err(|_| none())?;
                let known = self.approvals(ApprovalSelector::One(id)).await?;
                known.into_iter().next().ok_or_else(none)
            }
        }
    }

    /// The session of this id; or the only one whose id begins so; or, for `last`, the one with the newest task that no
    /// other task dispatched.
    pub async fn find_session(&self, name: &str) -> Result<SessionSummary, ProjectError> {
        if name == LAST {
            return self.last_session().await;
        }
        let sessions = self.sessions(SESSIONS_MAX).await?;
        if let Some(exactly) = sessions.iter().find(|session| session.session_id.as_str() == name) {
            return Ok(exactly.clone());
        }
        let is_named = |session: &SessionSummary| session.session_id.is_named_by(name);
        let mut matching = sessions.into_iter().filter(is_named);
        match (matching.next(), matching.next()) {
            (Some(one), None) => Ok(one),
            (Some(_), Some(_)) => Err(ProjectError::InvalidInput(format!(
                "more than one session begins with `{name}`"
            ))),
            (None, _) => Err(no_session(name)),
        }
    }

    async fn last_session(&self) -> Result<SessionSummary, ProjectError> {
        let newest = TaskQuery { which: TaskSelector::Roots, limit: NonZeroUsize::MIN };
        let newest = self.reader().tasks(newest).await?.into_iter().next();
        let id = newest.ok_or_else(|| no_session(LAST))?.session_id;
        let mut before = None;
        loop {
            let page = self.sessions(SessionQuery { before, limit: PAGE }).await?;
            before = page.last().map(|session| session.last_task.clone());
            if let Some(found) = page.into_iter().find(|session| session.session_id == id) {
                return Ok(found);
            }
            if before.is_none() {
                return Err(no_session(LAST));
            }
        }
    }
}

fn no_session(name: &str) -> ProjectError {
    ProjectError::InvalidInput(format!("there is no session `{name}` here"))
}
