//! Collectors that are slow, gone or refuse, and invalid settings.

use std::time::Duration;

use antiphon_telemetry::{ExportCounts, Exporter, ExporterConfig, ExporterError, HEADERS_MAX};
use secrecy::SecretString;
use tokio::net::TcpListener;

use crate::exporting::{Running, config, names, spans};
use crate::receiver::{Answer, Receiver};

#[tokio::test]
async fn a_busy_collector_gets_the_same_spans_again() {
    let busy = [Answer::Status(503), Answer::RetryAfter(429, "0"), Answer::Status(502)];
    let mut receiver = Receiver::start(busy).await;
    let running = Running::start(config(&receiver.endpoint));
    running.exporter.push(spans(2));
    let first = receiver.next().await.request;
    for _ in 0..3 {
        assert_eq!(receiver.next().await.request, first);
    }
    assert_eq!(running.stop().await, ExportCounts { exported: 2, dropped: 0, failed: 0 });
}

#[tokio::test]
async fn a_pause_that_is_too_long_is_shortened() {
    let mut receiver = Receiver::start([Answer::RetryAfter(429, "86400")]).await;
    let running = Running::start(config(&receiver.endpoint));
    running.exporter.push(spans(1));
    receiver.next().await;
    receiver.next().await;
    assert_eq!(running.stop().await.exported, 1);
}

#[tokio::test]
async fn a_refused_batch_is_not_sent_again_and_the_next_one_is() {
    let mut receiver = Receiver::start([Answer::Status(400)]).await;
    let running =
        Running::start(ExporterConfig { batch_spans_max: 1, ..config(&receiver.endpoint) });
    running.exporter.push(spans(2));
    assert_eq!(names(&receiver.next().await.spans()), ["invoke_agent agent0"]);
    assert_eq!(names(&receiver.next().await.spans()), ["invoke_agent agent1"]);
    assert_eq!(running.stop().await, ExportCounts { exported: 1, dropped: 0, failed: 1 });
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let mut elsewhere = Receiver::start([]).await;
    let mut receiver = Receiver::start([Answer::Redirect(elsewhere.endpoint.clone())]).await;
    let headers = vec![("x-api-key".to_owned(), SecretString::from("hush"))];
    let running = Running::start(ExporterConfig { headers, ..config(&receiver.endpoint) });
    running.exporter.push(spans(1));
    receiver.next().await;
    assert_eq!(running.stop().await, ExportCounts { exported: 0, dropped: 0, failed: 1 });
    assert_eq!(elsewhere.rest(), 0);
}

#[tokio::test]
async fn a_request_that_times_out_is_sent_again() {
    let mut receiver = Receiver::start([Answer::Never]).await;
    let timeout = Duration::from_millis(50);
    let running = Running::start(ExporterConfig { timeout, ..config(&receiver.endpoint) });
    running.exporter.push(spans(1));
    receiver.next().await;
    receiver.next().await;
    assert_eq!(running.stop().await.exported, 1);
}

#[tokio::test]
async fn spans_are_given_up_after_the_last_retry() {
    let mut receiver = Receiver::start(vec![Answer::Status(503); 3]).await;
    let config = ExporterConfig { retries_max: 2, ..config(&receiver.endpoint) };
    let running = Running::start(config);
    running.exporter.push(spans(4));
    for _ in 0..3 {
        receiver.next().await;
    }
    assert_eq!(running.stop().await, ExportCounts { exported: 0, dropped: 0, failed: 4 });
    assert_eq!(receiver.rest(), 0);
}

#[tokio::test]
async fn rejected_spans_are_counted() {
    let strange = [Answer::Rejects(1), Answer::Rejects(99), Answer::Rejects(-5), Answer::Garbage];
    let mut receiver = Receiver::start(strange).await;
    let running =
        Running::start(ExporterConfig { batch_spans_max: 2, ..config(&receiver.endpoint) });
    running.exporter.push(spans(8));
    for _ in 0..4 {
        receiver.next().await;
    }
    assert_eq!(running.stop().await, ExportCounts { exported: 5, dropped: 0, failed: 3 });
}

