//! Any journal, in any order, is handled without a panic or a leak.

use antiphon_core::*;
use antiphon_telemetry::{FinishedSpan, Metrics, Traces};
use proptest::prelude::*;
use serde_json::json;

use crate::journal_builder::*;
use crate::samples::{samples, value};

/// An event of a task, also where it makes no sense.
fn body(kind: u8, which: u8) -> EventBody {
    let (call, number) = (format!("c{which}"), u128::from(which));
    match kind {
        0 => created("planner").into(),
        1 => child("coder", "t0", "t0").into(),
        2 => status(TaskStatus::Running).into(),
        3 => status(TaskStatus::Completed).into(),
        4 => failed(json!({"code": "overloaded"})).into(),
        5 => assistant_message(StopReason::EndTurn, "local/tiny", usage(1, 1)).into(),
        6 => assistant_message(StopReason::Error, "nobody", usage(1, 1)).into(),
        7 => paid("local/tiny", usage(1, 1)).into(),
        8 => UsageRecorded { purpose: Some(Purpose::Compaction), ..paid("", usage(1, 1)) }.into(),
        9 => started(&call, "read").into(),
        10 => refused(&call, "bash").into(),
        11 => result(&call, "read", Went::Well).into(),
        12 => question(&call, "bash").into(),
        13 => decided(&call, Decision::Deny).into(),
        14 => queued(number, PeerInputClass::PlainEvent).into(),
        15 => MessageAppended::of_queued(user_text("hi"), interaction(number)).into(),
        16 => request(&call, number).into(),
        17 => reply(number, ResponseStatus::Completed).into(),
        18 => dispatched(&call, &["t1", "t2"]).into(),
        19 => Compacted { summary: String::new(), kept_from: 1 }.into(),
        20 => Relayed { task_id: task_id("far"), seq: Seq(1), tasks: Vec::new() }.into(),
        21 => OutputRejected { reason: String::new() }.into(),
        22 => Awaited {
            tool_call_id: call_id(&call),
            tasks: vec![task_id("t1")],
            mode: Awaiting::All,
            until: None,
            boot_until: None,
        }
        .into(),
        23 => HandedOver {
            tool_call_id: call_id(&call),
            agent: "coder".to_owned(),
            model: None,
            fallbacks: vec![],
            system_prompt: String::new(),
            tools: None,
            agents: CallableAgents::Any,
        }
        .into(),
        24 => ToolRequested {
            tool_call_id: call_id(&call),
            tool_name: "page".to_owned(),
            arguments: RawJson::empty_object(),
            until: noon(),
            boot_until: None,
        }
        .into(),
        _ => {
            let states = [AgentState::Idle, AgentState::Thinking, AgentState::ToolCall];
            let agent_id = AgentId::from(uuid::Uuid::from_u128(number));
            let to = states[usize::from(which) % 3];
            StateChanged::new(agent_id, states[usize::from(kind) % 3], to).into()
        }
    }
}

prop_compose! {
    fn any_story()(steps in prop::collection::vec((0..4_u8, 0..34_u8, 0..4_u8, 0..5000_i64), 0..120)) -> JournalBuilder {
        let mut journal = JournalBuilder::new();
        for (task, kind, which, ms) in steps {
            journal.at_ms(ms).append(&format!("t{task}"), body(kind, which));
        }
        journal
    }
}

proptest! {
    #[test]
    fn any_journal_that_is_read_twice_is_counted_once(journal in any_story()) {
        let metrics = Metrics::new();
        journal.each(|event| metrics.observe(event));
        let once = metrics.render();
        samples(&metrics);
        journal.each(|event| metrics.observe(event));
        prop_assert_eq!(metrics.render(), once);
    }

    #[test]
    fn any_journal_whose_tasks_ended_leaves_no_state(mut journal in any_story()) {
        for task in ["t0", "t1", "t2", "t3"] {
            journal.append(task, status(TaskStatus::Completed));
        }
        let (metrics, traces) = (Metrics::new(), Traces::new());
        let mut spans: Vec<FinishedSpan> = Vec::new();
        journal.each(|event| {
            metrics.observe(event);
            spans.extend(traces.observe(event));
        });
        for left in ["tasks_open", "approvals_waiting", "interactions_waiting"] {
            prop_assert_eq!(value(&metrics, &format!("antiphon_{left}")), "0");
        }
        prop_assert_eq!(traces.needed_from(), Position(journal.events.len() as u64));
        let mut ids: Vec<_> = spans.iter().map(|span| span.span_id.to_string()).collect();
        ids.sort_unstable();
        ids.dedup();
        // A valid journal never creates a task twice.
        let again = journal.events.iter().filter(|event| matches!(event.body, EventBody::TaskCreated(_)));
        let tasks: std::collections::BTreeSet<_> = again.clone().map(|event| event.task_id.clone()).collect();
        if tasks.len() == again.count() {
            prop_assert_eq!(ids.len(), spans.len());
        }
    }
}
