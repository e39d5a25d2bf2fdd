use std::time::Duration;

use antiphon_core::port::TimeoutPhase;
use antiphon_core::{Piece, ProviderError};

use crate::world::{RequestBuilder, pieces, provider};

async fn failure(error: &str) -> (Vec<Piece>, Option<ProviderError>) {
    let provider = provider(&format!("[[reply]]\nsteps = [{{ error = {{ {error} }} }}]"));
    pieces(&provider, RequestBuilder::new().user("a").request()).await
}

#[tokio::test]
async fn every_kind_of_failure_can_be_scripted() {
    let message = || "m".to_owned();
    let retry_after = Some(Duration::from_millis(1500));
    let timeout = |phase| ProviderError::Timeout { phase };
    let cases = [
        ("invalid_request', message = 'm", ProviderError::InvalidRequest { message: message() }),
        ("context_overflow', message = 'm", ProviderError::ContextOverflow { message: message() }),
        ("authentication', message = 'm", ProviderError::Authentication { message: message() }),
        ("permission', message = 'm", ProviderError::Permission { message: message() }),
        ("not_found', message = 'm", ProviderError::NotFound { message: message() }),
        ("connection', message = 'm", ProviderError::Connection { message: message() }),
        ("protocol', message = 'm", ProviderError::Protocol { message: message() }),
        ("timeout', phase = 'connect", timeout(TimeoutPhase::Connect)),
        ("timeout', phase = 'first_byte", timeout(TimeoutPhase::FirstByte)),
        ("timeout', phase = 'stall", timeout(TimeoutPhase::Stall)),
        ("cut", ProviderError::Cut),
        (
            "rate_limited', retry_after_ms = 1500, message = 'm",
            ProviderError::RateLimited { message: message(), retry_after },
        ),
        (
            "overloaded', retry_after_ms = 1500, message = 'm",
            ProviderError::Overloaded { message: message(), retry_after },
        ),
        (
            "server', retry_after_ms = 1500, status = 503, message = 'm",
            ProviderError::Server { status: 503, message: message(), retry_after },
        ),
    ];
    for (kind, error) in cases {
        // The model is not named: the request itself was refused.
        assert_eq!(failure(&format!("kind = '{kind}'")).await, (Vec::new(), Some(error)));
    }
}

#[tokio::test]
async fn omitted_fields_of_a_failure_have_defaults() {
    let error = ProviderError::Server {
        status: 500,
        message: "scripted failure".to_owned(),
        retry_after: None,
    };
    assert_eq!(failure("kind = 'server'").await, (Vec::new(), Some(error)));
}

#[tokio::test]
async fn a_failure_in_the_middle_of_a_stream_follows_the_content() {
    let provider =
        provider("[[reply]]\nsteps = [{ text = 'so' }, { error = { kind = 'connection' } }]");
    let (sent, error) = pieces(&provider, RequestBuilder::new().request()).await;
    assert_eq!(
        sent[1..],
        [Piece::Text { block: 0, delta: "so".to_owned() }, Piece::BlockEnd { block: 0 }]
    );
    let message = "scripted failure".to_owned();
    assert_eq!(error, Some(ProviderError::Connection { message }));
}

#[tokio::test]
async fn a_cut_before_the_first_piece_sends_nothing() {
    let provider = provider("[[reply]]\nsteps = [{ cut = true }]");
    let request = RequestBuilder::new().request();
    assert_eq!(pieces(&provider, request).await, (Vec::new(), None));
}
