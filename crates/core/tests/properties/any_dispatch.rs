//! Anything that happens between a task and those that work for it.

use antiphon_core::*;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

use crate::any_conversation::model;
use crate::any_event::call_id;
use crate::any_exchange::{join, task_id};
use crate::any_json::{object, text, time};

pub(crate) fn between_tasks() -> impl Strategy<Value = EventBody> {
    let relayed = (task_id(), any::<u64>()).prop_map(|(task_id, seq)| Relayed {
        task_id,
        seq: Seq(seq),
        tasks: Vec::new(),
    });
    prop_oneof![
        requested().boxed(),
        dispatched().boxed(),
        awaited().boxed(),
        handed_over().boxed(),
        relayed.prop_map(EventBody::from).boxed(),
    ]
}

/// A model, and those behind it.
pub(crate) fn who_answers() -> impl Strategy<Value = (Option<ModelRef>, Vec<ModelRef>)> {
    (option::of(model()), vec(model(), 0..3))
}

pub(crate) fn may_call() -> impl Strategy<Value = CallableAgents> {
    prop_oneof![Just(CallableAgents::Any), vec(text(), 0..3).prop_map(CallableAgents::Only)]
}

fn requested() -> impl Strategy<Value = EventBody> {
    (call_id(), text(), object(), time()).prop_map(|(tool_call_id, tool_name, arguments, until)| {
        ToolRequested { tool_call_id, tool_name, arguments, until, boot_until: None }.into()
    })
}

/// A task that is handed over has no child, so nothing that is shared is dispatched.
fn dispatched() -> impl Strategy<Value = EventBody> {
    let scopes = [ContextScope::Independent, ContextScope::Inherited];
    (call_id(), select(scopes.to_vec()), join(), vec(task_id(), 1..4)).prop_map(
        |(tool_call_id, context, join, children)| {
            Dispatched { tool_call_id, context, join, children, left_out: Vec::new() }.into()
        },
    )
}

fn awaited() -> impl Strategy<Value = EventBody> {
    let modes = [Awaiting::Any, Awaiting::All];
    (call_id(), vec(task_id(), 1..4), select(modes.to_vec()), option::of(time())).prop_map(
        |(tool_call_id, tasks, mode, until)| {
            Awaited { tool_call_id, tasks, mode, until, boot_until: None }.into()
        },
    )
}

fn handed_over() -> impl Strategy<Value = EventBody> {
    let tools = option::of(vec(text(), 0..3));
    (call_id(), text(), who_answers(), text(), tools, may_call()).prop_map(
        |(tool_call_id, agent, (model, fallbacks), system_prompt, tools, agents)| {
            HandedOver { tool_call_id, agent, model, fallbacks, system_prompt, tools, agents }
                .into()
        },
    )
}
