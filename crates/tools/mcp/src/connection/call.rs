//! One call of a server's tool, with its deadlines.

use std::sync::Arc;
use std::time::Duration;

use antiphon_core::port::Progress;
use antiphon_core::{RawJson, ToolResult, visible};
use rmcp::RoleClient;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CallToolResult, ClientRequest, ServerResult,
};
use rmcp::service::{PeerRequestOptions, RequestHandle, ServiceError};
use rmcp::transport::DynamicTransportError;
use rmcp::transport::streamable_http_client::StreamableHttpError;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};
use tokio_util::task::TaskTracker;

use crate::connection::Connection;
use crate::connection::content::tool_result;
use crate::connection::traffic::InFlight;
use crate::transport::http::HttpError;
use crate::transport::wire::RawArguments;

/// Time limit for sending a cancellation to the server.
const CANCEL_LIMIT: Duration = Duration::from_secs(5);

/// Longest error message of a server that is reported, in characters.
const MESSAGE_CHARS_MAX: usize = 2000;

/// Tool, arguments and time limits of a call.
pub(crate) struct Call<'a> {
    /// Name of the tool on the server.
    pub(crate) tool: &'a str,
    pub(crate) arguments: &'a RawJson,
    pub(crate) progress: Progress,
    /// Time limit between progress messages.
    pub(crate) timeout: Duration,
    /// Time limit for the whole call.
    pub(crate) timeout_max: Duration,
    /// Owns the cancellation that is sent when the call is abandoned.
    pub(crate) tracker: &'a TaskTracker,
}

/// Outcome of a call.
pub(crate) enum CallOutcome {
    /// The server returned a result or an error.
    Answered(ToolResult),
    /// The call did not reach the server, for this reason.
    NotSent(String),
    /// The server closed the connection; the outcome is unknown.
    Lost,
    /// A time limit expired.
    TimedOut {
        /// The limit that expired.
        after: Duration,
        /// Whether the server sent no message at all during the call.
        silent: bool,
    },
}

impl Call<'_> {
    /// Makes the call. If this future is dropped, the server receives a cancellation.
    pub(crate) async fn make(self, connection: &Connection) -> CallOutcome {
        let in_flight =
            Arc::new(InFlight { progress: self.progress, progress_received: Notify::new() });
        let mut params = CallToolRequestParams::new(self.tool.to_owned());
        // `rmcp` may derive headers from these; the body uses the raw text.
        params.arguments = self.arguments.to().ok();
        let mut request = CallToolRequest::new(params);
        request.extensions.insert(RawArguments(self.arguments.clone()));
        request.extensions.insert(Arc::clone(&in_flight));
        let messages_received = connection.traffic.messages_received();
        let sending = connection.peer.send_request_with_option(
            ClientRequest::CallToolRequest(request),
            PeerRequestOptions::no_options(),
        );
        let Ok(handle) = sending.await else {
            return CallOutcome::NotSent("it has just ended".to_owned());
        };
        let mut pending = PendingRequest { handle: Some(handle), tracker: self.tracker };
        let mut silence_ends = Instant::now() + self.timeout;
        let all_ends = Instant::now() + self.timeout_max;
        loop {
            let ends = silence_ends.min(all_ends);
            tokio::select! {
                biased;
                answer = pending.answer() => return outcome(answer),
                () = in_flight.progress_received.notified() => silence_ends = Instant::now() + self.timeout,
                () = connection.traffic.closed.cancelled() => return pending.answer_or_lost(),
                () = sleep_until(ends) => {
                    let after = if ends == all_ends { self.timeout_max } else { self.timeout };
                    let silent = connection.traffic.messages_received() == messages_received;
                    return CallOutcome::TimedOut { after, silent };
                }
            }
        }
    }
}

type Answer = Result<ServerResult, ServiceError>;

/// A request without an answer. On drop, sends a cancellation to the server.
struct PendingRequest<'a> {
    handle: Option<RequestHandle<RoleClient>>,
    tracker: &'a TaskTracker,
}

impl PendingRequest<'_> {
    /// Safe to cancel.
    async fn answer(&mut self) -> Answer {
        let Some(handle) = &mut self.handle else {
            return Err(ServiceError::TransportClosed);
        };
        let answer = (&mut handle.rx).await.unwrap_or(Err(ServiceError::TransportClosed));
        self.handle = None;
        answer
    }

    /// The connection is closed, but the answer may have arrived before.
    fn answer_or_lost(&mut self) -> CallOutcome {
        match self.handle.take().map(|mut handle| handle.rx.try_recv()) {
            Some(Ok(answer)) => outcome(answer),
            Some(Err(_)) | None => CallOutcome::Lost,
        }
    }
}

impl Drop for PendingRequest<'_> {
    fn drop(&mut self) {
        let Some(handle) = self.handle.take() else {
            return;
        };
        // Without a runtime there is no connection to send on.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let reason = Some("the client canceled the call".to_owned());
            let cancellation = tokio::time::timeout(CANCEL_LIMIT, handle.cancel(reason));
            self.tracker.spawn_on(cancellation, &runtime);
        }
    }
}

fn outcome(answer: Answer) -> CallOutcome {
    match answer {
        Ok(result) => outcome_of(result),
        Err(ServiceError::McpError(error)) => {
            let message: String = visible(&error.message).chars().take(MESSAGE_CHARS_MAX).collect();
            failed(&format!("the server answered with an error: {message}"))
        }
        Err(ServiceError::TransportSend(error)) => match http_cause(&error) {
            Some(HttpError::TooLarge) => {
                failed("the answer is too large and was thrown away: ask for less")
            }
            Some(HttpError::Connect(reason)) => {
                CallOutcome::NotSent(format!("it cannot be reached: {reason}"))
            }
            Some(HttpError::Broken(_)) | None => CallOutcome::Lost,
            Some(cause) => failed(&format!("the server {cause}")),
        },
        Err(_) => CallOutcome::Lost,
    }
}

fn outcome_of(result: ServerResult) -> CallOutcome {
    if let ServerResult::CallToolResult(result) = result {
        return CallOutcome::Answered(tool_result(result));
    }
    if matches!(result, ServerResult::EmptyResult(_) | ServerResult::TaskAckResult(_)) {
        // Some servers omit the content of an empty result.
        return CallOutcome::Answered(tool_result(CallToolResult::success(Vec::new())));
    }
    if matches!(result, ServerResult::InputRequiredResult(_)) {
        return failed(
            "the server asks for user input, which is not supported: pass everything it needs in the \
            arguments, or use another tool",
        );
    }
    if matches!(result, ServerResult::CreateTaskResult(_)) {
        return failed(
            "the server runs this call in the background, which is not supported: use another tool",
        );
    }
    failed("the server's answer is not the result of a tool: it cannot be read")
}

fn failed(reason: &str) -> CallOutcome {
    CallOutcome::Answered(ToolResult::failed(reason))
}

/// The HTTP error that caused a transport error, if it is one.
pub(crate) fn http_cause(error: &DynamicTransportError) -> Option<&HttpError> {
    match error.error.downcast_ref::<StreamableHttpError<HttpError>>() {
        Some(StreamableHttpError::Client(cause)) => Some(cause),
        Some(_) | None => None,
    }
}
