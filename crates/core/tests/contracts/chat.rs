//! Canonical chat: the JSON, the constructors, and the way to a provider's request.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use antiphon_core::{
    AssistantBlock, AssistantMessage, CanonicalMessage, ChatCompletionRequest,
    ChatCompletionResponse, MessageId, Request, Role, StopReason, Temperature, TokenUsage, Usage,
    UserMessage,
};
use chrono::Utc;
use serde_json::json;

use crate::{UUID, at, both_ways, read, refusal, ten};

fn id() -> MessageId {
    UUID.parse::<uuid::Uuid>().unwrap().into()
}

fn said(role: Role, content: &str) -> CanonicalMessage {
    CanonicalMessage {
        id: id(),
        role,
        content: content.to_owned(),
        timestamp: ten(),
        metadata: BTreeMap::new(),
    }
}

fn notes() -> BTreeMap<String, String> {
    BTreeMap::from([
        ("source".to_owned(), "web".to_owned()),
        ("version".to_owned(), "1.0".to_owned()),
    ])
}

#[test]
fn a_canonical_message_has_the_documented_json() {
    both_ways(
        &CanonicalMessage { metadata: notes(), ..said(Role::User, "Hello, how are you?") },
        &json!({
            "id": "123e4567-e89b-12d3-a456-426614174000",
            "role": "user",
            "content": "Hello, how are you?",
            "timestamp": "2025-01-20T10:00:00Z",
            "metadata": {"source": "web", "version": "1.0"}
        }),
    );
}

#[test]
fn empty_metadata_is_left_out_and_missing_metadata_is_empty() {
    both_ways(
        &said(Role::System, "Be kind."),
        &json!({
            "id": UUID,
            "role": "system",
            "content": "Be kind.",
            "timestamp": "2025-01-20T10:00:00Z"
        }),
    );
    assert_eq!(
        read::<CanonicalMessage>(&format!(
            r#"{{"id":"{UUID}","role":"system","content":"Be kind.",
                "timestamp":"2025-01-20T10:00:00Z","metadata":{{}},"mood":"good"}}"#
        )),
        said(Role::System, "Be kind.")
    );
}

#[test]
fn a_time_in_another_zone_is_read_as_the_same_instant() {
    for text in ["2025-01-20T12:00:00+02:00", "2025-01-20T10:00:00.000Z"] {
        let json = json!({"id": UUID, "role": "user", "content": "hi", "timestamp": text});
        assert_eq!(read::<CanonicalMessage>(&json.to_string()), said(Role::User, "hi"));
    }
}

#[test]
fn a_canonical_message_without_a_required_field_is_refused_by_its_name() {
    let whole = json!({"id": UUID, "role": "user", "content": "hi",
        "timestamp": "2025-01-20T10:00:00Z"});
    for field in ["id", "role", "content", "timestamp"] {
        let mut json = whole.clone();
        json.as_object_mut().unwrap().remove(field);
        assert_eq!(refusal::<CanonicalMessage>(json), format!("missing field `{field}`"));
    }
}

#[test]
fn the_constructors_fill_in_what_they_are_not_given() {
    let before = Utc::now();
    let new = CanonicalMessage::new(Role::User, "Hello, world!".to_owned());
    let noted = CanonicalMessage::with_metadata(Role::Assistant, "Hello".to_owned(), notes());
    let after = Utc::now();
    let dated = CanonicalMessage::with_timestamp(Role::System, "hi".to_owned(), ten());

    assert!((before..=after).contains(&new.timestamp));
    assert!((before..=after).contains(&noted.timestamp));
    assert_ne!(new.id, noted.id);
    assert_eq!(
        new,
        CanonicalMessage {
            id: new.id,
            timestamp: new.timestamp,
            ..said(Role::User, "Hello, world!")
        }
    );
    assert_eq!(
        noted,
        CanonicalMessage {
            id: noted.id,
            timestamp: noted.timestamp,
            metadata: notes(),
            ..said(Role::Assistant, "Hello")
        }
    );
    assert_eq!(dated, CanonicalMessage { id: dated.id, ..said(Role::System, "hi") });
}

