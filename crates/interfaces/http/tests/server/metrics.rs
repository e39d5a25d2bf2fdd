//! What is counted, as a scraper reads it.

use std::collections::BTreeMap;

use antiphon_core::{AgentName, Position};
use antiphon_interface_transport::ServerConfig;
use antiphon_telemetry::{Exporter, ExporterConfig, Metrics, Telemetry, TraceParent, Traces};
use serde_json::json;

use crate::client::{get, post, request, say};
use crate::tasks::accepted;
use crate::world::{TestServer, server_config};

/// A server with telemetry that follows its journal on demand.
async fn counted(exporter: Option<Exporter>) -> (TestServer, Telemetry) {
    let telemetry = Telemetry { metrics: Metrics::new(), traces: Traces::new(), exporter };
    let counting = telemetry.clone();
    let config = |deps| ServerConfig { telemetry: Some(counting), ..server_config(deps) };
    (TestServer::with_config(config).await, telemetry)
}

/// Has everything seen that is in the journal.
async fn catch_up(server: &TestServer, telemetry: &Telemetry) {
    let head = server.orchestrator.head().await.unwrap();
    let mut events = server.orchestrator.follow(None, Position(0));
    while events.position() < head {
        telemetry.observe(&events.next().await.unwrap());
    }
}

/// The samples of a scrape, each of which has to make sense.
async fn scrape(server: &TestServer) -> BTreeMap<String, f64> {
    let reply = get(server.address, "/metrics").await;
    assert_eq!(reply.status, 200, "{reply:?}");
    assert!(reply.head.contains("content-type: application/openmetrics-text;"), "{reply:?}");
    let lines = reply.body.strip_suffix("# EOF\n").unwrap().lines();
    let samples = lines.filter(|line| !line.starts_with('#')).map(|line| {
        let (name, value) = line.rsplit_once(' ').unwrap();
        (name.to_owned(), value.parse().unwrap())
    });
    samples.collect()
}

