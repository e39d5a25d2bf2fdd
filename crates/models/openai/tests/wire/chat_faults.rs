//! Chat Completions: interrupted answers.

use antiphon_core::{AssistantBlock, ProviderError};
use antiphon_model_server::{Ending, Reply};

use crate::chat_answers::{DONE, call_delta, delta, finish};
use crate::world::{Case, Outcome, Wire, broken, check, protocol, refused, text};

fn case(name: &'static str, body: impl Into<Vec<u8>>, outcome: Outcome) -> Case {
    Case { name, reply: Reply::events(body), outcome }
}

fn once() -> String {
    delta(r#"{"content":"Once"}"#)
}

fn begun() -> Vec<AssistantBlock> {
    vec![text("Once")]
}

fn server(status: u16, message: &str) -> ProviderError {
    ProviderError::Server { status, message: message.to_owned(), retry_after: None }
}

#[tokio::test]
async fn an_answer_without_an_end_is_interrupted() {
    let call = delta(&call_delta(r#""index":0,"id":"c1","#, r#""name":"f","arguments":"{}""#));
    let cut = || broken(begun(), ProviderError::Cut);
    let reset = Reply::events(once()).ending(Ending::Cut);
    check(
        Wire::chat(),
        [
            case("in the middle of its text", once(), cut()),
            // An incomplete call must not be executed.
            case("in the middle of a call", once() + &call, cut()),
            Case { name: "with its connection", reply: reset, outcome: cut() },
            // A proxy ends the stream of a server that broke off before it answered.
            case("with an end and nothing before it", DONE.to_owned(), refused(ProviderError::Cut)),
        ],
    )
    .await;
}

#[tokio::test]
async fn an_error_in_the_middle_of_a_stream_has_its_type() {
    let after = |error: &str| format!("{}data: {error}\n\n{DONE}", once());
    let inside = |fields: &str| after(&format!(r#"{{"error":{{{fields}}}}}"#));
    let openai = r#""message":"Oops.","type":"server_error","param":null,"code":null"#;
    let named = format!("{}event: error\ndata: {{\"message\":\"Oops.\"}}\n\n", once());
    let limited = || ProviderError::RateLimited { message: "Slow.".to_owned(), retry_after: None };
    let invalid = ProviderError::InvalidRequest { message: "Bad image.".to_owned() };
    let long = "This model's maximum context length is 4096 tokens.";
    let overflow = ProviderError::ContextOverflow { message: long.to_owned() };
    let vllm = format!(r#"{{"object":"error","message":"{long}","param":null,"code":400}}"#);
    let mute = server(200, "it broke off without saying why");
    let oops = || broken(begun(), server(200, "Oops."));
    let mut late = oops();
    late.message.raw_stop_reason = "stop".to_owned();
    check(
        Wire::chat(),
        [
            case("as OpenAI says it", inside(openai), oops()),
            case("as text", after(r#"{"error":"Oops."}"#), oops()),
            case("as an event", named, oops()),
            case(
                "with a status",
                inside(r#""message":"Slow.","code":429"#),
                broken(begun(), limited()),
            ),
            case(
                "with a code",
                inside(r#""message":"Slow.","code":"rate_limit_exceeded""#),
                broken(begun(), limited()),
            ),
            case(
                "of the request",
                inside(r#""message":"Bad image.","type":"invalid_request_error""#),
                broken(begun(), invalid),
            ),
            case("as vLLM says it", after(&vllm), broken(begun(), overflow)),
            case("without words", inside(r#""code":500"#), broken(begun(), mute)),
            case(
                "after the reason",
                format!("{}{}data: {{\"error\":\"Oops.\"}}\n\n", once(), finish("stop")),
                late,
            ),
        ],
    )
    .await;
}

#[tokio::test]
async fn malformed_chunks_are_refused() {
    let no_name = delta(&call_delta(r#""index":0,"id":"c1","#, r#""arguments":"{}""#));
    let mut nameless = broken(Vec::new(), protocol("block 2 calls no tool"));
    nameless.message.raw_stop_reason = "tool_calls".to_owned();
    let unreadable =
        |why: &str| broken(begun(), protocol(&format!("an event is not what it should be: {why}")));
    let garbage = unreadable("EOF while parsing a list at line 1 column 12");
    let number = unreadable("invalid type: integer `7`, expected a string at line 1 column 1");
    check(
        Wire::chat(),
        [
            case("garbage", once() + "data: {\"choices\":[\n\n", garbage),
            case("a number for a text", once() + &delta(r#"{"content":7}"#), number),
            case("a call of nothing", no_name + &finish("tool_calls") + DONE, nameless),
        ],
    )
    .await;
}
