//! Histories of a few tasks, with valid and invalid appends.

use std::collections::BTreeMap;

use antiphon_core::port::{Append, Expected, Rule};
use antiphon_core::{
    AgentId, AgentState, ApprovalDecided, ApprovalId, ApprovalRequested, AssistantBlock,
    AssistantMessage, Awaited, Awaiting, BudgetRaised, CallableAgents, Compacted, ContextScope,
    Decision, Dispatched, Effect, EventBody, HandedOver, HandlingMode, InteractionId, Join,
    Message, MessageAppended, MessageQueued, ModelRef, Purpose, RawJson, Relayed, Replied,
    ResponseStatus, Sender, Seq, SessionId, StateChanged, StatusChanged, StopReason, TaskCreated,
    TaskId, TaskStatus, ToolCallId, ToolRefused, ToolRequested, ToolStarted, Usage, UsageRecorded,
    UserMessage, WaitingFor,
};
use chrono::DateTime;
use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use uuid::Uuid;

use crate::POISON;

pub(crate) const TASKS: u8 = 5;
pub(crate) const SESSIONS: u8 = 2;
pub(crate) const INTERACTIONS: u128 = 4;

#[derive(Debug, Clone)]
pub(crate) enum Step {
    /// One append.
    Append { task: u8, place: Place, events: Vec<EventBody> },
    /// Concurrent appends to several tasks.
    Together { tasks: BTreeMap<u8, Vec<EventBody>>, poisoned: bool },
    /// The journal is closed and opened.
    Reopen,
    /// Every task is indexed.
    Index,
}

/// Position that a writer expects.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Place {
    /// The current one.
    Here,
    /// An older one, with only arrivals since.
    Behind(u64),
    /// Any.
    There,
}

/// Some tasks exist from the start, others are created later.
pub(crate) fn any_history() -> impl Strategy<Value = Vec<Step>> {
    let begun = vec(any_creation(), 2..usize::from(TASKS));
    (begun, vec(any_step(), 1..20)).prop_map(|(begun, steps)| {
        let begun = (0..).zip(begun).map(|(task, created)| begin(task, created, Vec::new()));
        begun.chain(steps).collect()
    })
}

fn any_step() -> impl Strategy<Value = Step> {
    let begin = (0..TASKS, any_creation(), any_events())
        .prop_map(|(task, created, more)| begin(task, created, more));
    let append = (0..TASKS, any_place(), any_events())
        .prop_map(|(task, place, events)| Step::Append { task, place, events });
    let ends = [TaskStatus::Completed, TaskStatus::Failed, TaskStatus::Canceled];
    let end =
        (0..TASKS, any_events(), select(ends.to_vec())).prop_map(|(task, mut events, end)| {
            events.push(StatusChanged::new(end).into());
            Step::Append { task, place: Place::Here, events }
        });
    let together = (btree_map(0..TASKS, any_events(), 2..=TASKS.into()), any::<bool>())
        .prop_map(|(tasks, poisoned)| Step::Together { tasks, poisoned });
    prop_oneof![2 => begin, 10 => append, 3 => end, 2 => together, 1 => Just(Step::Reopen), 2 => Just(Step::Index)]
}

fn begin(task: u8, created: EventBody, more: Vec<EventBody>) -> Step {
    let events = [created].into_iter().chain(more).collect();
    Step::Append { task, place: Place::Here, events }
}

fn any_place() -> impl Strategy<Value = Place> {
    prop_oneof![
        2 => Just(Place::Here),
        3 => (0..4_u64).prop_map(Place::Behind),
        1 => Just(Place::There),
    ]
}

pub(crate) fn append(number: u8, expected: Expected, events: Vec<EventBody>) -> Append {
    let seconds = match expected {
        // Each a little later, so that no two times are equal.
        Expected::At(seq) | Expected::AtOrArrivals(seq) => i64::try_from(seq.0).unwrap_or_default(),
        Expected::NoTask => 0,
        Expected::Exists => 1_000_000,
    };
    let at = DateTime::from_timestamp(seconds, 123_456_789).unwrap_or_default();
    Append { task_id: task(number), expected, at, events, key: None }
}

fn any_events() -> impl Strategy<Value = Vec<EventBody>> {
    vec(any_event(), 1..3)
}

