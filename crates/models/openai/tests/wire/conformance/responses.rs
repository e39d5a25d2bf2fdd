//! Scenarios in Responses: items, which are repeated when they are done. Encrypted content is an
//! item as a whole, and usage is sent at the end.

use std::collections::BTreeMap;

use antiphon_conformance::provider::{Refusal, Step, StopWord, Unsupported};
use antiphon_core::Usage;
use antiphon_model_server::{Reply, WireWriter};
use serde_json::{Value, json};

use super::{error, refused};

/// An answer in items.
pub(super) struct Items {
    cost: Usage,
    /// By their index, which is their block number.
    open: BTreeMap<u32, Item>,
    stop: Option<StopWord>,
}

struct Item {
    kind: Kind,
    text: String,
}

enum Kind {
    Message,
    Reasoning,
    Call { id: String, name: String },
}

impl Items {
    /// A delta of an item, which it opens if it is the first.
    fn grow(&mut self, place: u32, kind: impl FnOnce() -> Kind, delta: &str) -> String {
        let mut events = String::new();
        let item = self.open.entry(place).or_insert_with(|| {
            let item = Item { kind: kind(), text: String::new() };
            let added = json!({"output_index": place, "item": item.reported(place, "in_progress")});
            events += &event("response.output_item.added", added);
            item
        });
        if !delta.is_empty() {
            item.text.push_str(delta);
            events += &item.event(place, "delta", "delta", delta);
        }
        events
    }

    /// The whole item again, twice.
    fn done(&mut self, place: u32) -> String {
        let item = self.open.remove(&place).unwrap();
        let field = match item.kind {
            Kind::Message | Kind::Reasoning => "text",
            Kind::Call { .. } => "arguments",
        };
        let done = json!({"output_index": place, "item": item.reported(place, "completed")});
        item.event(place, "done", field, &item.text) + &event("response.output_item.done", done)
    }
}

impl Item {
    /// An event with this delta.
    fn event(&self, place: u32, verb: &str, field: &str, text: &str) -> String {
        let (noun, index) = match &self.kind {
            Kind::Message => ("output_text", "content_index"),
            Kind::Reasoning => ("reasoning_summary_text", "summary_index"),
            Kind::Call { .. } => ("function_call_arguments", "content_index"),
        };
        let data = json!({
            "item_id": item_id(place), "output_index": place, index: 0, field: text,
        });
        event(&format!("response.{noun}.{verb}"), data)
    }

    fn reported(&self, place: u32, status: &str) -> Value {
        let (id, text) = (item_id(place), &self.text);
        let parts = |kind: &str| match text.as_str() {
            "" => json!([]),
            text => json!([{"type": kind, "text": text}]),
        };
        match &self.kind {
            Kind::Message => json!({
                "id": id, "type": "message", "status": status, "role": "assistant",
                "content": parts("output_text"),
            }),
            Kind::Reasoning => json!({
                "id": id, "type": "reasoning", "summary": parts("summary_text"),
            }),
            Kind::Call { id: call_id, name } => json!({
                "id": id, "type": "function_call", "status": status, "call_id": call_id,
                "name": name, "arguments": text,
            }),
        }
    }
}

impl WireWriter for Items {
    fn refused(refusal: Refusal) -> Reply {
        refused(refusal)
    }

    fn begin(cost: Usage) -> (Self, String) {
        let telling = Self { cost, open: BTreeMap::new(), stop: None };
        let response = response("in_progress", &Value::Null, &Value::Null);
        (telling, event("response.created", json!({ "response": response })))
    }

    fn step(&mut self, step: &Step) -> Result<String, Unsupported> {
        Ok(match step {
            Step::Text { block, delta } => self.grow(*block, || Kind::Message, delta),
            Step::Thinking { block, delta } => self.grow(*block, || Kind::Reasoning, delta),
            Step::Signature { .. } => {
                return Err(Unsupported::because("an item is sealed, not its thinking"));
            }
            Step::CallBegin { block, id, name } => {
                let call = || Kind::Call { id: id.clone(), name: name.clone() };
                self.grow(*block, call, "")
            }
            Step::CallDelta { block, delta } => {
                let unheard = || unreachable!("a call begins before it grows");
                self.grow(*block, unheard, delta)
            }
            Step::BlockEnd { block } => self.done(*block),
            Step::Alive => event("keepalive", json!({})),
            Step::Usage(_) if self.stop.is_none() => {
                return Err(Unsupported::because("what it cost is text at the end"));
            }
            Step::Usage(_) => String::new(),
            Step::Stop(word) => {
                self.stop = Some(*word);
                String::new()
            }
        })
    }

    fn end(self) -> String {
        let why = match self.stop {
            None | Some(StopWord::EndTurn | StopWord::ToolUse) => {
                let whole = response("completed", &Value::Null, &counts(self.cost));
                return event("response.completed", json!({ "response": whole }));
            }
            Some(StopWord::Length) => json!({"reason": "max_output_tokens"}),
            Some(StopWord::Unheard) => json!({"reason": "weary"}),
        };
        let short = response("incomplete", &why, &counts(self.cost));
        event("response.incomplete", json!({ "response": short }))
    }

    fn failed(self, refusal: Refusal) -> String {
        let mut fault = error(refusal);
        fault["type"] = "error".into();
        event("error", fault)
    }
}

fn item_id(place: u32) -> String {
    format!("item_{place}")
}

fn response(status: &str, incomplete_details: &Value, usage: &Value) -> Value {
    json!({
        "id": "resp_1", "object": "response", "created_at": 1_794_700_000, "status": status,
        "error": null, "incomplete_details": incomplete_details, "model": "m", "output": [],
        "usage": usage,
    })
}

fn event(name: &str, mut data: Value) -> String {
    data["type"] = name.into();
    format!("event: {name}\ndata: {data}\n\n")
}

/// Tokens read from a cache or written to it are part of the input's.
fn counts(usage: Usage) -> Value {
    let Usage { input_tokens, output_tokens, cache_read_tokens, cache_write_tokens } = usage;
    let cached = cache_read_tokens.unwrap_or_default() + cache_write_tokens.unwrap_or_default();
    json!({
        "input_tokens": input_tokens + cached,
        "input_tokens_details": {
            "cached_tokens": cache_read_tokens, "cache_write_tokens": cache_write_tokens,
        },
        "output_tokens": output_tokens,
        "total_tokens": input_tokens + cached + output_tokens,
    })
}
