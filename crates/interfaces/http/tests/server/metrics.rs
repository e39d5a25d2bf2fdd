//! What is counted, as a scraper reads it.

use std::collections::BTreeMap;

use antiphon_core::{AgentName, Position};
use antiphon_interface_transport::ServerConfig;
use antiphon_telemetry::{Exporter, ExporterConfig, Metrics, Telemetry, TraceParent, Traces};
use serde_json::json;

use crate::client::{get, post, request, say};
use crate::tasks::accepted;
use crate::world::{Served, server_config};

/// A server that is counted, by somebody who follows its journal when told to.
async fn counted(exporter: Option<Exporter>) -> (Served, Telemetry) {
    let telemetry = Telemetry { metrics: Metrics::new(), traces: Traces::new(), exporter };
    let counting = telemetry.clone();
    let house = |deps| ServerConfig { telemetry: Some(counting), ..server_config(deps) };
    (Served::in_house(house).await, telemetry)
}

/// Has everything seen that is in the journal.
async fn catch_up(served: &Served, telemetry: &Telemetry) {
    let head = served.orchestrator.head().await.unwrap();
    let mut events = served.orchestrator.follow(None, Position(0));
    while events.position() < head {
        telemetry.observe(&events.next().await.unwrap());
    }
}

/// The samples of a scrape, each of which has to make sense.
async fn scrape(served: &Served) -> BTreeMap<String, f64> {
    let reply = get(served.address, "/metrics").await;
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
async fn a_scrape_says_what_happened_and_how_things_stand() {
    let (served, telemetry) = counted(None).await;
    let reviewer = AgentName::parse("reviewer").unwrap();
    let started = served.orchestrator.start_agent(&reviewer).await.unwrap();
    served.orchestrator.pause(&started.task_id).await.unwrap();
    for _ in 0..2 {
        let message = json!({"message": "hi"});
        let reply = post(served.address, "/v1/agents/reviewer/inbox", &message).await;
        assert_eq!(reply.status, 202);
    }
    let done = accepted(&served, "hello").await;
    served.orchestrator.wait(&done).await.unwrap();
    let asks = accepted(&served, "act").await;
    served.orchestrator.wait(&asks).await.unwrap();
    catch_up(&served, &telemetry).await;
    let samples = scrape(&served).await;
    let head = served.orchestrator.head().await.unwrap().0;
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
    served.ended().await;
}

#[tokio::test]
async fn requests_are_counted_by_their_route_and_never_by_their_path() {
    let (served, _) = counted(None).await;
    let address = served.address;
    for path in ["/v1/tasks/one", "/v1/tasks/two", "/secret-path", "/health"] {
        get(address, path).await;
    }
    say(address, &format!("GET /v1/tasks HTTP/1.0\r\nhost: {address}\r\n\r\n")).await;
    let samples = scrape(&served).await;
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
    served.ended().await;
}

#[tokio::test]
async fn an_agent_that_is_gone_has_no_inbox_to_count() {
    let (served, _) = counted(None).await;
    let reviewer = AgentName::parse("reviewer").unwrap();
    served.orchestrator.start_agent(&reviewer).await.unwrap();
    let queue = r#"antiphon_queue_size{queue="inbox:reviewer"}"#;
    assert_eq!(scrape(&served).await.get(queue), Some(&0.0));
    served.orchestrator.stop_agent(&reviewer, None).await.unwrap();
    assert_eq!(scrape(&served).await.get(queue), None);
    served.ended().await;
}

#[tokio::test]
async fn where_nothing_is_counted_there_are_no_metrics() {
    let served = Served::new().await;
    let reply = get(served.address, "/metrics").await;
    assert_eq!((reply.status, reply.code().as_str()), (404, "NOT_FOUND"));
    served.ended().await;
}

#[tokio::test]
async fn an_answer_in_chat_belongs_to_the_trace_that_its_request_names() {
    // Nobody runs it: nothing is sent.
    let exporter = Exporter::new(ExporterConfig::new("http://127.0.0.1:9")).unwrap();
    let (served, telemetry) = counted(Some(exporter)).await;
    let given = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let parent: TraceParent = given.parse().unwrap();
    let messages = json!([{"role": "user", "content": "hang"}]);
    let body = json!({"model": "reviewer", "messages": messages}).to_string();
    for (header, belongs) in [(format!("traceparent: {given}\r\n"), true), (String::new(), false)] {
        let text = request(served.address, "POST", "/v1/chat/completions", Some(&body));
        let text = text.replacen("\r\n", &format!("\r\n{header}"), 1);
        let address = served.address;
        let head = served.orchestrator.head().await.unwrap();
        let mut asking = tokio::task::JoinSet::new();
        asking.spawn(async move { say(address, &text).await });
        let mut events = served.orchestrator.follow(None, head);
        let task_id = loop {
            let event = events.next().await.unwrap();
            if event.body.event_type() == "tool_started" {
                break event.task_id;
            }
        };
        catch_up(&served, &telemetry).await;
        let place = telemetry.traces.parent_of(&task_id).unwrap();
        assert_eq!(place.trace_id == parent.trace_id, belongs, "{header}");
        served.orchestrator.cancel(&task_id).await.unwrap();
        asking.join_all().await;
    }
    served.ended().await;
}

#[tokio::test]
async fn a_task_belongs_to_the_trace_that_its_request_names() {
    // Nobody runs it: nothing is sent.
    let exporter = Exporter::new(ExporterConfig::new("http://127.0.0.1:9")).unwrap();
    let (served, telemetry) = counted(Some(exporter)).await;
    let given = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let parent: TraceParent = given.parse().unwrap();
    for (header, belongs) in [
        (format!("traceparent: {given}\r\n"), true),
        ("traceparent: nonsense\r\n".to_owned(), false),
        (format!("traceparent: {given}\r\ntraceparent: {given}\r\n"), false),
        (String::new(), false),
    ] {
        let body = json!({"message": "act"}).to_string();
        let text = request(served.address, "POST", "/v1/tasks", Some(&body));
        let reply = say(served.address, &text.replacen("\r\n", &format!("\r\n{header}"), 1)).await;
        assert_eq!(reply.status, 201, "{reply:?}");
        let task_id = reply.json()["task_id"].as_str().unwrap().parse().unwrap();
        served.orchestrator.wait(&task_id).await.unwrap();
        catch_up(&served, &telemetry).await;
        let place = telemetry.traces.parent_of(&task_id).unwrap();
        assert_eq!(place.trace_id == parent.trace_id, belongs, "{header}");
    }
    served.ended().await;
}
