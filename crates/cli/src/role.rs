//! A task for one of the project's agents: what its definition says, and what was asked for.

use antiphon_core::port::{Agents, PromptSource};
use antiphon_core::{AgentDefinition, TaskLimits};
use antiphon_runtime::{NewTask, Orchestrator};

/// The task as the agent takes it on. What was asked for of its limits holds beside its own: the
/// lower counts.
pub(crate) fn taken_on(
    task: NewTask,
    agent: &AgentDefinition,
    agents: &dyn Agents,
    orchestrator: &Orchestrator,
) -> Result<NewTask, String> {
    let runner = orchestrator
        .choose_runner(&agent.runtimes)
        .map_err(|reason| format!("nobody can run `{}`: {reason}", agent.name))?;
    Ok(NewTask {
        agent: agent.name.to_string(),
        system_prompt: agents.system_prompt(PromptSource::Named(agent)),
        tools: agent.tools.clone(),
        agents: agent.agents.clone(),
        runner,
        limits: lower(task.limits, agent.limits),
        output_schema: task.output_schema.or_else(|| agent.output_schema.clone()),
        ..task
    })
}

/// The lower of each.
fn lower(asked: TaskLimits, own: TaskLimits) -> TaskLimits {
    fn least<T: Ord>(one: Option<T>, other: Option<T>) -> Option<T> {
        [one, other].into_iter().flatten().min()
    }
    TaskLimits {
        turns_max: least(asked.turns_max, own.turns_max),
        answer_tokens_max: least(asked.answer_tokens_max, own.answer_tokens_max),
        tool_calls_max: least(asked.tool_calls_max, own.tool_calls_max),
        tokens_max: least(asked.tokens_max, own.tokens_max),
        cost_nano_usd_max: least(asked.cost_nano_usd_max, own.cost_nano_usd_max),
        wall_clock_s_max: least(asked.wall_clock_s_max, own.wall_clock_s_max),
        depth_max: least(asked.depth_max, own.depth_max),
        fan_out_max: least(asked.fan_out_max, own.fan_out_max),
        tasks_max: least(asked.tasks_max, own.tasks_max),
    }
}
