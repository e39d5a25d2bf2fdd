//! A proxy with a resolver of its own, a server to reach, and a client that speaks bytes.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use antiphon_egress_proxy::{Egress, Resolve, Traffic};
use antiphon_hosts::{HostAccess, HostLayer, host_rules};
use async_trait::async_trait;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

pub(crate) struct World {
    pub(crate) proxy: SocketAddr,
    pub(crate) names: Arc<Names>,
    pub(crate) traffic: Arc<Traffic>,
    pub(crate) serving: JoinSet<()>,
}

/// A resolver with answers of the test. Each answer of a name is given once; the last one stays.
#[derive(Default)]
pub(crate) struct Names {
    answers: Mutex<HashMap<String, Vec<Vec<IpAddr>>>>,
    pub(crate) asked: AtomicUsize,
}

#[async_trait]
impl Resolve for Names {
    async fn resolve(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        let mut answers = self.answers.lock().unwrap();
        let known = answers.get_mut(name).ok_or(io::ErrorKind::NotFound)?;
        Ok(if known.len() > 1 { known.remove(0) } else { known[0].clone() })
    }
}

impl Names {
    pub(crate) fn set(&self, name: &str, answers: &[&[&str]]) {
        let parse = |answer: &&[&str]| answer.iter().map(|ip| ip.parse().unwrap()).collect();
        self.answers.lock().unwrap().insert(name.to_owned(), answers.iter().map(parse).collect());
    }

    pub(crate) fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }
}

impl World {
    /// A proxy that allows these hosts.
    pub(crate) async fn new(allow: &str, deny: &str) -> Self {
        let names = Arc::<Names>::default();
        let egress = Egress::new(Arc::clone(&names) as Arc<dyn Resolve>);
        Self { names, ..Self::of(&egress, allow, deny).await }
    }

    /// The same for one call of several. Its `names` are not asked.
    pub(crate) async fn of(egress: &Egress, allow: &str, deny: &str) -> Self {
        let rules = |text: &str| host_rules(text).unwrap_or_default();
        let layer = HostLayer { allow: rules(allow), ask: Vec::new(), deny: rules(deny) };
        let access = HostAccess::new(vec![layer], Vec::new());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let proxy = listener.local_addr().unwrap();
        let (names, traffic) = (Arc::<Names>::default(), Arc::<Traffic>::default());
        let egress = egress.clone();
        let mut serving = JoinSet::new();
        let log = Arc::clone(&traffic);
        serving.spawn(async move { egress.serve(listener, access, log).await });
        Self { proxy, names, traffic, serving }
    }

    pub(crate) async fn client(&self) -> TcpStream {
        TcpStream::connect(self.proxy).await.unwrap()
    }

    /// Sends a request on a connection of its own and returns the whole answer.
    pub(crate) async fn send(&self, request: &str) -> String {
        let mut client = self.client().await;
        // The proxy may answer, and close, before it has read all of it.
        let request = request.replacen("\r\n", "\r\nConnection: close\r\n", 1);
        let _ = client.write_all(request.as_bytes()).await;
        let mut answer = Vec::new();
        let _ = client.read_to_end(&mut answer).await;
        String::from_utf8(answer).unwrap()
    }

    pub(crate) async fn get(&self, url: &str) -> String {
        let host = url.strip_prefix("http://").unwrap().split('/').next().unwrap();
        self.send(&format!("GET {url} HTTP/1.1\r\nHost: {host}\r\n\r\n")).await
    }

    pub(crate) async fn connect(&self, authority: &str) -> String {
        self.send(&format!("CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n\r\n")).await
    }
}

/// The status of an answer.
pub(crate) fn status(answer: &str) -> u16 {
    answer.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or_default()
}

/// A server on loopback that records each request and gives the same answer.
pub(crate) struct Server {
    pub(crate) port: u16,
    pub(crate) seen: Arc<Mutex<Vec<String>>>,
    _serving: JoinSet<()>,
}

impl Server {
    pub(crate) async fn answering(answer: &'static str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let seen = Arc::<Mutex<Vec<String>>>::default();
        let mut serving = JoinSet::new();
        let log = Arc::clone(&seen);
        serving.spawn(async move {
            loop {
                let (mut client, _) = listener.accept().await.unwrap();
                let mut request = Vec::new();
                let mut buffer = [0; 4096];
                while !request.windows(4).any(|end| end == b"\r\n\r\n") {
                    let read = client.read(&mut buffer).await.unwrap();
                    if read == 0 {
                        break;
                    }
                    request.extend(&buffer[..read]);
                }
                log.lock().unwrap().push(String::from_utf8(request).unwrap());
                client.write_all(answer.as_bytes()).await.unwrap();
            }
        });
        Self { port, seen, _serving: serving }
    }

    pub(crate) async fn hello() -> Self {
        Self::answering("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello")
            .await
    }

    pub(crate) fn requests(&self) -> Vec<String> {
        self.seen.lock().unwrap().clone()
    }
}
