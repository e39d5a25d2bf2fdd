//! What was spent, as the API reports it.

use antiphon_core::SpendLimits;
use antiphon_core::port::{Append, Expected, JournalLog};
use antiphon_core::{EventBody, SessionId, TaskCreated, TaskId, Usage, UsageRecorded};
use chrono::{DateTime, Utc};
use serde_json::json;

use crate::client::get;
use crate::key_server::Keyed;

async fn spend(keyed: &Keyed, n: u8, agent: &str, payer: Option<&str>, day: &str, model: &str) {
    let at: DateTime<Utc> = format!("{day}T12:00:00Z").parse().unwrap();
    let payer = payer.map(str::to_owned);
    let session_id = SessionId::parse("s").unwrap();
    let created = TaskCreated { payer, ..TaskCreated::new(agent, session_id) };
    let usage = Usage { input_tokens: 1000, output_tokens: 10, ..Usage::default() };
    let paid: EventBody = UsageRecorded { model: model.to_owned(), usage, purpose: None }.into();
    let append = Append {
        task_id: TaskId::parse(&format!("t{n}")).unwrap(),
        expected: Expected::NoTask,
        at,
        events: vec![created.into(), paid.clone(), paid],
        key: None,
    };
    keyed.server.journal.append(append).await.unwrap();
}

#[tokio::test]
async fn usage_is_grouped_as_requested_with_its_cost() {
    let keyed = Keyed::paying(SpendLimits::default()).await;
    spend(&keyed, 1, "dev", None, "2026-03-01", "scripted/test").await;
    spend(&keyed, 2, "lead", Some("tR7xQ2pL"), "2026-03-01", "scripted/test").await;
    spend(&keyed, 3, "dev", None, "2026-03-02", "local/free").await;
    let address = keyed.server.address;
    let days = "from=2026-03-01&to=2026-03-02";
    let got = get(address, &format!("/v1/usage?{days}")).await.json();
    let (priced, both) = (2_020_000_000_u64, 4_040_000_000_u64);
    assert_eq!(
        got,
        json!({
            "from": "2026-03-01", "to": "2026-03-02",
            "rows": [
                {"day": "2026-03-01", "calls": 4, "input_tokens": 4000, "output_tokens": 40, "cost_nano_usd": both},
                {"day": "2026-03-02", "calls": 2, "input_tokens": 2000, "output_tokens": 20,
                 "cost_nano_usd": null, "unpriced_calls": 2},
            ],
            "totals": {"calls": 6, "input_tokens": 6000, "output_tokens": 60, "cost_nano_usd": both, "unpriced_calls": 2},
        })
    );
    let got = get(address, &format!("/v1/usage?{days}&by=model,payer")).await.json();
    let rows: Vec<_> = got["rows"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| (row["payer"].as_str(), row["model"].as_str(), row["cost_nano_usd"].as_u64()))
        .collect();
    assert_eq!(
        rows,
        [
            (None, Some("local/free"), None),
            (None, Some("scripted/test"), Some(priced)),
            (Some("tR7xQ2pL"), Some("scripted/test"), Some(priced)),
        ]
    );
    let got = get(address, "/v1/usage?from=2020-01-01&to=2020-01-02&by=agent").await.json();
    assert_eq!((&got["rows"], &got["totals"]["cost_nano_usd"]), (&json!([]), &json!(0)));
    keyed.server.ended().await;
}

#[tokio::test]
async fn an_invalid_usage_query_is_refused() {
    let keyed = Keyed::paying(SpendLimits::default()).await;
    for query in [
        "from=yesterday",
        "from=2026-02-30",
        "from=2026-03-02&to=2026-03-01",
        "from=1000-01-01",
        "by=",
        "by=day,weather",
        "by=DAY",
    ] {
        let reply = get(keyed.server.address, &format!("/v1/usage?{query}")).await;
        assert_eq!((reply.status, reply.code().as_str()), (400, "INVALID_REQUEST"), "{query}");
    }
    keyed.server.ended().await;
}
