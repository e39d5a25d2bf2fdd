//! The ways in beside an address in the clear: TLS, and a socket in a folder.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use antiphon_interface_transport::{Listeners, ServerLimits, Tls, TlsError, UnixSocket};
use rcgen::{CertifiedKey, KeyPair, generate_simple_self_signed};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use tempfile::TempDir;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpStream, UnixListener, UnixStream};
use tokio_rustls::TlsConnector;

use crate::client::{Reply, get, request};
use crate::world::{TOKEN, TestServer};

const SOON: Duration = Duration::from_millis(50);

fn certified() -> CertifiedKey<KeyPair> {
    generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap()
}

fn tls(own: &CertifiedKey<KeyPair>) -> Tls {
    Tls::from_pem(own.cert.pem().as_bytes(), own.signing_key.serialize_pem().as_bytes()).unwrap()
}

async fn with_tls(own: &CertifiedKey<KeyPair>, limits: ServerLimits) -> TestServer {
    let tls = Some(tls(own));
    TestServer::on(limits, |listener| Listeners { tls, ..Listeners::from(listener) }).await
}

/// A client that trusts this certificate and no other.
fn connector(own: &CertifiedKey<KeyPair>) -> TlsConnector {
    let mut roots = RootCertStore::empty();
    roots.add(own.cert.der().clone()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    TlsConnector::from(Arc::new(config))
}

async fn ask(mut stream: impl AsyncRead + AsyncWrite + Unpin, text: &str) -> Reply {
    stream.write_all(text.as_bytes()).await.unwrap();
    let mut received = Vec::new();
    let _ = stream.read_to_end(&mut received).await;
    Reply::read(&String::from_utf8(received).unwrap())
}

/// A request to a socket.
fn local(method: &str, path: &str, host: &str) -> String {
    format!("{method} {path} HTTP/1.0\r\nhost: {host}\r\nauthorization: Bearer {TOKEN}\r\n\r\n")
}

/// A server with a socket for this user, or for another one.
async fn with_socket(folder: &Path, other_user: u32, limits: ServerLimits) -> TestServer {
    let uid = folder.metadata().unwrap().uid() + other_user;
    let socket = Some(UnixSocket { listener: UnixListener::bind(folder.join("s")).unwrap(), uid });
    TestServer::on(limits, |listener| Listeners { socket, ..Listeners::from(listener) }).await
}

async fn connect(folder: &TempDir) -> UnixStream {
    UnixStream::connect(folder.path().join("s")).await.unwrap()
}

#[tokio::test]
async fn tls_changes_nothing_for_clients() {
    let own = certified();
    let server = with_tls(&own, ServerLimits::default()).await;
    let name = ServerName::try_from("localhost").unwrap();
    for (path, token, status) in [
        ("/health", "", 200),
        ("/v1/tasks", TOKEN, 200),
        ("/v1/tasks", "wrong", 401),
        ("/v1/nothing", TOKEN, 404),
    ] {
        let stream = TcpStream::connect(server.address).await.unwrap();
        let stream = connector(&own).connect(name.clone(), stream).await.unwrap();
        let text = request(server.address, "GET", path, None).replacen(TOKEN, token, 1);
        let reply = ask(stream, &text).await;
        assert_eq!(reply.status, status, "{path}: {reply:?}");
    }
    let stream = TcpStream::connect(server.address).await.unwrap();
    let stream = connector(&own).connect(name, stream).await.unwrap();
    let host = server.address.to_string();
    let text = request(server.address, "GET", "/health", None).replacen(&host, "evil.example", 1);
    assert_eq!(ask(stream, &text).await.status, 403);
    server.ended().await;
}

#[tokio::test]
async fn clients_without_trust_or_without_tls_are_not_served() {
    let own = certified();
    let server = with_tls(&own, ServerLimits::default()).await;
    let name = ServerName::try_from("localhost").unwrap();
    let stream = TcpStream::connect(server.address).await.unwrap();
    assert!(connector(&certified()).connect(name, stream).await.is_err());
    let clear = get(server.address, "/v1/tasks").await;
    assert_eq!(clear.status, 0, "{clear:?}");
    server.ended().await;
}

#[tokio::test]
async fn a_slow_handshake_frees_its_connection() {
    let own = certified();
    let limits = ServerLimits { head_wait: SOON, connections_max: 1, ..ServerLimits::default() };
    let server = with_tls(&own, limits).await;
    let _silent = TcpStream::connect(server.address).await.unwrap();
    let stream = TcpStream::connect(server.address).await.unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    let stream = connector(&own).connect(name, stream).await.unwrap();
    let text = request(server.address, "GET", "/health", None);
    assert_eq!(ask(stream, &text).await.status, 200);
    // One that is at it when the server ends is not waited for.
    let _silent = TcpStream::connect(server.address).await.unwrap();
    tokio::time::timeout(Duration::from_secs(5), server.ended()).await.unwrap();
}

#[tokio::test]
async fn invalid_certificates_and_keys_are_refused() {
    let own = certified();
    let (cert, key) = (own.cert.pem(), own.signing_key.serialize_pem());
    let other = certified().signing_key.serialize_pem();
    let refused = |cert: &str, key: &str| {
        Tls::from_pem(cert.as_bytes(), key.as_bytes()).map(|_| ()).unwrap_err()
    };
    assert_eq!(refused("", &key), TlsError::NoCertificate);
    assert_eq!(refused("nonsense", &key), TlsError::NoCertificate);
    assert_eq!(refused(&key, &key), TlsError::NoCertificate);
    assert_eq!(refused(&cert[..cert.len() / 2], &key), TlsError::NoCertificate);
    assert_eq!(refused(&cert, ""), TlsError::NoKey);
    assert_eq!(refused(&cert, &cert), TlsError::NoKey);
    let unfit = refused(&cert, &other);
    assert!(matches!(unfit, TlsError::Unfit { .. }), "{unfit:?}");
    assert_eq!(format!("{:?}", tls(&own)), "Tls(***)");
}

#[tokio::test]
async fn a_unix_socket_serves_the_same_routes() {
    let folder = tempfile::tempdir().unwrap();
    let server = with_socket(folder.path(), 0, ServerLimits::default()).await;
    let by_socket = async |method: &str, path: &str, host: &str| {
        ask(connect(&folder).await, &local(method, path, host)).await
    };
    let same = by_socket("GET", "/v1/tasks", "localhost").await;
    let other = get(server.address, "/v1/tasks").await;
    assert_eq!((same.status, &same.body), (200, &other.body));
    assert_eq!(by_socket("GET", "/health", "localhost").await.status, 200);
    let text = local("GET", "/v1/tasks", "localhost").replacen(TOKEN, "wrong", 1);
    assert_eq!(ask(connect(&folder).await, &text).await.status, 401, "the token is needed");
    for host in ["evil.example", "", "localhost:80", "localhost\r\nhost: localhost"] {
        let reply = by_socket("GET", "/v1/tasks", host).await;
        assert_eq!((reply.status, reply.code().as_str()), (403, "FORBIDDEN"), "{host}");
    }
    let text = local("GET", "/v1/tasks", "localhost");
    let page = text.replacen("\r\n", "\r\norigin: http://localhost\r\n", 1);
    assert_eq!(ask(connect(&folder).await, &page).await.status, 403);
    // Over TCP, the host name without a port is refused.
    let stream = TcpStream::connect(server.address).await.unwrap();
    assert_eq!(ask(stream, &text).await.status, 403);
    server.ended().await;
}

#[tokio::test]
async fn the_connection_of_another_users_process_is_closed_and_frees_its_permit() {
    let folder = tempfile::tempdir().unwrap();
    let limits = ServerLimits { connections_max: 1, ..ServerLimits::default() };
    let server = with_socket(folder.path(), 1, limits).await;
    for _ in 0..3 {
        let mut stream = connect(&folder).await;
        let _ = stream.write_all(local("GET", "/health", "localhost").as_bytes()).await;
        let mut received = Vec::new();
        let _ = stream.read_to_end(&mut received).await;
        assert_eq!(received, b"");
    }
    assert_eq!(get(server.address, "/health").await.status, 200);
    server.ended().await;
}

#[tokio::test]
async fn clients_of_the_network_cannot_keep_the_owner_from_the_socket_nor_the_reverse() {
    let folder = tempfile::tempdir().unwrap();
    let limits =
        ServerLimits { connections_max: 1, socket_connections_max: 1, ..ServerLimits::default() };
    let server = with_socket(folder.path(), 0, limits).await;
    let text = local("GET", "/v1/tasks", "localhost");
    let network = TcpStream::connect(server.address).await.unwrap();
    assert_eq!(ask(connect(&folder).await, &text).await.status, 200);
    let first = connect(&folder).await;
    let mut second = Box::pin(async { ask(connect(&folder).await, &text).await });
    let early = tokio::time::timeout(SOON, &mut second).await;
    assert!(early.is_err(), "there is one place: {early:?}");
    drop(network);
    assert_eq!(get(server.address, "/health").await.status, 200);
    drop(first);
    assert_eq!(second.await.status, 200);
    server.ended().await;
}

#[tokio::test]
async fn a_server_may_listen_on_a_unix_socket_alone() {
    let folder = tempfile::tempdir().unwrap();
    let uid = folder.path().metadata().unwrap().uid();
    let listener = UnixListener::bind(folder.path().join("s")).unwrap();
    let socket = Some(UnixSocket { listener, uid });
    let server = TestServer::on(ServerLimits::default(), |tcp| {
        drop(tcp);
        Listeners { socket, ..Listeners::default() }
    })
    .await;
    let text = local("GET", "/v1/tasks", "localhost");
    assert_eq!(ask(connect(&folder).await, &text).await.status, 200);
    assert!(TcpStream::connect(server.address).await.is_err());
    server.ended().await;
}
