//! The cost of one delta of an answer, from the wire to the message and to the terminal.
//!
//! A server on another thread sends one answer of 10,000 deltas over loopback. Measured are the CPU
//! time and the allocations of the reading thread, once through a provider and the assembler, once
//! through the parsers alone: server-sent events and JSON. Then the whole program, with its output
//! on a pipe.

use std::process::{Command, Stdio};
use std::sync::mpsc;

use allocation_counter::measure;
use antiphon_anthropic::Anthropic;
use antiphon_bench::heading;
use antiphon_core::{Cancel, MessageStream, Provider, Request, UserMessage};
use antiphon_gemini::Gemini;
use antiphon_model_server::{ModelServer, Reply};
use antiphon_model_transport::{Endpoint, Transport, TransportConfig};
use antiphon_openai::{
    ChatCompletions, ChatConfig, ChatQuirks, Responses, ResponsesConfig, ResponsesQuirks,
};
use bytes::Bytes;
use chrono::DateTime;
use cpu_time::ThreadTime;
use nix::sys::resource::{UsageWho, getrusage};
use sse_core::{SseDecoder, SseEvent};
use tokio::runtime::{Builder, Runtime};

const DELTAS: usize = 10_000;
const ROUNDS: usize = 7;

type Error = Box<dyn std::error::Error>;

/// One wire: the form of an answer of `n` deltas, and its provider.
struct Wire {
    name: &'static str,
    answer: fn(usize) -> String,
    provider: fn(Endpoint, Transport) -> Box<dyn Provider>,
}

const WIRES: [Wire; 4] = [
    Wire {
        name: "anthropic",
        answer: anthropic,
        provider: |base_url, transport| {
            let name = "anthropic".to_owned();
            let config =
                antiphon_anthropic::AnthropicConfig { name, base_url, api_key: None, cache: None };
            Box::new(Anthropic::new(config, transport))
        },
    },
    Wire {
        name: "openai",
        answer: chat,
        provider: |base_url, transport| {
            let (name, quirks) = ("openai".to_owned(), ChatQuirks::default());
            let config = ChatConfig { name, base_url, api_key: None, quirks };
            Box::new(ChatCompletions::new(config, transport))
        },
    },
    Wire {
        name: "openai-responses",
        answer: responses,
        provider: |base_url, transport| {
            let (name, quirks) = ("openai".to_owned(), ResponsesQuirks::default());
            let config = ResponsesConfig { name, base_url, api_key: None, quirks };
            Box::new(Responses::new(config, transport))
        },
    },
    Wire {
        name: "gemini",
        answer: gemini,
        provider: |base_url, transport| {
            let config = antiphon_gemini::GeminiConfig {
                name: "gemini".to_owned(),
                base_url,
                api_key: None,
            };
            Box::new(Gemini::new(config, transport))
        },
    },
];

fn main() -> Result<(), Error> {
    heading(
        &format!("one answer of {DELTAS} deltas, per delta; the best of {ROUNDS}"),
        "streaming",
    );
    println!(
        "{:18}{:>10}{:>10}{:>8}{:>13}{:>14}",
        "wire", "bare", "provider", "ratio", "allocations", "peak, KiB"
    );
    for wire in &WIRES {
        let (bare, through) = (best(|| bare(wire))?, best(|| through(wire))?);
        let (memory, small) = (peak(wire, DELTAS)?, peak(wire, DELTAS / 10)?);
        println!(
            "{:18}{:>7.2} µs{:>7.2} µs{:>8.2}{:>13.1}{:>8} ({small} for a tenth)",
            wire.name,
            bare,
            through,
            through / bare,
            allocations(wire)?,
            memory,
        );
    }
    match std::env::var("ANTIPHON") {
        Ok(antiphon) => println!("\nthe whole program, to a pipe: {:.2} µs", program(&antiphon)?),
        Err(_) => println!("\nthe whole program: set ANTIPHON to the binary, or use `make bench`"),
    }
    Ok(())
}

