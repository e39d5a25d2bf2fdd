use std::time::Duration;

use antiphon_core::{
    AssistantBlock, AssistantMessage, Cancel, StreamError, ToolArguments, ToolCallBlock,
};

use crate::world::{RequestBuilder, provider, read};

const PAGE: &str = include_str!("../../../../../docs/scripted.md");

#[tokio::test(start_paused = true)]
async fn every_example_of_the_page_plays_as_documented() {
    let scripts = fenced("toml");
    let outcomes = fenced("text");
    assert!(!scripts.is_empty());
    assert_eq!(scripts.len(), outcomes.len());
    for (script, outcome) in scripts.into_iter().zip(outcomes) {
        assert_eq!(play(script).await, outcome, "{script}");
    }
}

/// The code blocks of the page in that language.
fn fenced(language: &str) -> Vec<&'static str> {
    PAGE.split("\n```").filter_map(|part| part.strip_prefix(language)?.strip_prefix('\n')).collect()
}

/// Sends `hello`, answers calls, retries once after a temporary failure, and gives up after an
/// hour.
async fn play(script: &str) -> String {
    let provider = provider(script);
    let mut request = RequestBuilder::new().user("hello");
    let mut retries_left = 1;
    let mut lines = Vec::new();
    loop {
        let cancel = Cancel::when(tokio::time::sleep(Duration::from_hours(1)));
        let (_, message, failure) = read(&provider, request.request(), cancel).await;
        lines.extend(message.content.iter().map(line));
        if let Some(error) = failure {
            lines.push(format!("error: {error}"));
            let may_pass = matches!(&error, StreamError::Provider(error) if error.is_transient());
            if !may_pass || retries_left == 0 {
                return lines.join("\n");
            }
            retries_left -= 1;
            continue;
        }
        lines.push(format!("stop: {}", word(&message)));
        let calls: Vec<ToolCallBlock> = message.tool_calls().cloned().collect();
        if calls.is_empty() {
            return lines.join("\n");
        }
        request = request.answered(message);
        for call in calls {
            let result = format!("result of {}", call.name);
            request = request.outcome(call.id.as_str(), &result, false);
        }
    }
}

fn word(message: &AssistantMessage) -> String {
    let json = serde_json::to_value(message.stop_reason).expect("a word");
    json.as_str().expect("a word").to_owned()
}

fn line(block: &AssistantBlock) -> String {
    match block {
        AssistantBlock::Text(block) => format!("text: {}", block.text),
        AssistantBlock::Thinking(block) => format!("thinking: {}", block.thinking),
        AssistantBlock::ToolCall(call) => {
            let arguments = match &call.arguments {
                ToolArguments::Object(json) => json.as_str(),
                ToolArguments::Malformed(text) => text,
            };
            format!("call: {} {arguments}", call.name)
        }
        AssistantBlock::Opaque(block) => format!("opaque: {} {}", block.kind, block.value),
    }
}
