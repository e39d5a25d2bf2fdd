//! A model server that calls `read` step after step, and then answers. It answers at once.

use antiphon_bench::{Error, ModelProcess, Project};
use antiphon_model_server::{ModelServer, RecordedRequest, Reply};
use memchr::memmem;
use serde_json::{Value, json};
use tokio::runtime::Builder;

/// Argument that makes this program the model server.
pub(crate) const WORD: &str = "__model";

/// What the name of a model begins with that calls `bash`.
const COMMANDS: &str = "command-";

/// The file that is read.
const FILE: &str = "note.txt";

/// How many steps a task has before its answer. The name of the model says it: `upstream/steps-50`.
pub(crate) fn name(steps: usize) -> String {
    format!("upstream/steps-{steps}")
}

/// The same with the command `true` in place of `read`.
pub(crate) fn name_of_commands(steps: usize) -> String {
    format!("upstream/{COMMANDS}steps-{steps}")
}

/// Starts the server, and a project with it as a provider.
pub(crate) fn project(agents: &str) -> Result<(ModelProcess, Project), Error> {
    let model = ModelProcess::start(&[WORD])?;
    let config = format!("{}{agents}", model.config());
    let project = Project::new(env!("CARGO_TARGET_TMPDIR"), &config)?;
    project.write(FILE, "There is nothing wrong with it.\n")?;
    Ok((model, project))
}

/// The body of a task with this many steps.
pub(crate) fn task(steps: usize) -> Value {
    json!({
        "model": name(steps), "message": "Look at it.", "tools": ["read"],
        "limits": { "turns_max": 100_000, "tool_calls_max": 100_000 },
    })
}

/// Prints its address, then serves.
pub(crate) fn serve() -> Result<(), Error> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let answer = |received: &RecordedRequest, n: usize| reply(&received.body, n);
        let server = ModelServer::start_forgetful(answer).await?;
        ModelProcess::wait(&server.url()).await
    })
}

/// A long conversation is not parsed: results are counted, and the name of the model is found.
fn reply(body: &[u8], n: usize) -> Reply {
    let steps = memmem::find(body, b"steps-").and_then(|at| {
        let digits = body[at + 6..].iter().take_while(|byte| byte.is_ascii_digit());
        String::from_utf8(digits.copied().collect()).ok()?.parse::<usize>().ok()
    });
    let results = memmem::find_iter(body, b"\"role\":\"tool\"").count();
    let runs_commands = memmem::find(body, COMMANDS.as_bytes()).is_some();
    let is_done = results >= steps.unwrap_or_default();
    let delta = if is_done {
        json!({ "role": "assistant", "content": "There is nothing wrong with it." })
    } else {
        let (name, arguments) = if runs_commands {
            ("bash", json!({ "command": "true" }))
        } else {
            ("read", json!({ "path": FILE }))
        };
        let function = json!({ "name": name, "arguments": arguments.to_string() });
        let id = format!("call_{n}");
        json!({ "role": "assistant", "tool_calls": [{ "index": 0, "id": id, "type": "function", "function": function }] })
    };
    let finish = if is_done { "stop" } else { "tool_calls" };
    let chunk = |choices: Value, usage: Value| {
        json!({
            "id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m",
            "choices": choices, "usage": usage,
        })
    };
    let usage = json!({ "prompt_tokens": 20, "completion_tokens": 22, "total_tokens": 42 });
    let chunks = [
        chunk(json!([{ "index": 0, "delta": delta, "finish_reason": null }]), Value::Null),
        chunk(json!([{ "index": 0, "delta": {}, "finish_reason": finish }]), Value::Null),
        chunk(json!([]), usage),
    ];
    let chunks = chunks.map(|chunk| format!("data: {chunk}\n\n"));
    Reply::events(chunks.concat() + "data: [DONE]\n\n")
}
