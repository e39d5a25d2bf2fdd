//! Questions of an agent to a person: asked once, answered once, across deaths and restarts.

use std::sync::Arc;
use std::time::Duration;

use antiphon_conformance::reference::MemoryJournal;
use antiphon_core::port::{ApprovalSelector, Journal};
use antiphon_core::{
    Answer, Approval, ApprovalReply, ApprovalStatus, Decision, EventBody, InputBlock, Message,
    Question, TaskId, TaskStatus, WaitingFor,
};
use antiphon_runtime::{
    ApprovalPolicy, NewTask, Orchestrator, OrchestratorError, OrchestratorSettings, RuntimeDeps,
    TaskState,
};

use crate::world::{Counting, Death, Mortal, events, new_task, world};

const ASKS: &str = r#"
name = "test"
[[reply]]
when = { turn = 0 }
step = [{ call = { name = "ask_user", arguments_json = '''{"question": "Which color?", "default": "Red",
  "choices": [{"label": "Red", "description": "like a rose"}, "Blue"], "free_text": false}''' } }]
[[reply]]
step = [{ text = "Painted." }]
"#;

const WAIT: ApprovalPolicy = ApprovalPolicy::Wait { timeout: None };

fn asking(journal: Arc<dyn Journal>, script: &str, approvals: ApprovalPolicy) -> Orchestrator {
    let world = world(journal, &Arc::new(Counting::default()), script);
    let settings = OrchestratorSettings { approvals, ..world.settings };
    Orchestrator::new(RuntimeDeps { settings, ..world })
}

async fn pending(orchestrator: &Orchestrator) -> Vec<Approval> {
    orchestrator.approvals(ApprovalSelector::Pending).await.expect("a list")
}

fn choosing(label: &str) -> ApprovalReply {
    ApprovalReply::answering(Answer { choices: vec![label.to_owned()], text: None })
}

/// What the model read as the result of its first call.
fn read_by_model(state: &TaskState) -> (String, bool) {
    let result = state.messages().iter().find_map(|message| match &**message {
        Message::ToolResult(result) => Some(result),
        Message::User(_) | Message::Assistant(_) => None,
    });
    let result = result.expect("a result");
    let text = match result.content.as_slice() {
        [InputBlock::Text(text)] => Some(text.text.clone()),
        _ => None,
    };
    (text.expect("a text"), result.is_error)
}

async fn asked(orchestrator: &Orchestrator) -> (TaskId, Approval) {
    let task_id = orchestrator.invoke(new_task("go")).await.expect("accepted").task_id;
    let state = orchestrator.wait(&task_id).await.expect("at rest");
    assert_eq!(state.status, TaskStatus::InputRequired);
    assert_eq!(state.waiting_for, Some(WaitingFor::Approval));
    let mut pending = pending(orchestrator).await;
    assert_eq!(pending.len(), 1, "one question");
    (task_id, pending.remove(0))
}

#[tokio::test]
async fn the_answer_of_a_person_is_the_result_of_the_call() {
    let journal = Arc::new(MemoryJournal::new());
    let orchestrator = asking(journal, ASKS, WAIT);
    let (task_id, approval) = asked(&orchestrator).await;
    let Some(Question::Choice(question)) = &approval.question else { panic!("{approval:?}") };
    assert_eq!((question.text.as_str(), question.labels().as_str()), ("Which color?", "Red, Blue"));
    assert_eq!((approval.tool_name.as_str(), approval.rule.0.as_str()), ("ask_user", ""));
    let id = &approval.approval_id;
    for wrong in ["Green", "red"] {
        let refused = orchestrator.answer(id, &choosing(wrong), "me").await;
        assert!(matches!(refused, Err(OrchestratorError::NotAnAnswer { .. })), "{refused:?}");
    }
    let words = Answer { choices: Vec::new(), text: Some("Green".to_owned()) };
    let refused = orchestrator.answer(id, &ApprovalReply::answering(words), "me").await;
    assert!(matches!(refused, Err(OrchestratorError::NotAnAnswer { .. })), "{refused:?}");
    for lasting in [Decision::AllowTask, Decision::AllowAlways] {
        let refused = orchestrator.decide(id, lasting, "me", None).await;
        assert!(matches!(refused, Err(OrchestratorError::NotAnAnswer { .. })), "{refused:?}");
    }
    orchestrator.answer(id, &choosing("Blue"), "me").await.expect("answered");
    let state = orchestrator.wait(&task_id).await.expect("an end");
    assert_eq!(state.status, TaskStatus::Completed);
    assert_eq!(read_by_model(&state), ("The user chose: Blue".to_owned(), false));
    let known = orchestrator.approvals(ApprovalSelector::One(id.clone())).await.expect("a list");
    assert_eq!(known[0].answer, choosing("Blue").answer);
    let late = orchestrator.answer(id, &choosing("Red"), "me").await;
    assert!(matches!(late, Err(OrchestratorError::AlreadyDecided { .. })), "{late:?}");
}

