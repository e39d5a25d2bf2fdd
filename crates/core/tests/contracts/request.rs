//! Requests to a model, the tools in them and what an answer costs.

use std::num::NonZeroU32;
use std::sync::Arc;

use antiphon_core::{
    InputBlock, RawJson, Request, Sampling, Temperature, Tool, ToolChoice, ToolResult, Usage,
    UserMessage,
};
use serde_json::json;

use crate::{both_ways, read, refusal, ten};

fn read_tool() -> Arc<Tool> {
    Arc::new(Tool {
        name: "read".to_owned(),
        description: "Reads a file.".to_owned(),
        parameters: RawJson::parse(r#"{"type":"object"}"#).unwrap(),
    })
}

#[test]
fn a_full_request_has_every_field() {
    both_ways(
        &Request {
            model: "gpt-4".to_owned(),
            system_prompt: "Be kind.".to_owned(),
            messages: vec![UserMessage::text("hi", ten()).into()].into(),
            tools: vec![read_tool()],
            tool_choice: ToolChoice::Named("read".to_owned()),
            max_tokens: NonZeroU32::new(1000),
            thinking_tokens: NonZeroU32::new(500),
            temperature: Some(Temperature::new(0.7).unwrap()),
            sampling: Sampling { seed: Some(7), ..Sampling::default() },
            is_urgent: false,
        },
        &json!({
            "model": "gpt-4",
            "system_prompt": "Be kind.",
            "messages": [{
                "type": "user",
                "content": [{"type": "text", "text": "hi"}],
                "timestamp": "2025-01-20T10:00:00Z"
            }],
            "tools": [{
                "name": "read", "description": "Reads a file.", "parameters": {"type": "object"}
            }],
            "tool_choice": {"named": "read"},
            "max_tokens": 1000,
            "thinking_tokens": 500,
            "temperature": 0.7,
            "sampling": {"seed": 7}
        }),
    );
}

#[test]
fn what_a_request_leaves_to_the_provider_is_left_out() {
    both_ways(&Request::default(), &json!({"model": "", "messages": []}));
    assert_eq!(
        Request::default(),
        Request {
            model: String::new(),
            system_prompt: String::new(),
            messages: vec![].into(),
            tools: vec![],
            tool_choice: ToolChoice::Auto,
            max_tokens: None,
            thinking_tokens: None,
            temperature: None,
            sampling: Sampling::default(),
            is_urgent: false,
        }
    );
}

#[test]
fn a_request_without_a_model_asks_for_the_default() {
    assert_eq!(read::<Request>(r#"{"messages":[]}"#), Request::default());
}

#[test]
fn a_request_out_of_range_is_refused_by_its_field() {
    let with = |field: &str, value: serde_json::Value| {
        let mut json = json!({"model": "", "messages": []});
        json[field] = value;
        json
    };
    for (value, found) in [(json!(2.0001), "2.0001"), (json!(-0.5), "-0.5"), (json!(3), "3")] {
        assert_eq!(
            refusal::<Request>(with("temperature", value)),
            format!("`temperature` must be from 0 to 2, not {found}")
        );
    }
    for value in [json!(0), json!(0.0), json!(-0.0), json!(2), json!(2.0)] {
        assert!(serde_json::from_value::<Request>(with("temperature", value)).is_ok());
    }
    assert_eq!(
        refusal::<Request>(with("max_tokens", json!(0))),
        "invalid value: integer `0`, expected a nonzero u32"
    );
}

#[test]
fn a_tool_keeps_its_schema_byte_for_byte() {
    let json = r#"{"name":"n","description":"d","parameters":{ "b":1.0, "a":{} }}"#;
    let tool: Tool = read(json);
    assert_eq!(tool.parameters.as_str(), r#"{ "b":1.0, "a":{} }"#);
    assert_eq!(serde_json::to_string(&tool).unwrap(), json);
}

#[test]
fn a_tool_that_ran_succeeded_or_failed() {
    assert_eq!(
        ToolResult::text("ok"),
        ToolResult { content: vec![InputBlock::text("ok")], is_error: false }
    );
    assert_eq!(
        ToolResult::failed("no"),
        ToolResult { content: vec![InputBlock::text("no")], is_error: true }
    );
}

#[test]
fn usage_leaves_out_what_the_provider_does_not_count() {
    both_ways(
        &Usage {
            input_tokens: 150,
            output_tokens: 42,
            cache_read_tokens: None,
            cache_write_tokens: None,
        },
        &json!({"input_tokens": 150, "output_tokens": 42}),
    );
    both_ways(
        &Usage {
            input_tokens: 1,
            output_tokens: 2,
            cache_read_tokens: Some(0),
            cache_write_tokens: Some(u64::MAX),
        },
        &json!({
            "input_tokens": 1, "output_tokens": 2,
            "cache_read_tokens": 0, "cache_write_tokens": u64::MAX
        }),
    );
}

#[test]
fn usage_adds_up_without_overflowing_and_none_is_not_zero() {
    let mut total = Usage::default();
    total += Usage {
        input_tokens: 1,
        output_tokens: 2,
        cache_read_tokens: Some(3),
        cache_write_tokens: None,
    };
    total += Usage {
        input_tokens: u64::MAX,
        output_tokens: 1,
        cache_read_tokens: None,
        cache_write_tokens: None,
    };
    assert_eq!(
        total,
        Usage {
            input_tokens: u64::MAX,
            output_tokens: 3,
            cache_read_tokens: Some(3),
            cache_write_tokens: None,
        }
    );
}
