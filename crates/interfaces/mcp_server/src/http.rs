//! `/mcp`: the streamable HTTP transport of both protocol generations, behind the guard of every interface.
//!
//! A session of the older generation belongs to the caller that began it: for every other caller it does not exist. A
//! response that takes long begins as a stream, so that it does not exceed the time limit of a response.

mod sessions;

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use antiphon_core::ErrorCode;
use antiphon_interface_transport::openapi::{
    ApiRouter, DescribeRoute, EVENT_STREAM, Tag, TransformOperation, get_with,
};
use antiphon_interface_transport::{
    ApiError, AppState, Caller, ExposedAgents, Interface, OwnWork, Reservation, read_body,
    stream_slot,
};
use axum::Extension;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse, Response};
use futures_util::future::BoxFuture;
use futures_util::{FutureExt as _, StreamExt as _, stream};
use http_body_util::{BodyExt as _, Collected, Full};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};

use crate::backend::Backend;
use crate::handler::McpHandler;
use sessions::{SESSION_ID, Sessions};

const PATH: &str = "/mcp";

type Service = StreamableHttpService<McpHandler, LocalSessionManager>;

/// The MCP interface of a server.
#[derive(Clone)]
pub struct McpServer {
    exposed: Arc<ExposedAgents>,
    sessions: Arc<Sessions>,
    service: Arc<OnceLock<Service>>,
}

impl McpServer {
    /// The interface that shows these agents.
    pub fn new(agents: ExposedAgents) -> Self {
        let (exposed, sessions) = (Arc::new(agents), Arc::new(Sessions::new()));
        Self { exposed, sessions, service: Arc::default() }
    }

    /// Its route. An agent's key may use it, within the agent's own permissions.
    pub fn interface(&self) -> Interface {
        let server = self.clone();
        Interface {
            agent_writable: vec![PATH],
            own_work: vec![(PATH, OwnWork::Handler)],
            ..Interface::new(move || routes(server))
        }
    }

    /// The service, which is made with the first request.
    fn service(&self, state: &Arc<AppState>) -> &Service {
        self.service.get_or_init(|| {
            let backend =
                Backend::Server { state: Arc::clone(state), exposed: Arc::clone(&self.exposed) };
            let config = StreamableHttpServerConfig::default()
                // The guard has checked both.
                .disable_allowed_hosts()
                .disable_allowed_origins()
                .with_sse_keep_alive(Some(state.deps.limits.heartbeat))
                .with_max_request_body_bytes(state.deps.limits.body_bytes_max)
                .with_cancellation_token(state.closing.clone());
            let handler = move || Ok(McpHandler::new(backend.clone()));
            StreamableHttpService::new(handler, self.sessions.manager(), config)
        })
    }
}

fn routes(server: McpServer) -> ApiRouter<Arc<AppState>> {
    let post = "A message of an MCP client (docs/mcp-server.md): a JSON-RPC request, notification or response.";
    let get = "Messages of the server to an MCP client of 2025-11-25 or older.";
    let delete = "Ends a session of an MCP client of 2025-11-25 or older.";
    let route = get_with(serve, |route| describe(route, "mcp_stream", get))
        .post_with(serve, |route| describe(route, "mcp_message", post))
        .delete_with(serve, |route| describe(route, "mcp_end", delete));
    ApiRouter::new().api_route(PATH, route).layer(Extension(server))
}

fn describe<'t>(route: TransformOperation<'t>, id: &str, summary: &str) -> TransformOperation<'t> {
    let route = route.describe(id, Tag::Mcp, summary);
    let route = route.responds(200, "application/json", "The response.");
    let route = route.or_media_type(200, EVENT_STREAM);
    let route = route.responds(202, "text/plain", "Accepted.");
    [400, 401, 403, 404, 405, 406, 408, 413, 415, 422, 429, 500, 503]
        .into_iter()
        .fold(route, |route, status| route.responds(status, "application/json", "An error."))
}

