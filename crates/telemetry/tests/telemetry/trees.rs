//! Many tasks, one trace, and the same names for whoever looks again.

use antiphon_core::*;
use antiphon_telemetry::{FinishedSpan, Traces};

use crate::spans::told;
use crate::story::*;

/// A task that dispatches two others by one call.
fn a_team() -> Story {
    let mut story = Story::new();
    story.tell("t1", created("planner")).tell("t1", status(TaskStatus::Running));
    story.tell("t1", dispatched("c1", &["t2", "t3"]));
    story.tell("t2", child("coder", "t1", "t1")).tell("t3", child("critic", "t1", "t1"));
    story.at_ms(10).tell("t2", status(TaskStatus::Completed));
    story.at_ms(20).tell("t3", status(TaskStatus::Completed));
    story.at_ms(30).tell("t1", result("c1", "call_agent", Went::Well));
    story.at_ms(40).tell("t1", status(TaskStatus::Completed));
    story
}

fn named<'a>(spans: &'a [FinishedSpan], name: &str) -> &'a FinishedSpan {
    spans.iter().find(|span| span.name == name).unwrap()
}

#[test]
fn children_hang_below_the_call_that_dispatched_them() {
    let spans = told(&a_team());
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
fn trees_are_traces_of_their_own() {
    let mut story = a_team();
    story.tell("t9", created("planner")).tell("t9", status(TaskStatus::Completed));
    let spans = told(&story);
    assert_ne!(spans[3].trace_id, spans[4].trace_id);
    assert_ne!(spans[3].span_id, spans[4].span_id);
}

#[test]
fn another_process_that_reads_the_same_journal_tells_the_same() {
    assert_eq!(told(&a_team()), told(&a_team()));
}

#[test]
fn the_names_are_what_they_were_in_earlier_versions() {
    // Traces go on over an update: a change here breaks them in two.
    let spans = told(&a_team());
    let top = named(&spans, "invoke_agent planner");
    let call = named(&spans, "execute_tool call_agent");
    assert_eq!(
        [top.trace_id.to_string(), top.span_id.to_string(), call.span_id.to_string()],
        ["315588ef7ecce634225739a7c5ad497f", "f9bda6c66f069b8c", "c562b4f2b5536e02"]
    );
}

#[test]
fn an_event_that_comes_again_makes_no_span() {
    let (story, traces) = (a_team(), Traces::new());
    story.each(|event| drop(traces.observe(event)));
    let again: Vec<_> = story.events.iter().flat_map(|event| traces.observe(event)).collect();
    assert_eq!(again, []);
}

#[test]
fn whoever_begins_where_it_is_needed_tells_the_rest_and_nothing_twice() {
    let story = a_team();
    let whole = told(&story);
    for stopped in 0..=story.events.len() {
        let before = Traces::new();
        let (seen, _) = story.events.split_at(stopped);
        let mut spans: Vec<_> = seen.iter().flat_map(|event| before.observe(event)).collect();
        let needed = before.needed_from();
        // Another process begins there, and knows how far the first had got.
        let after = Traces::told_up_to(Position(stopped as u64));
        let rest = story.events.iter().filter(|event| event.position > needed);
        spans.extend(rest.flat_map(|event| after.observe(event)));
        assert_eq!(spans, whole, "stopped behind {stopped}");
    }
}

#[test]
fn where_nothing_is_open_nothing_is_needed() {
    let (story, traces) = (a_team(), Traces::new());
    assert_eq!(traces.needed_from(), Position(0));
    story.each(|event| drop(traces.observe(event)));
    assert_eq!(traces.needed_from(), Position(9));
}

#[test]
fn a_child_whose_dispatch_was_not_seen_hangs_below_its_parents_task() {
    let story = a_team();
    let traces = Traces::new();
    let missed = story.events.iter().filter(|event| event.position.0 != 3);
    let spans: Vec<_> = missed.flat_map(|event| traces.observe(event)).collect();
    let top = named(&spans, "invoke_agent planner");
    assert_eq!(named(&spans, "invoke_agent coder").parent, Some(top.span_id));
    assert_eq!(named(&spans, "invoke_agent coder").trace_id, top.trace_id);
}

#[test]
fn a_task_that_was_not_seen_from_its_creation_has_no_spans() {
    let traces = Traces::new();
    let story = a_team();
    let spans: Vec<_> = story.events[7..].iter().flat_map(|event| traces.observe(event)).collect();
    assert_eq!(spans, []);
}

#[test]
fn a_call_whose_task_has_ended_is_remembered_for_no_child() {
    let mut story = Story::new();
    story.tell("t1", created("planner")).tell("t1", dispatched("c1", &["t2"]));
    story.tell("t1", status(TaskStatus::Canceled));
    story.tell("t2", child("coder", "t1", "t1")).tell("t2", status(TaskStatus::Canceled));
    let spans = told(&story);
    let (top, late) = (named(&spans, "invoke_agent planner"), named(&spans, "invoke_agent coder"));
    assert_eq!((late.parent, late.trace_id), (Some(top.span_id), top.trace_id));
}
