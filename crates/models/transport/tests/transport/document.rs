//! Responses that are not event streams.

use antiphon_core::ProviderError;
use antiphon_model_server::{Ending, Part, Reply};
use antiphon_model_transport::ERROR_BODY_BYTES_MAX;

use crate::world::{answer, echoed};

fn failed(status: u16, message: &str) -> ProviderError {
    ProviderError::Server { status, message: message.to_owned(), retry_after: None }
}

#[tokio::test]
async fn an_empty_response_is_described() {
    let nothing = failed(200, "it answered with nothing: check base_url");
    for body in ["", "\n\n", ": ping\n\n", "event: x\n\n"] {
        assert_eq!(answer(Reply::events(body)).await, [Err(nothing.clone())], "{body:?}");
    }
}

#[tokio::test]
async fn a_document_instead_of_events_is_parsed_as_a_failure() {
    for body in [r#"{"error": "no"}"#, "[1]"] {
        for size in [1, 4096] {
            let reply = Reply::json(200, body).split(size);
            let error = failed(200, &format!("None {body}"));
            assert_eq!(answer(reply).await, [Err(error)], "{body}");
        }
    }
}

#[tokio::test]
async fn a_web_page_is_recognized_by_its_content_type() {
    let reply = Reply {
        headers: vec![("content-type".to_owned(), "text/html; charset=utf-8".to_owned())],
        ..Reply::events("data: a\n\n")
    };
    let error = ProviderError::Connection {
        message: "the address answered with a web page, as a network with a login page does: check the network, \
                  base_url and proxy"
            .to_owned(),
    };
    assert!(error.is_transient(), "the task waits");
    assert_eq!(answer(reply).await, [Err(error.clone())]);
    for size in [1, 4096] {
        let reply = Reply::json(200, "\n<html></html>").split(size);
        assert_eq!(answer(reply).await, [Err(error.clone())], "by its content");
    }
}

#[tokio::test]
async fn a_page_inside_of_an_event_is_not_a_web_page() {
    let parts = ["data: ", "<html>", "\n\n"].map(|text| Part::Bytes(text.as_bytes().to_vec()));
    let reply = Reply { parts: parts.to_vec(), ..Reply::events("") };
    assert_eq!(answer(reply).await, [Ok(echoed("message", "<html>"))]);
}

#[tokio::test]
async fn an_error_response_is_read_up_to_the_limit() {
    let endless = Reply::json(500, vec![b'x'; 10 * ERROR_BODY_BYTES_MAX]).ending(Ending::Stall);
    let error = failed(500, &format!("None {}", "x".repeat(ERROR_BODY_BYTES_MAX)));
    assert!(answer(endless).await == [Err(error)], "the limit and no more");
}

#[tokio::test]
async fn a_truncated_error_response_is_still_an_error() {
    let reply = Reply::json(500, "half").ending(Ending::Cut);
    assert_eq!(answer(reply).await, [Err(failed(500, "None half"))]);
}
