//! Input that means harm: every parser answers it with a typed error, or takes it whole.

#![expect(clippy::panic, reason = "a test fails by panicking")]

mod bytes;
mod image;
mod nesting;
mod text;

use std::fmt::Debug;

use antiphon_core::{
    AgentStatus, CanonicalMessage, ChatCompletionRequest, ChatCompletionResponse, ErrorResponse,
    Event, HealthStatus, Interaction, InteractionContent, Invocation, InvocationResult, Message,
    OrchestratorRequest, Request, Target, TaskSnapshot, Tool, UserMessage,
};
use serde::de::DeserializeOwned;

const UUID: &str = "123e4567-e89b-12d3-a456-426614174000";
const TIME: &str = "2025-01-20T10:00:00Z";

/// What a parser says of some bytes; panics if it takes them.
#[track_caller]
fn refusal<T: DeserializeOwned + Debug>(bytes: impl AsRef<[u8]>) -> String {
    match serde_json::from_slice::<T>(bytes.as_ref()) {
        Ok(value) => panic!("read as {:.200}", format!("{value:?}")),
        Err(error) => error.to_string(),
    }
}

/// Asserts that every parser refuses the bytes, and returns what each says.
#[track_caller]
fn refused_by_all(bytes: &[u8]) -> Vec<String> {
    vec![
        refusal::<Message>(bytes),
        refusal::<UserMessage>(bytes),
        refusal::<Event>(bytes),
        refusal::<Invocation>(bytes),
        refusal::<Target>(bytes),
        refusal::<InvocationResult>(bytes),
        refusal::<TaskSnapshot>(bytes),
        refusal::<Interaction>(bytes),
        refusal::<InteractionContent>(bytes),
        refusal::<OrchestratorRequest>(bytes),
        refusal::<CanonicalMessage>(bytes),
        refusal::<ChatCompletionRequest>(bytes),
        refusal::<ChatCompletionResponse>(bytes),
        refusal::<AgentStatus>(bytes),
        refusal::<HealthStatus>(bytes),
        refusal::<ErrorResponse>(bytes),
        refusal::<Request>(bytes),
        refusal::<Tool>(bytes),
    ]
}

/// An answer around one block.
fn answer(block: &str) -> String {
    format!(
        r#"{{"type":"assistant","content":[{block}],"stop_reason":"end_turn","timestamp":"{TIME}"}}"#
    )
}

/// A user message around one block.
fn question(block: &str) -> String {
    format!(r#"{{"type":"user","content":[{block}],"timestamp":"{TIME}"}}"#)
}

/// An event of a type around its data.
fn event(kind: &str, data: &str) -> String {
    format!(
        r#"{{"v":1,"position":1,"task_id":"t","seq":1,"at":"{TIME}","type":"{kind}","data":{data}}}"#
    )
}

/// An interaction of a peer around its content.
fn interaction(content: &str) -> String {
    format!(r#"{{"id":"{UUID}","from":"bob","content":{content}}}"#)
}
