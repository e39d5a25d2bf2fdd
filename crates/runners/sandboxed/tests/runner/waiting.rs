//! What others do to a task while a worker has it, or has left it.

use std::num::NonZeroU32;
use std::sync::Arc;

use antiphon_core::port::{Append, ApprovalSelector, Expected, JournalLog, Runner};
use antiphon_core::{
    Decision, HandlingMode, MessageAppended, ModelRef, SessionId, TaskCreated, TaskId, TaskLimits,
    TaskStatus, UserMessage, WaitingFor,
};
use serde_json::json;

use crate::bench::{Bench, calls, events, eventually, scripted};
use crate::completing::LAPS;
use crate::model::PiecewiseModel;

#[tokio::test]
async fn a_task_waits_for_a_person_without_a_worker_and_goes_on_in_another() {
    let script = calls("act", json!({ "on": "1" }));
    let bench = Bench::with(scripted(&script), |settings| {
        settings.worker_settings["careful"] = json!(true);
    });
    let task_id = bench.accept().await;
    bench.once(&task_id).await.unwrap();
    bench.assert_clean();
    assert_eq!(bench.state(&task_id).await.waiting_for, Some(WaitingFor::Approval));
    assert!(bench.lines("acts").is_empty());
    let keeper = bench.keeper();
    let requested = keeper.approvals(ApprovalSelector::Pending).await.unwrap();
    keeper.decide(&requested[0].approval_id, Decision::AllowOnce, "owner", None).await.unwrap();
    bench.once(&task_id).await.unwrap();
    assert_eq!(bench.state(&task_id).await.status, TaskStatus::Completed);
    assert_eq!(bench.lines("acts"), ["1"]);
}

#[tokio::test]
async fn a_message_that_arrives_meanwhile_is_heard_in_the_worker() {
    let (model, say) = PiecewiseModel::new();
    let bench = Bench::with(Arc::new(model), |_| {});
    let task_id = bench.accept().await;
    let talk = async {
        say.send("half".to_owned()).await.unwrap();
        eventually("half is heard", || bench.lines("heard").concat() == "half").await;
        let message = UserMessage::text("And this?", chrono::DateTime::UNIX_EPOCH);
        bench.keeper().send(&task_id, message, HandlingMode::Steer).await.unwrap();
        drop(say);
    };
    let (ran, ()) = tokio::join!(bench.runner.run(bench.run(&task_id)), talk);
    ran.unwrap();
    let state = bench.state(&task_id).await;
    assert_eq!(state.status, TaskStatus::Completed);
    // Asked, half, the message, done.
    assert_eq!(state.messages().len(), 4);
}

#[tokio::test]
async fn a_task_of_a_tree_keeps_to_the_limits_of_its_top() {
    let bench = Bench::new(LAPS);
    let id = |text: &str| TaskId::parse(text).unwrap();
    let created = TaskCreated {
        model: Some(ModelRef::parse("scripted/test").unwrap()),
        ..TaskCreated::new("tester", SessionId::parse("session").unwrap())
    };
    let tool_calls_max = NonZeroU32::new(2);
    let top = TaskCreated {
        limits: TaskLimits { tool_calls_max, ..TaskLimits::default() },
        ..created.clone()
    };
    let child = TaskCreated { parent: Some(id("top")), root: Some(id("top")), depth: 1, ..created };
    let message = UserMessage::text("go", chrono::DateTime::UNIX_EPOCH);
    for (task_id, created) in [("top", top), ("child", child)] {
        let append = Append {
            task_id: id(task_id),
            expected: Expected::NoTask,
            at: chrono::Utc::now(),
            events: vec![created.into(), MessageAppended::new(message.clone()).into()],
            key: None,
        };
        bench.journal.append(append).await.unwrap();
    }
    bench.once(&id("child")).await.unwrap();
    assert_eq!(bench.state(&id("child")).await.status, TaskStatus::Failed);
    let last = serde_json::to_string(&events(&*bench.journal).await.last().unwrap().body).unwrap();
    assert!(last.contains("limit_reached"), "{last}");
}
