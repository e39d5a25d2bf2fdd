//! Sample events between a task and its children.

use std::num::NonZeroU32;

use antiphon_core::{
    Awaited, Awaiting, CallableAgents, ContextScope, Dispatched, EventBody, HandedOver, Join,
    ModelRef, RawJson, Relayed, Seq, TaskId, ToolRequested,
};
use chrono::DateTime;

use super::{ODD_ARGUMENTS, ODD_TEXT, call_id, odd_boot_time};
use crate::journal::test_journal::{noon, task};
use crate::suite::{During, Finding};

/// More children than a row of a table usually holds.
const MANY_CHILDREN: u64 = 2000;

pub(super) fn between_tasks() -> Result<Vec<EventBody>, Finding> {
    let many: Vec<TaskId> = (0..MANY_CHILDREN).map(task).collect();
    let odd = TaskId::parse("task-é.1").during("a task id")?;
    let nanosecond = DateTime::from_timestamp(1_771_416_000, 123_456_789);
    Ok(vec![
        EventBody::from(ToolRequested {
            tool_call_id: call_id()?,
            tool_name: ODD_TEXT.to_owned(),
            arguments: RawJson::parse(ODD_ARGUMENTS).during("JSON")?,
            until: nanosecond.unwrap_or_else(noon),
            boot_until: Some(odd_boot_time()),
        }),
        dispatched(ContextScope::Independent, Join::All, many)?,
        dispatched(ContextScope::Inherited, Join::Quorum { n: NonZeroU32::MAX }, vec![task(1)])?,
        dispatched(ContextScope::Shared, Join::Any, Vec::new())?,
        EventBody::from(Awaited {
            tool_call_id: call_id()?,
            // The order and repetitions are kept.
            tasks: vec![task(3), odd.clone(), task(2), task(3)],
            mode: Awaiting::Any,
            until: nanosecond,
            boot_until: Some(odd_boot_time()),
        }),
        EventBody::from(Awaited {
            tool_call_id: call_id()?,
            tasks: Vec::new(),
            mode: Awaiting::All,
            until: None,
            boot_until: None,
        }),
        EventBody::from(HandedOver {
            tool_call_id: call_id()?,
            agent: ODD_TEXT.to_owned(),
            model: Some(ModelRef::parse("local/org/model.gguf").during("a model")?),
            fallbacks: vec![ModelRef::parse("scripted/hello").during("a model")?],
            system_prompt: ODD_TEXT.to_owned(),
            tools: Some(Vec::new()),
            agents: CallableAgents::Only(Vec::new()),
        }),
        EventBody::from(HandedOver {
            tool_call_id: call_id()?,
            agent: String::new(),
            model: None,
            fallbacks: Vec::new(),
            system_prompt: String::new(),
            tools: None,
            agents: CallableAgents::Any,
        }),
        EventBody::from(Relayed { task_id: odd, seq: Seq(u64::MAX), tasks: Vec::new() }),
    ])
}

fn dispatched(
    context: ContextScope,
    join: Join,
    children: Vec<TaskId>,
) -> Result<EventBody, Finding> {
    Ok(Dispatched { tool_call_id: call_id()?, context, join, children, left_out: Vec::new() }
        .into())
}
