//! A model server in its own process, which answers at once.

use antiphon_bench::{Error, ModelProcess};
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
        ModelProcess::wait(&server.url()).await
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
