//! Every written event fits the schema of the guide.

use std::sync::Arc;

use antiphon_conformance::reference::MemoryJournal;
use antiphon_core::{Decision, HandlingMode, UserMessage, port::ApprovalSelector};
use antiphon_runtime::{Orchestrator, RuntimeDeps, WatchedDelta};

use crate::task::STEPS;
use crate::world::{Careful, Counting, events, new_task, world};

#[tokio::test]
async fn every_event_and_delta_of_a_busy_life_fits() {
    let schema = include_str!("../../../../docs/events.schema.json");
    let schema: serde_json::Value = serde_json::from_str(schema).expect("JSON");
    let validator = jsonschema::validator_for(&schema).expect("a schema");
    let check = |value: serde_json::Value| {
        let faults: Vec<String> =
            validator.iter_errors(&value).map(|error| error.to_string()).collect();
        assert!(faults.is_empty(), "{value}: {faults:?}");
    };
    let (journal, tools) = (Arc::new(MemoryJournal::new()), Arc::new(Counting::default()));
    let world = world(journal.clone(), &tools, STEPS);
    let orchestrator =
        Orchestrator::new(RuntimeDeps { gate: Arc::new(Careful::default()), ..world });
    let mut deltas = orchestrator.deltas();
    let task_id = orchestrator.invoke(new_task("go")).await.expect("accepted").task_id;
    loop {
        let state = orchestrator.wait(&task_id).await.expect("at rest");
        if state.status.is_terminal() {
            break;
        }
        if state.turns == 1 && state.queue.is_empty() {
            let said = UserMessage::text("and", chrono::DateTime::UNIX_EPOCH);
            orchestrator.send(&task_id, said, HandlingMode::Steer).await.expect("queued");
        }
        for (number, approval) in orchestrator
            .approvals(ApprovalSelector::Pending)
            .await
            .expect("a list")
            .iter()
            .enumerate()
        {
            let decision = if number == 0 { Decision::AllowOnce } else { Decision::Deny };
            let decided = orchestrator.decide(&approval.approval_id, decision, "me", None).await;
            decided.expect("decided");
        }
    }
    let events = events(&*journal).await;
    let kinds: std::collections::BTreeSet<&str> =
        events.iter().map(|event| event.body.event_type()).collect();
    assert!(kinds.len() >= 9, "{kinds:?}");
    for event in &events {
        check(serde_json::to_value(event).expect("JSON"));
    }
    while let Some(WatchedDelta::Delta(delta)) = deltas.try_recv() {
        check(serde_json::from_str(delta.json().expect("JSON")).expect("JSON"));
    }
}
