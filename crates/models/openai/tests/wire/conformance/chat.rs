//! Scenarios in Chat Completions. Only calls are numbered, no block has an end, and nothing is
//! signed.

use antiphon_conformance::provider::{Refusal, Step, StopWord, Unsupported};
use antiphon_core::Usage;
use antiphon_model_server::{Reply, WireWriter};
use serde_json::{Value, json};

use super::{error, refused};

/// An answer in chunks.
pub(super) struct Chunks {
    /// The block numbers of calls, by their index on the wire.
    calls: Vec<u32>,
}

impl Chunks {
    fn index(&self, block: u32) -> usize {
        self.calls.iter().position(|call| *call == block).unwrap()
    }
}

impl WireWriter for Chunks {
    fn refused(refusal: Refusal) -> Reply {
        refused(refusal)
    }

    fn begin(_cost: Usage) -> (Self, String) {
        let role = json!({"role": "assistant", "content": "", "refusal": null});
        (Self { calls: Vec::new() }, delta(&role))
    }

    fn step(&mut self, step: &Step) -> Result<String, Unsupported> {
        Ok(match step {
            Step::Text { block: _, delta: text } => delta(&json!({"content": text})),
            // OpenAI has no thinking; other servers use this field.
            Step::Thinking { block: _, delta: text } => {
                delta(&json!({"content": null, "reasoning_content": text}))
            }
            Step::Signature { .. } => return Err(Unsupported::because("nothing is signed")),
            Step::CallBegin { block, id, name } => {
                self.calls.push(*block);
                let function = json!({"name": name, "arguments": ""});
                let call = json!({
                    "index": self.index(*block), "id": id, "type": "function", "function": function,
                });
                delta(&json!({"tool_calls": [call]}))
            }
            Step::CallDelta { block, delta: arguments } => {
                let function = json!({"arguments": arguments});
                let call = json!({"index": self.index(*block), "function": function});
                delta(&json!({"tool_calls": [call]}))
            }
            Step::BlockEnd { .. } => String::new(),
            Step::Alive => ": keepalive\n\n".to_owned(),
            // OpenAI sends it once, at the end; other servers with every chunk.
            Step::Usage(usage) => chunk("", &counts(*usage)),
            Step::Stop(word) => {
                let last = json!({"index": 0, "delta": {}, "finish_reason": finish_reason(*word)});
                chunk(&last.to_string(), &Value::Null)
            }
        })
    }

    fn end(self) -> String {
        data("[DONE]")
    }

    fn failed(self, refusal: Refusal) -> String {
        data(&json!({ "error": error(refusal) }).to_string())
    }
}

fn delta(delta: &Value) -> String {
    let choice = format!(r#"{{"index":0,"delta":{delta},"logprobs":null,"finish_reason":null}}"#);
    chunk(&choice, &Value::Null)
}

fn chunk(choices: &str, usage: &Value) -> String {
    data(&format!(
        r#"{{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1794700000,"model":"m","choices":[{choices}],"usage":{usage}}}"#
    ))
}

fn data(data: &str) -> String {
    format!("data: {data}\n\n")
}

/// Tokens read from a cache or written to it are part of the prompt's.
fn counts(usage: Usage) -> Value {
    let Usage { input_tokens, output_tokens, cache_read_tokens, cache_write_tokens } = usage;
    let cached = cache_read_tokens.unwrap_or_default() + cache_write_tokens.unwrap_or_default();
    json!({
        "prompt_tokens": input_tokens + cached,
        "completion_tokens": output_tokens,
        "total_tokens": input_tokens + cached + output_tokens,
        "prompt_tokens_details": {
            "cached_tokens": cache_read_tokens, "cache_write_tokens": cache_write_tokens,
        },
    })
}

fn finish_reason(word: StopWord) -> &'static str {
    match word {
        StopWord::EndTurn => "stop",
        StopWord::Length => "length",
        StopWord::ToolUse => "tool_calls",
        StopWord::Unheard => "weary",
    }
}
