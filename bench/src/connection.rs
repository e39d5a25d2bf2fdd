//! A cheap client connection: HTTP/1.1, keep-alive, one request at a time.

use std::net::SocketAddr;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HOST};
use hyper::{Method, Request, Response};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use crate::Error;

/// Address and token of a server.
#[derive(Debug, Clone)]
pub struct Address {
    socket: SocketAddr,
    token: Option<String>,
}

impl Address {
    /// A server without a token.
    pub fn new(socket: SocketAddr) -> Self {
        Self { socket, token: None }
    }

    /// Adds a token.
    pub fn with_token(self, token: &str) -> Self {
        Self { token: Some(format!("Bearer {token}")), ..self }
    }

    /// The socket address.
    pub fn socket(&self) -> SocketAddr {
        self.socket
    }
}

/// A connection. Dropping it closes it.
#[derive(Debug)]
pub struct Connection {
    address: Address,
    sender: SendRequest<Full<Bytes>>,
    /// Owns the task that reads and writes.
    _driver: JoinSet<()>,
}

impl Connection {
    /// Connects.
    pub async fn open(address: &Address) -> Result<Self, Error> {
        let socket = TcpStream::connect(address.socket).await?;
        socket.set_nodelay(true)?;
        let (sender, connection) = handshake(TokioIo::new(socket)).await?;
        let mut driver = JoinSet::new();
        // The caller gets the error from its request.
        driver.spawn(async move { drop(connection.await) });
        Ok(Self { address: address.clone(), sender, _driver: driver })
    }

    /// Sends a request and returns the response head. Its body must be read before the next
    /// request.
    pub async fn ask(
        &mut self,
        method: Method,
        path: &str,
        body: Bytes,
    ) -> Result<Response<Incoming>, Error> {
        self.ask_with(&[], method, path, body).await
    }

    /// The same with an idempotency key: repeated with the same key, it is the same request.
    pub async fn ask_as(
        &mut self,
        key: Option<&str>,
        method: Method,
        path: &str,
        body: Bytes,
    ) -> Result<Response<Incoming>, Error> {
        let key = key.map(|key| ("idempotency-key", key));
        self.ask_with(key.as_slice(), method, path, body).await
    }

    /// The same with these headers.
    pub async fn ask_with(
        &mut self,
        headers: &[(&str, &str)],
        method: Method,
        path: &str,
        body: Bytes,
    ) -> Result<Response<Incoming>, Error> {
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header(HOST, self.address.socket.to_string())
            .header(CONTENT_TYPE, "application/json");
        if let Some(token) = &self.address.token {
            request = request.header(AUTHORIZATION, token);
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        self.sender.ready().await?;
        Ok(self.sender.send_request(request.body(Full::new(body))?).await?)
    }

    /// Sends a request and returns the response body. A status other than 2xx is an error with the
    /// body.
    pub async fn fetch(&mut self, method: Method, path: &str, body: Bytes) -> Result<Bytes, Error> {
        let response = self.ask(method, path, body).await?;
        let status = response.status();
        let body = response.into_body().collect().await?.to_bytes();
        if !status.is_success() {
            return Err(format!("{status} {}", String::from_utf8_lossy(&body)).into());
        }
        Ok(body)
    }

    /// Posts JSON and reads JSON.
    pub async fn post(&mut self, path: &str, body: &Value) -> Result<Value, Error> {
        let body = self.fetch(Method::POST, path, body.to_string().into()).await?;
        Ok(serde_json::from_slice(&body)?)
    }

    /// Reads JSON.
    pub async fn get(&mut self, path: &str) -> Result<Value, Error> {
        Ok(serde_json::from_slice(&self.fetch(Method::GET, path, Bytes::new()).await?)?)
    }
}
