//! Commands in the sandbox and the hosts they may reach. Every server is on loopback; names come
//! from a resolver of the test.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, Mutex};

use antiphon_core::port::{Cancel, Rule};
use antiphon_egress_proxy::Resolve;
use antiphon_hosts::{HostAccess, HostLayer, HostRule, host_rules};
use antiphon_sandbox::{Network, SandboxMode};
use antiphon_shell::{HostNetwork, ShellSettings};
use async_trait::async_trait;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use crate::bench::Bench;

/// Every name is this machine, except these.
#[derive(Default)]
struct Names(HashMap<&'static str, IpAddr>);

#[async_trait]
impl Resolve for Names {
    async fn resolve(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        Ok(vec![self.0.get(name).copied().unwrap_or(Ipv4Addr::LOCALHOST.into())])
    }
}

/// A shell whose commands may reach these hosts, and those of granted rules `network(…)`.
pub(crate) fn bench(allow: &str) -> Bench {
    Bench::with(|settings| settings.network = Some(network(allow, Names::default())))
}

fn network(allow: &str, names: Names) -> HostNetwork {
    let allow = host_rules(allow).unwrap_or_default();
    HostNetwork::new(Arc::new(names), move |granted: &[Rule]| {
        let granted = granted.iter().flat_map(|rule| {
            let hosts = rule.0.strip_prefix("network(").and_then(|rule| rule.strip_suffix(')'));
            host_rules(hosts.unwrap()).unwrap()
        });
        let layer = HostLayer { allow: allow.clone(), ..HostLayer::default() };
        HostAccess::new(vec![layer], granted.collect())
    })
}

/// A server on this machine, outside of every sandbox. It records the first line of each request.
pub(crate) struct Server {
    pub(crate) port: u16,
    seen: Arc<Mutex<Vec<String>>>,
    _serving: JoinSet<()>,
}

/// The answer to a request for a path.
pub(crate) type Answers = Box<dyn Fn(&str) -> Vec<u8> + Send>;

impl Server {
    pub(crate) async fn start(answers: impl FnOnce(u16) -> Answers) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (answers, seen) = (answers(port), Arc::<Mutex<Vec<String>>>::default());
        let mut serving = JoinSet::new();
        let log = Arc::clone(&seen);
        serving.spawn(async move {
            loop {
                let (mut client, _) = listener.accept().await.unwrap();
                let (mut request, mut buffer) = (Vec::new(), [0; 8192]);
                while !request.windows(4).any(|end| end == b"\r\n\r\n") {
                    match client.read(&mut buffer).await {
                        Ok(0) | Err(_) => break,
                        Ok(read) => request.extend(&buffer[..read]),
                    }
                }
                let request = String::from_utf8_lossy(&request).into_owned();
                let path = request.split(' ').nth(1).unwrap_or_default();
                log.lock().unwrap().push(path.to_owned());
                let _ = client.write_all(&answers(path)).await;
            }
        });
        Self { port, seen, _serving: serving }
    }

    /// A server that greets.
    async fn hello() -> Self {
        Self::start(|_| Box::new(|_| answer("200 OK", "", b"hello from outside"))).await
    }

    pub(crate) fn seen(&self) -> Vec<String> {
        self.seen.lock().unwrap().clone()
    }
}

/// An answer that closes the connection.
pub(crate) fn answer(status: &str, headers: &str, body: &[u8]) -> Vec<u8> {
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Length: {length}\r\n{headers}Connection: close\r\n\r\n"
    );
    [head.as_bytes(), body].concat()
}

#[tokio::test]
async fn an_allowed_host_is_reached_and_the_result_says_so() {
    let server = Server::hello().await;
    let port = server.port;
    let bench = bench(&format!("pkg.test:{port}=loopback"));
    let said = bench.run(&format!("curl -sS http://pkg.test:{port}/a")).await;
    assert!(!said.is_error, "{}", said.text);
    assert!(said.text.starts_with("hello from outside\n"), "{}", said.text);
    assert!(
        said.text.contains(&format!("[network: pkg.test:{port}: 1 connection, ")),
        "{}",
        said.text
    );
    let tunnel = bench.run(&format!("curl -sSp http://pkg.test:{port}/b")).await;
    assert!(tunnel.text.contains("hello from outside"), "{}", tunnel.text);
    let script = format!(
        "python3 -c 'import urllib.request as r; print(r.urlopen(\"http://pkg.test:{port}/c\").read())'"
    );
    let python = bench.run(&script).await;
    assert!(python.text.contains("hello from outside"), "{}", python.text);
    assert_eq!(server.seen(), ["/a", "/b", "/c"]);
}

