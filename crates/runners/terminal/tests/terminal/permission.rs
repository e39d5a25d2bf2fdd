//! Who may start a program without a sandbox, and who may type into it.

use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use antiphon_core::port::{
    Append, ApprovalSelector, Expected, Gate, GateRequest, GateVerdict, JournalError, RandomIds,
    Read, Rule, Runner, RunnerError, RunnerTask, SystemClock,
};
use antiphon_core::{
    AgentName, Approval, Decision, EventBody, HandlingMode, InteractionId, MessageAppended,
    Position, PriceTable, Provenance, Sender, SourceName, TaskId, TaskStatus, UserMessage,
};
use antiphon_runtime::{
    ApprovalPolicy, NewTask, NoTools, OpenGate, Orchestrator, OrchestratorSettings, RuntimeDeps,
    TaskMessage,
};
use async_trait::async_trait;
use chrono::Utc;
use serde_json::Value;
use tokio::time::{sleep, timeout};

use crate::orchestrated::{NoModel, task};
use crate::world::{LONG, World, script};

/// Longer than a message waits when nothing holds it up.
const A_WHILE: Duration = Duration::from_millis(1200);

/// A program that writes down each line that it gets.
const LISTENS: &str = "while read -p '> ' line; do echo \"$line\" >> said; done; true";

fn orchestrator(world: &World) -> Orchestrator {
    orchestrator_with(world, Arc::clone(&world.runner) as Arc<dyn Runner>)
}

fn orchestrator_with(world: &World, runner: Arc<dyn Runner>) -> Orchestrator {
    orchestrator_by(world, runner, Arc::new(OpenGate))
}

fn orchestrator_by(world: &World, runner: Arc<dyn Runner>, gate: Arc<dyn Gate>) -> Orchestrator {
    let approvals = ApprovalPolicy::Wait { timeout: None };
    Orchestrator::new(RuntimeDeps {
        journal: Arc::clone(&world.journal),
        models: Arc::new(NoModel),
        tools: Arc::new(NoTools),
        gate,
        agents: None,
        runners: vec![runner],
        prices: Arc::new(PriceTable::default()),
        clock: Arc::new(SystemClock),
        ids: Arc::new(RandomIds),
        settings: OrchestratorSettings { approvals, ..OrchestratorSettings::default() },
    })
}

fn of_owner(text: &str) -> NewTask {
    NewTask { provenance: Provenance::Owner, ..task(text) }
}

fn agent(name: &str) -> (Sender, Provenance) {
    (Sender::Peer(AgentName::parse(name).unwrap()), Provenance::Agent(name.to_owned()))
}

async fn send(
    orchestrator: &Orchestrator,
    task_id: &TaskId,
    (from, provenance): (Sender, Provenance),
    text: &str,
) -> InteractionId {
    let message = UserMessage::text(text, Utc::now());
    let message = TaskMessage { message, mode: HandlingMode::Queue, from, key: None, provenance };
    orchestrator.send_message(task_id, message).await.unwrap()
}

async fn questions(orchestrator: &Orchestrator) -> Vec<Approval> {
    orchestrator.approvals(ApprovalSelector::Pending).await.unwrap()
}

async fn question(orchestrator: &Orchestrator) -> Approval {
    let begun = Instant::now();
    loop {
        if let Some(question) = questions(orchestrator).await.pop() {
            return question;
        }
        assert!(begun.elapsed() < LONG, "no question is asked");
        sleep(Duration::from_millis(10)).await;
    }
}

async fn answer(orchestrator: &Orchestrator, question: &Approval, decision: Decision) {
    let id = &question.approval_id;
    orchestrator.decide(id, decision, "a test", None).await.unwrap();
}

