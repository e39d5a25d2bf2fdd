//! Requests that outlive the owner of the journal: when it ends meanwhile, the next one gets the request, or this
//! process does the work. Which process that is, is decided in `ownership.rs`.
//!
//! | the owner                                     | the request is repeated                                   |
//! |-----------------------------------------------|-----------------------------------------------------------|
//! | says that it ends, and still answers          | until it has ended, however long its last calls take      |
//! | has ended before the request reached it       | for 30 s                                                  |
//! | has ended, and may have carried it out        | for 30 s, if it has the effect of one when it comes twice |
//! | answers anything else                         | never                                                     |

use std::time::{Duration, Instant};

use antiphon_project::environment::Environment;
use antiphon_project::error::ProjectError;

use super::Connection;

/// How long the next owner is looked for.
const OWNER_WAIT: Duration = Duration::from_secs(30);

/// Pause before the next owner is looked for.
const PAUSE: Duration = Duration::from_millis(20);

/// An owner that ends sooner is not worth a line.
const NOTICE_AFTER: Duration = Duration::from_secs(1);

/// An owner that ends, while a user waits for it.
#[derive(Default)]
pub(crate) struct EndingOwner {
    since: Option<Instant>,
    has_noticed: bool,
}

impl EndingOwner {
    /// It ends and still answers. Returns the line for the user, once.
    pub(crate) fn waits(&mut self) -> Option<&'static str> {
        let since = *self.since.get_or_insert_with(Instant::now);
        if self.has_noticed || since.elapsed() < NOTICE_AFTER {
            return None;
        }
        self.has_noticed = true;
        Some(WAITS_FOR_OWNER)
    }
}

/// What a user reads who waits for an owner that ends.
pub(crate) const WAITS_FOR_OWNER: &str = "the process that works on the tasks of this project is about to end: waits until the calls that run there are \
     recorded";

/// What a request does that comes twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Twice {
    /// The same as once: it says what is to be so, or has a key.
    IsOnce,
    /// The work again.
    IsTwice,
}

impl Connection {
    /// Carries out a request at the owner of the journal, whichever process that is meanwhile. Returns its answer with
    /// the connection that it came from.
    pub async fn at_any_owner<T>(
        environment: &Environment,
        twice: Twice,
        open: impl AsyncFn() -> Result<Self, ProjectError>,
        request: impl AsyncFn(&Self) -> Result<T, ProjectError>,
    ) -> Result<(Self, T), ProjectError> {
        let mut end = Instant::now() + OWNER_WAIT;
        let mut ending = EndingOwner::default();
        let mut failed = None;
        loop {
            let connection = match open().await {
                Ok(connection) => connection,
                // What became of the request says more than that there is no next owner.
                Err(error) => return Err(failed.unwrap_or(error)),
            };
            let error = match request(&connection).await {
                Ok(answer) => return Ok((connection, answer)),
                Err(error) => error,
            };
            match connection.after(&error).await {
                OwnerState::Ends => {
                    ending.waits().into_iter().for_each(|text| environment.warnings.report(text));
                    end = Instant::now() + OWNER_WAIT;
                }
                OwnerState::Ended => {}
                OwnerState::EndedMeanwhile if twice == Twice::IsOnce => {}
                OwnerState::Stays | OwnerState::EndedMeanwhile => return Err(error),
            }
            if Instant::now() >= end {
                return Err(error);
            }
            failed = Some(error);
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// What a failed request says about the owner.
    async fn after(&self, error: &ProjectError) -> OwnerState {
        let server = match self {
            Self::Server(server, _) if !server.is_named() => server,
            Self::Server(..) | Self::Local(_) => return OwnerState::Stays,
        };
        let is_alive = server.client.is_alive().await;
        match error {
            ProjectError::OwnerEnds(_) if is_alive => OwnerState::Ends,
            ProjectError::OwnerEnds(_) => OwnerState::Ended,
            ProjectError::Unavailable(_) if !is_alive => OwnerState::EndedMeanwhile,
            ProjectError::Unavailable(_)
            | ProjectError::InvalidInput(_)
            | ProjectError::Refused(_)
            | ProjectError::Failed(_) => OwnerState::Stays,
        }
    }
}

/// The owner of the journal after a request has failed.
enum OwnerState {
    /// It goes on: it is the request that failed.
    Stays,
    /// It ends, and answers until then.
    Ends,
    /// It has ended, and the request has not reached it.
    Ended,
    /// It has ended, and may have carried out the request.
    EndedMeanwhile,
}