/// Every request of `/mcp`.
async fn serve(
    State(state): State<Arc<AppState>>,
    Extension(server): Extension<McpServer>,
    caller: Caller,
    request: Request,
) -> Response {
    let slot = match stream_slot(&state, &caller) {
        Ok(slot) => slot,
        Err(error) => return error.into_response(),
    };
    if let Err(refused) = server.sessions.check(&caller, request.headers()).await {
        return refused;
    }
    let (parts, body) = request.into_parts();
    let bytes = if parts.method == Method::POST {
        let whole = Request::from_parts(parts.clone(), body);
        match read_body(whole, &state, state.deps.limits.body_bytes_max).await {
            Ok(bytes) => Bytes::copy_from_slice(&bytes),
            Err(error) => return error.into_response(),
        }
    } else {
        Bytes::new()
    };
    let service = server.service(&state).clone();
    let request = Request::from_parts(parts, Full::new(bytes));
    let sessions = Arc::clone(&server.sessions);
    let answering = async move {
        let response = as_json(service.handle(request).await.map(Body::new)).await;
        if let Some(id) = response.headers().get(SESSION_ID) {
            sessions.begun(&caller, id).await;
        }
        response
    };
    respond(answering.boxed(), &state, slot).await
}

/// The response when it comes in time, else the beginning of a stream that it follows in. The stream's slot is held to
/// its end.
async fn respond(
    mut answering: BoxFuture<'static, Response>,
    state: &AppState,
    slot: Reservation,
) -> Response {
    let limits = &state.deps.limits;
    let status_wait: Duration = limits.answer_wait / 4 * 3;
    match tokio::time::timeout(status_wait, &mut answering).await {
        Ok(response) if is_stream(&response) => response.map(|body| held(body, slot)),
        Ok(response) => response,
        Err(_) => {
            let late = Late::Waiting(answering, slot, limits.heartbeat);
            let kind = [(CONTENT_TYPE, EVENT_STREAM)];
            (StatusCode::OK, kind, Body::from_stream(stream::unfold(late, next_chunk)))
                .into_response()
        }
    }
}

/// An error that is a plain text, as JSON.
async fn as_json(response: Response) -> Response {
    let status = response.status();
    let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    if !(status.is_client_error() || status.is_server_error())
        || kind.is_some_and(|kind| kind.starts_with("application/json"))
    {
        return response;
    }
    let body = response.into_body().collect().await.map(Collected::to_bytes);
    let text = String::from_utf8_lossy(&body.unwrap_or_default()).into_owned();
    error(status, &text)
}

fn error(status: StatusCode, message: &str) -> Response {
    let code = match status {
        StatusCode::NOT_FOUND => ErrorCode::NotFound,
        status if status.is_server_error() => ErrorCode::InternalError,
        _ => ErrorCode::InvalidRequest,
    };
    ApiError::with_status(status, code, message).into_response()
}

fn is_stream(response: &Response) -> bool {
    let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    kind.is_some_and(|kind| kind.starts_with(EVENT_STREAM))
}

/// The body of a stream, which counts as one until it ends.
fn held(body: Body, slot: Reservation) -> Body {
    let chunks = stream::unfold((body.into_data_stream(), slot), |(mut chunks, slot)| async {
        chunks.next().await.map(|chunk| (chunk, (chunks, slot)))
    });
    Body::from_stream(chunks)
}

/// A response that takes long.
enum Late {
    Waiting(BoxFuture<'static, Response>, Reservation, Duration),
    Streaming(axum::body::BodyDataStream, Reservation),
    Ended,
}

/// Comments, which a reader of a stream ignores, then the response.
async fn next_chunk(late: Late) -> Option<(Result<Bytes, axum::Error>, Late)> {
    match late {
        Late::Waiting(mut answering, slot, heartbeat) => {
            let Ok(response) = tokio::time::timeout(heartbeat, &mut answering).await else {
                let waiting = Late::Waiting(answering, slot, heartbeat);
                return Some((Ok(Bytes::from_static(b":\n\n")), waiting));
            };
            if is_stream(&response) {
                let chunks = response.into_body().into_data_stream();
                let begun = Ok(Bytes::from_static(b":\n\n"));
                return Some((begun, Late::Streaming(chunks, slot)));
            }
            let body = response.into_body().collect().await.map(Collected::to_bytes);
            let event = body.map(|body| {
                let message = String::from_utf8_lossy(&body).replace(['\r', '\n'], " ");
                Bytes::from(format!("event: message\ndata: {message}\n\n"))
            });
            Some((event, Late::Ended))
        }
        Late::Streaming(mut chunks, slot) => {
            chunks.next().await.map(|chunk| (chunk, Late::Streaming(chunks, slot)))
        }
        Late::Ended => None,
    }
}

#[cfg(test)]
mod tests {
    use antiphon_interface_transport::openapi::undescribed_paths;

    use super::*;

    #[test]
    fn every_route_is_in_the_document() {
        let server = McpServer::new(ExposedAgents::AllOnLoopback);
        assert_eq!(undescribed_paths(server.interface()), Vec::<String>::new());
    }
}