#[tokio::test]
async fn when_the_queue_is_full_the_oldest_are_dropped() {
    let mut receiver = Receiver::start([]).await;
    let config = ExporterConfig { queue_spans_max: 3, ..config(&receiver.endpoint) };
    let exporter = Exporter::new(config.clone()).unwrap();
    exporter.push(spans(5));
    assert_eq!(exporter.counts(), ExportCounts { exported: 0, dropped: 2, failed: 0 });
    let running = Running::start(config);
    running.exporter.push(spans(5));
    let left = ["invoke_agent agent2", "invoke_agent agent3", "invoke_agent agent4"];
    assert_eq!(names(&receiver.next().await.spans()), left);
    assert_eq!(running.stop().await, ExportCounts { exported: 3, dropped: 2, failed: 0 });
}

#[tokio::test]
async fn a_collector_that_does_not_answer_does_not_delay_shutdown() {
    let mut receiver = Receiver::start([Answer::Never, Answer::Never]).await;
    let flush_wait = Duration::from_millis(50);
    let config = ExporterConfig { flush_wait, batch_spans_max: 2, ..config(&receiver.endpoint) };
    let running = Running::start(config);
    running.exporter.push(spans(5));
    receiver.next().await;
    let counts = tokio::time::timeout(Duration::from_secs(10), running.stop()).await.unwrap();
    assert_eq!(counts, ExportCounts { exported: 0, dropped: 5, failed: 0 });
}

#[tokio::test]
async fn an_unreachable_collector_costs_its_spans_and_nothing_else() {
    let reserved = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("http://{}", reserved.local_addr().unwrap());
    drop(reserved);
    let config = ExporterConfig { retries_max: 1, ..config(&endpoint) };
    let running = Running::start(config);
    running.exporter.push(spans(2));
    // Nothing listens there: it is tried twice and given up.
    while running.exporter.counts().failed < 2 {
        tokio::task::yield_now().await;
    }
    assert_eq!(running.stop().await, ExportCounts { exported: 0, dropped: 0, failed: 2 });
}

#[test]
fn invalid_settings_are_refused_with_advice() {
    let refusal = |endpoint: &str, headers: Vec<(&str, &str)>| {
        let headers = headers.into_iter();
        let headers = headers.map(|(name, value)| (name.to_owned(), SecretString::from(value)));
        let config = ExporterConfig { headers: headers.collect(), ..ExporterConfig::new(endpoint) };
        Exporter::new(config).map(|_| ()).unwrap_err().to_string()
    };
    assert_eq!(
        refusal("collector:4318", vec![]),
        "`collector:4318` is not the address of a collector: it is not an http or https address"
    );
    assert_eq!(
        refusal("", vec![]),
        "`` is not the address of a collector: relative URL without a base"
    );
    assert_eq!(
        refusal("https://me:hush@collector", vec![]),
        "`collector` is not the address of a collector: an address must not contain a user name or \
         password: use a header"
    );
    assert_eq!(
        refusal("http://collector.example:4318", vec![("x-api-key", "hush")]),
        "the headers would be sent unencrypted: use an https address"
    );
    assert_eq!(
        refusal("http://127.0.0.1", vec![("x api key", "hush")]),
        "the header `x api key` cannot be sent: its name has strange characters in it"
    );
    assert_eq!(
        refusal("http://127.0.0.1", vec![("x-api-key", "hush\n")]),
        "the header `x-api-key` cannot be sent: its value has strange characters in it"
    );
}

#[test]
fn the_number_of_headers_is_limited() {
    let header = |number: usize| (format!("x-{number}"), SecretString::from("hush"));
    let headers = (0..=HEADERS_MAX).map(header).collect();
    let config = ExporterConfig { headers, ..ExporterConfig::new("http://127.0.0.1") };
    let error = Exporter::new(config).map(|_| ()).unwrap_err();
    assert!(matches!(error, ExporterError::Header { .. }), "{error}");
}

#[test]
fn a_secret_does_not_print() {
    let headers = vec![("x-api-key".to_owned(), SecretString::from("hush"))];
    let config = ExporterConfig { headers, ..ExporterConfig::new("http://127.0.0.1") };
    assert!(!format!("{config:?}").contains("hush"));
    assert!(!format!("{:?}", Exporter::new(config).unwrap()).contains("hush"));
}
