//! One call of one tool.

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
use crate::content::tool_result;
use crate::http::HttpError;
use crate::traffic::InFlight;
use crate::wire::RawArguments;

/// How long telling a server that nobody waits any more may take.
const GOODBYE_LIMIT: Duration = Duration::from_secs(5);

/// Longest message of a server that is repeated, in characters.
const MESSAGE_CHARS_MAX: usize = 2000;

/// What to call, with what, and for how long.
pub(crate) struct Call<'a> {
    /// What the server calls the tool.
    pub(crate) tool: &'a str,
    pub(crate) arguments: &'a RawJson,
    pub(crate) progress: Progress,
    /// How long it may be silent.
    pub(crate) timeout: Duration,
    /// How long it may take.
    pub(crate) timeout_max: Duration,
    /// Owns what is left to do when the call is given up.
    pub(crate) tracker: &'a TaskTracker,
}

/// How a call ended.
pub(crate) enum Ended {
    /// With a result, good or bad.
    Answered(ToolResult),
    /// It never reached the server.
    NotSent(String),
    /// The server went away, and nobody knows what it did.
    Lost,
    /// It took too long.
    TimedOut {
        /// How long it was waited for.
        after: Duration,
        /// Whether anything came from the server meanwhile.
        silent: bool,
    },
}

impl Call<'_> {
    /// Makes the call. Canceled, it tells the server so.
    pub(crate) async fn make(self, connection: &Connection) -> Ended {
        let in_flight = Arc::new(InFlight { progress: self.progress, moved: Notify::new() });
        let mut params = CallToolRequestParams::new(self.tool.to_owned());
        // Headers may be made from these; the body is made from the text.
        params.arguments = self.arguments.to().ok();
        let mut request = CallToolRequest::new(params);
        request.extensions.insert(RawArguments(self.arguments.clone()));
        request.extensions.insert(Arc::clone(&in_flight));
        let heard = connection.traffic.heard();
        let sending = connection.peer.send_request_with_option(
            ClientRequest::CallToolRequest(request),
            PeerRequestOptions::no_options(),
        );
        let Ok(handle) = sending.await else {
            return Ended::NotSent("it has just ended".to_owned());
        };
        let mut waiting = Waiting { handle: Some(handle), tracker: self.tracker };
        let mut silence_ends = Instant::now() + self.timeout;
        let all_ends = Instant::now() + self.timeout_max;
        loop {
            let ends = silence_ends.min(all_ends);
            tokio::select! {
                biased;
                answer = waiting.answer() => return ended(answer),
                () = in_flight.moved.notified() => silence_ends = Instant::now() + self.timeout,
                () = connection.traffic.gone.cancelled() => return waiting.last_chance(),
                () = sleep_until(ends) => {
                    let after = if ends == all_ends { self.timeout_max } else { self.timeout };
                    let silent = connection.traffic.heard() == heard;
                    return Ended::TimedOut { after, silent };
                }
            }
        }
    }
}

type Answer = Result<ServerResult, ServiceError>;

/// A request without an answer. Dropped, the server is told that nobody waits any more.
struct Waiting<'a> {
    handle: Option<RequestHandle<RoleClient>>,
    tracker: &'a TaskTracker,
}

impl Waiting<'_> {
    /// Safe to cancel.
    async fn answer(&mut self) -> Answer {
        let Some(handle) = &mut self.handle else {
            return Err(ServiceError::TransportClosed);
        };
        let answer = (&mut handle.rx).await.unwrap_or(Err(ServiceError::TransportClosed));
        self.handle = None;
        answer
    }

    /// The server is gone; its answer may have come before.
    fn last_chance(&mut self) -> Ended {
        match self.handle.take().map(|mut handle| handle.rx.try_recv()) {
            Some(Ok(answer)) => ended(answer),
            Some(Err(_)) | None => Ended::Lost,
        }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let Some(handle) = self.handle.take() else {
            return;
        };
        // Without a runtime there is no connection either.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let reason = Some("nobody waits for it any more".to_owned());
            let goodbye = tokio::time::timeout(GOODBYE_LIMIT, handle.cancel(reason));
            self.tracker.spawn_on(goodbye, &runtime);
        }
    }
}

fn ended(answer: Answer) -> Ended {
    match answer {
        Ok(result) => answered(result),
        Err(ServiceError::McpError(error)) => {
            let message: String = visible(&error.message).chars().take(MESSAGE_CHARS_MAX).collect();
            failed(&format!("the server answered with an error: {message}"))
        }
        Err(ServiceError::TransportSend(error)) => match http_cause(&error) {
            Some(HttpError::TooLarge) => {
                failed("the answer is too large and was thrown away: ask for less")
            }
            Some(HttpError::Connect(reason)) => {
                Ended::NotSent(format!("it cannot be reached: {reason}"))
            }
            Some(HttpError::Broken(_)) | None => Ended::Lost,
            Some(cause) => failed(&format!("the server {cause}")),
        },
        Err(_) => Ended::Lost,
    }
}

fn answered(result: ServerResult) -> Ended {
    if let ServerResult::CallToolResult(result) = result {
        return Ended::Answered(tool_result(result));
    }
    if matches!(result, ServerResult::EmptyResult(_) | ServerResult::TaskAckResult(_)) {
        // Not even a list of nothing: some servers mean it.
        return Ended::Answered(tool_result(CallToolResult::success(Vec::new())));
    }
    if matches!(result, ServerResult::InputRequiredResult(_)) {
        return failed(
            "the server wants to ask somebody before it goes on, which is not supported: give it all \
             it needs in the arguments, or use another tool",
        );
    }
    if matches!(result, ServerResult::CreateTaskResult(_)) {
        return failed(
            "the server wants to do this in the background, which is not supported: use another tool",
        );
    }
    failed("the server's answer is not the result of a tool: it cannot be read")
}

fn failed(reason: &str) -> Ended {
    Ended::Answered(ToolResult::failed(reason))
}

/// What is behind an error of a transport over HTTP.
pub(crate) fn http_cause(error: &DynamicTransportError) -> Option<&HttpError> {
    match error.error.downcast_ref::<StreamableHttpError<HttpError>>() {
        Some(StreamableHttpError::Client(cause)) => Some(cause),
        Some(_) | None => None,
    }
}
