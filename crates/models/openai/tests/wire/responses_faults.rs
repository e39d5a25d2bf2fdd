//! Responses: interrupted answers.

use antiphon_core::{AssistantBlock, ProviderError};
use antiphon_model_server::{Ending, Reply};

use crate::responses_answers::events;
use crate::world::{Case, Outcome, Wire, broken, check, protocol, text};

fn case(name: &'static str, body: impl Into<Vec<u8>>, outcome: Outcome) -> Case {
    Case { name, reply: Reply::events(body), outcome }
}

fn once() -> String {
    events(&[("output_text.delta", r#""output_index":0,"delta":"Once""#)])
}

fn begun() -> Vec<AssistantBlock> {
    vec![text("Once")]
}

fn server(status: u16, message: &str) -> ProviderError {
    ProviderError::Server { status, message: message.to_owned(), retry_after: None }
}

#[tokio::test]
async fn an_answer_without_an_end_is_interrupted() {
    let item = r#"{"type":"function_call","call_id":"c1","name":"f","arguments":"{}"}"#;
    let item = format!(r#""output_index":1,"item":{item}"#);
    let call = events(&[("output_item.added", &item)]);
    let done = "data: [DONE]\n\n";
    let reset = Reply::events(once()).ending(Ending::Cut);
    check(
        Wire::responses(),
        [
            case("in the middle of its text", once(), broken(begun(), ProviderError::Cut)),
            // An incomplete call must not be executed.
            case("in the middle of a call", once() + &call, broken(begun(), ProviderError::Cut)),
            case(
                "with a word of the other wire",
                once() + done,
                broken(begun(), ProviderError::Cut),
            ),
            Case {
                name: "with its connection",
                reply: reset,
                outcome: broken(begun(), ProviderError::Cut),
            },
        ],
    )
    .await;
}

#[tokio::test]
async fn a_failed_answer_has_its_error_type() {
    let failed = |error: &str| {
        let response = format!(r#""response":{{"status":"failed","error":{error}}}"#);
        once() + &events(&[("failed", &response)])
    };
    let event = |json: &str| format!("{}event: error\ndata: {json}\n\n", once());
    let message = || "Slow down.".to_owned();
    let limited = || ProviderError::RateLimited { message: message(), retry_after: None };
    let invalid = ProviderError::InvalidRequest { message: message() };
    let overflow = ProviderError::ContextOverflow { message: message() };
    let quota = ProviderError::Permission { message: message() };
    let crowd = ProviderError::Overloaded { message: message(), retry_after: None };
    let slow = |code: &str| format!(r#"{{"code":"{code}","message":"Slow down."}}"#);
    let flat = slow("rate_limit_exceeded").replace('{', r#"{"type":"error","param":null,"#);
    let nested = format!(r#"{{"type":"error","error":{}}}"#, slow("rate_limit_exceeded"));
    let oops = || broken(begun(), server(200, "Oops."));
    let mute = server(200, "it broke off without saying why");
    check(
        Wire::responses(),
        [
            case("by itself", failed(r#"{"code":"server_error","message":"Oops."}"#), oops()),
            case("too fast", failed(&slow("rate_limit_exceeded")), broken(begun(), limited())),
            case("a bad prompt", failed(&slow("invalid_prompt")), broken(begun(), invalid)),
            case("too long", failed(&slow("context_length_exceeded")), broken(begun(), overflow)),
            case("no money", failed(&slow("insufficient_quota")), broken(begun(), quota)),
            case("a crowd", failed(&slow("server_is_overloaded")), broken(begun(), crowd)),
            case("without words", failed("null"), broken(begun(), mute)),
            case(
                "with the error beside it",
                once() + &events(&[("failed", r#""error":{"message":"Oops."}"#)]),
                oops(),
            ),
            case("by an event", event(&flat), broken(begun(), limited())),
            case("by an event with the error inside", event(&nested), broken(begun(), limited())),
            case("by an event without a type", event(r#"{"message":"Oops."}"#), oops()),
            case(
                "as the other wire says it",
                format!("{}data: {{\"error\":{{\"message\":\"Oops.\"}}}}\n\n", once()),
                oops(),
            ),
        ],
    )
    .await;
}

#[tokio::test]
async fn malformed_events_are_refused() {
    let garbage = protocol(
        "an event is not what it should be: EOF while parsing an object at line 1 column 1",
    );
    check(
        Wire::responses(),
        [
            case("garbage", once() + "data: {\n\n", broken(begun(), garbage)),
            case(
                "an item without an item",
                once() + &events(&[("output_item.done", "")]),
                broken(begun(), protocol("an event has no `item`")),
            ),
            case(
                "an end without a response",
                once() + &events(&[("completed", "")]),
                broken(begun(), protocol("an event has no `response`")),
            ),
        ],
    )
    .await;
}
