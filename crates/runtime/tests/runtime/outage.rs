//! A model that is away: tasks wait, and go on by themselves.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::Mutex;
use std::time::Duration;

use antiphon_conformance::reference::MemoryJournal;
use antiphon_core::port::{Clock, Journal, PieceSource};
use antiphon_core::{
    Event, EventBody, HandlingMode, Message, ModelRef, OutageWait, Provider, RawJson, Request,
    StatusChanged, TaskId, TaskLimits, TaskStatus, TaskSummary, UserMessage, WaitingFor,
};
use antiphon_runtime::{
    AnswerDelta, Arrival, DeltaEvent, Models, NewTask, Orchestrator, OrchestratorError,
    RuntimeDeps, SerializedDelta, TaskState, WatchedDelta,
};
use antiphon_scripted::{Script, ScriptedProvider};
use serde_json::json;

use crate::live_agents::{LiveAgents, RuntimeClock, clerk, message, name, peer, request};
use crate::team::{Roster, Team, calls};
use crate::world::{Counting, events, new_task, world};

/// One day: what does not happen within it never happens.
const DAY: Duration = Duration::from_secs(24 * 3600);

const AWAY: &str = r#"step = [{ error = { kind = "connection", message = "refused" } }]"#;
const BUSY: &str =
    r#"step = [{ error = { kind = "overloaded", message = "busy", retry_after_ms = 90000 } }]"#;
const FINE: &str = r#"step = [{ text = "All is well." }]"#;

/// A model whose n-th call gets the n-th reply, and every later one the last.
#[derive(Default)]
struct Moody {
    replies: Mutex<Vec<String>>,
    requests: Mutex<Vec<Request>>,
}

impl Moody {
    fn of(replies: &[&str]) -> Arc<Self> {
        let moody = Self::default();
        *moody.replies.lock().expect("no panic") =
            replies.iter().map(|reply| (*reply).to_owned()).collect();
        Arc::new(moody)
    }

    fn asked(&self) -> usize {
        self.requests.lock().expect("no panic").len()
    }

    /// Every further call gets this reply.
    fn now(&self, reply: &str) {
        *self.replies.lock().expect("no panic") = vec![reply.to_owned()];
    }
}

struct MoodyModels(Arc<Moody>);

struct MoodyProvider(Arc<Moody>);

impl Provider for MoodyProvider {
    fn open(&self, request: Request) -> PieceSource {
        let number = {
            let mut requests = self.0.requests.lock().expect("no panic");
            requests.push(request.clone());
            requests.len() - 1
        };
        let replies = self.0.replies.lock().expect("no panic");
        let reply = replies.get(number).or(replies.last()).expect("a reply");
        let script = Script::parse(&format!("name = \"moody\"\n[[reply]]\n{reply}\n"));
        ScriptedProvider::new(script.expect("a script")).open(request)
    }
}

impl Models for MoodyModels {
    fn provider(
        &self,
        _: &ModelRef,
        _: &[ModelRef],
        _: Option<&RawJson>,
    ) -> Result<Arc<dyn Provider>, String> {
        Ok(Arc::new(MoodyProvider(Arc::clone(&self.0))))
    }

    fn window_tokens(&self, _: &ModelRef) -> Option<u64> {
        None
    }
}

/// A journal, a clock that only moves when no task works, and a moody model.
struct Bench {
    journal: Arc<MemoryJournal>,
    clock: Arc<dyn Clock>,
    model: Arc<Moody>,
    tools: Arc<Counting>,
}

impl Bench {
    fn new(replies: &[&str]) -> Self {
        Self {
            journal: Arc::new(MemoryJournal::new()),
            clock: RuntimeClock::start(),
            model: Moody::of(replies),
            tools: Arc::new(Counting::default()),
        }
    }

