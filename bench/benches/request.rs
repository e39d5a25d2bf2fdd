//! The cost of the next request of a conversation at turn 10 and at turn 5,000: the selected
//! history and the body of every wire, compared with the plain JSON of the same messages.

use std::sync::Arc;

use antiphon_anthropic::{Anthropic, CacheTtl};
use antiphon_core::{
    AssistantBlock, AssistantMessage, IdRule, InputBlock, Message, ModelRef, Provider, RawJson,
    Request, StopReason, ToolArguments, ToolCallBlock, ToolCallId, ToolResultMessage, Usage,
    UserMessage, for_model,
};
use antiphon_gemini::Gemini;
use antiphon_model_transport::{Endpoint, Transport, TransportConfig};
use antiphon_openai::{
    ChatCompletions, ChatConfig, ChatQuirks, Responses, ResponsesConfig, ResponsesQuirks,
};
use chrono::DateTime;
use criterion::{BatchSize, Criterion, criterion_group, criterion_main};

type Error = Box<dyn std::error::Error>;

/// A wire and its name.
type Wire = (&'static str, Box<dyn Provider>);

/// Nothing is sent: a body is written before the connection is opened.
const NOWHERE: &str = "http://127.0.0.1:9";

/// A question and `turns` steps of a call and its result.
fn conversation(turns: usize, model: &ModelRef) -> Result<Vec<Arc<Message>>, Error> {
    let at = DateTime::UNIX_EPOCH;
    let mut messages = vec![UserMessage::text("Count the words of every file.", at).into()];
    for turn in 0..turns {
        let id = ToolCallId::parse(&format!("call_{turn}"))?;
        let arguments = RawJson::parse(&format!(r#"{{"path":"src/part_{turn}.rs"}}"#))?;
        let call = AssistantBlock::ToolCall(ToolCallBlock {
            id: id.clone(),
            name: "read".to_owned(),
            arguments: ToolArguments::Object(arguments),
            signature: None,
        });
        let answer = AssistantMessage {
            content: vec![AssistantBlock::text("On to the next file, which I read now."), call],
            stop_reason: StopReason::ToolUse,
            raw_stop_reason: "tool_use".to_owned(),
            usage: Usage::default(),
            model: Some(model.clone()),
            timestamp: at,
        };
        let result = ToolResultMessage {
            tool_call_id: id,
            tool_name: "read".to_owned(),
            content: vec![InputBlock::text("pub fn part() {}\n".repeat(12))],
            is_error: false,
            timestamp: at,
        };
        messages.extend([answer.into(), result.into()]);
    }
    Ok(messages)
}

/// Every wire, as `wire/m`.
fn providers() -> Result<Vec<Wire>, Error> {
    let transport = Transport::new(&TransportConfig::default())?;
    let base_url = Endpoint::parse(NOWHERE)?;
    let name = "wire".to_owned();
    let anthropic = antiphon_anthropic::AnthropicConfig {
        name: name.clone(),
        base_url: base_url.clone(),
        api_key: None,
        cache: Some(CacheTtl::FiveMinutes),
    };
    let chat = ChatConfig {
        name: name.clone(),
        base_url: base_url.clone(),
        api_key: None,
        quirks: ChatQuirks::default(),
    };
    let responses = ResponsesConfig {
        name: name.clone(),
        base_url: base_url.clone(),
        api_key: None,
        quirks: ResponsesQuirks::default(),
    };
    let gemini = antiphon_gemini::GeminiConfig { name, base_url, api_key: None };
    Ok(vec![
        ("anthropic", Box::new(Anthropic::new(anthropic, transport.clone()))),
        ("openai", Box::new(ChatCompletions::new(chat, transport.clone()))),
        ("openai-responses", Box::new(Responses::new(responses, transport.clone()))),
        ("gemini", Box::new(Gemini::new(gemini, transport))),
    ])
}

fn measure(criterion: &mut Criterion, turns: usize) -> Result<(), Error> {
    let model = ModelRef::parse("wire/m")?;
    let messages = conversation(turns, &model)?;
    let request =
        Request { model: "m".to_owned(), messages: messages.clone().into(), ..Request::default() };
    let mut group = criterion.benchmark_group(format!("request at turn {turns}"));
    for (name, ids) in [("any", IdRule::Any), ("plain", IdRule::Plain { bytes_max: 64 })] {
        group.bench_function(format!("for_model, {name} ids"), |bencher| {
            bencher.iter(|| for_model(&messages, &model, ids));
        });
    }
    for (name, provider) in providers()? {
        group.bench_function(format!("body, {name}"), |bencher| {
            bencher.iter_batched(
                || request.clone(),
                |request| provider.open(request),
                BatchSize::SmallInput,
            );
        });
    }
    group.bench_function("baseline: JSON of the messages", |bencher| {
        bencher.iter(|| serde_json::to_vec(&messages));
    });
    group.finish();
    Ok(())
}

fn request(criterion: &mut Criterion) {
    for turns in [10, 5_000] {
        if let Err(error) = measure(criterion, turns) {
            unreachable!("{error}");
        }
    }
}

criterion_group!(benches, request);
criterion_main!(benches);
