//! What the interfaces add to a model server: the same agent, asked by a chat completion, by A2A's `SendMessage` and by a call
//! of an MCP tool, in turn. Each is one task that is waited for.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use antiphon_bench::{Address, Connection, Error, ModelProcess, Times};
use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::Method;
use memchr::memmem;
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::load::{Api, Load};
use crate::{TURN, TURNS, WARM_UP, project, row, upstream};

/// The agent that every interface asks.
const AGENT: &str = "---\nname: helper\ndescription: Reviews.\nmodel: upstream/m\ntools: []\n---\nYou are a reviewer. Be short.\n";

/// What it is asked.
const TEXT: &str = "Look at the last change. What is wrong with it?";

/// Ids of messages, each sent once.
static NEXT: AtomicU64 = AtomicU64::new(1);

/// How a request is written.
#[derive(Debug, Clone, Copy)]
enum Interface {
    Chat,
    A2a,
    Mcp,
}

const INTERFACES: [(&str, Interface); 3] = [
    ("chat completion", Interface::Chat),
    ("A2A SendMessage", Interface::A2a),
    ("MCP tools/call", Interface::Mcp),
];

impl Interface {
    fn path(self) -> &'static str {
        match self {
            Self::Chat => "/v1/chat/completions",
            Self::A2a => "/a2a/helper",
            Self::Mcp => "/mcp",
        }
    }

    fn headers(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Chat => &[],
            Self::A2a => &[("a2a-version", "1.0")],
            Self::Mcp => &[
                ("accept", "application/json, text/event-stream"),
                ("mcp-protocol-version", "2026-07-28"),
                ("mcp-method", "tools/call"),
                ("mcp-name", "helper"),
            ],
        }
    }

    fn body(self) -> Bytes {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let body: Value = match self {
            Self::Chat => {
                json!({ "model": "helper", "messages": [{ "role": "user", "content": TEXT }] })
            }
            Self::A2a => {
                let message = json!({ "messageId": number.to_string(), "role": "ROLE_USER", "parts": [{ "text": TEXT }] });
                json!({ "jsonrpc": "2.0", "id": number, "method": "SendMessage", "params": { "message": message } })
            }
            Self::Mcp => {
                let meta = json!({
                    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                    "io.modelcontextprotocol/clientInfo": { "name": "bench", "version": "1" },
                    "io.modelcontextprotocol/clientCapabilities": {},
                });
                let params =
                    json!({ "name": "helper", "arguments": { "message": TEXT }, "_meta": meta });
                json!({ "jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params })
            }
        };
        body.to_string().into()
    }
}

/// The part `interfaces`.
pub(crate) fn compare(runtime: &Runtime) -> Result<(), Error> {
    println!(
        "added by each interface to a model server of 0 ms, all asked in turn, one at a time; milliseconds, durable\n"
    );
    println!(
        "{:34}{:>10}{:>20}{:>20}{:>20}",
        "", "at a time", "direct p50, p99", "through p50, p99", "added p50, p99"
    );
    let upstream = ModelProcess::start(&[upstream::WORD])?;
    let project = project(Some(&upstream))?;
    project.write("agents/helper.md", AGENT)?;
    let served = project.serve(&[])?;
    let directly = Load::new(Api::Chat, Address::new(upstream.socket()?), "m", false);
    let address = served.address()?;
    let (direct, through) = runtime.block_on(in_turn(&directly, &address))?;
    for ((name, _), times) in INTERFACES.iter().zip(&through) {
        row(name, 1, &direct, times);
    }
    println!();
    served.end()
}

async fn in_turn(directly: &Load, address: &Address) -> Result<(Times, Vec<Times>), Error> {
    let mut connection = Connection::open(address).await?;
    directly.ask(1, WARM_UP).await?;
    for (_, interface) in INTERFACES {
        ask(&mut connection, interface, WARM_UP).await?;
    }
    let (mut direct, mut through) = (Times::default(), vec![Times::default(); INTERFACES.len()]);
    for _ in 0..TURNS {
        direct.extend(directly.ask(1, TURN).await?.end);
        for ((_, interface), times) in INTERFACES.into_iter().zip(&mut through) {
            times.extend(ask(&mut connection, interface, TURN).await?);
        }
    }
    Ok((direct, through))
}

async fn ask(
    connection: &mut Connection,
    interface: Interface,
    how_long: Duration,
) -> Result<Times, Error> {
    let mut times = Times::default();
    let until = Instant::now() + how_long;
    while Instant::now() < until {
        let started = Instant::now();
        let (path, headers) = (interface.path(), interface.headers());
        let response = connection.ask_with(headers, Method::POST, path, interface.body()).await?;
        let body = response.into_body().collect().await?.to_bytes();
        if memmem::find(&body, b"every test passes").is_none() {
            return Err(format!("{interface:?}: {}", String::from_utf8_lossy(&body)).into());
        }
        times.push(started.elapsed());
    }
    Ok(times)
}
