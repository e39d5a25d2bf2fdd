//! Tasks that plan first: they only read until a person has accepted their plan.

use std::sync::Arc;
use std::time::Duration;

use antiphon_conformance::reference::MemoryJournal;
use antiphon_core::port::{ApprovalSelector, Journal};
use antiphon_core::{
    Answer, Approval, ApprovalReply, Decision, EventBody, Message, Plan, PlanStatus, Question,
    TaskAccess, TaskId, TaskStatus,
};
use antiphon_runtime::{
    ApprovalPolicy, NewTask, Orchestrator, OrchestratorError, OrchestratorSettings, RuntimeDeps,
    TaskState,
};

use crate::world::{Careful, Counting, Death, Mortal, events, new_task, world};

/// Tries to act, looks, plans, and carries the plan out.
const PLANS: &str = r#"
name = "test"
[[reply]]
when = { turn = 0 }
step = [
    { call = { name = "act", arguments = { on = "early" } } },
    { call = { name = "look", arguments = { at = "a" } } },
]
[[reply]]
when = { turn = 1 }
step = [{ call = { name = "submit_plan", arguments = { plan = "1. Act." } } }]
[[reply]]
when = { last_result_contains = "rejected" }
step = [{ call = { name = "submit_plan", arguments = { plan = "1. Act once." } } }]
[[reply]]
when = { last_result_contains = "accepted" }
step = [{ call = { name = "act", arguments = { on = "it" } } }]
[[reply]]
step = [{ text = "Done." }]
"#;

const WAIT: ApprovalPolicy = ApprovalPolicy::Wait { timeout: None };

fn planning() -> NewTask {
    NewTask { access: TaskAccess::PlanFirst, ..new_task("go") }
}

fn live_agents(
    journal: Arc<dyn Journal>,
    tools: &Arc<Counting>,
    approvals: ApprovalPolicy,
) -> Orchestrator {
    let world = world(journal, tools, PLANS);
    let settings = OrchestratorSettings { approvals, ..world.settings };
    Orchestrator::new(RuntimeDeps { settings, ..world })
}

async fn plan_of(orchestrator: &Orchestrator) -> Approval {
    let mut pending = orchestrator.approvals(ApprovalSelector::Pending).await.expect("a list");
    assert_eq!(pending.len(), 1, "one plan: {pending:?}");
    pending.remove(0)
}

fn acts(tools: &Counting) -> Vec<String> {
    tools.done().into_keys().filter(|what| what.starts_with("act")).collect()
}

fn results(state: &TaskState) -> String {
    let results = state.messages().iter().filter(|m| matches!(***m, Message::ToolResult(_)));
    format!("{:?}", results.collect::<Vec<_>>())
}

