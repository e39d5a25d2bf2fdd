//! The order in which an inbox is read, for any content.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use antiphon_core::port::SystemClock;
use antiphon_core::{
    AssistantMessage, EventBody, HandlingMode, Interaction, InteractionContent, InteractionId,
    MessageAppended, MessageQueued, PriceTable, RenderClass, RenderMetadata, Replied,
    ResponseStatus, Salience, Sender, SessionId, SilentIntents, StopReason, TaskCreated, TaskId,
    Usage, classify,
};
use antiphon_runtime::{
    Action, Conversation, DeadlineClock, LimitContext, Outcomes, TURN_MESSAGES_MAX, TaskState,
    next_action,
};
use chrono::DateTime;
use proptest::prelude::*;
use serde_json::Value;

use crate::live_agents::peer;

const SENDERS: [&str; 4] = ["ada", "bob", "cyd", "dan"];

/// Something that waits: whose, how urgent, and what it is.
#[derive(Debug, Clone)]
struct Item {
    sender: usize,
    salience: Salience,
    kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Message,
    Request,
    Silent,
    Quiet,
}

fn any_item() -> impl Strategy<Value = Item> {
    let salience = prop_oneof![
        Just(Salience::Background),
        Just(Salience::Normal),
        Just(Salience::Important),
        Just(Salience::Urgent)
    ];
    let kind = prop_oneof![
        4 => Just(Kind::Message),
        2 => Just(Kind::Request),
        1 => Just(Kind::Silent),
        1 => Just(Kind::Quiet)
    ];
    (0..SENDERS.len(), salience, kind).prop_map(|(sender, salience, kind)| Item {
        sender,
        salience,
        kind,
    })
}

fn queued(index: usize, item: &Item) -> MessageQueued {
    let request = |intent: &str| InteractionContent::Request {
        intent: intent.to_owned(),
        params: Value::Null,
    };
    let content = match item.kind {
        Kind::Message | Kind::Quiet => {
            InteractionContent::Message { body: index.to_string(), blocks: None }
        }
        Kind::Request => request("do"),
        Kind::Silent => request("hush"),
    };
    let class = RenderClass::PeerMessage;
    let interaction = Interaction {
        id: InteractionId::from(uuid::Uuid::from_u128(index as u128)),
        from: peer(SENDERS[item.sender]),
        content,
        handling_mode: HandlingMode::Queue,
        render_metadata: Some(RenderMetadata { class, salience: item.salience }),
    };
    let silent = SilentIntents::from_iter(["hush"]);
    let quiet = item.kind == Kind::Quiet;
    MessageQueued { quiet, ..MessageQueued::of(classify(interaction, &silent)) }
}

/// A resident agent with this in its inbox.
fn agent(items: &[Item]) -> TaskState {
    let session_id = SessionId::parse("agent:me").expect("a session");
    let created = TaskCreated { resident: true, ..TaskCreated::new("me", session_id) };
    let task_id = TaskId::parse("t").expect("a task");
    let mut state =
        TaskState::created(task_id, created, DateTime::UNIX_EPOCH, Conversation::default());
    for (index, item) in items.iter().enumerate() {
        assert!(state.apply(&queued(index, item).into()));
    }
    state
}

fn decide(state: &TaskState) -> Action {
    let context = LimitContext {
        time: &DeadlineClock::new(Arc::new(SystemClock)),
        scopes: Vec::new(),
        outcomes: &Outcomes::new(),
        prices: &PriceTable::default(),
        window_tokens: None,
        budget: None,
    };
    next_action(state, &context)
}

