//! Interrupted answers and invalid answers.

use antiphon_core::{AssistantBlock, AssistantMessage, ProviderError};
use antiphon_model_server::{Ending, Reply};

use crate::world::{answer, broken, call, end, event, parts, silent, usage};

const HELLO: &str = r#"{"text":"Hello"}"#;

fn protocol(message: &str) -> ProviderError {
    ProviderError::Protocol { message: message.to_owned() }
}

#[tokio::test]
async fn an_answer_that_ends_without_a_reason_is_interrupted() {
    let look = r#"{"functionCall":{"id":"f1","name":"look","args":{}}}"#;
    let hello = || AssistantBlock::text("Hello");
    let half = "data: {\"candidates\":[{\"content\":{\"parts\":[{\"te";
    let cases = [
        ("in mid-text", parts(&[HELLO]), vec![hello()]),
        ("after a call", parts(&[HELLO, look]), vec![hello(), call("f1", "{}", None)]),
        ("in mid-event", parts(&[HELLO]) + half, vec![hello()]),
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
async fn an_answer_whose_body_does_not_end_is_interrupted_despite_its_reason() {
    let reply = Reply::events(parts(&[HELLO]) + &end("STOP")).ending(Ending::Cut);
    let expected = AssistantMessage {
        usage: usage(10, 5),
        raw_stop_reason: "STOP".to_owned(),
        ..broken(vec![AssistantBlock::text("Hello")])
    };
    assert_eq!(answer(reply).await, (expected, Some(ProviderError::Cut)));
}

#[tokio::test]
async fn an_error_in_the_middle_of_a_stream_is_typed_like_any_other() {
    let message = || "why".to_owned();
    let server = || ProviderError::Server { status: 200, message: message(), retry_after: None };
    let cases = [
        ("UNAVAILABLE", ProviderError::Overloaded { message: message(), retry_after: None }),
        ("INTERNAL", server()),
        ("SOMETHING_NEW", server()),
        ("INVALID_ARGUMENT", ProviderError::InvalidRequest { message: message() }),
    ];
    for (status, error) in cases {
        let fault = format!(r#"{{"error":{{"code":503,"message":"why","status":"{status}"}}}}"#);
        let body = parts(&[HELLO]) + &event(&fault) + &end("STOP");
        let expected = (broken(vec![AssistantBlock::text("Hello")]), Some(error));
        assert_eq!(answer(Reply::events(body)).await, expected, "{status}");
    }
}

#[tokio::test]
async fn a_blocked_prompt_is_an_invalid_request() {
    let body = event(
        r#"{"promptFeedback":{"blockReason":"PROHIBITED_CONTENT"},"usageMetadata":{"promptTokenCount":9}}"#,
    );
    let message = "the prompt was blocked (PROHIBITED_CONTENT)".to_owned();
    let error = ProviderError::InvalidRequest { message };
    assert_eq!(answer(Reply::events(body)).await, (silent(), Some(error)));
}

#[tokio::test]
async fn malformed_events_are_refused() {
    let not = "an event is not what it should be:";
    let deep = format!(r#"{{"x":{}{}}}"#, "[".repeat(127), "]".repeat(127));
    let cases = [
        (event("{oops"), format!("{not} key must be a string at line 1 column 2")),
        (
            event(r#"{"candidates":7}"#),
            format!("{not} invalid type: integer `7`, expected a sequence at line 1 column 15"),
        ),
        (
            parts(&[r#"{"text":7}"#]),
            format!("{not} invalid type: integer `7`, expected a string at line 1 column 9"),
        ),
        (parts(&[r#"{"functionCall":{}}"#]), "block 0 calls no tool".to_owned()),
        (parts(&[&deep]), "JSON is nested deeper than 100 levels".to_owned()),
    ];
    for (body, message) in cases {
        let (_, failure) = answer(Reply::events(body.clone() + &end("STOP"))).await;
        assert_eq!(failure, Some(protocol(&message)), "{body}");
    }
}

#[tokio::test]
async fn a_reply_that_is_not_a_stream_is_described() {
    let page = "the address answered with a web page";
    let document = r#"[{"candidates":[]}]"#;
    let fault = r#"[{"error":{"code":503,"message":"busy","status":"UNAVAILABLE"}}]"#;
    let html = |reply: Reply| Reply {
        headers: vec![("content-type".to_owned(), "text/html".to_owned())],
        ..reply
    };
    let server = |status, message: &str| ProviderError::Server {
        status,
        message: message.to_owned(),
        retry_after: None,
    };
    let cases = [
        ("nothing", Reply::events(""), server(200, "it answered with nothing: check base_url")),
        ("a document", Reply::json(200, document), protocol(&format!("status 200: {document}"))),
        (
            "an error",
            Reply::json(200, fault),
            ProviderError::Overloaded { message: "busy".to_owned(), retry_after: None },
        ),
        ("a web page", html(Reply::events("<!doctype html>")), web_page()),
        (
            "a web page of a gateway",
            html(Reply::json(502, "<html>bad</html>")),
            server(502, &format!("{page} (status 502): check base_url and proxy")),
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
