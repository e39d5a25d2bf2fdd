//! Whether the watched task rests. Events say that it has ended or is suspended; only the owner of the journal says that
//! it stopped early, for instance because the key of its model is not set.

use std::pin::Pin;

use antiphon_project::error::ProjectError;
use antiphon_view::display::escaped;

use super::Program;

/// Whether the watched task rests.
pub(super) enum Rest {
    /// The owner was not asked.
    Unknown,
    /// The owner answers once it does.
    Awaited(Pin<Box<dyn Future<Output = Result<(), ProjectError>> + Send>>),
    /// The owner has answered. It is asked again after the next event of the task.
    Known,
}

impl Rest {
    /// Cancel safe.
    pub(super) async fn reached(&mut self) -> Result<(), ProjectError> {
        let Self::Awaited(rest) = self else { return std::future::pending().await };
        let rest = rest.await;
        *self = Self::Known;
        rest
    }
}

impl Program<'_, '_> {
    /// Asks the owner of the journal to say when the task that works rests.
    pub(super) fn await_rest(&mut self) {
        let task = self.watched.as_ref().filter(|_| self.is_working);
        let Some(task_id) = task.map(|task| task.task_id.clone()) else {
            self.rest = Rest::Unknown;
            return;
        };
        if matches!(self.rest, Rest::Unknown) {
            let connection = self.connection().clone();
            let rest = async move { connection.wait(&task_id).await.map(drop) };
            self.rest = Rest::Awaited(Box::pin(rest));
        }
    }

    /// The task rests, or its owner cannot say so any more.
    pub(super) fn task_rests(&mut self, rest: Result<(), ProjectError>) {
        match rest {
            // Its events say so.
            Ok(()) => {}
            // The stream of events ends, too.
            Err(ProjectError::OwnerEnds(reason)) => tracing::debug!(%reason, "the owner ends"),
            Err(ProjectError::Unavailable(reason)) if !self.attachment.is_owner() => {
                tracing::debug!(%reason, "the owner does not answer");
            }
            Err(error) => {
                self.error(&escaped(&error.to_string()));
                (self.is_working, self.is_suspended) = (false, true);
            }
        }
    }
}
