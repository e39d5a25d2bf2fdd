//! Calls that need an approval.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use antiphon_conformance::reference::MemoryJournal;
use antiphon_core::port::{ApprovalSelector, JournalIndex};
use antiphon_core::{
    Approval, ApprovalStatus, Decision, EventBody, TaskId, TaskStatus, WaitingFor,
};
use antiphon_runtime::{
    ApprovalPolicy, Orchestrator, OrchestratorError, OrchestratorSettings, RuntimeDeps,
};

use crate::task::STEPS;
use crate::world::{Careful, Counting, events, new_task, world};

const TEN: NonZeroUsize = NonZeroUsize::new(10).unwrap();

struct Scene {
    journal: Arc<MemoryJournal>,
    tools: Arc<Counting>,
    gate: Arc<Careful>,
    orchestrator: Orchestrator,
}

impl Scene {
    fn new(approvals: ApprovalPolicy) -> Self {
        let (journal, tools) = (Arc::new(MemoryJournal::new()), Arc::new(Counting::default()));
        Self::on(journal, tools, Arc::new(Careful::default()), approvals)
    }

    fn on(
        journal: Arc<MemoryJournal>,
        tools: Arc<Counting>,
        gate: Arc<Careful>,
        approvals: ApprovalPolicy,
    ) -> Self {
        let world = world(journal.clone(), &tools, STEPS);
        let settings = OrchestratorSettings { approvals, ..world.settings };
        let orchestrator = Orchestrator::new(RuntimeDeps { gate: gate.clone(), settings, ..world });
        Self { journal, tools, gate, orchestrator }
    }

    /// A task that has come to its first question.
    async fn requested(&self) -> (TaskId, Vec<Approval>) {
        let task_id = self.orchestrator.invoke(new_task("go")).await.expect("accepted").task_id;
        let state = self.orchestrator.wait(&task_id).await.expect("at rest");
        assert_eq!(state.status, TaskStatus::InputRequired);
        assert_eq!(state.waiting_for, Some(WaitingFor::Approval));
        (task_id, self.pending().await)
    }

    async fn pending(&self) -> Vec<Approval> {
        self.orchestrator.approvals(ApprovalSelector::Pending).await.expect("a list")
    }

    async fn decide(&self, approval: &Approval, decision: Decision) {
        let decided = self.orchestrator.decide(&approval.approval_id, decision, "me", None).await;
        decided.expect("decided");
    }

    fn acts(&self) -> usize {
        let done = self.tools.done();
        done.iter().filter(|(what, _)| what.starts_with("act")).map(|(_, times)| times).sum()
    }
}

const WAIT: ApprovalPolicy = ApprovalPolicy::Wait { timeout: None };

#[tokio::test]
async fn nothing_runs_before_every_question_is_answered() {
    let scene = Scene::new(WAIT);
    let (task_id, requested) = scene.requested().await;
    assert_eq!(requested.len(), 2);
    assert_eq!(scene.tools.done().len(), 0);
    scene.decide(&requested[0], Decision::AllowOnce).await;
    let state = scene.orchestrator.wait(&task_id).await.expect("at rest");
    assert_eq!(state.status, TaskStatus::InputRequired);
    assert_eq!(scene.tools.done().len(), 0);
    scene.decide(&requested[1], Decision::Deny).await;
    // The next step acts again.
    scene.orchestrator.wait(&task_id).await.expect("at rest");
    assert_eq!(scene.acts(), 1);
    let next = scene.pending().await;
    assert_eq!(next.len(), 1);
    scene.decide(&next[0], Decision::AllowOnce).await;
    let state = scene.orchestrator.wait(&task_id).await.expect("an end");
    assert_eq!((state.status, scene.acts()), (TaskStatus::Completed, 2));
    let refused = events(&*scene.journal).await.into_iter().filter(|event| {
        matches!(&event.body, EventBody::ToolRefused(refused) if refused.tool_name == "act")
    });
    assert_eq!(refused.count(), 1);
}

#[tokio::test]
async fn what_is_allowed_for_the_task_is_not_asked_again_in_it() {
    let scene = Scene::new(WAIT);
    let (task_id, requested) = scene.requested().await;
    for approval in &requested {
        scene.decide(approval, Decision::AllowTask).await;
    }
    let state = scene.orchestrator.wait(&task_id).await.expect("an end");
    assert_eq!((state.status, scene.acts()), (TaskStatus::Completed, 3));
    assert!(scene.gate.remembered.lock().expect("no panic").is_empty());
    // Another task is asked again.
    scene.requested().await;
}

