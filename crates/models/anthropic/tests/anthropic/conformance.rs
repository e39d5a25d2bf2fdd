//! The conformance suite of providers on this wire, which supports all of it.

use std::collections::BTreeSet;

use antiphon_conformance::provider::{Refusal, Step, StopWord, Unsupported, check};
use antiphon_core::Usage;
use antiphon_model_server::{Reply, ServedWire, WireWriter};
use serde_json::{Value, json};

use crate::world::{config, provider};

#[tokio::test]
async fn the_provider_passes_the_conformance_suite() {
    let wire = ServedWire::<Messages, _>::new(|server| provider(config(server, None)));
    let passed = check(&wire).await.expect("no violations");
    assert_eq!(passed.skipped_checks(), Vec::<&str>::new());
}

/// An answer of the Messages API.
struct Messages {
    cost: Usage,
    begun: BTreeSet<u32>,
    stop_reason: Option<&'static str>,
}

impl Messages {
    /// A delta of a block, which it opens if it is the first.
    fn grow(&mut self, block: u32, start: &Value, more: &Value) -> String {
        let opening = if self.begun.insert(block) {
            let fields = format!(r#""index":{block},"content_block":{start}"#);
            event("content_block_start", &fields)
        } else {
            String::new()
        };
        opening + &delta(block, more)
    }
}

impl WireWriter for Messages {
    fn refused(refusal: Refusal) -> Reply {
        let reply = Reply::json(status(refusal), error(refusal));
        match refusal {
            Refusal::RateLimited { retry_after } => {
                reply.header("retry-after", &retry_after.as_secs().to_string())
            }
            Refusal::InvalidRequest
            | Refusal::ContextOverflow
            | Refusal::Authentication
            | Refusal::Permission
            | Refusal::NotFound
            | Refusal::Overloaded
            | Refusal::Server => reply,
        }
    }

    fn begin(cost: Usage) -> (Self, String) {
        let message = json!({
            "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-1",
            "content": [], "stop_reason": null, "stop_sequence": null,
            "usage": counts(Usage { output_tokens: 1, ..cost }),
        });
        let telling = Self { cost, begun: BTreeSet::new(), stop_reason: None };
        (telling, event("message_start", &format!(r#""message":{message}"#)))
    }

    fn step(&mut self, step: &Step) -> Result<String, Unsupported> {
        Ok(match step {
            Step::Text { block, delta } => self.grow(
                *block,
                &json!({"type": "text", "text": ""}),
                &json!({"type": "text_delta", "text": delta}),
            ),
            Step::Thinking { block, delta } => self.grow(
                *block,
                &json!({"type": "thinking", "thinking": "", "signature": ""}),
                &json!({"type": "thinking_delta", "thinking": delta}),
            ),
            Step::Signature { block, signature } => {
                delta(*block, &json!({"type": "signature_delta", "signature": signature}))
            }
            Step::CallBegin { block, id, name } => self.grow(
                *block,
                &json!({"type": "tool_use", "id": id, "name": name, "input": {}}),
                &json!({"type": "input_json_delta", "partial_json": ""}),
            ),
            Step::CallDelta { block, delta: json } => {
                delta(*block, &json!({"type": "input_json_delta", "partial_json": json}))
            }
            Step::BlockEnd { block } => event("content_block_stop", &format!(r#""index":{block}"#)),
            Step::Alive => "event: ping\ndata: {\"type\": \"ping\"}\n\n".to_owned(),
            // Both are sent at the end; the input tokens also at the beginning.
            Step::Usage(_) => String::new(),
            Step::Stop(word) => {
                self.stop_reason = Some(stop_reason(*word));
                String::new()
            }
        })
    }

    fn end(self) -> String {
        let delta = json!({"stop_reason": self.stop_reason, "stop_sequence": null});
        let fields = format!(r#""delta":{delta},"usage":{}"#, counts(self.cost));
        let stop = "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n";
        event("message_delta", &fields) + stop
    }

    fn failed(self, refusal: Refusal) -> String {
        format!("event: error\ndata: {}\n\n", error(refusal))
    }
}

fn delta(block: u32, delta: &Value) -> String {
    event("content_block_delta", &format!(r#""index":{block},"delta":{delta}"#))
}

fn event(name: &str, fields: &str) -> String {
    format!("event: {name}\ndata: {{\"type\":\"{name}\",{fields}}}\n\n")
}

fn counts(usage: Usage) -> Value {
    json!({
        "input_tokens": usage.input_tokens,
        "cache_creation_input_tokens": usage.cache_write_tokens,
        "cache_read_input_tokens": usage.cache_read_tokens,
        "output_tokens": usage.output_tokens,
    })
}

fn stop_reason(word: StopWord) -> &'static str {
    match word {
        StopWord::EndTurn => "end_turn",
        StopWord::Length => "max_tokens",
        StopWord::ToolUse => "tool_use",
        StopWord::Unheard => "weary",
    }
}

fn status(refusal: Refusal) -> u16 {
    match refusal {
        Refusal::InvalidRequest | Refusal::ContextOverflow => 400,
        Refusal::Authentication => 401,
        Refusal::Permission => 403,
        Refusal::NotFound => 404,
        Refusal::RateLimited { .. } => 429,
        Refusal::Overloaded => 529,
        Refusal::Server => 500,
    }
}

/// The same as a response and in the middle of a stream.
fn error(refusal: Refusal) -> String {
    let (kind, message) = match refusal {
        Refusal::InvalidRequest => ("invalid_request_error", "tools.0.name: Field required"),
        Refusal::ContextOverflow => {
            ("invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum")
        }
        Refusal::Authentication => ("authentication_error", "invalid x-api-key"),
        Refusal::Permission => ("permission_error", "Your API key may not use this model"),
        Refusal::NotFound => ("not_found_error", "model: claude-0"),
        Refusal::RateLimited { .. } => {
            ("rate_limit_error", "This request would exceed your organization's rate limit")
        }
        Refusal::Overloaded => ("overloaded_error", "Overloaded"),
        Refusal::Server => ("api_error", "Internal server error"),
    };
    json!({"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_1"})
        .to_string()
}
