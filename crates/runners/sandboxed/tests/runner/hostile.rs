//! Workers that are not what they should be.

use antiphon_core::port::RunnerError;
use antiphon_sandboxed::WorkerCommand;

use crate::bench::{Bench, events, example, scripted};

/// A model that never answers.
const STALL: &str = "name = 'test'\n[[reply]]\nsteps = [{ stall = true }]\n";

/// What becomes of a worker that misbehaves in one way. Nothing of it is in the journal.
async fn fate(way: &str) -> RunnerError {
    let bench = Bench::with(scripted(STALL), |settings| {
        let args = vec![way.into(), settings.worker.args[0].clone()];
        settings.worker = WorkerCommand { program: example("hostile_worker"), args };
    });
    let task_id = bench.accept().await;
    let before = events(&*bench.journal).await;
    let fate = bench.once(&task_id).await.unwrap_err();
    assert_eq!(events(&*bench.journal).await, before, "{way}");
    bench.assert_clean();
    fate
}

#[tokio::test]
async fn a_worker_that_breaks_its_rules_is_refused_and_ended() {
    for (way, reason) in [
        ("garbage", "more than 67108864"),
        ("huge", "has 4294967295 bytes"),
        ("nonsense", "unknown variant `obey`"),
        ("deep", "a frame means nothing"),
        ("another-task", "it wrote to another task, another"),
        ("decide", "it wrote a `approval_decided`"),
        ("queue", "it wrote a `message_queued`"),
        ("read-another", "it read another task, another"),
        ("another-model", "it asked another model, `dear`"),
        ("twice", "it asked question 2 twice"),
        ("flood", "it asked more than 128 questions"),
        ("newer", "it speaks version 3"),
    ] {
        let fate = fate(way).await;
        assert!(matches!(fate, RunnerError::Refused { .. }), "{way}: {fate}");
        let found = fate.to_string();
        assert!(found.contains("broke its rules") && found.contains(reason), "{way}: {found}");
    }
}

#[tokio::test]
async fn a_worker_that_cannot_be_restricted_is_refused_with_its_reason() {
    let refused = RunnerError::Refused { reason: "no namespaces".to_owned() };
    assert_eq!(fate("refuse").await, refused);
}

#[tokio::test]
async fn a_worker_that_dies_may_be_tried_again() {
    for way in ["die", "half"] {
        let reason = "the worker ended before its task did: I die".to_owned();
        assert_eq!(fate(way).await, RunnerError::Unavailable { reason }, "{way}");
    }
}

#[tokio::test]
async fn a_program_that_is_not_there_is_named() {
    let bench = Bench::with(scripted(STALL), |settings| {
        settings.worker.program = "/nowhere/worker".into();
    });
    let task_id = bench.accept().await;
    let error = bench.once(&task_id).await.unwrap_err().to_string();
    assert!(error.contains("/nowhere/worker"), "{error}");
}
