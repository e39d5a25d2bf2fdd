//! Task trees: one trace, and the same ids for every reader.

use antiphon_core::*;
use antiphon_telemetry::{FinishedSpan, Traces};

use crate::journal_builder::*;
use crate::spans::exported;

/// A task that dispatches two others with one call.
fn a_team() -> JournalBuilder {
    let mut journal = JournalBuilder::new();
    journal.append("t1", created("planner")).append("t1", status(TaskStatus::Running));
    journal.append("t1", dispatched("c1", &["t2", "t3"]));
    journal.append("t2", child("coder", "t1", "t1")).append("t3", child("critic", "t1", "t1"));
    journal.at_ms(10).append("t2", status(TaskStatus::Completed));
    journal.at_ms(20).append("t3", status(TaskStatus::Completed));
    journal.at_ms(30).append("t1", result("c1", "call_agent", Went::Well));
    journal.at_ms(40).append("t1", status(TaskStatus::Completed));
    journal
}

fn named<'a>(spans: &'a [FinishedSpan], name: &str) -> &'a FinishedSpan {
    spans.iter().find(|span| span.name == name).unwrap()
}

#[test]
fn children_have_the_call_that_dispatched_them_as_parent() {
    let spans = exported(&a_team());
    let names: Vec<_> = spans.iter().map(|span| span.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "invoke_agent coder",
            "invoke_agent critic",
            "execute_tool call_agent",
            "invoke_agent planner"
        ]
    );
    let (call, top) = (&spans[2], &spans[3]);
    assert_eq!(spans[0].parent, Some(call.span_id));
    assert_eq!(spans[1].parent, Some(call.span_id));
    assert_eq!(call.parent, Some(top.span_id));
    assert_eq!(top.parent, None);
    assert!(spans.iter().all(|span| span.trace_id == top.trace_id));
}

#[test]
fn each_task_tree_is_its_own_trace() {
    let mut journal = a_team();
    journal.append("t9", created("planner")).append("t9", status(TaskStatus::Completed));
    let spans = exported(&journal);
    assert_ne!(spans[3].trace_id, spans[4].trace_id);
    assert_ne!(spans[3].span_id, spans[4].span_id);
}

#[test]
fn another_process_that_reads_the_same_journal_makes_the_same_spans() {
    assert_eq!(exported(&a_team()), exported(&a_team()));
}

#[test]
fn the_ids_are_stable_across_versions() {
    // A running trace must survive an update: a change here breaks it in two.
    let spans = exported(&a_team());
    let top = named(&spans, "invoke_agent planner");
    let call = named(&spans, "execute_tool call_agent");
    assert_eq!(
        [top.trace_id.to_string(), top.span_id.to_string(), call.span_id.to_string()],
        ["315588ef7ecce634225739a7c5ad497f", "f9bda6c66f069b8c", "c562b4f2b5536e02"]
    );
}

#[test]
fn a_repeated_event_makes_no_span() {
    let (journal, traces) = (a_team(), Traces::new());
    journal.each(|event| drop(traces.observe(event)));
    let again: Vec<_> = journal.events.iter().flat_map(|event| traces.observe(event)).collect();
    assert_eq!(again, []);
}

#[test]
fn a_restart_at_the_needed_position_exports_the_rest_and_nothing_twice() {
    let journal = a_team();
    let whole = exported(&journal);
    for stopped in 0..=journal.events.len() {
        let before = Traces::new();
        let (seen, _) = journal.events.split_at(stopped);
        let mut spans: Vec<_> = seen.iter().flat_map(|event| before.observe(event)).collect();
        let needed = before.needed_from();
        // Another process starts there, and knows the position of the first.
        let after = Traces::exported_up_to(Position(stopped as u64));
        let rest = journal.events.iter().filter(|event| event.position > needed);
        spans.extend(rest.flat_map(|event| after.observe(event)));
        assert_eq!(spans, whole, "stopped behind {stopped}");
    }
}

#[test]
fn without_open_tasks_nothing_is_needed() {
    let (journal, traces) = (a_team(), Traces::new());
    assert_eq!(traces.needed_from(), Position(0));
    journal.each(|event| drop(traces.observe(event)));
    assert_eq!(traces.needed_from(), Position(9));
}

#[test]
fn a_child_whose_dispatch_was_not_seen_has_its_parent_task_as_parent() {
    let journal = a_team();
    let traces = Traces::new();
    let missed = journal.events.iter().filter(|event| event.position.0 != 3);
    let spans: Vec<_> = missed.flat_map(|event| traces.observe(event)).collect();
    let top = named(&spans, "invoke_agent planner");
    assert_eq!(named(&spans, "invoke_agent coder").parent, Some(top.span_id));
    assert_eq!(named(&spans, "invoke_agent coder").trace_id, top.trace_id);
}

#[test]
fn a_task_whose_creation_was_not_seen_has_no_spans() {
    let traces = Traces::new();
    let journal = a_team();
    let spans: Vec<_> =
        journal.events[7..].iter().flat_map(|event| traces.observe(event)).collect();
    assert_eq!(spans, []);
}

#[test]
fn a_call_of_an_ended_task_is_not_kept_for_children() {
    let mut journal = JournalBuilder::new();
    journal.append("t1", created("planner")).append("t1", dispatched("c1", &["t2"]));
    journal.append("t1", status(TaskStatus::Canceled));
    journal.append("t2", child("coder", "t1", "t1")).append("t2", status(TaskStatus::Canceled));
    let spans = exported(&journal);
    let (top, late) = (named(&spans, "invoke_agent planner"), named(&spans, "invoke_agent coder"));
    assert_eq!((late.parent, late.trace_id), (Some(top.span_id), top.trace_id));
}