#[tokio::test]
async fn nothing_is_changed_before_the_plan_is_accepted() {
    let (journal, tools) = (Arc::new(MemoryJournal::new()), Arc::new(Counting::default()));
    let orchestrator = live_agents(journal, &tools, WAIT);
    let task_id = orchestrator.invoke(planning()).await.expect("accepted").task_id;
    let state = orchestrator.wait(&task_id).await.expect("at rest");
    assert_eq!(state.status, TaskStatus::InputRequired);
    assert_eq!(acts(&tools), [""; 0], "it only looked");
    assert!(results(&state).contains("submit the plan first"), "{}", results(&state));
    let text = "1. Act.".to_owned();
    let proposed = Plan { text: text.clone(), status: PlanStatus::Proposed, comment: None };
    assert_eq!((state.plan, state.access), (Some(proposed), TaskAccess::PlanFirst));

    let approval = plan_of(&orchestrator).await;
    assert!(matches!(&approval.question, Some(Question::Plan(plan)) if plan.plan == text));
    let comment = Some("only once".to_owned());
    let id = &approval.approval_id;
    orchestrator.decide(id, Decision::Deny, "me", comment.clone()).await.expect("rejected");
    let state = orchestrator.wait(&task_id).await.expect("at rest");
    assert!(results(&state).contains("The plan is rejected: only once"), "{}", results(&state));
    let text = "1. Act once.".to_owned();
    let again = Plan { text, status: PlanStatus::Proposed, comment: None };
    assert_eq!((state.plan, state.access), (Some(again), TaskAccess::PlanFirst));
    assert_eq!(acts(&tools), [""; 0]);

    let text = "1. Act, and say so.".to_owned();
    let answer = Answer { choices: Vec::new(), text: Some(text.clone()) };
    let changed = ApprovalReply::answering(answer);
    let id = plan_of(&orchestrator).await.approval_id;
    orchestrator.answer(&id, &changed, "me").await.expect("accepted");
    let state = orchestrator.wait(&task_id).await.expect("an end");
    assert_eq!(state.status, TaskStatus::Completed);
    assert!(results(&state).contains("1. Act, and say so."), "{}", results(&state));
    let accepted = Plan { text, status: PlanStatus::Accepted, comment: None };
    assert_eq!((state.plan, state.access), (Some(accepted), TaskAccess::Permitted));
    assert_eq!(acts(&tools), [r#"act {"on":"it"}"#]);
}

#[tokio::test]
async fn an_accepted_plan_gives_no_more_than_the_permissions_of_the_task() {
    let (journal, tools) = (Arc::new(MemoryJournal::new()), Arc::new(Counting::default()));
    let world = world(journal, &tools, PLANS);
    let gate = Arc::new(Careful::default());
    let orchestrator = Orchestrator::new(RuntimeDeps { gate, ..world });
    let task_id = orchestrator.invoke(planning()).await.expect("accepted").task_id;
    orchestrator.wait(&task_id).await.expect("at rest");
    let id = plan_of(&orchestrator).await.approval_id;
    orchestrator.decide(&id, Decision::AllowOnce, "me", None).await.expect("accepted");
    let state = orchestrator.wait(&task_id).await.expect("at rest");
    assert_eq!(state.status, TaskStatus::InputRequired, "the gate asks about the call");
    let asked = plan_of(&orchestrator).await;
    assert_eq!((asked.tool_name.as_str(), asked.question), ("act", None));
    assert_eq!(acts(&tools), [""; 0]);
}

/// Plans and acts in the same answer.
const PLANS_AND_ACTS: &str = r#"
name = "test"
[[reply]]
when = { turn = 0 }
step = [
    { call = { name = "act", arguments = { on = "beside" } } },
    { call = { name = "submit_plan", arguments = { plan = "1. Act." } } },
]
[[reply]]
step = [{ text = "Done." }]
"#;

#[tokio::test]
async fn a_call_beside_the_plan_waits_for_the_decision_about_the_plan() {
    for (decision, acted) in [(Decision::AllowOnce, 1), (Decision::Deny, 0)] {
        let (journal, tools) = (Arc::new(MemoryJournal::new()), Arc::new(Counting::default()));
        let world = world(journal, &tools, PLANS_AND_ACTS);
        let settings = OrchestratorSettings { approvals: WAIT, ..world.settings };
        let orchestrator = Orchestrator::new(RuntimeDeps { settings, ..world });
        let task_id = orchestrator.invoke(planning()).await.expect("accepted").task_id;
        let state = orchestrator.wait(&task_id).await.expect("at rest");
        assert_eq!(state.status, TaskStatus::InputRequired);
        assert_eq!(acts(&tools), [""; 0], "the plan is not accepted yet");
        let id = plan_of(&orchestrator).await.approval_id;
        orchestrator.decide(&id, decision, "me", None).await.expect("decided");
        let state = orchestrator.wait(&task_id).await.expect("an end");
        assert_eq!(state.status, TaskStatus::Completed, "{:?}", state.detail);
        assert_eq!(acts(&tools).len(), acted, "{decision:?}: {}", results(&state));
    }
}

#[tokio::test]
async fn where_no_person_can_accept_it_the_plan_stays_a_plan() {
    let (journal, tools) = (Arc::new(MemoryJournal::new()), Arc::new(Counting::default()));
    let orchestrator = live_agents(journal, &tools, ApprovalPolicy::Refuse);
    let task_id = orchestrator.invoke(planning()).await.expect("accepted").task_id;
    let state = orchestrator.wait(&task_id).await.expect("an end");
    assert_eq!((state.status, state.access), (TaskStatus::Completed, TaskAccess::PlanFirst));
    assert!(results(&state).contains("No person can be asked here"), "{}", results(&state));
    assert_eq!(acts(&tools), [""; 0]);
}

#[tokio::test]
async fn a_task_in_a_runner_cannot_plan_first() {
    let (journal, tools) = (Arc::new(MemoryJournal::new()), Arc::new(Counting::default()));
    let orchestrator = live_agents(journal.clone(), &tools, WAIT);
    let runner =
        antiphon_core::RunnerConfig { kind: "sandbox".to_owned(), config: serde_json::Value::Null };
    let refused = orchestrator.invoke(NewTask { runner: Some(runner), ..planning() }).await;
    let kind = "sandbox".to_owned();
    assert_eq!(refused.unwrap_err(), OrchestratorError::CannotPlan { runner: kind });
    assert!(events(&*journal).await.is_empty());
}

/// A person who rejects the first plan and accepts the second. `None` when the journal dies.
async fn attended(orchestrator: &Orchestrator, task_id: &TaskId) -> Option<TaskState> {
    loop {
        let state = orchestrator.wait(task_id).await.ok()?;
        if state.status.is_terminal() {
            return Some(state);
        }
        for approval in orchestrator.approvals(ApprovalSelector::Pending).await.ok()? {
            let first =
                matches!(&approval.question, Some(Question::Plan(p)) if p.plan == "1. Act.");
            let decision = if first { Decision::Deny } else { Decision::AllowOnce };
            orchestrator.decide(&approval.approval_id, decision, "me", None).await.ok()?;
        }
    }
}

#[tokio::test]
async fn a_plan_survives_death_at_every_write() {
    let mut died = 0;
    for last in 0..26 {
        for death in [Death::Before, Death::After] {
            let (journal, tools) = (Arc::new(MemoryJournal::new()), Arc::new(Counting::default()));
            let mortal = Arc::new(Mortal::new(&journal, last, death));
            let first = live_agents(mortal, &tools, WAIT);
            let whole = match first.invoke(planning()).await {
                Ok(accepted) => attended(&first, &accepted.task_id).await,
                Err(_) => None,
            };
            died += usize::from(whole.is_none());
            first.shutdown(Duration::from_secs(5)).await;
            let second = live_agents(journal.clone(), &tools, WAIT);
            let recovered = second.recover().await.expect("a list");
            let place = format!("{death:?} write {last}");
            for task_id in recovered.begun.iter().chain(&recovered.waiting) {
                let state = attended(&second, task_id).await.expect("an end");
                assert_eq!(state.status, TaskStatus::Completed, "{place}: {:?}", state.detail);
                assert_eq!(state.access, TaskAccess::Permitted, "{place}");
            }
            let done = tools.done();
            assert!(!done.contains_key(r#"act {"on":"early"}"#), "{place}: {done:?}");
            assert!(done.get(r#"act {"on":"it"}"#).is_none_or(|times| *times == 1), "{place}");
            let all = events(&*journal).await;
            let is_plan = |body: &EventBody| matches!(body, EventBody::ApprovalRequested(_));
            let plans = all.iter().filter(|event| is_plan(&event.body)).count();
            assert!(plans == 2 || all.is_empty(), "{place}: {plans}");
        }
    }
    assert!(died >= 10, "it died {died} times");
}
