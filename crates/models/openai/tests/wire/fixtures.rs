//! Recorded streams of real servers.

use antiphon_core::{AssistantMessage, ProviderError, StopReason};
use antiphon_model_server::Reply;

use crate::world::{
    Case, Outcome, Wire, answer, broken, call, check, encrypted, text, thinking, usage, whole,
};

const SEALED: &str = concat!(
    r#"{"id":"rs_01","type":"reasoning","encrypted_content":"gAAAAABo-sealed==","summary":["#,
    r#"{"type":"summary_text","text":"**Looking it up** I need the weather."},"#,
    r#"{"type":"summary_text","text":"**Choosing** One call will do."}]}"#
);

macro_rules! fixture {
    ($wire:literal, $name:literal, $outcome:expr) => {
        Case {
            name: $name,
            reply: Reply::events(include_str!(concat!("../fixtures/", $wire, "/", $name, ".sse"))),
            outcome: $outcome,
        }
    };
}

fn of(message: AssistantMessage, stop_reason: StopReason) -> Outcome {
    whole(AssistantMessage { stop_reason, ..message })
}

#[tokio::test]
async fn recorded_chat_streams_are_parsed() {
    let paris = |id| call(id, "get_weather", r#"{"city":"Paris"}"#);
    let oslo = |id| call(id, "get_weather", r#"{"city":"Oslo"}"#);
    let counted = |message, input, output, cached| AssistantMessage {
        usage: usage(input, output, cached),
        ..message
    };
    let spoken = answer(vec![text("Die Größe der 🎻 ist egal.")], "stop");
    let both = answer(vec![paris("call_Paris01"), oslo("call_Oslo02")], "tool_calls");
    let welcome = answer(vec![text("Welcome to my")], "length");
    let dated = vec![
        thinking("The user wants the date."),
        text("I look it up."),
        call("call_00_date", "get_date", "{}"),
    ];
    let dated = answer(dated, "tool_calls");
    let shared = vec![thinking("Two cities."), paris("call_a1"), oslo("call_b2")];
    let shared = answer(shared, "tool_calls");
    let bonjour = answer(vec![thinking("A greeting, so I greet."), text("Bonjour")], "stop");
    let lost = ProviderError::Server {
        status: 502,
        message: "Provider disconnected unexpectedly".to_owned(),
        retry_after: None,
    };
    let end = StopReason::EndTurn;
    let tools = StopReason::ToolUse;
    let cases = [
        fixture!("chat", "openai_text", of(counted(spoken, 176, 17, Some(1024)), end)),
        fixture!("chat", "openai_parallel_calls", of(counted(both, 176, 17, Some(1024)), tools)),
        fixture!(
            "chat",
            "llama_cpp_text",
            of(counted(welcome, 31, 3, Some(0)), StopReason::Length)
        ),
        fixture!("chat", "deepseek_thinking_call", of(counted(dated, 64, 40, Some(256)), tools)),
        fixture!("chat", "ollama_calls_sharing_an_index", of(counted(shared, 90, 30, None), tools)),
        fixture!("chat", "mistral_thinking", of(counted(bonjour, 11, 14, None), end)),
        fixture!("chat", "openrouter_error", broken(vec![text("Once upon")], lost)),
    ];
    check(Wire::chat(), cases).await;
}

#[tokio::test]
async fn recorded_responses_streams_are_parsed() {
    let paris = |id| call(id, "get_weather", r#"{"city":"Paris"}"#);
    let oslo = |id| call(id, "get_weather", r#"{"city":"Oslo"}"#);
    let counted = |content, raw| AssistantMessage {
        usage: usage(148, 40, Some(1152)),
        ..answer(content, raw)
    };
    let reasoned = vec![
        thinking("**Looking it up** I need the weather."),
        thinking("**Choosing** One call will do."),
        encrypted("reasoning", SEALED),
        paris("call_Paris01"),
    ];
    let both = vec![text("Both then."), paris("call_Paris01"), oslo("call_Oslo02")];
    let local = vec![thinking("Two cities."), text("Both then."), paris("fc_aa"), oslo("fc_bb")];
    let local = AssistantMessage { usage: usage(7, 24, Some(24)), ..answer(local, "completed") };
    let failed = ProviderError::Server {
        status: 200,
        message: "The server had an error while processing your request. Sorry about that!"
            .to_owned(),
        retry_after: None,
    };
    let spoken = vec![text("Die Größe der 🎻 ist egal.")];
    let cut_short = counted(vec![text("It was a dark and")], "max_output_tokens");
    let tools = StopReason::ToolUse;
    let cases = [
        fixture!("responses", "openai_text", whole(counted(spoken, "completed"))),
        fixture!("responses", "openai_reasoning_call", of(counted(reasoned, "completed"), tools)),
        fixture!("responses", "openai_parallel_calls", of(counted(both, "completed"), tools)),
        fixture!("responses", "openai_incomplete", of(cut_short, StopReason::Length)),
        fixture!("responses", "openai_failed", broken(Vec::new(), failed)),
        fixture!("responses", "llama_cpp_thinking_calls", of(local, tools)),
    ];
    check(Wire::responses(), cases).await;
}
