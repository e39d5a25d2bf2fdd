//! The conformance suite of providers on this wire. It sends calls as a whole, and no cache write
//! counts.

use antiphon_conformance::provider::{Refusal, Step, StopWord, Unsupported, check};
use antiphon_core::Usage;
use antiphon_model_server::{Reply, ServedWire, WireWriter};
use serde_json::{Value, json};

use crate::world::{config, event, provider};

#[tokio::test]
async fn the_provider_passes_the_conformance_suite() {
    let wire = ServedWire::<Generate, _>::new(|server| provider(config(server)));
    let passed = check(&wire).await.expect("no violations");
    assert_eq!(
        passed.skipped_checks(),
        [
            "interleaved_calls_are_separated",
            "truncated_arguments_are_malformed",
            "tokens_written_to_a_cache_are_counted",
        ]
    );
}

/// The start of every event with a part.
const PART: &str = r#"{"candidates":[{"content":{"parts":["#;

/// An answer of the Gemini API.
struct Generate {
    cost: Usage,
    /// The input counts of every part.
    cost_to_ask: String,
    /// The started call.
    call: Option<Call>,
    finish_reason: Option<&'static str>,
}

struct Call {
    head: String,
    arguments: String,
}

impl Generate {
    fn part(&self, part: &str) -> String {
        let usage = &self.cost_to_ask;
        event(&format!(
            r#"{PART}{part}],"role":"model"}},"index":0}}],"usageMetadata":{usage},"modelVersion":"gemini-3"}}"#
        ))
    }

    fn call(&self, call: &Call) -> Result<String, Unsupported> {
        let Call { head, arguments } = call;
        if arguments.is_empty() {
            return Ok(self.part(&format!("{head}}}}}")));
        }
        serde_json::from_str::<Value>(arguments)
            .map_err(|_| Unsupported::because("arguments are part of the JSON of the event"))?;
        Ok(self.part(&format!(r#"{head},"args":{arguments}}}}}"#)))
    }
}

impl WireWriter for Generate {
    fn refused(refusal: Refusal) -> Reply {
        let error = error(refusal);
        let status = error["error"]["code"].as_u64().and_then(|code| code.try_into().ok());
        Reply::json(status.expect("a status"), error.to_string())
    }

    /// Nothing is sent before the first part.
    fn begin(cost: Usage) -> (Self, String) {
        let cost_to_ask = counts(Usage { output_tokens: 0, ..cost }).to_string();
        (Self { cost, cost_to_ask, call: None, finish_reason: None }, String::new())
    }

    fn step(&mut self, step: &Step) -> Result<String, Unsupported> {
        Ok(match step {
            Step::Text { block: _, delta } => self.part(&json!({"text": delta}).to_string()),
            Step::Thinking { block: _, delta } => {
                self.part(&json!({"text": delta, "thought": true}).to_string())
            }
            Step::Signature { block: _, signature } => {
                let part = json!({"text": "", "thought": true, "thoughtSignature": signature});
                self.part(&part.to_string())
            }
            Step::CallBegin { block: _, id, name } => {
                let (id, name) = (json!(id), json!(name));
                let head = format!(r#"{{"functionCall":{{"id":{id},"name":{name}"#);
                if self.call.replace(Call { head, arguments: String::new() }).is_some() {
                    return Err(Unsupported::because("a call comes whole"));
                }
                String::new()
            }
            Step::CallDelta { block: _, delta } => {
                self.call.as_mut().expect("a call").arguments.push_str(delta);
                String::new()
            }
            Step::BlockEnd { block: _ } => match self.call.take() {
                Some(call) => self.call(&call)?,
                None => String::new(),
            },
            Step::Alive => event(r#"{"modelVersion":"gemini-3"}"#),
            Step::Usage(Usage { cache_write_tokens: Some(_), .. }) => {
                return Err(Unsupported::because("what is written to a cache is not counted"));
            }
            // Sent with every part; the stop reason with the last one.
            Step::Usage(_) => String::new(),
            Step::Stop(word) => {
                self.finish_reason = Some(finish_reason(*word));
                String::new()
            }
        })
    }

    fn end(self) -> String {
        let content = json!({"parts": [{"text": ""}], "role": "model"});
        let last = json!({
            "candidates": [{"content": content, "finishReason": self.finish_reason, "index": 0}],
            "usageMetadata": counts(self.cost),
            "modelVersion": "gemini-3",
        });
        event(&last.to_string())
    }

    fn failed(self, refusal: Refusal) -> String {
        event(&error(refusal).to_string())
    }

    fn unfinished(self) -> String {
        self.call.map_or_else(String::new, |Call { head, arguments }| {
            format!(r#"data: {PART}{head},"args":{arguments}"#)
        })
    }
}

/// Tokens read from a cache are part of the prompt's.
fn counts(usage: Usage) -> Value {
    json!({
        "promptTokenCount": usage.input_tokens + usage.cache_read_tokens.unwrap_or_default(),
        "cachedContentTokenCount": usage.cache_read_tokens,
        "candidatesTokenCount": usage.output_tokens,
    })
}

fn finish_reason(word: StopWord) -> &'static str {
    match word {
        StopWord::EndTurn | StopWord::ToolUse => "STOP",
        StopWord::Length => "MAX_TOKENS",
        StopWord::Unheard => "WEARY",
    }
}

/// The same as a response and in the middle of a stream.
fn error(refusal: Refusal) -> Value {
    let detail = match refusal {
        Refusal::Authentication => json!({
            "@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID",
        }),
        Refusal::RateLimited { retry_after } => json!({
            "@type": "type.googleapis.com/google.rpc.RetryInfo",
            "retryDelay": format!("{}s", retry_after.as_secs()),
        }),
        Refusal::InvalidRequest
        | Refusal::ContextOverflow
        | Refusal::Permission
        | Refusal::NotFound
        | Refusal::Overloaded
        | Refusal::Server => json!({"@type": "type.googleapis.com/google.rpc.DebugInfo"}),
    };
    let (code, status, message) = match refusal {
        Refusal::InvalidRequest => (400, "INVALID_ARGUMENT", "Invalid value at 'tools[0]'"),
        Refusal::ContextOverflow => (
            400,
            "INVALID_ARGUMENT",
            "The input token count (2) exceeds the maximum number of tokens allowed (1).",
        ),
        Refusal::Authentication => (400, "INVALID_ARGUMENT", "API key not valid."),
        Refusal::Permission => (403, "PERMISSION_DENIED", "The caller does not have permission"),
        Refusal::NotFound => (404, "NOT_FOUND", "models/gemini-0 is not found"),
        Refusal::RateLimited { .. } => (429, "RESOURCE_EXHAUSTED", "You exceeded your quota"),
        Refusal::Overloaded => (503, "UNAVAILABLE", "The model is overloaded."),
        Refusal::Server => (500, "INTERNAL", "An internal error has occurred."),
    };
    json!({"error": {"code": code, "message": message, "status": status, "details": [detail]}})
}