#[tokio::test]
async fn consent_alone_is_the_default_and_a_refusal_leaves_it_unanswered() {
    let orchestrator = asking(Arc::new(MemoryJournal::new()), ASKS, WAIT);
    let (task_id, approval) = asked(&orchestrator).await;
    let id = &approval.approval_id;
    orchestrator.decide(id, Decision::AllowOnce, "me", None).await.expect("answered");
    let state = orchestrator.wait(&task_id).await.expect("an end");
    assert_eq!(read_by_model(&state), ("The user chose: Red".to_owned(), false));

    let (task_id, approval) = asked(&orchestrator).await;
    let (id, comment) = (&approval.approval_id, Some("look it up".to_owned()));
    orchestrator.decide(id, Decision::Deny, "me", comment).await.expect("denied");
    let state = orchestrator.wait(&task_id).await.expect("an end");
    let unanswered = "The user does not answer this: look it up".to_owned();
    assert_eq!(read_by_model(&state), (unanswered, true));
}

#[tokio::test]
async fn where_no_person_can_answer_the_model_is_told_so_and_not_offered_the_tool() {
    let orchestrator = asking(Arc::new(MemoryJournal::new()), ASKS, ApprovalPolicy::Refuse);
    let task_id = orchestrator.invoke(new_task("go")).await.expect("accepted").task_id;
    let state = orchestrator.wait(&task_id).await.expect("an end");
    assert_eq!(state.status, TaskStatus::Completed);
    let (told, is_error) = read_by_model(&state);
    assert!(told.starts_with("No person can be asked here.") && is_error, "{told}");
}

