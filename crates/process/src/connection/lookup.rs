//! Finds what a user names: an approval or a session, by its id, a prefix of it, or `last`.

use std::num::NonZeroUsize;

use antiphon_core::port::ApprovalSelector;
use antiphon_core::{Approval, ApprovalId, SessionSummary};
use antiphon_project::error::ProjectError;

use super::Connection;

/// The name of the newest one.
const LAST: &str = "last";

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

    /// The session of this id; or the only one whose id begins so; or the one with the newest task, `last`.
    pub async fn find_session(&self, name: &str) -> Result<SessionSummary, ProjectError> {
        let limit = if name == LAST { NonZeroUsize::MIN } else { SESSIONS_MAX };
        let sessions = self.sessions(limit).await?;
        if let Some(exactly) = sessions.iter().find(|session| session.session_id.as_str() == name) {
            return Ok(exactly.clone());
        }
        let is_named =
            |session: &SessionSummary| name == LAST || session.session_id.is_named_by(name);
        let mut matching = sessions.into_iter().filter(is_named);
        match (matching.next(), matching.next()) {
            (Some(one), None) => Ok(one),
            (Some(_), Some(_)) => Err(ProjectError::InvalidInput(format!(
                "more than one session begins with `{name}`"
            ))),
            (None, _) => {
                Err(ProjectError::InvalidInput(format!("there is no session `{name}` here")))
            }
        }
    }
}
