//! One connection of a client: requests, one after the other, or a tunnel.

use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use antiphon_hosts::{HostAccess, HostPort};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::upgrade::OnUpgrade;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::copy_bidirectional;
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use crate::forward::{self, Body, own_answer};
use crate::metered::Metered;
use crate::resolver::Resolve;
use crate::traffic::Traffic;
use crate::upstream::{NoConnection, connect};

/// Most bytes of the headers of a request or an answer.
const HEADER_BYTES_MAX: usize = 64 * 1024;

/// Most headers of a request or an answer.
const HEADERS_MAX: usize = 128;

/// How long a client may take to send its headers.
const HEADER_READ_MAX: Duration = Duration::from_secs(30);

/// What the connections of one call share.
pub(crate) struct CallContext {
    pub(crate) access: HostAccess,
    pub(crate) resolver: Arc<dyn Resolve>,
    pub(crate) traffic: Arc<Traffic>,
}

/// One connection of a client.
struct Connection {
    call: Arc<CallContext>,
    /// The tunnel that follows the answer to `CONNECT`.
    tunnel: Mutex<Option<(OnUpgrade, Metered)>>,
    /// Drives connections to hosts. They end with the connection of the client.
    hosts: Mutex<JoinSet<()>>,
}

/// Serves a client until one side closes.
pub(crate) async fn serve(client: TcpStream, call: Arc<CallContext>) {
    let connection =
        Arc::new(Connection { call, tunnel: Mutex::default(), hosts: Mutex::new(JoinSet::new()) });
    let handler = Arc::clone(&connection);
    let service = service_fn(move |request| {
        let connection = Arc::clone(&handler);
        async move { Ok::<_, Infallible>(connection.answer(request).await) }
    });
    let http = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_READ_MAX)
        .max_buf_size(HEADER_BYTES_MAX)
        .max_headers(HEADERS_MAX)
        .serve_connection(TokioIo::new(client), service)
        .with_upgrades();
    // An error is the client's: it sent no HTTP, or went away.
    let _ = http.await;
    let tunnel = lock(&connection.tunnel).take();
    if let Some((upgrade, mut host)) = tunnel
        && let Ok(client) = upgrade.await
    {
        // Ends with either side; the client sees a closed connection.
        let _ = copy_bidirectional(&mut TokioIo::new(client), &mut host).await;
    }
}

impl Connection {
    async fn answer(&self, request: Request<Incoming>) -> Response<Body> {
        if request.method() == Method::CONNECT {
            return self.open_tunnel(request).await;
        }
        let target = match forward::target(&request) {
            Ok(target) => target,
            Err(reason) => return own_answer(StatusCode::BAD_REQUEST, reason),
        };
        match self.connect(&target).await {
            Ok(host) => self.exchange(request, &target, host).await,
            Err(answer) => answer,
        }
    }

    async fn open_tunnel(&self, mut request: Request<Incoming>) -> Response<Body> {
        let authority = request.uri().authority().map(|authority| authority.as_str().to_owned());
        let target = authority.ok_or_else(|| "name a host and a port".to_owned());
        let target = target.and_then(|authority| {
            HostPort::parse(&authority, None).map_err(|error| error.to_string())
        });
        let target = match target {
            Ok(target) => target,
            Err(reason) => return own_answer(StatusCode::BAD_REQUEST, reason),
        };
        match self.connect(&target).await {
            Ok(host) => {
                *lock(&self.tunnel) = Some((hyper::upgrade::on(&mut request), host));
                let mut answer = own_answer(StatusCode::OK, String::new());
                *answer.body_mut() = Body::default();
                answer.headers_mut().clear();
                answer
            }
            Err(answer) => answer,
        }
    }

    async fn connect(&self, target: &HostPort) -> Result<Metered, Response<Body>> {
        let CallContext { access, resolver, traffic } = &*self.call;
        connect(target, access, &**resolver, traffic).await.map_err(|none| match none {
            NoConnection::Refused(refusal) => {
                own_answer(StatusCode::FORBIDDEN, format!("antiphon refused {target}: {refusal}"))
            }
            NoConnection::Failed(reason) => {
                own_answer(StatusCode::BAD_GATEWAY, format!("antiphon: {target}: {reason}"))
            }
        })
    }

    /// Drives the connection to a host.
    fn drive(&self, http: impl Future<Output = ()> + Send + 'static) {
        let mut hosts = lock(&self.hosts);
        while hosts.try_join_next().is_some() {}
        hosts.spawn(http);
    }

    /// Sends a request to its host and returns the answer, whose body is streamed.
    async fn exchange(
        &self,
        request: Request<Incoming>,
        target: &HostPort,
        host: Metered,
    ) -> Response<Body> {
        let request = match forward::outbound(request, target) {
            Ok(request) => request,
            Err(reason) => return own_answer(StatusCode::BAD_REQUEST, reason),
        };
        let handshake = hyper::client::conn::http1::Builder::new()
            .max_buf_size(HEADER_BYTES_MAX)
            .max_headers(HEADERS_MAX)
            .handshake(TokioIo::new(host));
        let sent = match handshake.await {
            Ok((mut sender, http)) => {
                self.drive(async move { drop(http.await) });
                sender.send_request(request).await
            }
            Err(error) => Err(error),
        };
        match sent {
            Ok(answer) => forward::inbound(answer),
            Err(error) => {
                let reason = format!("it did not answer: {error}");
                self.call.traffic.failed(target, reason.clone());
                own_answer(StatusCode::BAD_GATEWAY, format!("antiphon: {target}: {reason}"))
            }
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
