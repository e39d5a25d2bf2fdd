//! Errors: each says what the caller does next.

use antiphon_client::{Client, ClientConfig, ClientError, ConfigError, Endpoint, Timeouts};
use antiphon_core::{ErrorCode, TaskId};
use antiphon_test_server::TOKEN;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::server::{Server, client};

fn unknown() -> TaskId {
    TaskId::parse("unknown").unwrap()
}

/// The error of a client whose server answers with this.
async fn answered(answer: &'static str) -> ClientError {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let serving = async {
        let (mut socket, _) = listener.accept().await.unwrap();
        let mut head = [0; 1024];
        assert!(socket.read(&mut head).await.unwrap() > 0);
        socket.write_all(answer.as_bytes()).await.unwrap();
    };
    let client = client(Endpoint::parse(&url).unwrap(), TOKEN);
    let task_id = unknown();
    let (asked, ()) = tokio::join!(client.task(&task_id), serving);
    asked.unwrap_err()
}

#[tokio::test]
async fn a_refusal_has_the_error_of_the_server() {
    let server = Server::start().await;
    let error = server.client().task(&unknown()).await.unwrap_err();
    let ClientError::Refused { status: 404, error: response } = &error else { panic!("{error:?}") };
    assert_eq!(response.code, ErrorCode::NotFound);
    assert!(!error.is_transient() && !error.is_conflict());
    assert!(error.to_string().starts_with("HTTP 404: "), "{error}");
    let task_id = server.task("hello").await;
    let error = server.client().cancel_task(&task_id).await.unwrap_err();
    assert!(error.is_conflict() && !error.is_transient(), "{error:?}");
    server.stop().await;
}

#[tokio::test]
async fn a_code_of_a_later_version_is_read_by_its_status() {
    let answer = "HTTP/1.1 409 Conflict\r\ncontent-length: 42\r\n\r\n\
                  {\"code\":\"OUT_OF_COFFEE\",\"message\":\"later\"}";
    let error = answered(answer).await;
    let ClientError::Refused { status: 409, error: response } = &error else { panic!("{error:?}") };
    assert_eq!((response.code, response.message.as_str()), (ErrorCode::Conflict, "later"));
}

#[tokio::test]
async fn a_token_that_the_server_does_not_accept_is_unauthorized() {
    let server = Server::start().await;
    let endpoint = server.client().endpoint().clone();
    let wrong = "x".repeat(32);
    let client = client(endpoint, &wrong);
    assert!(client.is_alive().await, "that needs no token");
    assert_eq!(client.task(&unknown()).await.unwrap_err(), ClientError::Unauthorized);
    assert!(!format!("{client:?}").contains(&wrong));
    server.stop().await;
}

#[tokio::test]
async fn no_connection_to_a_server_that_is_not_there() {
    let (_, address) = Server::start().await.stop().await;
    let client = client(Endpoint::parse(&format!("http://{address}")).unwrap(), TOKEN);
    assert!(!client.is_alive().await);
    let error = client.task(&unknown()).await.unwrap_err();
    assert!(matches!(error, ClientError::NoConnection { .. }) && error.is_transient(), "{error:?}");
}

#[test]
fn an_address_without_a_scheme_is_told_to_add_one() {
    for url in ["localhost:7117", "team.example", "127.0.0.1:7117", " localhost "] {
        let reason = Endpoint::parse(url).unwrap_err();
        assert!(reason.contains("add http://"), "{url}: {reason}");
    }
    for url in ["http://", "http://a.example/?a=b", "http://a.example/#a"] {
        Endpoint::parse(url).unwrap_err();
    }
}

#[tokio::test]
async fn an_answer_that_is_not_antiphons_is_a_protocol_error() {
    for answer in [
        "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello",
        "HTTP/1.1 404 X\r\ncontent-length: 0\r\n\r\n",
        // A redirect is not followed: it would carry the token away.
        "HTTP/1.1 307 X\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 0\r\n\r\n",
    ] {
        let error = answered(answer).await;
        assert!(matches!(error, ClientError::Protocol { .. }), "{answer}: {error:?}");
    }
}

#[tokio::test]
async fn an_answer_that_breaks_off_or_comes_from_a_proxy_is_unreachable() {
    for answer in [
        "",
        "HTTP/1.1 200 OK\r\ncontent-length: 50\r\n\r\n{",
        "HTTP/1.1 502 X\r\ncontent-length: 4\r\n\r\noops",
    ] {
        let error = answered(answer).await;
        assert!(matches!(error, ClientError::Unreachable { .. }), "{answer}: {error:?}");
    }
}

#[test]
fn a_token_is_sent_in_the_clear_to_this_machine_only() {
    let config = |url: &str, token: &str| ClientConfig {
        endpoint: Endpoint::parse(url).unwrap(),
        token: token.into(),
        timeouts: Timeouts::default(),
    };
    for url in
        ["http://127.0.0.1:7117", "http://[::1]:7117", "http://localhost", "https://a.example/x/"]
    {
        Client::new(config(url, TOKEN)).unwrap();
    }
    let refused = |url, token| Client::new(config(url, token)).err();
    assert_eq!(refused("http://a.example", TOKEN), Some(ConfigError::Insecure));
    assert_eq!(refused("https://a.example", "a\nb"), Some(ConfigError::Token));
    for url in ["nonsense", "ftp://a.example", "https://user:secret@a.example", "file:///etc"] {
        let reason = Endpoint::parse(url).unwrap_err();
        assert!(!reason.contains("secret"), "{reason}");
    }
}
