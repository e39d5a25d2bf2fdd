//! Interrupted answers and invalid answers.

use antiphon_core::{AssistantBlock, AssistantMessage, ProviderError};
use antiphon_model_server::{Ending, Reply};

use crate::world::{
    answer, begin, block_start, block_stop, broken, call, delta, end, event, text, usage, whole,
};

fn protocol(message: &str) -> ProviderError {
    ProviderError::Protocol { message: message.to_owned() }
}

/// A message without content.
fn silent() -> AssistantMessage {
    AssistantMessage { model: None, usage: usage(0, 0), ..broken(vec![]) }
}

#[tokio::test]
async fn an_interrupted_answer_keeps_its_text_but_no_incomplete_call() {
    let look = r#"{"type":"tool_use","id":"toolu_1","name":"look","input":{}}"#;
    let half = delta(1, r#"{"type":"input_json_delta","partial_json":"{\"a\":"}"#);
    let hello = || AssistantBlock::text("Hello");
    let cases = [
        (
            "in mid-text",
            begin()
                + &block_start(0, r#"{"type":"text","text":""}"#)
                + &delta(0, r#"{"type":"text_delta","text":"Hello"}"#),
            vec![hello()],
        ),
        ("in mid-call", begin() + &text(0, "Hello") + &block_start(1, look) + &half, vec![hello()]),
        (
            "after a call",
            begin() + &block_start(0, look) + &block_stop(0),
            vec![call("toolu_1", "look", "{}")],
        ),
        (
            "in mid-event",
            begin() + &text(0, "Hello") + "event: content_block_start\ndata: {\"ty",
            vec![hello()],
        ),
    ];
    for (name, body, content) in cases {
        let expected = (broken(content), Some(ProviderError::Cut));
        for ending in [Ending::Cut, Ending::Complete] {
            let reply = Reply::events(body.as_str()).ending(ending);
            assert_eq!(answer(reply).await, expected, "{name}, {ending:?}");
        }
    }
}

#[tokio::test]
async fn an_answer_without_its_last_event_is_interrupted() {
    let body = whole(&[text(0, "Hello")]).replace("message_stop", "message_pause");
    let (message, failure) = answer(Reply::events(body)).await;
    let mut expected = broken(vec![AssistantBlock::text("Hello")]);
    expected.raw_stop_reason = "end_turn".to_owned();
    expected.usage = usage(10, 5);
    assert_eq!((message, failure), (expected, Some(ProviderError::Cut)));
}

#[tokio::test]
async fn an_error_in_the_middle_of_a_stream_is_typed_like_any_other() {
    let message = || "Overloaded".to_owned();
    let cases = [
        ("overloaded_error", ProviderError::Overloaded { message: message(), retry_after: None }),
        ("api_error", ProviderError::Server { status: 200, message: message(), retry_after: None }),
        ("odd_error", ProviderError::Server { status: 200, message: message(), retry_after: None }),
        ("invalid_request_error", ProviderError::InvalidRequest { message: message() }),
    ];
    for (kind, error) in cases {
        let fault =
            format!(r#"{{"type":"error","error":{{"type":"{kind}","message":"Overloaded"}}}}"#);
        let body = begin() + &text(0, "Hello") + &event(&fault) + &end("end_turn");
        let expected = (broken(vec![AssistantBlock::text("Hello")]), Some(error));
        assert_eq!(answer(Reply::events(body)).await, expected, "{kind}");
    }
}

#[tokio::test]
async fn malformed_events_are_refused() {
    let not = "an event is not what it should be:";
    let cases = [
        ("data: {oops\n\n".to_owned(), format!("{not} key must be a string at line 1 column 2")),
        (
            "data: [1]\n\n".to_owned(),
            format!(
                "{not} invalid type: integer `1`, expected a borrowed string at line 1 column 2"
            ),
        ),
        ("data: {}\n\n".to_owned(), format!("{not} missing field `type` at line 1 column 2")),
        (
            event(r#"{"type":"content_block_start","index":0}"#),
            "an event has no `content_block`".to_owned(),
        ),
        (
            event(r#"{"type":"content_block_delta","index":0}"#),
            "an event has no `delta`".to_owned(),
        ),
        (event(r#"{"type":"error"}"#), "an event has no `error`".to_owned()),
        (
            delta(0, r#"{"text":7}"#),
            format!("{not} invalid type: integer `7`, expected a string at line 1 column 9"),
        ),
        (block_stop(3), "block 3 ends unopened".to_owned()),
        (text(0, "a") + &text(0, "b"), "block 0 goes on after its end".to_owned()),
    ];
    for (body, message) in cases {
        let (_, failure) = answer(Reply::events(begin() + &body + &end("end_turn"))).await;
        assert_eq!(failure, Some(protocol(&message)), "{body}");
    }
}

#[tokio::test]
async fn a_reply_that_is_not_a_stream_is_described() {
    let page = "the address answered with a web page";
    let document = r#"{"id":"msg_1","type":"message","content":[]}"#;
    let fault = r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#;
    let html = |reply: Reply| Reply {
        headers: vec![("content-type".to_owned(), "text/html".to_owned())],
        ..reply
    };
    let cases = [
        (
            "nothing",
            Reply::events(""),
            ProviderError::Server {
                status: 200,
                message: "it answered with nothing: check base_url".to_owned(),
                retry_after: None,
            },
        ),
        ("a document", Reply::json(200, document), protocol(&format!("status 200: {document}"))),
        (
            "an error",
            Reply::json(200, fault),
            ProviderError::Overloaded { message: "Overloaded".to_owned(), retry_after: None },
        ),
        ("a web page", html(Reply::events("<!doctype html>")), web_page()),
        ("a nameless web page", Reply::events("\n<html></html>").split(1), web_page()),
        (
            "a web page of a gateway",
            html(Reply::json(502, "<html>bad</html>")),
            ProviderError::Server {
                status: 502,
                message: format!("{page} (status 502): check base_url and proxy"),
                retry_after: None,
            },
        ),
    ];
    for (name, reply, error) in cases {
        assert_eq!(answer(reply).await, (silent(), Some(error)), "{name}");
    }
}

/// What a web page in place of an answer means: something on the way to the provider sent it.
fn web_page() -> ProviderError {
    ProviderError::Connection {
        message: "the address answered with a web page, as a network with a login page does: check the network, \
                  base_url and proxy"
            .to_owned(),
    }
}