    fn deps(&self) -> RuntimeDeps {
        let journal = Arc::clone(&self.journal) as Arc<dyn Journal>;
        RuntimeDeps {
            models: Arc::new(MoodyModels(Arc::clone(&self.model))),
            clock: Arc::clone(&self.clock),
            ..world(journal, &self.tools, "")
        }
    }

    fn process(&self) -> Orchestrator {
        Orchestrator::new(self.deps())
    }

    async fn events(&self) -> Vec<Event> {
        events(&*self.journal).await
    }

    /// The waits for the model, in order.
    async fn waits(&self) -> Vec<OutageWait> {
        waits(&self.events().await)
    }
}

fn status(event: &Event) -> Option<&StatusChanged> {
    if let EventBody::StatusChanged(change) = &event.body { Some(change) } else { None }
}

fn wait(event: &Event) -> Option<OutageWait> {
    status(event).and_then(OutageWait::of)
}

fn waits(events: &[Event]) -> Vec<OutageWait> {
    events.iter().filter_map(wait).collect()
}

async fn invoke(orchestrator: &Orchestrator, text: &str) -> TaskId {
    orchestrator.invoke(new_task(text)).await.expect("accepted").task_id
}

async fn ended(orchestrator: &Orchestrator, task_id: &TaskId) -> TaskState {
    let ended = tokio::time::timeout(DAY, orchestrator.wait(task_id)).await;
    ended.expect("it ends within a day").expect("an end")
}

