//! A collector that decodes requests and answers as scripted.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTracePartialSuccess, ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message;
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

/// A received request.
pub(crate) struct ReceivedRequest {
    pub(crate) path: String,
    pub(crate) headers: HeaderMap,
    pub(crate) request: ExportTraceServiceRequest,
}

impl ReceivedRequest {
    pub(crate) fn spans(&self) -> Vec<Span> {
        let resources = self.request.resource_spans.iter();
        let scopes = resources.flat_map(|resource| &resource.scope_spans);
        scopes.flat_map(|scope| scope.spans.clone()).collect()
    }
}

/// A scripted answer.
#[derive(Clone)]
pub(crate) enum Answer {
    Status(u16),
    RetryAfter(u16, &'static str),
    Rejects(i64),
    Garbage,
    Redirect(String),
    Never,
}

#[derive(Clone)]
struct ReceiverState {
    came: mpsc::Sender<ReceivedRequest>,
    answers: Arc<Mutex<VecDeque<Answer>>>,
}

/// A collector. It gives the scripted answers, then succeeds.
pub(crate) struct Receiver {
    pub(crate) endpoint: String,
    came: mpsc::Receiver<ReceivedRequest>,
    _serving: JoinSet<()>,
}

impl Receiver {
    pub(crate) async fn start(answers: impl IntoIterator<Item = Answer>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let (sender, came) = mpsc::channel(64);
        let answers = Arc::new(Mutex::new(answers.into_iter().collect()));
        let app = Router::new().fallback(take).with_state(ReceiverState { came: sender, answers });
        let mut serving = JoinSet::new();
        serving.spawn(async move { axum::serve(listener, app).await.unwrap() });
        Self { endpoint, came, _serving: serving }
    }

    /// Waits for the next request.
    pub(crate) async fn next(&mut self) -> ReceivedRequest {
        self.came.recv().await.unwrap()
    }

    /// Number of received requests that were not read.
    pub(crate) fn rest(&mut self) -> usize {
        std::iter::from_fn(|| self.came.try_recv().ok()).count()
    }
}

async fn take(
    State(state): State<ReceiverState>,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let request = ExportTraceServiceRequest::decode(body).unwrap();
    state
        .came
        .send(ReceivedRequest { path: uri.path().to_owned(), headers, request })
        .await
        .unwrap();
    let answer = state.answers.lock().unwrap().pop_front();
    match answer {
        None => ExportTraceServiceResponse::default().encode_to_vec().into_response(),
        Some(Answer::Status(status)) => StatusCode::from_u16(status).unwrap().into_response(),
        Some(Answer::RetryAfter(status, after)) => {
            (StatusCode::from_u16(status).unwrap(), [("retry-after", after)]).into_response()
        }
        Some(Answer::Rejects(rejected_spans)) => {
            let partial_success =
                Some(ExportTracePartialSuccess { rejected_spans, error_message: String::new() });
            ExportTraceServiceResponse { partial_success }.encode_to_vec().into_response()
        }
        Some(Answer::Garbage) => "this is no protobuf".into_response(),
        Some(Answer::Redirect(to)) => {
            (StatusCode::TEMPORARY_REDIRECT, [("location", to)]).into_response()
        }
        Some(Answer::Never) => std::future::pending().await,
    }
}
