//! The result of a call as text for people.

use antiphon_core::{AgentResult, InputBlock, InvocationResult, TaskStatus, ToolResultMessage};

/// Calls whose result is a JSON value with the answers of the called agents.
const CALLS_OF_AGENTS: [&str; 2] = ["call_agent", "run_skill"];

/// The text of a result; of called agents, what they answered, in place of the JSON that the model reads.
pub fn result_text(result: &ToolResultMessage) -> String {
    let text: String = result
        .content
        .iter()
        .map(|block| match block {
            InputBlock::Text(text) => text.text.as_str(),
            InputBlock::Image(_) => "[an image]\n",
        })
        .collect();
    let is_of_agents = CALLS_OF_AGENTS.contains(&result.tool_name.as_str());
    let answers = is_of_agents.then(|| serde_json::from_str(&text).ok()).flatten();
    let answers: Vec<String> = match answers {
        Some(InvocationResult::Scalar { result }) => vec![answer(&result)],
        Some(InvocationResult::Vector { results }) => results.iter().map(answer).collect(),
        Some(InvocationResult::TaskIds { .. }) | None => return text,
    };
    answers.join("\n")
}

fn answer(result: &AgentResult) -> String {
    let text = result.content.as_str();
    let content = text.map_or_else(|| result.content.to_string(), ToOwned::to_owned);
    if result.status == TaskStatus::Completed {
        return content;
    }
    format!("{}: {content}", result.status.as_str())
}

#[cfg(test)]
mod tests {
    use antiphon_core::ToolCallId;
    use serde_json::{Value, json};

    use super::*;

    fn shown(tool_name: &str, text: String) -> String {
        let content = vec![InputBlock::text(text)];
        result_text(&ToolResultMessage {
            tool_call_id: ToolCallId::parse("call").unwrap(),
            tool_name: tool_name.to_owned(),
            content,
            is_error: false,
            timestamp: chrono::DateTime::UNIX_EPOCH,
        })
    }

    #[test]
    fn the_answers_of_agents_are_shown_without_their_json() {
        let result = |content: Value, status: &str| json!({ "content": content, "task_id": "01a1f681-69b4-74e7-bfb3-d58b1137d296", "status": status });
        let one = json!({ "kind": "scalar", "result": result(json!("two\nlines"), "completed") });
        assert_eq!(shown("call_agent", one.to_string()), "two\nlines");
        let results =
            [result(json!({ "found": 1 }), "completed"), result(json!("no time"), "canceled")];
        let all = json!({ "kind": "vector", "results": results });
        assert_eq!(shown("call_agent", all.to_string()), "{\"found\":1}\ncanceled: no time");
        assert_eq!(shown("bash", one.to_string()), one.to_string());
        assert_eq!(
            shown("call_agent", "there is no agent `x`".to_owned()),
            "there is no agent `x`"
        );
    }
}
