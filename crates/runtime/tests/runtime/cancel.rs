//! Cancel reaches everything; rest loses nothing.

use std::sync::Arc;
use std::time::Duration;

use antiphon_conformance::reference::MemoryJournal;
use antiphon_core::port::Journal;
use antiphon_core::{EventBody, Position, TaskStatus};
use antiphon_runtime::{Orchestrator, OrchestratorError};

use crate::world::{Counting, events, new_task, orchestrator};

const STALLS: &str = r#"
name = "test"
[[reply]]
step = [{ text = "Wait" }, { stall = true }]
"#;

const HANGS: &str = r#"
name = "test"
[[reply]]
step = [{ call = { name = "hang", arguments = {} } }]
"#;

/// Waits until something of that kind is written.
async fn written(orchestrator: &Orchestrator, kind: &str) {
    let mut follower = orchestrator.follow(None, Position(0));
    while follower.next().await.expect("an event").body.event_type() != kind {}
}

#[tokio::test]
async fn a_running_model_call_is_canceled_and_what_there_was_is_kept() {
    let (journal, tools) = (Arc::new(MemoryJournal::new()), Arc::new(Counting::default()));
    let orchestrator = orchestrator(journal.clone(), &tools, STALLS);
    let mut deltas = orchestrator.deltas();
    let task_id = orchestrator.invoke(new_task("go")).await.expect("accepted").task_id;
    deltas.recv().await.expect("a delta");
    orchestrator.cancel(&task_id).await.expect("canceled");
    let state = orchestrator.task(&task_id).await.expect("a task");
    assert_eq!(state.status, TaskStatus::Canceled);
    assert_eq!(state.messages().len(), 2);
}

#[tokio::test]
async fn a_running_tool_is_canceled() {
    let (journal, tools) = (Arc::new(MemoryJournal::new()), Arc::new(Counting::default()));
    let orchestrator = orchestrator(journal, &tools, HANGS);
    let task_id = orchestrator.invoke(new_task("go")).await.expect("accepted").task_id;
    written(&orchestrator, "tool_started").await;
    orchestrator.cancel(&task_id).await.expect("canceled");
    let state = orchestrator.task(&task_id).await.expect("a task");
    assert_eq!(state.status, TaskStatus::Canceled);
}

#[tokio::test]
async fn a_task_ends_once() {
    let (journal, tools) = (Arc::new(MemoryJournal::new()), Arc::new(Counting::default()));
    let orchestrator = orchestrator(journal.clone(), &tools, STALLS);
    let task_id = orchestrator.invoke(new_task("go")).await.expect("accepted").task_id;
    let cancels = (0..8).map(|_| orchestrator.cancel(&task_id));
    futures_util::future::join_all(cancels).await;
    let again = orchestrator.cancel(&task_id).await;
    let status = TaskStatus::Canceled;
    assert_eq!(again, Err(OrchestratorError::Ended { task_id: task_id.clone(), status }));
    let ends = events(&*journal).await.into_iter().filter(|event| event.body.ends_task());
    assert_eq!(ends.count(), 1);
}

#[tokio::test]
async fn a_task_that_does_not_run_can_be_canceled() {
    let (journal, tools) = (Arc::new(MemoryJournal::new()), Arc::new(Counting::default()));
    let first = orchestrator(journal.clone(), &tools, STALLS);
    let task_id = first.invoke(new_task("go")).await.expect("accepted").task_id;
    assert!(first.shutdown(Duration::from_secs(5)).await);
    let second = orchestrator(journal, &tools, STALLS);
    second.cancel(&task_id).await.expect("canceled");
    let state = second.task(&task_id).await.expect("a task");
    assert_eq!(state.status, TaskStatus::Canceled);
}

#[tokio::test]
async fn what_comes_to_rest_goes_on_another_time() {
    for script in [STALLS, HANGS] {
        let (journal, tools) = (Arc::new(MemoryJournal::new()), Arc::new(Counting::default()));
        let first = orchestrator(journal.clone(), &tools, script);
        let task_id = first.invoke(new_task("go")).await.expect("accepted").task_id;
        written(&first, "state_changed").await;
        assert!(first.shutdown(Duration::from_secs(5)).await);
        let rested = events(&*journal as &dyn Journal).await;
        assert!(!rested.iter().any(|event| event.body.ends_task()));

        let answers = "name = \"test\"\n[[reply]]\nstep = [{ text = \"Done.\" }]\n";
        let second = orchestrator(journal, &tools, answers);
        assert_eq!(second.recover().await.expect("a list").begun, std::slice::from_ref(&task_id));
        // The tool that hung changes nothing, so it is run again; canceled, it hangs no more.
        if script == HANGS {
            second.cancel(&task_id).await.expect("canceled");
        }
        let state = second.wait(&task_id).await.expect("an end");
        assert!(state.status.is_terminal());
        let created = |body: &EventBody| matches!(body, EventBody::TaskCreated(_));
        assert_eq!(rested.iter().filter(|event| created(&event.body)).count(), 1);
    }
}

#[tokio::test]
async fn a_waiting_caller_gets_the_reason_why_the_task_stopped() {
    let (journal, tools) = (Arc::new(MemoryJournal::new()), Arc::new(Counting::default()));
    let mortal = crate::world::Mortal::new(&journal, 1, crate::world::Death::Before);
    let script = "name = \"test\"\n[[reply]]\nstep = [{ text = \"Hello.\" }]\n";
    let first = orchestrator(Arc::new(mortal), &tools, script);
    let task_id = first.invoke(new_task("go")).await.expect("accepted").task_id;
    let why = first.wait(&task_id).await.expect_err("the journal died");
    assert!(matches!(why, OrchestratorError::Journal(_)), "{why:?}");
    let second = orchestrator(journal, &tools, STALLS);
    let error = second.wait(&task_id).await.expect_err("it does not run");
    assert_eq!(error, OrchestratorError::NotRunning { task_id });
}

#[tokio::test]
async fn what_does_not_come_to_rest_is_cut_off() {
    /// A tool that does not listen.
    struct Deaf;
    #[async_trait::async_trait]
    impl antiphon_core::ToolExecutor for Deaf {
        fn tools(&self) -> Vec<Arc<antiphon_core::Tool>> {
            Vec::new()
        }
        fn effect(&self, _: &str) -> Option<antiphon_core::Effect> {
            Some(antiphon_core::Effect::SideEffect)
        }
        async fn execute(
            &self,
            _: &str,
            _: &antiphon_core::RawJson,
            _: antiphon_core::port::ToolContext,
        ) -> Result<antiphon_core::ToolResult, antiphon_core::ToolError> {
            std::future::pending().await
        }
    }
    let journal = Arc::new(MemoryJournal::new());
    let counting = Arc::new(Counting::default());
    let world = crate::world::world(journal.clone(), &counting, HANGS);
    let deaf = Orchestrator::new(antiphon_runtime::RuntimeDeps { tools: Arc::new(Deaf), ..world });
    deaf.invoke(new_task("go")).await.expect("accepted");
    written(&deaf, "tool_started").await;
    assert!(!deaf.shutdown(Duration::from_millis(20)).await);
    assert!(!events(&*journal).await.iter().any(|event| event.body.ends_task()));
}
