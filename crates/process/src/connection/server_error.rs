//! Failed requests to a server as errors of the project: the same sentence and the same kind as when this process
//! does the work.

use antiphon_client::ClientError;

use super::ProjectServer;
use antiphon_project::error::ProjectError;

/// What a failed request means to its caller.
pub(super) fn project_error(server: &ProjectServer, error: ClientError) -> ProjectError {
    let endpoint = server.client.endpoint();
    match error {
        ClientError::NoConnection { reason } if !server.is_named() => {
            ProjectError::OwnerEnds(format!(
                "the process that works on the tasks of this project has ended, and nothing was sent to it \
                 ({reason}): try again"
            ))
        }
        ClientError::Unreachable { reason } | ClientError::StreamLost { reason }
            if !server.is_named() =>
        {
            ProjectError::Unavailable(format!(
                "the process that works on the tasks of this project broke off the connection ({reason}): see with \
                 `antiphon tasks list` what it has done, and try again"
            ))
        }
        ClientError::NoConnection { reason } => ProjectError::Unavailable(format!(
            "no server answers at {endpoint} ({reason}): start it there with `antiphon serve`, or check \
             the address"
        )),
        ClientError::Unreachable { reason } | ClientError::StreamLost { reason } => {
            ProjectError::Unavailable(format!(
                "the connection to the server at {endpoint} broke ({reason}): see with `antiphon tasks list` \
                 what it has done, and start it again if it has stopped"
            ))
        }
        ClientError::Unauthorized if server.is_named() => ProjectError::Refused(format!(
            "the server at {endpoint} does not accept the token: use what `antiphon token` prints in the \
             server's project, or an API key (`antiphon keys new` there), with --token-file FILE or \
             ANTIPHON_TOKEN"
        )),
        ClientError::Unauthorized => ProjectError::Refused(format!(
            "the server at {endpoint} does not accept the token: stop the server and start it again"
        )),
        ClientError::Refused { error, .. } => error.into(),
        ClientError::Protocol { reason } => ProjectError::Unavailable(format!(
            "the server at {endpoint} sent an unexpected answer: is it of this version? ({reason})"
        )),
    }
}
