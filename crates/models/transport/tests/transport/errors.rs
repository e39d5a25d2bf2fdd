//! Headers and status of error responses.

use std::time::Duration;

use antiphon_core::ProviderError;
use antiphon_model_server::Reply;
use antiphon_model_transport::HttpFailure;
use chrono::{TimeDelta, Utc};

use crate::world::answer;

type Headers<'a> = &'a [(&'a str, &'a str)];

async fn retry_after(headers: Headers<'_>) -> Option<Duration> {
    let reply = headers
        .iter()
        .fold(Reply::json(429, "slow down"), |reply, (name, value)| reply.header(name, value));
    let failure = answer(reply).await.pop().and_then(Result::err).expect("a failure");
    failure.retry_after()
}

#[tokio::test]
async fn the_retry_delay_is_read_from_either_header() {
    let seconds = |seconds| Some(Duration::from_secs_f64(seconds));
    let cases: [(Headers<'_>, Option<Duration>); 8] = [
        (&[], None),
        (&[("retry-after", "2")], seconds(2.0)),
        (&[("retry-after", "0.5")], seconds(0.5)),
        (&[("retry-after-ms", "1500")], seconds(1.5)),
        (&[("retry-after", "60"), ("retry-after-ms", "20")], seconds(0.02)),
        (&[("retry-after-ms", "soon"), ("retry-after", "3")], seconds(3.0)),
        (&[("retry-after", "-1")], None),
        (&[("retry-after", "Wed, 21 Oct 2015 07:28:00 GMT")], None),
    ];
    for (headers, wait) in cases {
        assert_eq!(retry_after(headers).await, wait, "{headers:?}");
    }
}

#[tokio::test]
async fn the_retry_delay_may_be_a_date() {
    let date = (Utc::now() + TimeDelta::seconds(100)).to_rfc2822();
    let wait = retry_after(&[("retry-after", &date)]).await.expect("a time to wait");
    let expected = Duration::from_secs(80)..=Duration::from_secs(100);
    assert!(expected.contains(&wait), "{wait:?}");
}

#[tokio::test]
async fn a_provider_that_forbids_a_retry_is_respected() {
    let server = |message: &str| ProviderError::Server {
        status: 400,
        message: message.to_owned(),
        retry_after: None,
    };
    let refused = ProviderError::InvalidRequest { message: "Some(false) no".to_owned() };
    let cases =
        [("true", server("Some(true) no")), ("false", refused), ("perhaps", server("None no"))];
    for (value, expected) in cases {
        let reply = Reply::json(400, "no").header("x-should-retry", value);
        assert_eq!(answer(reply).await, [Err(expected)]);
    }
}

fn failure(status: u16, body: &str) -> HttpFailure {
    HttpFailure {
        status,
        retry_after: Some(Duration::from_secs(7)),
        should_retry: None,
        body: body.to_owned(),
    }
}

#[test]
fn each_status_has_its_error_type() {
    let message = || "why".to_owned();
    let retry_after = Some(Duration::from_secs(7));
    let server = |status| ProviderError::Server { status, message: message(), retry_after };
    let overloaded = || ProviderError::Overloaded { message: message(), retry_after };
    let cases = [
        (200, ProviderError::Protocol { message: message() }),
        (
            302,
            ProviderError::NotFound {
                message: "the address redirects (status 302): check base_url".to_owned(),
            },
        ),
        (400, ProviderError::InvalidRequest { message: message() }),
        (401, ProviderError::Authentication { message: message() }),
        (402, ProviderError::Permission { message: message() }),
        (403, ProviderError::Permission { message: message() }),
        (404, ProviderError::NotFound { message: message() }),
        (408, server(408)),
        (409, server(409)),
        (413, ProviderError::ContextOverflow { message: message() }),
        (418, ProviderError::InvalidRequest { message: message() }),
        (429, ProviderError::RateLimited { message: message(), retry_after }),
        (500, server(500)),
        (502, server(502)),
        (503, overloaded()),
        (504, server(504)),
        (529, overloaded()),
    ];
    for (status, error) in cases {
        assert_eq!(failure(status, "").by_status(Some("why")), error, "{status}");
    }
}

#[test]
fn a_failure_without_a_message_is_described() {
    let page = "the address answered with a web page (status 502): check base_url and proxy";
    let long = "é".repeat(601);
    let cases = [
        ("", None, "status 502 without a body".to_owned()),
        (" \n", Some(" "), "status 502 without a body".to_owned()),
        ("  <!DOCTYPE html><p>", None, page.to_owned()),
        ("<HTML>", None, page.to_owned()),
        ("<html>", Some("its words"), "its words".to_owned()),
        ("bad gateway", None, "status 502: bad gateway".to_owned()),
        (long.as_str(), None, format!("status 502: {}…", "é".repeat(600))),
    ];
    for (body, words, message) in cases {
        assert_eq!(failure(502, body).message(words), message, "{body}");
    }
}