#[tokio::test]
async fn another_host_is_refused_and_the_result_says_how_to_ask() {
    let server = Server::hello().await;
    let port = server.port;
    let bench = bench("pkg.test");
    for command in [
        format!("curl -sSf http://other.test:{port}/"),
        format!("curl -sSf https://other.test:{port}/"),
        format!("curl -sSfp http://other.test:{port}/"),
    ] {
        let said = bench.run(&command).await;
        assert!(said.is_error, "{}", said.text);
        let line = format!(
            "[network: refused other.test:{port}: the user has not allowed this host. To ask the \
             user for it, run the command again with \"hosts\": [\"other.test:{port}\"]]"
        );
        assert!(said.text.contains(&line), "{}", said.text);
    }
    assert_eq!(server.seen(), Vec::<String>::new());
}

#[tokio::test]
async fn hosts_of_a_call_are_for_that_call_and_granted_hosts_for_the_task() {
    let server = Server::hello().await;
    let port = server.port;
    let mut bench = bench("pkg.test");
    let command = format!("curl -sS -o /dev/null -w '%{{http_code}}\\n' http://localhost:{port}/");
    let host = format!("localhost:{port}");
    let asked = json!({ "command": command, "hosts": [host] });
    let said = bench.bash(asked).await;
    assert!(said.text.starts_with("200\n"), "{}", said.text);
    // Without the host, `localhost` is the sandbox itself.
    assert!(bench.run(&command).await.is_error);
    bench.granted = vec![Rule(format!("network({host})"))];
    let said = bench.run(&command).await;
    assert!(said.text.starts_with("200\n"), "{}", said.text);
    for wrong in [json!(["*.test"]), json!(["169.254.169.254"]), json!("a.test"), json!([1])] {
        let call = json!({ "command": "true", "hosts": wrong });
        assert!(bench.call("bash", call, Cancel::never()).await.is_err(), "{wrong}");
    }
}

#[tokio::test]
async fn the_proxy_is_the_only_way_out() {
    let server = Server::hello().await;
    let port = server.port;
    let bench = bench(&format!("pkg.test:{port}=loopback"));
    for command in [
        format!("curl -sS --noproxy '*' --max-time 3 http://127.0.0.1:{port}/"),
        format!("curl -sS --noproxy '*' --max-time 3 http://pkg.test:{port}/"),
        format!("timeout 3 bash -c 'exec 3<>/dev/tcp/127.0.0.1/{port}'"),
        format!("python3 -c 'import socket; socket.create_connection((\"127.0.0.1\", {port}), 3)'"),
        // The proxy distinguishes the host of the connection from the `Host` header.
        format!("curl -sSf -H 'Host: pkg.test:{port}' http://other.test:{port}/"),
        format!("curl -sSf -H 'Host: other.test' http://pkg.test:{port}/"),
        format!(
            "curl -sSf --connect-to pkg.test:{port}:other.test:{port} -p http://pkg.test:{port}/"
        ),
        // Other spellings of the machine.
        format!("curl -sSf --noproxy '' http://127.0.0.1:{port}/"),
        format!("curl -sSf --noproxy '' http://0x7f.1:{port}/"),
        format!("curl -sSf --noproxy '' http://[::1]:{port}/"),
        format!("curl -sSf --noproxy '' 'http://[::ffff:127.0.0.1]:{port}/'"),
    ] {
        let said = bench.run(&command).await;
        assert!(said.is_error, "{command}\n{}", said.text);
    }
    assert_eq!(server.seen(), Vec::<String>::new());
}