fn any_event() -> impl Strategy<Value = EventBody> {
    prop_oneof![
        4 => any_status(),
        4 => (0..3_u128, select(&AgentState::ALL[..])).prop_map(|(n, from)| moved_from(n, from)),
        4 => (any_message(), option::of(any_id())).prop_map(|(message, queued)| {
            MessageAppended { queued, ..MessageAppended::new(message) }.into()
        }),
        6 => any_arrival(),
        2 => any_reply(),
        3 => (0..4_u8).prop_map(requested),
        3 => any_decision(),
        2 => any_usage(),
        1 => any_raise(),
        3 => any_handover(),
        1 => any_dispatch(),
        1 => Just(ToolStarted { tool_call_id: call(), tool_name: "look".to_owned(), effect: Effect::ReadOnly, note: None }.into()),
        1 => Just(ToolRefused { tool_call_id: call(), tool_name: "look".to_owned(), reason: "no".to_owned() }.into()),
        1 => Just(Compacted { summary: "much".to_owned(), kept_from: 1 }.into()),
    ]
}

/// Sometimes it replaces another message, even itself.
fn any_arrival() -> impl Strategy<Value = EventBody> {
    (any_id(), option::weighted(0.3, any_id())).prop_map(|(id, replaces)| {
        let message = UserMessage::text(format!("{id}"), DateTime::UNIX_EPOCH);
        let queued = MessageQueued::of_user(id, HandlingMode::Queue, message);
        MessageQueued { replaces, ..queued }.into()
    })
}

fn any_reply() -> impl Strategy<Value = EventBody> {
    use ResponseStatus::{Accepted, Completed, Failed};
    let status = select([Accepted, Completed, Failed].to_vec());
    (any_id(), status, 0..9_u8).prop_map(|(in_reply_to, status, result)| {
        let result = result.into();
        Replied { in_reply_to, to: Sender::User, reply_to: None, status, result }.into()
    })
}

fn any_handover() -> impl Strategy<Value = EventBody> {
    let agent = select(&["lawyer", "clerk", "", "\u{202E}odd\u{0}"][..]);
    let model = option::of(select(&["scripted/law", "local/a/b"][..]));
    (agent, model).prop_map(|(agent, model)| handed_over(agent, model))
}

/// Events without a row in the index.
fn any_dispatch() -> impl Strategy<Value = EventBody> {
    let requested = ToolRequested {
        tool_call_id: call(),
        tool_name: "browse".to_owned(),
        arguments: RawJson::empty_object(),
        until: DateTime::UNIX_EPOCH,
        boot_until: None,
    };
    let dispatched = Dispatched {
        tool_call_id: call(),
        context: ContextScope::Independent,
        join: Join::Any,
        children: vec![task(1), task(2)],
        left_out: Vec::new(),
    };
    let awaited = Awaited {
        tool_call_id: call(),
        tasks: vec![task(1)],
        mode: Awaiting::All,
        until: None,
        boot_until: None,
    };
    let relayed = Relayed { task_id: task(0), seq: Seq(1), tasks: Vec::new() };
    let bodies: [EventBody; 4] =
        [requested.into(), dispatched.into(), awaited.into(), relayed.into()];
    select(bodies.to_vec())
}

fn any_creation() -> impl Strategy<Value = EventBody> {
    let other = || option::of((0..TASKS).prop_map(task));
    let model = option::of(Just(ModelRef::parse("scripted/hello").expect("a model")));
    let payer = option::of(select(&["", "key", "other"][..]));
    let agent = select(&["tester", "tester", "orders"][..]);
    (0..SESSIONS, other(), other(), model, payer, agent).prop_map(
        |(session, parent, root, model, payer, agent)| {
            let payer = payer.map(str::to_owned);
            let created = TaskCreated::new(agent, session_id(session));
            TaskCreated { parent, root, model, payer, ..created }.into()
        },
    )
}

/// Sometimes a terminal status with an event after it.
fn any_status() -> impl Strategy<Value = EventBody> {
    const WAITS: [WaitingFor; 4] =
        [WaitingFor::Approval, WaitingFor::Resume, WaitingFor::ToolResult, WaitingFor::Budget];
    let waiting = option::of(select(&WAITS[..]));
    let others = [TaskStatus::Pending, TaskStatus::Running, TaskStatus::InputRequired];
    let status = prop_oneof![12 => select(others.to_vec()), 1 => select(&TaskStatus::ALL[..])];
    (status, waiting).prop_map(|(status, waiting_for)| {
        StatusChanged { waiting_for, ..StatusChanged::new(status) }.into()
    })
}

