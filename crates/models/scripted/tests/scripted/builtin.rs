use std::time::Duration;

use antiphon_core::{
    AssistantBlock, Cancel, ProviderError, RawJson, Signature, StopReason, StreamError,
    ThinkingBlock, ToolArguments, ToolCallBlock, ToolCallId,
};
use antiphon_scripted::{Script, ScriptedProvider};

use crate::world::{RequestBuilder, message, read, text};

fn builtin(name: &str) -> ScriptedProvider {
    ScriptedProvider::new(Script::builtin(name).expect("it comes with Antiphon"))
}

#[test]
fn every_builtin_script_is_valid_and_has_its_name() {
    let names: Vec<_> = Script::BUILTIN
        .iter()
        .map(|name| Script::builtin(name).map(|script| script.model().to_string()))
        .collect();
    let expected: Vec<_> =
        Script::BUILTIN.iter().map(|name| Some(format!("scripted/{name}"))).collect();
    assert_eq!(names, expected);
    assert_eq!(Script::builtin("goodbye"), None);
}

#[test]
fn every_example_script_is_valid() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../examples/scripts");
    for entry in std::fs::read_dir(folder).expect("the folder is there") {
        let path = entry.expect("an entry").path();
        let text = std::fs::read_to_string(&path).expect("a text");
        assert_eq!(Script::parse(&text).err(), None, "{}", path.display());
    }
}

#[tokio::test(start_paused = true)]
async fn hello_introduces_itself_and_echoes_the_prompt() {
    assert_eq!(
        text(&builtin("hello"), &RequestBuilder::new().user("hi there")).await,
        "Hello! I am not a model: I am the script `hello`, and I always say this. \
         You wrote: hi there"
    );
}

#[tokio::test(start_paused = true)]
async fn tools_thinks_makes_two_parallel_calls_and_summarizes() {
    let provider = builtin("tools");
    let request = RequestBuilder::new().user("go");
    let first = message(&provider, request.request()).await;
    let call = |id, name: &str, arguments| {
        AssistantBlock::ToolCall(ToolCallBlock {
            id: ToolCallId::parse(id).expect("an id"),
            name: name.to_owned(),
            arguments: ToolArguments::Object(RawJson::parse(arguments).expect("JSON")),
            signature: None,
        })
    };
    assert_eq!(
        first.content,
        [
            AssistantBlock::Thinking(ThinkingBlock {
                thinking: "The script wants two looks at the project: its README, and the \
                           headings in it."
                    .to_owned(),
                signature: Some(Signature("c2NyaXB0ZWQ=".to_owned())),
            }),
            AssistantBlock::text(
                "I will read the README and look for its headings at the same time."
            ),
            call("call_0_0", "read", r#"{"path":"README.md"}"#),
            call("call_0_1", "grep", r#"{"pattern":"^# ","path":"README.md"}"#),
        ]
    );
    assert_eq!(first.stop_reason, StopReason::ToolUse);
    let request = request.answered(first).outcome("call_0_0", "# Antiphon\n…", false).outcome(
        "call_0_1",
        "1: # Antiphon",
        false,
    );
    assert_eq!(
        text(&provider, &request).await,
        "Both tools answered. I am a script and understood nothing of it, but this is what \
         `grep` found:\n\n1: # Antiphon"
    );
}

#[tokio::test(start_paused = true)]
async fn flaky_is_overloaded_once_and_then_answers() {
    let provider = builtin("flaky");
    let request = RequestBuilder::new().user("hi");
    let (_, _, failure) = read(&provider, request.request(), Cancel::never()).await;
    assert_eq!(
        failure,
        Some(StreamError::Provider(ProviderError::Overloaded {
            message: "try again in a moment".to_owned(),
            retry_after: Some(Duration::from_millis(200)),
        }))
    );
    assert_eq!(
        text(&provider, &request).await,
        "Sorry for the wait: the first attempt was refused by the script, this one is not."
    );
}