fn best(mut round: impl FnMut() -> Result<f64, Error>) -> Result<f64, Error> {
    (0..ROUNDS).try_fold(f64::MAX, |best, _| Ok(best.min(round()?)))
}

#[expect(clippy::cast_precision_loss, reason = "a few thousand")]
fn per_delta(micros: f64) -> f64 {
    micros / DELTAS as f64
}

/// CPU per delta of the parsers alone, on bytes in memory.
fn bare(wire: &Wire) -> Result<f64, Error> {
    let body = Bytes::from((wire.answer)(DELTAS));
    let start = ThreadTime::now();
    let mut decoder = SseDecoder::new();
    // In chunks of the size that a socket returns.
    for chunk in body.chunks(8 * 1024) {
        let mut unread = body.slice_ref(chunk);
        while let Some(event) = decoder.next(&mut unread) {
            if let SseEvent::Message(event) = event? {
                std::hint::black_box(serde_json::from_str::<serde_json::Value>(&event.data).ok());
            }
        }
    }
    Ok(per_delta(start.elapsed().as_secs_f64() * 1e6))
}

/// CPU per delta from the socket to the message.
fn through(wire: &Wire) -> Result<f64, Error> {
    let server = Server::start(wire, DELTAS)?;
    let (runtime, provider) = client(wire, &server)?;
    read(&runtime, &*provider)?;
    let start = ThreadTime::now();
    read(&runtime, &*provider)?;
    Ok(per_delta(start.elapsed().as_secs_f64() * 1e6))
}

#[expect(clippy::cast_precision_loss, reason = "a few thousand")]
fn allocations(wire: &Wire) -> Result<f64, Error> {
    let server = Server::start(wire, DELTAS)?;
    let (runtime, provider) = client(wire, &server)?;
    read(&runtime, &*provider)?;
    let counted = measure(|| drop(read(&runtime, &*provider)));
    Ok(counted.count_total as f64 / DELTAS as f64)
}

/// Peak memory of reading an answer, in KiB, including the message.
fn peak(wire: &Wire, deltas: usize) -> Result<u64, Error> {
    let server = Server::start(wire, deltas)?;
    let (runtime, provider) = client(wire, &server)?;
    read(&runtime, &*provider)?;
    Ok(measure(|| drop(read(&runtime, &*provider))).bytes_max / 1024)
}

/// CPU per delta of the whole program, without start-up.
fn program(antiphon: &str) -> Result<f64, Error> {
    let run = |deltas: usize| -> Result<f64, Error> {
        let server = Server::start(&WIRES[0], deltas)?;
        best(|| {
            let before = children_micros()?;
            let status = Command::new(antiphon)
                .args(["run", "--model", "anthropic/x", "hi"])
                .env("ANTHROPIC_BASE_URL", &server.url)
                .env("ANTHROPIC_API_KEY", "none")
                .stdout(Stdio::piped())
                .spawn()?
                .wait_with_output()?
                .status;
            if !status.success() {
                return Err(format!("antiphon run failed: {status}").into());
            }
            Ok(children_micros()? - before)
        })
    };
    Ok(per_delta(run(DELTAS)? - run(1)?))
}

#[expect(clippy::cast_precision_loss, reason = "a few seconds")]
fn children_micros() -> Result<f64, Error> {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    let micros = |time: nix::sys::time::TimeVal| time.tv_sec() as f64 * 1e6 + time.tv_usec() as f64;
    Ok(micros(usage.user_time()) + micros(usage.system_time()))
}

fn client(wire: &Wire, server: &Server) -> Result<(Runtime, Box<dyn Provider>), Error> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let transport = Transport::new(&TransportConfig::default())?;
    Ok((runtime, (wire.provider)(Endpoint::parse(&server.url)?, transport)))
}

fn read(runtime: &Runtime, provider: &dyn Provider) -> Result<(), Error> {
    let request = Request {
        model: "x".to_owned(),
        messages: vec![UserMessage::text("hi", DateTime::UNIX_EPOCH).into()].into(),
        ..Request::default()
    };
    let stream = MessageStream::open(provider, request, Cancel::never(), DateTime::UNIX_EPOCH);
    let message = runtime.block_on(stream.complete())?;
    if message.text().is_empty() {
        return Err("the answer is empty".into());
    }
    Ok(())
}