/// Returns once the task waits for its model with no run slot.
async fn waiting(orchestrator: &Orchestrator, task_id: &TaskId, attempt: u32) -> TaskState {
    loop {
        let state = orchestrator.task(task_id).await.expect("a task");
        if state.waiting_for == Some(WaitingFor::Model) && state.outage.attempts >= attempt {
            return state;
        }
        assert!(!state.status.is_terminal(), "{:?}", state.detail);
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_task_waits_while_its_model_is_away_and_goes_on_by_itself() {
    let bench = Bench::new(&[AWAY, AWAY, AWAY, AWAY, FINE]);
    let orchestrator = bench.process();
    let task_id = invoke(&orchestrator, "go").await;
    let state = waiting(&orchestrator, &task_id, 2).await;
    assert_eq!((state.status, state.turns), (TaskStatus::Running, 0));
    let state = ended(&orchestrator, &task_id).await;
    assert_eq!((state.status, state.detail), (TaskStatus::Completed, Some(json!("All is well."))));
    assert_eq!((bench.model.asked(), state.turns), (5, 1));
    let waits = bench.waits().await;
    assert_eq!(waits.iter().map(|wait| wait.attempt).collect::<Vec<_>>(), [1, 2, 3, 4]);
    assert!(waits.iter().all(|wait| wait.code == "connection" && !wait.superseded));
    assert_eq!(waits[0].error, "the provider cannot be reached: refused");
    // One event for each attempt, and one for the end of the wait.
    let events = bench.events().await;
    let statuses = events.iter().filter_map(status);
    let statuses = statuses.map(|change| (change.status, change.waiting_for));
    let (running, model) = (TaskStatus::Running, Some(WaitingFor::Model));
    let mut expected = vec![(running, None)];
    expected.extend([(running, model); 4]);
    expected.extend([(running, None), (TaskStatus::Completed, None)]);
    assert_eq!(statuses.collect::<Vec<_>>(), expected);
    let thoughts = events.iter().filter_map(|event| {
        let EventBody::StateChanged(change) = &event.body else { return None };
        Some(change.moves().count())
    });
    assert_eq!(thoughts.collect::<Vec<_>>(), [1, 3], "thinking, then tool call, reflecting, idle");
}

#[tokio::test(start_paused = true)]
async fn the_pauses_grow_to_minutes_and_a_provider_gets_the_time_it_asks_for() {
    let bench = Bench::new(&[AWAY]);
    let orchestrator = bench.process();
    let task_id = invoke(&orchestrator, "go").await;
    waiting(&orchestrator, &task_id, 12).await;
    let events = bench.events().await;
    let pause = |event: &Event| wait(event).map(|wait| (wait.next_at - event.at).num_seconds());
    let pauses: Vec<i64> = events.iter().filter_map(pause).collect();
    assert!(pauses[0] <= 2 && pauses.iter().all(|pause| *pause <= 300), "{pauses:?}");
    assert!(pauses[9..].iter().all(|pause| *pause >= 149), "{pauses:?}");
    let asked = Bench::new(&[BUSY, FINE]);
    let orchestrator = asked.process();
    let (began, task_id) = (asked.clock.now(), invoke(&orchestrator, "go").await);
    assert_eq!(ended(&orchestrator, &task_id).await.status, TaskStatus::Completed);
    let took = (asked.clock.now() - began).num_seconds();
    assert!((90..=93).contains(&took), "it asked for 90 s and got {took} s");
}

#[tokio::test(start_paused = true)]
async fn what_can_never_succeed_fails_at_once() {
    for (kind, code) in [
        ("authentication", "authentication"),
        ("permission", "permission"),
        ("not_found", "not_found"),
        ("invalid_request", "invalid_request"),
        ("protocol", "protocol"),
    ] {
        let bench = Bench::new(&[&format!("step = [{{ error = {{ kind = \"{kind}\" }} }}]")]);
        let orchestrator = bench.process();
        let task_id = invoke(&orchestrator, "go").await;
        let state = ended(&orchestrator, &task_id).await;
        assert_eq!(state.status, TaskStatus::Failed);
        assert_eq!(state.detail.expect("a reason")["code"], code);
        assert_eq!((bench.model.asked(), bench.waits().await.len()), (1, 0));
    }
}

const CUT_TEXT: &str = r#"step = [{ text = "All is" }, { cut = true }]"#;
const CUT_CALL: &str =
    r#"step = [{ text = "Let me" }, { call = { name = "act", arguments = {} } }, { cut = true }]"#;
const CUT_IN_CALL: &str = r#"step = [{ call = { name = "act", arguments_json = '{"a' }, unfinished = true }, { cut = true }]"#;

#[tokio::test(start_paused = true)]
async fn an_answer_that_breaks_off_is_asked_for_again_and_what_was_shown_is_superseded() {
    let bench = Bench::new(&[CUT_TEXT, FINE]);
    let orchestrator = bench.process();
    let mut deltas = orchestrator.deltas();
    let task_id = invoke(&orchestrator, "go").await;
    let state = ended(&orchestrator, &task_id).await;
    assert_eq!(state.detail, Some(json!("All is well.")));
    let (mut shown, mut superseded_at) = (String::new(), None);
    while let Some(WatchedDelta::Delta(delta)) = deltas.try_recv() {
        match SerializedDelta::into_value(delta).event {
            DeltaEvent::Answer(antiphon_core::StreamEvent::TextDelta { delta }) => shown += &delta,
            DeltaEvent::State(AnswerDelta::AnswerSuperseded { code, .. }) => {
                assert_eq!(code, "cut");
                superseded_at = Some(shown.clone());
            }
            DeltaEvent::Answer(_) | DeltaEvent::Tool(_) => {}
        }
    }
    assert_eq!(superseded_at.as_deref(), Some("All is"));
    assert_eq!(shown, "All isAll is well.");
    let events = bench.events().await;
    let answers: Vec<(String, bool)> = events
        .iter()
        .filter_map(|event| {
            let EventBody::MessageAppended(appended) = &event.body else { return None };
            let Message::Assistant(answer) = &*appended.message else { return None };
            Some((answer.text(), appended.superseded))
        })
        .collect();
    assert_eq!(answers, [("All is".to_owned(), true), ("All is well.".to_owned(), false)]);
    let waits = bench.waits().await;
    assert_eq!((waits.len(), waits[0].superseded, waits[0].code.as_str()), (1, true, "cut"));
    assert_eq!(state.turns, 1, "what broke off is no turn");
    // The second request is the first one again.
    let requests = bench.model.requests.lock().expect("no panic");
    assert_eq!(
        antiphon_core::sendable(&requests[1].messages),
        antiphon_core::sendable(&requests[0].messages)
    );
}

#[tokio::test(start_paused = true)]
async fn a_call_that_breaks_off_never_runs() {
    let done = r#"step = [{ text = "Done." }]"#;
    for cut in [CUT_CALL, CUT_IN_CALL] {
        let act = r#"step = [{ call = { name = "act", arguments = {} } }]"#;
        let bench = Bench::new(&[cut, act, done]);
        let orchestrator = bench.process();
        let task_id = invoke(&orchestrator, "go").await;
        let state = ended(&orchestrator, &task_id).await;
        assert_eq!(state.detail, Some(json!("Done.")));
        assert_eq!(bench.tools.done().into_iter().collect::<Vec<_>>(), [("act {}".to_owned(), 1)]);
        assert!(bench.waits().await[0].superseded);
    }
}

#[tokio::test(start_paused = true)]
async fn a_person_who_says_so_ends_the_wait() {
    for way in ["resume", "send", "steer"] {
        let bench = Bench::new(&[AWAY]);
        let orchestrator = bench.process();
        let task_id = invoke(&orchestrator, "go").await;
        let state = waiting(&orchestrator, &task_id, 9).await;
        let (now, asked) = (bench.clock.now(), bench.model.asked());
        assert!(state.outage.next_at.expect("a time") - now > chrono::TimeDelta::minutes(2));
        bench.model.now(FINE);
        let text = UserMessage::text("And now?", now);
        match way {
            "resume" => orchestrator.resume(&task_id).await.expect("resumed"),
            "send" => orchestrator
                .send(&task_id, text, HandlingMode::Queue)
                .await
                .map(drop)
                .expect("sent"),
            _ => orchestrator
                .send(&task_id, text, HandlingMode::Steer)
                .await
                .map(drop)
                .expect("sent"),
        }
        assert_eq!(ended(&orchestrator, &task_id).await.status, TaskStatus::Completed);
        let took = bench.clock.now() - now;
        assert!(took < chrono::TimeDelta::seconds(1), "{way}: {took}");
        assert!(bench.model.asked() > asked);
    }
}

#[tokio::test(start_paused = true)]
async fn the_time_of_the_task_ends_the_wait_and_so_does_a_cancel() {
    let bench = Bench::new(&[AWAY]);
    let orchestrator = bench.process();
    let limits = TaskLimits { wall_clock_s_max: NonZeroU32::new(100), ..TaskLimits::default() };
    let (began, task) = (bench.clock.now(), NewTask { limits, ..new_task("go") });
    let timed = orchestrator.invoke(task).await.expect("accepted").task_id;
    let state = ended(&orchestrator, &timed).await;
    assert_eq!(state.detail.expect("a reason")["limit"]["limit"], "wall_clock");
    let took = (bench.clock.now() - began).num_seconds();
    assert!((100..=101).contains(&took), "{took} s");
    let canceled = invoke(&orchestrator, "go").await;
    waiting(&orchestrator, &canceled, 3).await;
    orchestrator.cancel(&canceled).await.expect("canceled");
    let state = orchestrator.task(&canceled).await.expect("a task");
    assert_eq!((state.status, state.waiting_for), (TaskStatus::Canceled, None));
    let asked = bench.model.asked();
    tokio::time::sleep(Duration::from_secs(3600)).await;
    assert_eq!(bench.model.asked(), asked, "nothing is asked for a task that has ended");
}

#[tokio::test(start_paused = true)]
async fn a_paused_task_asks_nothing_until_it_is_resumed() {
    let bench = Bench::new(&[AWAY]);
    let orchestrator = bench.process();
    let task_id = invoke(&orchestrator, "go").await;
    waiting(&orchestrator, &task_id, 2).await;
    orchestrator.pause(&task_id).await.expect("paused");
    let asked = bench.model.asked();
    tokio::time::sleep(Duration::from_secs(3600)).await;
    let state = orchestrator.task(&task_id).await.expect("a task");
    assert_eq!((state.status, bench.model.asked()), (TaskStatus::InputRequired, asked));
    bench.model.now(FINE);
    orchestrator.resume(&task_id).await.expect("resumed");
    assert_eq!(ended(&orchestrator, &task_id).await.status, TaskStatus::Completed);
}

#[tokio::test(start_paused = true)]
async fn another_process_goes_on_waiting_and_does_not_begin_again() {
    let bench = Bench::new(&[AWAY]);
    let first = bench.process();
    let task_id = invoke(&first, "go").await;
    let state = waiting(&first, &task_id, 8).await;
    let next_at = state.outage.next_at.expect("a time");
    first.shutdown(Duration::ZERO).await;
    let asked = bench.model.asked();
    bench.model.now(FINE);
    let second = bench.process();
    let recovered = second.recover().await.expect("recovered");
    assert_eq!(recovered.begun, std::slice::from_ref(&task_id));
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(bench.model.asked(), asked, "the next attempt is later");
    assert_eq!(ended(&second, &task_id).await.status, TaskStatus::Completed);
    let late = bench.clock.now() - next_at;
    assert!(late >= chrono::TimeDelta::zero() && late < chrono::TimeDelta::seconds(1), "{late}");
    assert_eq!(bench.waits().await.len(), 8, "the restart wrote nothing");
}

#[tokio::test(start_paused = true)]
async fn two_hundred_waiting_tasks_cost_an_event_for_each_attempt_and_hold_nothing() {
    let bench = Bench::new(&[AWAY]);
    let orchestrator = bench.process();
    let mut tasks = Vec::new();
    for _ in 0..200 {
        tasks.push(invoke(&orchestrator, "go").await);
    }
    for task_id in &tasks {
        waiting(&orchestrator, task_id, 10).await;
    }
    let (asked, before) = (bench.model.asked(), bench.events().await.len());
    tokio::time::sleep(Duration::from_secs(3600)).await;
    let (attempts, written) = (bench.model.asked() - asked, bench.events().await.len() - before);
    // A pause is 150 s to 300 s: 12 to 24 attempts an hour.
    assert!((200 * 11..=200 * 25).contains(&attempts), "{attempts} attempts");
    assert_eq!(written, attempts, "one event for each attempt");
    let first = orchestrator.task(&tasks[0]).await.expect("a task");
    let mut times: Vec<_> = vec![first.outage.next_at];
    for task_id in &tasks[1..] {
        times.push(orchestrator.task(task_id).await.expect("a task").outage.next_at);
    }
    times.sort_unstable();
    times.dedup();
    assert!(times.len() > 150, "they do not come back at one moment");
    bench.model.now(FINE);
    for task_id in &tasks {
        assert_eq!(ended(&orchestrator, task_id).await.status, TaskStatus::Completed);
    }
}

/// A live agent whose model is away.
struct Away {
    live_agents: LiveAgents,
    model: Arc<Moody>,
}

impl Away {
    fn new() -> Self {
        let roster = Roster::default().with(clerk("bob"));
        let live_agents = LiveAgents::with(roster, "name = \"unused\"\n".to_owned());
        let mut away = Self { live_agents, model: Moody::of(&[AWAY]) };
        away.live_agents.orchestrator = away.process();
        away
    }

    /// A process on the same journal.
    fn process(&self) -> Orchestrator {
        let team: &Team = &self.live_agents.team;
        Orchestrator::new(RuntimeDeps {
            models: Arc::new(MoodyModels(Arc::clone(&self.model))),
            clock: Arc::clone(&self.live_agents.clock),
            journal: Arc::clone(&team.journal),
            ..team.world()
        })
    }
}

#[tokio::test(start_paused = true)]
async fn a_parent_that_is_resumed_takes_its_waiting_child_along() {
    let mut away = Away::new();
    let call = calls(r#"{"agent":"bob","prompt":"help"}"#);
    *away.model.replies.lock().expect("no panic") =
        vec![format!("steps = [{call}]"), AWAY.to_owned()];
    let task_id = invoke(&away.live_agents.orchestrator, "go").await;
    let child = loop {
        let tasks = away.live_agents.team.tasks().await;
        let waits = |task: &&TaskSummary| task.waiting_for == Some(WaitingFor::Model);
        if let Some(child) = tasks.iter().find(waits) {
            break child.task_id.clone();
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    };
    assert_ne!(child, task_id);
    let waited = tokio::time::timeout(DAY / 4, away.live_agents.orchestrator.wait(&task_id)).await;
    assert!(waited.is_err(), "it waits for a child that will go on: {waited:?}");
    away.live_agents.orchestrator.shutdown(Duration::ZERO).await;
    away.model.now(FINE);
    away.live_agents.orchestrator = away.process();
    away.live_agents.orchestrator.resume(&task_id).await.expect("resumed");
    let state = ended(&away.live_agents.orchestrator, &task_id).await;
    assert_eq!(state.status, TaskStatus::Completed, "{:?}", state.detail);
}

#[tokio::test(start_paused = true)]
async fn a_live_agent_outlasts_an_outage_with_all_that_arrived() {
    let Away { live_agents, model } = Away::new();
    let (_, task_id) = live_agents.admit(message("bob", "first")).await;
    waiting(&live_agents.orchestrator, &task_id, 2).await;
    // Peers do not end the wait.
    let from_peer = |text: &str| Arrival::message(name("bob"), peer("carol"), text);
    let asked = model.asked();
    live_agents.admit(from_peer("second")).await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert_eq!(model.asked(), asked);
    // A request whose time is over is answered during the outage.
    let until = Some(live_agents.clock.now() + chrono::TimeDelta::seconds(40));
    let (overdue, _) =
        live_agents.admit(Arrival { until, ..request("bob", "count", json!(1)) }).await;
    let replied = live_agents.reply(overdue).await;
    assert_eq!(replied.result["code"], "timed_out");
    let (answered, _) = live_agents.admit(request("bob", "count", json!(2))).await;
    waiting(&live_agents.orchestrator, &task_id, 6).await;
    let state = live_agents.orchestrator.task(&task_id).await.expect("a task");
    assert_eq!(state.status, TaskStatus::Running, "it is still there");
    model.now(FINE);
    let replied = live_agents.reply(answered).await;
    assert_eq!(replied.result, json!("All is well."));
    let state = live_agents.at_rest("bob").await;
    assert_eq!((state.task_id.clone(), state.queue.len()), (task_id, 0));
    let said = crate::live_agents::said(&state);
    assert!(said.iter().any(|line| line.contains("first")), "{said:?}");
    assert!(said.iter().any(|line| line.contains("second")), "{said:?}");
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_waits_for_the_task_is_not_told_that_it_stopped() {
    let bench = Bench::new(&[AWAY]);
    let orchestrator = bench.process();
    let task_id = invoke(&orchestrator, "go").await;
    let waited = tokio::time::timeout(DAY / 4, orchestrator.wait(&task_id)).await;
    assert!(waited.is_err(), "{waited:?}");
    let gone = orchestrator.cancel(&task_id).await;
    assert_eq!(gone, Ok(()));
    let ended = orchestrator.resume(&task_id).await;
    assert!(matches!(ended, Err(OrchestratorError::Ended { .. })), "{ended:?}");
}
