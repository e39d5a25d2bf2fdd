//! Why a request fails: as the error of a protocol method, or as the result of a tool, which the client's model reads.

use antiphon_core::{ErrorCode, ErrorResponse};
use antiphon_interface_transport::ApiError;
use antiphon_project::RequestError;
use antiphon_project::error::ProjectError;
use antiphon_runtime::OrchestratorError;
use rmcp::model::{CallToolResult, ContentBlock, ErrorData};
use serde_json::json;

use crate::task_view::word;

/// A request that fails.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) code: ErrorCode,
    pub(crate) message: String,
}

impl Failure {
    pub(crate) fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }

    /// An argument that is not valid: 'what is wrong: what to do'.
    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::InvalidRequest, message)
    }

    pub(crate) fn not_found(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::NotFound, message)
    }

    /// The task of another caller is answered in the same way as one that does not exist.
    pub(crate) fn no_task() -> Self {
        Self::not_found("there is no such task: `task_list` has the tasks that you may see")
    }

    /// As the result of a tool.
    pub(crate) fn into_tool_result(self) -> CallToolResult {
        let text = format!("{}: {}", word(&self.code), self.message);
        CallToolResult::error(vec![ContentBlock::text(text)])
    }

    /// As the error of a method.
    pub(crate) fn into_error(self) -> ErrorData {
        let data = Some(json!({ "code": word(&self.code) }));
        match self.code {
            ErrorCode::NotFound => ErrorData::resource_not_found(self.message, data),
            ErrorCode::InternalError | ErrorCode::ServiceUnavailable => {
                ErrorData::internal_error(self.message, data)
            }
            ErrorCode::InvalidRequest
            | ErrorCode::Unauthorized
            | ErrorCode::Forbidden
            | ErrorCode::Conflict
            | ErrorCode::RateLimitExceeded
            | ErrorCode::InvalidStateTransition
            | ErrorCode::InvalidMessage
            | ErrorCode::DomainViolation => ErrorData::invalid_params(self.message, data),
        }
    }
}

impl From<ErrorResponse> for Failure {
    fn from(error: ErrorResponse) -> Self {
        Self::new(error.code, error.message)
    }
}

impl From<ApiError> for Failure {
    fn from(error: ApiError) -> Self {
        error.body().clone().into()
    }
}

impl From<OrchestratorError> for Failure {
    fn from(error: OrchestratorError) -> Self {
        ApiError::from(error).into()
    }
}

impl From<RequestError> for Failure {
    fn from(error: RequestError) -> Self {
        ApiError::from(error).into()
    }
}

impl From<ProjectError> for Failure {
    fn from(error: ProjectError) -> Self {
        let code = match &error {
            ProjectError::InvalidInput(_) => ErrorCode::InvalidRequest,
            ProjectError::Refused(_) => ErrorCode::Forbidden,
            ProjectError::Unavailable(_) | ProjectError::OwnerEnds(_) => {
                ErrorCode::ServiceUnavailable
            }
            ProjectError::Failed(_) => ErrorCode::InternalError,
        };
        Self::new(code, error.to_string())
    }
}