#[tokio::test]
async fn what_is_allowed_always_is_kept_by_the_gate() {
    let scene = Scene::new(WAIT);
    let (task_id, requested) = scene.requested().await;
    for approval in &requested {
        scene.decide(approval, Decision::AllowAlways).await;
    }
    scene.orchestrator.wait(&task_id).await.expect("an end");
    let task_id = scene.orchestrator.invoke(new_task("go")).await.expect("accepted").task_id;
    let state = scene.orchestrator.wait(&task_id).await.expect("an end");
    assert_eq!(state.status, TaskStatus::Completed);
}

#[tokio::test]
async fn a_question_survives_a_restart_and_waiting_costs_nothing() {
    let scene = Scene::new(WAIT);
    let (task_id, requested) = scene.requested().await;
    assert!(scene.orchestrator.shutdown(Duration::from_secs(5)).await);
    let before = events(&*scene.journal).await;
    let again = Scene::on(scene.journal.clone(), scene.tools.clone(), scene.gate.clone(), WAIT);
    assert_eq!(
        again.orchestrator.recover().await.expect("a list").waiting,
        std::slice::from_ref(&task_id)
    );
    assert_eq!(events(&*scene.journal).await, before, "nothing is asked twice");
    let agents = again.orchestrator.agents(TEN).await.expect("a list");
    assert_eq!(agents.len(), 1, "a row, and no running task");
    for approval in &requested {
        again.decide(approval, Decision::AllowTask).await;
    }
    let state = again.orchestrator.wait(&task_id).await.expect("an end");
    assert_eq!((state.status, again.acts()), (TaskStatus::Completed, 3));
    assert!(again.orchestrator.agents(TEN).await.expect("a list").is_empty());
}

#[tokio::test]
async fn the_first_answer_counts() {
    let scene = Scene::new(WAIT);
    let (_, requested) = scene.requested().await;
    let id = &requested[0].approval_id;
    let decide = |decision| scene.orchestrator.decide(id, decision, "me", None);
    let answers = futures_util::future::join_all(
        (0..8).map(|n| decide(if n % 2 == 0 { Decision::AllowOnce } else { Decision::Deny })),
    )
    .await;
    assert_eq!(answers.iter().filter(|answer| answer.is_ok()).count(), 1, "{answers:?}");
    let decided = events(&*scene.journal).await.into_iter().filter(|event| {
        matches!(&event.body, EventBody::ApprovalDecided(decided) if decided.approval_id == *id)
    });
    assert_eq!(decided.count(), 1);
    let unknown = antiphon_core::ApprovalId::parse("none").expect("an id");
    let nothing = scene.orchestrator.decide(&unknown, Decision::Deny, "me", None).await;
    assert_eq!(nothing, Err(OrchestratorError::NoApproval { approval_id: unknown }));
}

#[tokio::test(start_paused = true)]
async fn an_unanswered_approval_expires() {
    // The journal's clock is the real one: the patience is too short for it to matter.
    let scene = Scene::new(ApprovalPolicy::Wait { timeout: Some(Duration::from_millis(1)) });
    let task_id = scene.orchestrator.invoke(new_task("go")).await.expect("accepted").task_id;
    let mut follower = scene.orchestrator.follow(Some(task_id.clone()), antiphon_core::Position(0));
    while !follower.next().await.expect("an event").body.ends_task() {}
    assert_eq!(scene.acts(), 0);
    let all = scene.orchestrator.approvals(ApprovalSelector::All).await.expect("a list");
    assert_eq!(all.len(), 3);
    assert!(all.iter().all(|approval| approval.status == ApprovalStatus::Expired));
}

#[tokio::test]
async fn without_a_user_the_model_learns_which_rule_is_missing() {
    let scene = Scene::new(ApprovalPolicy::Refuse);
    let task_id = scene.orchestrator.invoke(new_task("go")).await.expect("accepted").task_id;
    let state = scene.orchestrator.wait(&task_id).await.expect("an end");
    assert_eq!((state.status, scene.acts()), (TaskStatus::Completed, 0));
    let reported = format!("{:?}", state.messages());
    assert!(reported.contains("The rule that would allow it: act"), "{reported}");
    assert!(
        scene
            .journal
            .approvals(antiphon_core::port::ApprovalQuery {
                which: ApprovalSelector::All,
                after: None,
                limit: TEN,
            })
            .await
            .expect("a list")
            .is_empty()
    );
}

#[tokio::test]
async fn a_question_of_a_task_that_ended_is_void() {
    let scene = Scene::new(WAIT);
    let (task_id, requested) = scene.requested().await;
    scene.orchestrator.cancel(&task_id).await.expect("canceled");
    let approval_id = requested[0].approval_id.clone();
    let late = scene.orchestrator.decide(&approval_id, Decision::AllowOnce, "me", None).await;
    let status = ApprovalStatus::Void;
    assert_eq!(late, Err(OrchestratorError::AlreadyDecided { approval_id, status }));
    assert_eq!(scene.acts(), 0);
}