/// Takes what is to be taken, and has the model say its last word to it.
fn turn(state: &mut TaskState, taken: &[InteractionId]) {
    let mut requested = None;
    for id in taken {
        let waiting = state.queue.iter().find(|queued| queued.id == *id).expect("it waits");
        if waiting.expects_answer() && waiting.wakes() {
            requested = Some((waiting.id, waiting.from.clone()));
        }
        let message = waiting.user_message(DateTime::UNIX_EPOCH);
        let appended = MessageAppended::of_queued(message, *id);
        assert!(state.apply(&EventBody::from(appended)));
    }
    assert_eq!(decide(state), Action::AskModel, "what was taken is read before anything else is");
    let answer = AssistantMessage {
        content: Vec::new(),
        stop_reason: StopReason::EndTurn,
        raw_stop_reason: String::new(),
        usage: Usage::default(),
        timestamp: DateTime::UNIX_EPOCH,
        model: None,
    };
    assert!(state.apply(&MessageAppended::new(answer).into()));
    let answers = matches!(decide(state), Action::AnswerRequest(_));
    assert_eq!(answers, requested.is_some(), "a requester is answered first");
    if let Some((in_reply_to, to)) = requested {
        let status = ResponseStatus::Completed;
        let replied = Replied { in_reply_to, to, reply_to: None, status, result: Value::Null };
        assert!(state.apply(&replied.into()));
    }
}

/// What must hold of one turn.
fn check(before: &[MessageQueued], taken: &[InteractionId]) {
    let taken_set: HashSet<InteractionId> = taken.iter().copied().collect();
    assert_eq!(taken_set.len(), taken.len(), "each once");
    let of = |id: &InteractionId| before.iter().find(|queued| queued.id == *id).expect("it waits");
    let (waking, quiet): (Vec<_>, Vec<_>) = taken.iter().map(of).partition(|queued| queued.wakes());
    let all_quiet: Vec<_> = before.iter().filter(|queued| !queued.wakes()).collect();
    assert_eq!(quiet, all_quiet, "quiet messages come along, in order");
    assert!(!waking.is_empty() && waking.len() <= TURN_MESSAGES_MAX);
    let requests = waking.iter().filter(|queued| queued.expects_answer()).count();
    assert!(requests == 0 || waking.len() == 1, "a request has a turn of its own");
    let left: Vec<_> = before.iter().filter(|q| q.wakes() && !taken_set.contains(&q.id)).collect();
    let least = waking.iter().map(|queued| queued.salience()).min().expect("some");
    assert!(left.iter().all(|queued| queued.salience() <= least), "the more salient first");
    assert!(waking.windows(2).all(|pair| pair[0].salience() >= pair[1].salience()));
    let mut shares: HashMap<(&Sender, Salience), usize> = HashMap::new();
    for queued in &waking {
        *shares.entry((&queued.from, queued.salience())).or_default() += 1;
    }
    for waits in &left {
        let own = shares.get(&(&waits.from, waits.salience())).copied().unwrap_or_default();
        let alike = shares.iter().filter(|((_, salience), _)| *salience == waits.salience());
        for ((other, _), share) in alike {
            assert!(*share <= own + 1, "{other} has more than its share");
        }
    }
    for waits in &left {
        let overtaken = waking.iter().find(|queued| {
            (&queued.from, queued.salience()) == (&waits.from, waits.salience())
                && queued.id.0 > waits.id.0
        });
        assert_eq!(overtaken, None, "arrival decides between a sender's own");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn everything_is_read_once_by_salience_and_no_sender_before_its_turn(
        items in proptest::collection::vec(any_item(), 0..60)
    ) {
        let mut state = agent(&items);
        let mut turns = 0;
        while let Action::TakeMessages(taken) = decide(&state) {
            let before = state.queue.clone();
            check(&before, &taken);
            turn(&mut state, &taken);
            turns += 1;
            prop_assert!(turns <= items.len());
        }
        prop_assert_eq!(decide(&state), Action::Idle);
        prop_assert!(state.queue.iter().all(|queued| !queued.wakes()));
        let woke = items.iter().any(|item| matches!(item.kind, Kind::Message | Kind::Request));
        prop_assert!(!woke || state.queue.is_empty());
        prop_assert!(state.current_request.is_none());
    }
}