/// A server on its own thread, so that only the reader is measured.
struct Server {
    url: String,
    _stop: mpsc::SyncSender<()>,
}

impl Server {
    fn start(wire: &Wire, deltas: usize) -> Result<Self, Error> {
        let answer = (wire.answer)(deltas);
        let (ready, started) = mpsc::sync_channel(1);
        let (stop, stopped) = mpsc::sync_channel::<()>(1);
        std::thread::spawn(move || {
            let Ok(runtime) = Builder::new_current_thread().enable_all().build() else { return };
            runtime.block_on(async {
                let reply = Reply::events(answer).split(4 * 1024);
                let Ok(server) = ModelServer::start_forgetful(move |_, _| reply.clone()).await
                else {
                    return;
                };
                let _ = ready.send(server.url());
                while let Err(mpsc::TryRecvError::Empty) = stopped.try_recv() {
                    tokio::time::sleep(std::time::Duration::from_millis(5)).await;
                }
            });
        });
        Ok(Self { url: started.recv()?, _stop: stop })
    }
}

fn anthropic(deltas: usize) -> String {
    let event = |kind: &str, data: &str| format!("event: {kind}\ndata: {data}\n\n");
    let delta = event(
        "content_block_delta",
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":" antiphon"}}"#,
    );
    [
        event("message_start", r#"{"type":"message_start","message":{"id":"m","type":"message","role":"assistant","content":[],"model":"x","usage":{"input_tokens":5,"output_tokens":1}}}"#),
        event("content_block_start", r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#),
        delta.repeat(deltas),
        event("content_block_stop", r#"{"type":"content_block_stop","index":0}"#),
        event("message_delta", r#"{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":9}}"#),
        event("message_stop", r#"{"type":"message_stop"}"#),
    ]
    .concat()
}

fn chat(deltas: usize) -> String {
    let chunk = |delta: &str, finish: &str| {
        format!(
            "data: {{\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"x\",\"choices\":[{{\"index\":0,\"delta\":{delta},\"finish_reason\":{finish}}}]}}\n\n"
        )
    };
    let delta = chunk(r#"{"content":" antiphon"}"#, "null");
    delta.repeat(deltas) + &chunk("{}", "\"stop\"") + "data: [DONE]\n\n"
}

fn responses(deltas: usize) -> String {
    let event = |data: &str| format!("data: {data}\n\n");
    let delta = event(
        r#"{"type":"response.output_text.delta","sequence_number":4,"item_id":"msg_1","output_index":0,"content_index":0,"delta":" antiphon"}"#,
    );
    [
        event(r#"{"type":"response.created","response":{"id":"r","status":"in_progress"}}"#),
        event(r#"{"type":"response.output_item.added","output_index":0,"item":{"id":"msg_1","type":"message","status":"in_progress","role":"assistant","content":[]}}"#),
        delta.repeat(deltas),
        event(r#"{"type":"response.output_item.done","output_index":0,"item":{"id":"msg_1","type":"message","status":"completed","role":"assistant","content":[]}}"#),
        event(r#"{"type":"response.completed","response":{"id":"r","status":"completed","usage":{"input_tokens":5,"output_tokens":9}}}"#),
    ]
    .concat()
}

fn gemini(deltas: usize) -> String {
    let chunk = |finish: &str| {
        format!(
            "data: {{\"candidates\":[{{\"content\":{{\"parts\":[{{\"text\":\" antiphon\"}}],\"role\":\"model\"}},\"index\":0{finish}}}],\"usageMetadata\":{{\"promptTokenCount\":5,\"candidatesTokenCount\":9,\"totalTokenCount\":14}},\"modelVersion\":\"x\"}}\n\n"
        )
    };
    chunk("").repeat(deltas) + &chunk(",\"finishReason\":\"STOP\"")
}
