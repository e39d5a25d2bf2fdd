//! A model server in its own process, which answers at once. It ends when its input is closed.

use std::io::{self, BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};

use antiphon_bench::Error;
use antiphon_model_server::{ModelServer, Part, RecordedRequest, Reply};
use memchr::memmem;
use serde_json::{Value, json};
use tokio::runtime::Builder;

/// Argument that makes this program the model server.
pub(crate) const WORD: &str = "__upstream";

/// Its answer, delta by delta.
const TEXTS: [&str; 8] = [
    "There is ",
    "nothing wrong ",
    "with it, ",
    "as far as anybody ",
    "can see: ",
    "every test passes",
    ", and so does ",
    "the review.",
];

/// Prints its address, then serves.
pub(crate) fn serve() -> Result<(), Error> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let (whole, streamed) = (whole(), streamed());
        let answer = move |received: &RecordedRequest, _| {
            let stream = memmem::find(&received.body, b"\"stream\":true").is_some();
            if stream { streamed.clone() } else { whole.clone() }
        };
        let server = ModelServer::start_forgetful(answer).await?;
        println!("{}", server.url());
        tokio::task::spawn_blocking(|| io::copy(&mut io::stdin(), &mut io::sink())).await??;
        Ok(())
    })
}

fn whole() -> Reply {
    let message = json!({ "role": "assistant", "content": TEXTS.concat() });
    let choice = json!({ "index": 0, "message": message, "finish_reason": "stop" });
    let answer = answer("chat.completion", json!([choice]), true);
    Reply::json(200, answer.to_string())
}

/// Each delta is written on its own.
fn streamed() -> Reply {
    let chunk = |delta: Value, finish: Value| {
        let choice = json!({ "index": 0, "delta": delta, "finish_reason": finish });
        answer("chat.completion.chunk", json!([choice]), false)
    };
    let chunks = TEXTS.iter().map(|text| chunk(json!({ "content": text }), Value::Null));
    let last = [chunk(json!({}), json!("stop")), answer("chat.completion.chunk", json!([]), true)];
    let lines = chunks.chain(last).map(|chunk| chunk.to_string()).chain(["[DONE]".to_owned()]);
    let parts = lines.map(|line| Part::Bytes(format!("data: {line}\n\n").into_bytes()));
    Reply { parts: parts.collect(), ..Reply::events("") }
}

fn answer(object: &str, choices: Value, bill: bool) -> Value {
    let usage = json!({ "prompt_tokens": 20, "completion_tokens": 22, "total_tokens": 42 });
    let mut answer = json!({
        "id": "chatcmpl-1", "object": object, "created": 1, "model": "m", "choices": choices,
    });
    if bill {
        answer["usage"] = usage;
    }
    answer
}

pub(crate) struct Upstream {
    url: String,
    process: Child,
}

impl Upstream {
    pub(crate) fn start() -> Result<Self, Error> {
        let mut process = Command::new(std::env::current_exe()?)
            .arg(WORD)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut url = String::new();
        let output = process.stdout.take().ok_or("the model server has no output")?;
        BufReader::new(output).read_line(&mut url)?;
        Ok(Self { url: url.trim().to_owned(), process })
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    pub(crate) fn socket(&self) -> Result<SocketAddr, Error> {
        Ok(self.url.trim_start_matches("http://").parse()?)
    }
}

impl Drop for Upstream {
    fn drop(&mut self) {
        drop(self.process.stdin.take());
        // It ends by itself; this only waits for it.
        let _ = self.process.wait();
    }
}