#[tokio::test]
async fn a_scrape_has_counters_and_gauges() {
    let (server, telemetry) = counted(None).await;
    let reviewer = AgentName::parse("reviewer").unwrap();
    let started = server.orchestrator.start_agent(&reviewer).await.unwrap();
    server.orchestrator.pause(&started.task_id).await.unwrap();
    for _ in 0..2 {
        let message = json!({"message": "hi"});
        let reply = post(server.address, "/v1/agents/reviewer/inbox", &message).await;
        assert_eq!(reply.status, 202);
    }
    let done = accepted(&server, "hello").await;
    server.orchestrator.wait(&done).await.unwrap();
    let asks = accepted(&server, "act").await;
    server.orchestrator.wait(&asks).await.unwrap();
    catch_up(&server, &telemetry).await;
    let samples = scrape(&server).await;
    let head = server.orchestrator.head().await.unwrap().0;
    for (name, value) in [
        (r#"antiphon_queue_size{queue="inbox:reviewer"}"#, 2),
        (r#"antiphon_queue_size{queue="tasks"}"#, 0),
        (r#"antiphon_tasks_unfinished{status="running"}"#, 0),
        (r#"antiphon_tasks_unfinished{status="input_required"}"#, 2),
        ("antiphon_active_agents", 2),
        ("antiphon_journal_head_position", head),
        ("antiphon_journal_observed_position", head),
        (r#"antiphon_tasks_created_total{agent="default"}"#, 2),
        (r#"antiphon_tasks_ended_total{agent="default",status="completed"}"#, 1),
    ] {
        #[expect(clippy::cast_precision_loss, reason = "small numbers")]
        let value = value as f64;
        assert_eq!(samples.get(name), Some(&value), "{name} in {samples:#?}");
    }
    server.ended().await;
}

#[tokio::test]
async fn requests_are_counted_by_their_route_and_never_by_their_path() {
    let (server, _) = counted(None).await;
    let address = server.address;
    for path in ["/v1/tasks/one", "/v1/tasks/two", "/secret-path", "/health"] {
        get(address, path).await;
    }
    say(address, &format!("GET /v1/tasks HTTP/1.0\r\nhost: {address}\r\n\r\n")).await;
    let samples = scrape(&server).await;
    let requests: Vec<(&str, f64)> = samples
        .iter()
        .filter_map(|(name, value)| {
            Some((name.strip_prefix("antiphon_http_requests_total")?, *value))
        })
        .collect();
    assert_eq!(
        requests,
        [
            (r#"{method="GET",route="/health",status="200"}"#, 1.0),
            (r#"{method="GET",route="/v1/tasks",status="401"}"#, 1.0),
            (r#"{method="GET",route="/v1/tasks/{id}",status="404"}"#, 2.0),
            (r#"{method="GET",route="nowhere",status="404"}"#, 1.0),
        ]
    );
    server.ended().await;
}

#[tokio::test]
async fn a_stopped_agent_has_no_inbox_gauge() {
    let (server, _) = counted(None).await;
    let reviewer = AgentName::parse("reviewer").unwrap();
    server.orchestrator.start_agent(&reviewer).await.unwrap();
    let queue = r#"antiphon_queue_size{queue="inbox:reviewer"}"#;
    assert_eq!(scrape(&server).await.get(queue), Some(&0.0));
    server.orchestrator.stop_agent(&reviewer, None).await.unwrap();
    assert_eq!(scrape(&server).await.get(queue), None);
    server.ended().await;
}

#[tokio::test]
async fn without_telemetry_there_are_no_metrics() {
    let server = TestServer::new().await;
    let reply = get(server.address, "/metrics").await;
    assert_eq!((reply.status, reply.code().as_str()), (404, "NOT_FOUND"));
    server.ended().await;
}

#[tokio::test]
async fn a_chat_completion_joins_the_trace_of_its_request() {
    // The exporter does not run: nothing is sent.
    let exporter = Exporter::new(ExporterConfig::new("http://127.0.0.1:9")).unwrap();
    let (server, telemetry) = counted(Some(exporter)).await;
    let given = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let parent: TraceParent = given.parse().unwrap();
    let messages = json!([{"role": "user", "content": "hang"}]);
    let body = json!({"model": "reviewer", "messages": messages}).to_string();
    for (header, belongs) in [(format!("traceparent: {given}\r\n"), true), (String::new(), false)] {
        let text = request(server.address, "POST", "/v1/chat/completions", Some(&body));
        let text = text.replacen("\r\n", &format!("\r\n{header}"), 1);
        let address = server.address;
        let head = server.orchestrator.head().await.unwrap();
        let mut asking = tokio::task::JoinSet::new();
        asking.spawn(async move { say(address, &text).await });
        let mut events = server.orchestrator.follow(None, head);
        let task_id = loop {
            let event = events.next().await.unwrap();
            if event.body.event_type() == "tool_started" {
                break event.task_id;
            }
        };
        catch_up(&server, &telemetry).await;
        let place = telemetry.traces.parent_of(&task_id).unwrap();
        assert_eq!(place.trace_id == parent.trace_id, belongs, "{header}");
        server.orchestrator.cancel(&task_id).await.unwrap();
        asking.join_all().await;
    }
    server.ended().await;
}

#[tokio::test]
async fn a_task_joins_the_trace_of_its_request() {
    // The exporter does not run: nothing is sent.
    let exporter = Exporter::new(ExporterConfig::new("http://127.0.0.1:9")).unwrap();
    let (server, telemetry) = counted(Some(exporter)).await;
    let given = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let parent: TraceParent = given.parse().unwrap();
    for (header, belongs) in [
        (format!("traceparent: {given}\r\n"), true),
        ("traceparent: nonsense\r\n".to_owned(), false),
        (format!("traceparent: {given}\r\ntraceparent: {given}\r\n"), false),
        (String::new(), false),
    ] {
        let body = json!({"message": "act"}).to_string();
        let text = request(server.address, "POST", "/v1/tasks", Some(&body));
        let reply = say(server.address, &text.replacen("\r\n", &format!("\r\n{header}"), 1)).await;
        assert_eq!(reply.status, 201, "{reply:?}");
        let task_id = reply.json()["task_id"].as_str().unwrap().parse().unwrap();
        server.orchestrator.wait(&task_id).await.unwrap();
        catch_up(&server, &telemetry).await;
        let place = telemetry.traces.parent_of(&task_id).unwrap();
        assert_eq!(place.trace_id == parent.trace_id, belongs, "{header}");
    }
    server.ended().await;
}
