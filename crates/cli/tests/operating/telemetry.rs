//! What a server counts, and what it tells a collector.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crate::collector::Collector;
use crate::server::{Project, Server};

fn samples(server: &Server, key: &str) -> BTreeMap<String, f64> {
    let (status, text) = server.ask(key, "GET /metrics", "", "");
    assert_eq!(status, 200, "{text}");
    let lines = text.strip_suffix("# EOF\n").unwrap().lines();
    let samples = lines.filter(|line| !line.starts_with('#')).map(|line| {
        let (name, value) = line.rsplit_once(' ').unwrap();
        (name.to_owned(), value.parse().unwrap())
    });
    samples.collect()
}

#[test]
fn a_reader_sees_what_the_server_did() {
    let project = Project::new();
    let server = Server::start(&project);
    server.work(&project.token(), "");
    let reader = project.out(&["keys", "new", "--name", "prometheus"]).trim().to_owned();
    let begun = Instant::now();
    while server.status(&reader, "GET /v1/tasks") != 200 {
        assert!(begun.elapsed() < Duration::from_secs(20), "the key was not taken up");
    }
    // What follows the journal is a moment behind it.
    let counted = loop {
        let samples = samples(&server, &reader);
        let position = |of| samples.get(&format!("antiphon_journal_{of}_position")).copied();
        if position("head").is_some() && position("head") == position("observed") {
            break samples;
        }
        assert!(begun.elapsed() < Duration::from_secs(40), "{samples:#?}");
    };
    for (name, value) in [
        (r#"antiphon_tasks_created_total{agent="default"}"#, 1.0),
        (r#"antiphon_tasks_ended_total{agent="default",status="completed"}"#, 1.0),
        (r#"antiphon_turns_total{model="scripted/hello"}"#, 1.0),
        (r#"antiphon_tasks_unfinished{status="running"}"#, 0.0),
        (r#"antiphon_http_requests_total{method="POST",route="/v1/tasks",status="201"}"#, 1.0),
        ("antiphon_active_agents", 0.0),
    ] {
        assert_eq!(counted.get(name), Some(&value), "{name} in {counted:#?}");
    }
    assert_eq!(server.status("nobody", "GET /metrics"), 401);
    server.end();
}

#[test]
fn a_collector_has_every_span_when_the_server_has_ended() {
    let collector = Collector::start();
    let project = Project::new();
    project.configure(&format!(
        "[telemetry]\notlp_endpoint = \"{}\"\notlp_headers_env = \"COLLECTOR\"\n",
        collector.endpoint
    ));
    let headers = [("COLLECTOR", "x-team=blue, authorization=Bearer s3cret")];
    let server = Server::with(&project, &[], &headers);
    let traceparent = "traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\r\n";
    server.work(&project.token(), traceparent);
    server.end();
    let came = collector.all();
    let spans: Vec<_> = came.iter().flat_map(|came| &came.spans).collect();
    let task = spans.iter().find(|span| span.name == "invoke_agent default").unwrap();
    let trace_id = 0x0af7_6519_16cd_43dd_8448_eb21_1c80_319c_u128.to_be_bytes();
    assert_eq!(task.trace_id, trace_id);
    assert_eq!(task.parent_span_id, 0xb7ad_6b71_6920_3331_u64.to_be_bytes());
    let chat = spans.iter().find(|span| span.name == "chat hello").unwrap();
    assert_eq!((&chat.trace_id, &chat.parent_span_id), (&task.trace_id, &task.span_id));
    for came in &came {
        assert!(came.head.starts_with("post /v1/traces "), "{}", came.head);
        assert!(came.head.contains("x-team: blue\r\n"), "{}", came.head);
        assert!(came.head.contains("authorization: bearer s3cret\r\n"), "{}", came.head);
    }
    assert!(!project.log().contains("s3cret"));
}

#[test]
fn an_unreachable_collector_delays_no_request() {
    let project = Project::new();
    // A port that was free a moment ago: no process listens.
    let unused = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    project.configure(&format!("[telemetry]\notlp_endpoint = \"http://{unused}\"\n"));
    let server = Server::start(&project);
    server.work(&project.token(), "");
    let begun = Instant::now();
    server.end();
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
}

#[test]
fn telemetry_that_makes_no_sense_is_refused_before_anything_is_begun() {
    for (config, says) in [
        ("otlp_endpoint = \"nonsense\"", "`nonsense`"),
        ("otlp_endpoint = \"http://127.0.0.1:4318\"\notlp_headers_env = \"UNSET\"", "UNSET"),
        ("otlp_headers_env = \"HEADERS\"", "otlp_endpoint"),
        ("otlp_url = \"http://127.0.0.1:4318\"", "otlp_url"),
    ] {
        let project = Project::new();
        project.configure(&format!("[telemetry]\n{config}\n"));
        let output = project.run(&["serve", "--listen", "127.0.0.1:0"]);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(says), "{said}");
        assert!(!project.path().join(".antiphon").exists(), "nothing was begun");
    }
}