fn any_message() -> impl Strategy<Value = Message> {
    let text = select(&["", "One.", "\n Two. \nThree.", "\u{202E}odd\u{0}", "4 💬"][..]);
    (text, any::<bool>()).prop_map(|(text, asks)| {
        if asks {
            return UserMessage::text(text, DateTime::UNIX_EPOCH).into();
        }
        AssistantMessage {
            content: vec![AssistantBlock::text(text)],
            stop_reason: StopReason::EndTurn,
            raw_stop_reason: "end_turn".to_owned(),
            usage: Usage::default(),
            model: None,
            timestamp: DateTime::UNIX_EPOCH,
        }
        .into()
    })
}

fn any_decision() -> impl Strategy<Value = EventBody> {
    let decisions = [
        Decision::AllowOnce,
        Decision::AllowTask,
        Decision::AllowAlways,
        Decision::Deny,
        Decision::Expire,
    ];
    (0..4_u8, select(decisions.to_vec())).prop_map(|(n, decision)| {
        let approval_id = approval_id(n);
        ApprovalDecided { approval_id, decision, by: "ada".to_owned(), comment: None, answer: None }
            .into()
    })
}

fn any_usage() -> impl Strategy<Value = EventBody> {
    let tokens = || select(vec![0, 1, 1000, i64::MAX.unsigned_abs(), u64::MAX]);
    let cached = || option::of(tokens());
    let model = select(&["a/small", "b/large"][..]);
    (model, tokens(), tokens(), cached(), cached(), any::<bool>()).prop_map(
        |(model, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, turn)| {
            let usage =
                Usage { input_tokens, output_tokens, cache_read_tokens, cache_write_tokens };
            let purpose = (!turn).then_some(Purpose::Compaction);
            UsageRecorded { model: model.to_owned(), usage, purpose }.into()
        },
    )
}

fn any_raise() -> impl Strategy<Value = EventBody> {
    let payer = option::of(select(&["", "key"][..]));
    (select(vec![0, 1, u64::MAX]), payer).prop_map(|(nano_usd, payer)| {
        let payer = payer.map(str::to_owned);
        BudgetRaised { nano_usd, payer, by: "ada".to_owned(), comment: None }.into()
    })
}

fn any_id() -> impl Strategy<Value = InteractionId> {
    (0..INTERACTIONS).prop_map(interaction_id)
}

pub(crate) fn interaction_id(n: u128) -> InteractionId {
    InteractionId(Uuid::from_u128(n))
}

pub(crate) fn handed_over(agent: &str, model: Option<&str>) -> EventBody {
    HandedOver {
        tool_call_id: call(),
        agent: agent.to_owned(),
        model: model.map(|model| ModelRef::parse(model).expect("a model")),
        fallbacks: Vec::new(),
        system_prompt: String::new(),
        tools: None,
        agents: CallableAgents::Any,
    }
    .into()
}

pub(crate) fn created(session: u8) -> EventBody {
    TaskCreated::new("tester", session_id(session)).into()
}

/// The first state of the `n`th agent.
pub(crate) fn moved(n: u128) -> EventBody {
    moved_from(n, AgentState::Idle)
}

fn moved_from(n: u128, from: AgentState) -> EventBody {
    StateChanged::new(AgentId(Uuid::from_u128(n)), from, from.next()).into()
}

/// No transaction with it is written.
pub(crate) fn poison() -> EventBody {
    Compacted { summary: POISON.to_owned(), kept_from: 0 }.into()
}

fn requested(n: u8) -> EventBody {
    ApprovalRequested {
        approval_id: approval_id(n),
        tool_call_id: call(),
        tool_name: "bash".to_owned(),
        arguments: RawJson::empty_object(),
        reason: "it is asked".to_owned(),
        rule: Rule("bash(*)".to_owned()),
        expires_at: n.is_multiple_of(2).then_some(DateTime::UNIX_EPOCH),
        boot_until: None,
        question: None,
    }
    .into()
}

fn call() -> ToolCallId {
    ToolCallId::parse("call").expect("an id")
}

pub(crate) fn task(number: u8) -> TaskId {
    TaskId::parse(&format!("task-{number}")).expect("an id")
}

pub(crate) fn session_id(number: u8) -> SessionId {
    SessionId::parse(&format!("session-{number}")).expect("an id")
}

pub(crate) fn approval_id(number: u8) -> ApprovalId {
    ApprovalId::parse(&format!("approval-{number}")).expect("an id")
}
