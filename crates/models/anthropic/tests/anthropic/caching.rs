//! Cache markers in a prompt.

use std::sync::Arc;

use antiphon_anthropic::CacheTtl;
use antiphon_core::{AssistantBlock, Message, RawJson, Request, StopReason, Tool};
use serde_json::{Value, json};

use crate::world::{message, request, sent, user};

fn assistant(text: &str) -> Message {
    message(vec![AssistantBlock::text(text)], StopReason::EndTurn, "end_turn").into()
}

fn tool(name: &str) -> Arc<Tool> {
    Arc::new(Tool {
        name: name.to_owned(),
        description: String::new(),
        parameters: RawJson::empty_object(),
    })
}

fn long() -> Request {
    Request {
        system_prompt: "Be brief.".to_owned(),
        tools: vec![tool("look"), tool("go")],
        ..request(vec![
            user("one"),
            assistant("1"),
            user("two"),
            assistant("2"),
            user("three"),
            user("four"),
        ])
    }
}

/// The body of [`long`] with these markers.
fn marked(mark: &Value) -> Value {
    let text = |text: &str| json!({"type": "text", "text": text});
    let marked = |text: &str| json!({"type": "text", "text": text, "cache_control": mark});
    json!({
        "model": "claude",
        "max_tokens": 16384,
        "stream": true,
        "tools": [
            {"name": "look", "description": "", "input_schema": {}},
            {"name": "go", "description": "", "input_schema": {}, "cache_control": mark},
        ],
        "system": [marked("Be brief.")],
        "messages": [
            {"role": "user", "content": [text("one")]},
            {"role": "assistant", "content": [text("1")]},
            {"role": "user", "content": [marked("two")]},
            {"role": "assistant", "content": [text("2")]},
            {"role": "user", "content": [text("three"), marked("four")]},
        ],
    })
}

#[tokio::test]
async fn the_ends_of_tools_system_prompt_and_the_last_two_turns_are_marked() {
    let cases = [
        (CacheTtl::FiveMinutes, json!({"type": "ephemeral"})),
        (CacheTtl::OneHour, json!({"type": "ephemeral", "ttl": "1h"})),
    ];
    for (ttl, mark) in cases {
        let sent = sent(long(), Some(ttl)).await;
        assert_eq!(sent, marked(&mark));
        // The wire refuses a fifth marker.
        assert_eq!(sent.to_string().matches("cache_control").count(), 4);
    }
}

#[tokio::test]
async fn without_a_cache_there_is_no_marker() {
    assert!(!sent(long(), None).await.to_string().contains("cache_control"));
}