async fn appears(path: &Path, expected: &str) {
    let begun = Instant::now();
    let read = || std::fs::read_to_string(path).unwrap_or_default();
    while read() != expected && begun.elapsed() < LONG {
        sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(read(), expected);
}

#[tokio::test]
async fn only_a_person_types_without_a_question() {
    let event = Sender::External(SourceName::parse("ci").unwrap());
    let person = |provenance| (Sender::User, provenance);
    let others = [
        person(Provenance::WriteKey("k1".to_owned())),
        person(Provenance::Unknown),
        person(Provenance::File("x".to_owned())),
        agent("worker"),
        (event.clone(), Provenance::Webhook("ci".to_owned())),
        (event.clone(), Provenance::Schedule("ci".to_owned())),
        // A person who sends in the name of another.
        (event, Provenance::Owner),
    ];
    let world = World::new(script(LISTENS));
    let orchestrator = orchestrator(&world);
    let said = world.root().join("said");
    let task_id = orchestrator.invoke(of_owner("start")).await.unwrap().task_id;
    for (n, sender) in others.iter().enumerate() {
        send(&orchestrator, &task_id, sender.clone(), &format!("no {n}")).await;
    }
    send(&orchestrator, &task_id, person(Provenance::AdminKey("k2".to_owned())), "admin").await;
    send(&orchestrator, &task_id, person(Provenance::Owner), "owner").await;
    appears(&said, "start\nadmin\nowner\n").await;
    sleep(A_WHILE).await;
    appears(&said, "start\nadmin\nowner\n").await;
    assert_eq!(questions(&orchestrator).await.len(), others.len());
    orchestrator.cancel(&task_id).await.unwrap();
    orchestrator.shutdown(Duration::from_secs(1)).await;
}

#[tokio::test]
async fn a_question_shows_sender_and_text_and_its_answers_cover_what_they_say() {
    let world = World::new(script(LISTENS));
    let orchestrator = orchestrator(&world);
    let said = world.root().join("said");
    let task_id = orchestrator.invoke(of_owner("start")).await.unwrap().task_id;
    send(&orchestrator, &task_id, agent("worker"), "one").await;
    let asked = question(&orchestrator).await;
    assert_eq!(asked.tool_name, "terminal_input");
    assert!(asked.reason.contains("the agent `worker`"), "{}", asked.reason);
    assert!(asked.arguments.as_str().contains("[MESSAGE from worker] one"), "{asked:?}");
    assert_eq!(asked.rule.0, "terminal_input(delivery=agent:worker to tester)");
    answer(&orchestrator, &asked, Decision::AllowOnce).await;
    appears(&said, "start\n[MESSAGE from worker] one\n").await;
    // Once is once.
    send(&orchestrator, &task_id, agent("worker"), "two").await;
    let asked = question(&orchestrator).await;
    answer(&orchestrator, &asked, Decision::AllowTask).await;
    send(&orchestrator, &task_id, agent("worker"), "three").await;
    let three = "start\n[MESSAGE from worker] one\n[MESSAGE from worker] two\n[MESSAGE from worker] three\n";
    appears(&said, three).await;
    // For this sender, and no other.
    send(&orchestrator, &task_id, agent("worker2"), "four").await;
    let asked = question(&orchestrator).await;
    answer(&orchestrator, &asked, Decision::Deny).await;
    let begun = Instant::now();
    while !orchestrator.task(&task_id).await.unwrap().queue.is_empty() && begun.elapsed() < LONG {
        sleep(Duration::from_millis(10)).await;
    }
    assert!(orchestrator.task(&task_id).await.unwrap().queue.is_empty());
    sleep(A_WHILE).await;
    appears(&said, three).await;
    orchestrator.cancel(&task_id).await.unwrap();
    orchestrator.shutdown(Duration::from_secs(1)).await;
}

#[tokio::test]
async fn a_sender_that_is_allowed_leaves_no_question_about_what_was_typed() {
    let world = World::new(script(LISTENS));
    let orchestrator = orchestrator(&world);
    let said = world.root().join("said");
    let task_id = orchestrator.invoke(of_owner("start")).await.unwrap().task_id;
    send(&orchestrator, &task_id, agent("worker"), "one").await;
    send(&orchestrator, &task_id, agent("worker"), "two").await;
    let begun = Instant::now();
    while questions(&orchestrator).await.len() < 2 && begun.elapsed() < LONG {
        sleep(Duration::from_millis(10)).await;
    }
    let asked = questions(&orchestrator).await;
    assert_eq!(asked.len(), 2);
    answer(&orchestrator, &asked[0], Decision::AllowTask).await;
    appears(&said, "start\n[MESSAGE from worker] one\n[MESSAGE from worker] two\n").await;
    assert!(questions(&orchestrator).await.is_empty());
    orchestrator.cancel(&task_id).await.unwrap();
    orchestrator.shutdown(Duration::from_secs(1)).await;
}

#[tokio::test]
async fn a_denied_message_is_answered_as_denied() {
    let world = World::new(script(LISTENS));
    let orchestrator = orchestrator(&world);
    let task_id = orchestrator.invoke(of_owner("start")).await.unwrap().task_id;
    let id = send(&orchestrator, &task_id, agent("worker"), "no").await;
    let asked = question(&orchestrator).await;
    answer(&orchestrator, &asked, Decision::Deny).await;
    let begun = Instant::now();
    let replied = loop {
        if let Some(replied) = orchestrator.reply(id).await.unwrap() {
            break replied;
        }
        assert!(begun.elapsed() < LONG, "it is not answered");
        sleep(Duration::from_millis(10)).await;
    };
    assert_eq!(replied.result["code"], "denied");
    orchestrator.cancel(&task_id).await.unwrap();
    orchestrator.shutdown(Duration::from_secs(1)).await;
}

#[tokio::test]
async fn only_a_person_starts_a_program_without_a_question() {
    for (decision, status) in
        [(Decision::AllowOnce, TaskStatus::Completed), (Decision::Deny, TaskStatus::Failed)]
    {
        let world = World::new(script("touch begun; read -p '> ' x; echo $x > said"));
        let orchestrator = orchestrator(&world);
        let provenance = Provenance::WriteKey("k1".to_owned());
        let task_id =
            orchestrator.invoke(NewTask { provenance, ..task("hello") }).await.unwrap().task_id;
        let asked = question(&orchestrator).await;
        assert_eq!(asked.tool_name, "terminal_start");
        assert!(asked.arguments.as_str().contains("hello"), "{asked:?}");
        sleep(A_WHILE).await;
        assert!(!world.root().join("begun").exists());
        answer(&orchestrator, &asked, decision).await;
        let state = timeout(LONG, orchestrator.wait(&task_id)).await.unwrap().unwrap();
        assert_eq!(state.status, status, "{:?}", state.detail);
        assert_eq!(world.root().join("begun").exists(), decision.allows());
        if decision == Decision::Deny {
            assert_eq!(state.detail.unwrap()["code"], "denied");
        }
        orchestrator.shutdown(Duration::from_secs(1)).await;
    }
}

/// A gate with a rule that allows each start, and no text.
#[derive(Debug)]
struct AllowsStarts;

#[async_trait]
impl Gate for AllowsStarts {
    fn judge(&self, _: &GateRequest<'_>) -> GateVerdict {
        GateVerdict::Allow
    }

    fn judge_by_rules(&self, call: &GateRequest<'_>) -> Option<GateVerdict> {
        (call.tool == "terminal_start").then_some(GateVerdict::Allow)
    }

    async fn remember(&self, _: &Rule) -> Result<(), String> {
        Ok(())
    }
}

#[tokio::test]
async fn a_rule_that_allows_a_start_does_not_allow_what_is_typed_with_it() {
    let world = World::new(script("touch begun; read -p '> ' x; echo $x > said"));
    let runner = Arc::clone(&world.runner) as Arc<dyn Runner>;
    let orchestrator = orchestrator_by(&world, runner, Arc::new(AllowsStarts));
    let provenance = Provenance::WriteKey("k1".to_owned());
    let new = NewTask { provenance, ..task("rm -rf x") };
    let task_id = orchestrator.invoke(new).await.unwrap().task_id;
    let asked = question(&orchestrator).await;
    assert_eq!(asked.tool_name, "terminal_input");
    assert!(asked.arguments.as_str().contains("rm -rf x"), "{asked:?}");
    sleep(A_WHILE).await;
    assert!(!world.root().join("said").exists());
    answer(&orchestrator, &asked, Decision::AllowOnce).await;
    let state = timeout(LONG, orchestrator.wait(&task_id)).await.unwrap().unwrap();
    assert_eq!(state.status, TaskStatus::Completed, "{:?}", state.detail);
    assert_eq!(std::fs::read_to_string(world.root().join("said")).unwrap(), "rm -rf x\n");
    orchestrator.shutdown(Duration::from_secs(1)).await;
}

#[tokio::test]
async fn question_and_message_outlive_the_process_and_the_answer_delivers() {
    let world = World::new(script(LISTENS));
    let said = world.root().join("said");
    let first = orchestrator(&world);
    let task_id = first.invoke(of_owner("start")).await.unwrap().task_id;
    appears(&said, "start\n").await;
    send(&first, &task_id, agent("worker"), "kept").await;
    let asked = question(&first).await;
    first.shutdown(Duration::from_secs(2)).await;
    let second = orchestrator(&world);
    second.recover().await.unwrap();
    sleep(A_WHILE).await;
    let again = questions(&second).await;
    assert_eq!(again, std::slice::from_ref(&asked), "the same question, once");
    assert_eq!(second.task(&task_id).await.unwrap().queue.len(), 1);
    appears(&said, "start\n").await;
    answer(&second, &asked, Decision::AllowOnce).await;
    appears(&said, "start\n[MESSAGE from worker] kept\n").await;
    second.cancel(&task_id).await.unwrap();
    second.shutdown(Duration::from_secs(1)).await;
}

/// A runner that takes every message without asking.
struct Greedy(Mutex<Vec<Result<(), JournalError>>>);

#[async_trait]
impl Runner for Greedy {
    fn kind(&self) -> &'static str {
        "terminal"
    }

    fn uses_run_provider(&self) -> bool {
        false
    }

    fn is_unrestricted(&self) -> bool {
        true
    }

    fn reads_inbox(&self) -> bool {
        true
    }

    fn check(&self, _: &Value) -> Result<(), String> {
        Ok(())
    }

    async fn run(&self, mut run: RunnerTask) -> Result<(), RunnerError> {
        let mut tried = Vec::new();
        loop {
            let limit = NonZeroUsize::new(1000).unwrap();
            let read = Read { task_id: Some(run.task_id.clone()), after: Position(0), limit };
            for event in run.journal.read(read).await?.events {
                let EventBody::MessageQueued(queued) = event.body else { continue };
                if tried.contains(&queued.id) {
                    continue;
                }
                tried.push(queued.id);
                let message = Arc::new(queued.user_message(Utc::now()).into());
                let taken = run.journal.append(Append {
                    task_id: run.task_id.clone(),
                    expected: Expected::Exists,
                    at: Utc::now(),
                    events: vec![MessageAppended::of_queued(message, queued.id).into()],
                    key: None,
                });
                let taken = taken.await.map(drop);
                self.0.lock().unwrap().push(taken);
            }
            tokio::select! {
                () = &mut run.cancel => return Ok(()),
                () = &mut run.shutdown => return Ok(()),
                () = run.updates.next() => {}
            }
        }
    }
}

#[tokio::test]
async fn a_runner_cannot_take_a_message_that_no_person_allowed() {
    let world = World::new(script("true"));
    let greedy = Arc::new(Greedy(Mutex::default()));
    let orchestrator = orchestrator_with(&world, Arc::clone(&greedy) as Arc<dyn Runner>);
    let task_id = orchestrator.invoke(of_owner("start")).await.unwrap().task_id;
    send(&orchestrator, &task_id, agent("worker"), "no").await;
    send(&orchestrator, &task_id, (Sender::User, Provenance::Owner), "yes").await;
    let begun = Instant::now();
    while greedy.0.lock().unwrap().len() < 2 && begun.elapsed() < LONG {
        sleep(Duration::from_millis(10)).await;
    }
    let taken = std::mem::take(&mut *greedy.0.lock().unwrap());
    assert!(matches!(&taken[..], [Err(JournalError::Invalid { .. }), Ok(())]), "{taken:?}");
    orchestrator.cancel(&task_id).await.unwrap();
    orchestrator.shutdown(Duration::from_secs(1)).await;
}
