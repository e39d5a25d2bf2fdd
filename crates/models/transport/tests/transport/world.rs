//! A dialect that echoes events, and helpers that read an answer to its end.

use std::sync::LazyLock;
use std::time::Duration;

use antiphon_core::{Piece, PieceSource, ProviderError};
use antiphon_model_server::{ModelServer, Reply};
use antiphon_model_transport::{Dialect, Endpoint, HttpFailure, Post, Transport, TransportConfig};
use futures_util::StreamExt;

/// Longest wait for a condition.
const WAIT_MAX: Duration = Duration::from_secs(10);

/// Echoes each event as `name|data`. Four events have a meaning: `done`, `nothing`, `fault` and
/// `half`.
pub(crate) struct Echo;

impl Dialect for Echo {
    fn event(
        &mut self,
        name: &str,
        data: &str,
        pieces: &mut Vec<Piece>,
    ) -> Result<(), ProviderError> {
        match data {
            "done" => pieces.push(Piece::Done),
            "nothing" => {}
            "fault" => return Err(ProviderError::ContextOverflow { message: data.to_owned() }),
            "half" => return Err(ProviderError::Protocol { message: data.to_owned() }),
            _ => pieces.push(echoed(name, data)),
        }
        Ok(())
    }

    /// Shows all fields of a failure.
    fn failure(&self, failure: &HttpFailure) -> ProviderError {
        ProviderError::Server {
            status: failure.status,
            message: format!("{:?} {}", failure.should_retry, failure.body),
            retry_after: failure.retry_after,
        }
    }
}

/// The piece that [`Echo`] makes of an event.
pub(crate) fn echoed(name: &str, data: &str) -> Piece {
    Piece::Text { block: 0, delta: format!("{name}|{data}") }
}

/// Shared: loading the system's certificates takes longer than a test.
pub(crate) fn transport() -> Transport {
    static SHARED: LazyLock<Transport> =
        LazyLock::new(|| Transport::new(&TransportConfig::default()).expect("a transport"));
    SHARED.clone()
}

pub(crate) fn post(url: &str) -> Post {
    Post::json(Endpoint::parse(url).expect("an address"), b"{}".to_vec())
}

pub(crate) async fn server(reply: Reply) -> ModelServer {
    ModelServer::start(move |_, _| reply.clone()).await.expect("a server")
}

/// All pieces of an answer, including signs of life.
pub(crate) async fn all_pieces(source: PieceSource) -> Vec<Result<Piece, ProviderError>> {
    tokio::time::timeout(WAIT_MAX, source.collect()).await.expect("an end")
}

/// All pieces of an answer without signs of life, which depend on how its bytes are split.
pub(crate) async fn read(source: PieceSource) -> Vec<Result<Piece, ProviderError>> {
    let mut said = all_pieces(source).await;
    said.retain(|piece| *piece != Ok(Piece::Alive));
    said
}

/// All pieces of `reply`.
pub(crate) async fn answer(reply: Reply) -> Vec<Result<Piece, ProviderError>> {
    let server = server(reply).await;
    read(transport().stream(post(&server.url()), Echo)).await
}

/// Waits until `condition` holds.
pub(crate) async fn until(condition: impl Fn() -> bool) {
    let wait = async {
        while !condition() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(WAIT_MAX, wait).await.expect("the condition in time");
}