#[tokio::test]
async fn a_question_that_cannot_be_asked_is_the_models_to_fix() {
    let bad = [
        (r#"{"question": " "}"#, "the question is empty"),
        (r#"{"question": "?", "free_text": false}"#, "there is no way to answer"),
        (r#"{"question": "?", "choices": ["a", "a"]}"#, "two choices are called `a`"),
        (r#"{"question": "?", "choices": ["a"], "free_text": false, "default": "b"}"#, "in words"),
        (r#"{"question": "?", "colour": 1}"#, "unknown field `colour`"),
    ];
    let long = format!(r#"{{"question": "{}"}}"#, "x".repeat(5000));
    let many: Vec<String> = (0..21).map(|n| format!("\"{n}\"")).collect();
    let many = format!(r#"{{"question": "?", "choices": [{}]}}"#, many.join(","));
    let bad = bad.map(|(arguments, why)| (arguments.to_owned(), why)).into_iter().chain([
        (long, "at most 4096 are possible"),
        (many, "21 choices, at most 20 are possible"),
    ]);
    for (arguments, why) in bad {
        let script = format!(
            "name = \"test\"\n[[reply]]\nwhen = {{ turn = 0 }}\nstep = [{{ call = {{ name = \"ask_user\", \
             arguments_json = '''{arguments}''' }} }}]\n[[reply]]\nstep = [{{ text = \"Done.\" }}]\n"
        );
        let orchestrator = asking(Arc::new(MemoryJournal::new()), &script, WAIT);
        let task_id = orchestrator.invoke(new_task("go")).await.expect("accepted").task_id;
        let state = orchestrator.wait(&task_id).await.expect("an end");
        let (told, is_error) = read_by_model(&state);
        assert!(told.contains(why) && is_error, "{arguments}: {told}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_question_that_is_not_answered_in_time_is_over() {
    let wait = ApprovalPolicy::Wait { timeout: Some(Duration::from_millis(1)) };
    let orchestrator = asking(Arc::new(MemoryJournal::new()), ASKS, wait);
    let task_id = orchestrator.invoke(new_task("go")).await.expect("accepted").task_id;
    let mut follower = orchestrator.follow(Some(task_id.clone()), antiphon_core::Position(0));
    while !follower.next().await.expect("an event").body.ends_task() {}
    let state = orchestrator.wait(&task_id).await.expect("an end");
    let late = "The user did not answer in time.".to_owned();
    assert_eq!(read_by_model(&state), (late, true));
}

#[tokio::test]
async fn a_tool_list_without_the_tool_leaves_it_out() {
    let orchestrator = asking(Arc::new(MemoryJournal::new()), ASKS, WAIT);
    let task = NewTask { tools: Some(vec!["look".to_owned()]), ..new_task("go") };
    let task_id = orchestrator.invoke(task).await.expect("accepted").task_id;
    let state = orchestrator.wait(&task_id).await.expect("an end");
    let (told, is_error) = read_by_model(&state);
    assert!(told.starts_with("there is no tool `ask_user`") && is_error, "{told}");
}

/// A person who answers what is asked. `None` when the journal dies.
async fn attended(orchestrator: &Orchestrator, task_id: &TaskId) -> Option<TaskState> {
    loop {
        let state = orchestrator.wait(task_id).await.ok()?;
        if state.status.is_terminal() {
            return Some(state);
        }
        for approval in orchestrator.approvals(ApprovalSelector::Pending).await.ok()? {
            orchestrator.answer(&approval.approval_id, &choosing("Blue"), "me").await.ok()?;
        }
    }
}

#[tokio::test]
async fn a_question_survives_death_at_every_write_and_is_answered_once() {
    let mut died = 0;
    for last in 0..12 {
        for death in [Death::Before, Death::After] {
            let journal = Arc::new(MemoryJournal::new());
            let mortal = Arc::new(Mortal::new(&journal, last, death));
            let first = asking(mortal, ASKS, WAIT);
            let whole = match first.invoke(new_task("go")).await {
                Ok(accepted) => attended(&first, &accepted.task_id).await,
                Err(_) => None,
            };
            died += usize::from(whole.is_none());
            first.shutdown(Duration::from_secs(5)).await;
            let second = asking(journal.clone(), ASKS, WAIT);
            let recovered = second.recover().await.expect("a list");
            let place = format!("{death:?} write {last}");
            for task_id in recovered.begun.iter().chain(&recovered.waiting) {
                let state = attended(&second, task_id).await.expect("an end");
                assert_eq!(state.status, TaskStatus::Completed, "{place}: {:?}", state.detail);
                let chose = ("The user chose: Blue".to_owned(), false);
                assert_eq!(read_by_model(&state), chose, "{place}");
            }
            let all = events(&*journal).await;
            let asked = all.iter().filter(|e| matches!(e.body, EventBody::ApprovalRequested(_)));
            let decided = all.iter().filter(|e| matches!(e.body, EventBody::ApprovalDecided(_)));
            let counts = (asked.count(), decided.count());
            assert!(counts == (1, 1) || all.is_empty(), "{place}: {counts:?}");
        }
    }
    assert!(died >= 6, "it died {died} times");
}

#[tokio::test]
async fn the_end_of_the_task_voids_its_question() {
    let orchestrator = asking(Arc::new(MemoryJournal::new()), ASKS, WAIT);
    let (task_id, approval) = asked(&orchestrator).await;
    orchestrator.cancel(&task_id).await.expect("canceled");
    let which = ApprovalSelector::One(approval.approval_id);
    let known = orchestrator.approvals(which).await.expect("a list");
    assert_eq!(known[0].status, ApprovalStatus::Void);
}