#[tokio::test]
async fn a_redirect_to_another_host_is_refused() {
    let server = Server::start(|port| {
        let to = format!("Location: http://other.test:{port}/stolen\r\n");
        Box::new(move |_| answer("302 Found", &to, b""))
    });
    let server = server.await;
    let port = server.port;
    let bench = bench(&format!("pkg.test:{port}=loopback"));
    let said = bench.run(&format!("curl -sSfL http://pkg.test:{port}/")).await;
    assert!(said.is_error, "{}", said.text);
    assert!(said.text.contains(&format!("refused other.test:{port}")), "{}", said.text);
    assert_eq!(server.seen(), ["/"]);
}

#[tokio::test]
async fn an_allowed_name_with_a_special_address_is_refused() {
    let names = [
        ("metadata.test", "169.254.169.254"),
        ("private.test", "10.0.0.1"),
        ("mapped.test", "::ffff:127.0.0.1"),
        ("nat64.test", "64:ff9b::a9fe:a9fe"),
    ];
    let bench = Bench::with(|settings| {
        let known = names.map(|(name, address)| (name, address.parse().unwrap()));
        let allow = "metadata.test private.test mapped.test nat64.test loopback.test";
        settings.network = Some(network(allow, Names(known.into())));
    });
    for (name, address) in names.into_iter().chain([("loopback.test", "127.0.0.1")]) {
        let said = bench.run(&format!("curl -sSf http://{name}/latest/meta-data/")).await;
        assert!(said.is_error, "{}", said.text);
        let line = format!("refused {name}:80: its address {address} is ");
        assert!(said.text.contains(&line), "{}", said.text);
    }
}

#[tokio::test]
async fn servers_in_the_sandbox_are_reached_without_the_proxy() {
    let bench = bench("pkg.test");
    let script = "python3 -m http.server 8765 --bind 127.0.0.1 >/dev/null 2>&1 & \
                  for _ in $(seq 100); do curl -sf http://localhost:8765/ >/dev/null && break; \
                  sleep 0.1; done; curl -sf http://127.0.0.1:8765/ | head -1; kill %1";
    let said = bench.run(script).await;
    assert!(said.text.contains("DOCTYPE"), "{}", said.text);
    assert!(!said.text.contains("[network:"), "{}", said.text);
}

#[tokio::test]
async fn the_way_out_closes_with_its_call() {
    let server = Server::hello().await;
    let port = server.port;
    let bench = bench(&format!("pkg.test:{port}=loopback"));
    bench.works("echo $HTTP_PROXY > proxy").await;
    let said = bench.run(&format!("curl -sSf -x $(cat proxy) http://pkg.test:{port}/")).await;
    assert!(said.is_error, "{}", said.text);
    let command = format!("echo $HTTP_PROXY > proxy; sleep 100; curl -sS http://pkg.test:{port}/");
    let id = bench.background(&command).await;
    bench.works(&format!("curl -sSf -x $(cat proxy) http://pkg.test:{port}/")).await;
    let said = bench.output(&id, 0).await;
    assert!(said.text.contains("pkg.test"), "the call whose way it is reports it: {}", said.text);
    bench.kill(&id).await;
    let said = bench.run(&format!("curl -sSf -x $(cat proxy) http://pkg.test:{port}/")).await;
    assert!(said.is_error, "{}", said.text);
    assert_eq!(server.seen().len(), 1);
}

#[tokio::test]
async fn without_a_use_for_it_there_is_no_proxy() {
    let closed = HostNetwork::new(Arc::new(Names::default()), |_| {
        let layer = HostLayer { deny: vec![HostRule::any()], ..HostLayer::default() };
        HostAccess::new(vec![layer], Vec::new())
    });
    let open = || Some(network("pkg.test", Names::default()));
    let benches = [
        Bench::new(),
        Bench::with(|settings: &mut ShellSettings| settings.network = Some(closed)),
        Bench::with(|settings| {
            settings.network = open();
            settings.policy.network = Network::On;
        }),
        Bench::with(|settings| {
            settings.network = open();
            settings.policy.mode = SandboxMode::Full;
        }),
    ];
    for bench in benches {
        assert_eq!(bench.works("env | grep -i proxy || true").await, "(no output)\n");
    }
    let bench = bench("pkg.test");
    let variables = bench.works("env | grep -i proxy | sort").await;
    assert_eq!(variables.lines().count(), 11, "{variables}");
    assert!(variables.contains("\nNO_PROXY=localhost,127.0.0.1,::1\n"), "{variables}");
}