#[test]
fn blank_content_is_empty_and_its_length_is_in_bytes() {
    for (content, is_empty, bytes) in [
        ("", true, 0),
        (" \t\n", true, 3),
        ("\u{3000}", true, 3),
        ("hi", false, 2),
        (" é ", false, 4),
    ] {
        let message = said(Role::User, content);
        assert_eq!((message.is_empty(), message.content_len()), (is_empty, bytes), "{content:?}");
    }
}

#[test]
fn a_chat_request_has_the_documented_json() {
    both_ways(
        &ChatCompletionRequest {
            messages: vec![said(Role::User, "hi")],
            model: Some("gpt-4".to_owned()),
            temperature: Some(0.7),
            max_tokens: Some(1000),
            stream: false,
        },
        &json!({
            "messages": [{
                "id": UUID, "role": "user", "content": "hi", "timestamp": "2025-01-20T10:00:00Z"
            }],
            "model": "gpt-4",
            "temperature": 0.7,
            "max_tokens": 1000,
            "stream": false
        }),
    );
}

#[test]
fn a_chat_request_needs_messages_only() {
    assert_eq!(
        read::<ChatCompletionRequest>(r#"{"messages":[]}"#),
        ChatCompletionRequest {
            messages: vec![],
            model: None,
            temperature: None,
            max_tokens: None,
            stream: false,
        }
    );
    assert_eq!(refusal::<ChatCompletionRequest>(json!({})), "missing field `messages`");
}

#[test]
fn a_chat_request_becomes_a_request_with_its_system_messages_as_the_prompt() {
    let request = ChatCompletionRequest {
        messages: vec![
            said(Role::System, "Be kind."),
            said(Role::User, "hi"),
            said(Role::Assistant, "hello"),
            said(Role::System, "Be brief."),
        ],
        model: Some("gpt-4".to_owned()),
        temperature: Some(0.7),
        max_tokens: Some(1000),
        stream: true,
    };
    assert_eq!(
        request.into_request(at("2025-01-20T10:00:05Z")),
        Ok(Request {
            model: "gpt-4".to_owned(),
            system_prompt: "Be kind.\n\nBe brief.".to_owned(),
            messages: vec![
                UserMessage::text("hi", ten()).into(),
                AssistantMessage {
                    content: vec![AssistantBlock::text("hello")],
                    stop_reason: StopReason::EndTurn,
                    raw_stop_reason: String::new(),
                    usage: Usage::default(),
                    model: None,
                    timestamp: ten(),
                }
                .into(),
            ]
            .into(),
            max_tokens: NonZeroU32::new(1000),
            temperature: Some(Temperature::new(0.7).unwrap()),
            ..Request::default()
        })
    );
}

#[test]
fn a_chat_response_has_the_documented_json_with_and_without_usage() {
    let message = json!({
        "id": UUID, "role": "assistant", "content": "hello", "timestamp": "2025-01-20T10:00:00Z"
    });
    let response = ChatCompletionResponse {
        message: said(Role::Assistant, "hello"),
        model: "gpt-4".to_owned(),
        usage: Some(TokenUsage::new(100, 50)),
    };
    both_ways(
        &response,
        &json!({
            "message": message,
            "model": "gpt-4",
            "usage": {"prompt_tokens": 100, "completion_tokens": 50, "total_tokens": 150}
        }),
    );
    both_ways(
        &ChatCompletionResponse { usage: None, ..response },
        &json!({"message": message, "model": "gpt-4"}),
    );
}

#[test]
fn token_usage_adds_up_and_stops_at_the_largest_number() {
    both_ways(
        &TokenUsage::new(100, 50),
        &json!({"prompt_tokens": 100, "completion_tokens": 50, "total_tokens": 150}),
    );
    assert_eq!(TokenUsage::new(u32::MAX, 1).total_tokens, u32::MAX);
    let usage = Usage {
        input_tokens: 10,
        output_tokens: 5,
        cache_read_tokens: Some(3),
        cache_write_tokens: Some(2),
    };
    assert_eq!(TokenUsage::from(usage), TokenUsage::new(15, 5));
    let huge = Usage {
        input_tokens: u64::MAX,
        output_tokens: u64::MAX,
        cache_read_tokens: Some(1),
        cache_write_tokens: None,
    };
    assert_eq!(
        TokenUsage::from(huge),
        TokenUsage { prompt_tokens: u32::MAX, completion_tokens: u32::MAX, total_tokens: u32::MAX }
    );
}
