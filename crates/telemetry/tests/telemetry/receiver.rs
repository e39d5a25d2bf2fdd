//! A collector that listens, decodes what comes, and answers as it is told to.

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

/// What came.
pub(crate) struct Came {
    pub(crate) path: String,
    pub(crate) headers: HeaderMap,
    pub(crate) request: ExportTraceServiceRequest,
}

impl Came {
    pub(crate) fn spans(&self) -> Vec<Span> {
        let resources = self.request.resource_spans.iter();
        let scopes = resources.flat_map(|resource| &resource.scope_spans);
        scopes.flat_map(|scope| scope.spans.clone()).collect()
    }
}

/// What it answers.
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
struct Door {
    came: mpsc::Sender<Came>,
    answers: Arc<Mutex<VecDeque<Answer>>>,
}

/// A collector. It answers as told, then well.
pub(crate) struct Receiver {
    pub(crate) endpoint: String,
    came: mpsc::Receiver<Came>,
    _serving: JoinSet<()>,
}

impl Receiver {
    pub(crate) async fn start(answers: impl IntoIterator<Item = Answer>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let (sender, came) = mpsc::channel(64);
        let answers = Arc::new(Mutex::new(answers.into_iter().collect()));
        let app = Router::new().fallback(take).with_state(Door { came: sender, answers });
        let mut serving = JoinSet::new();
        serving.spawn(async move { axum::serve(listener, app).await.unwrap() });
        Self { endpoint, came, _serving: serving }
    }

    /// The next request.
    pub(crate) async fn next(&mut self) -> Came {
        self.came.recv().await.unwrap()
    }

    /// Those that came and nobody has looked at.
    pub(crate) fn rest(&mut self) -> usize {
        std::iter::from_fn(|| self.came.try_recv().ok()).count()
    }
}

async fn take(State(door): State<Door>, uri: Uri, headers: HeaderMap, body: Bytes) -> Response {
    let request = ExportTraceServiceRequest::decode(body).unwrap();
    door.came.send(Came { path: uri.path().to_owned(), headers, request }).await.unwrap();
    let answer = door.answers.lock().unwrap().pop_front();
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
