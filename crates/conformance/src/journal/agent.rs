//! Agents of tasks that have not ended.

use antiphon_core::port::Append;
use antiphon_core::{AgentId, AgentState, AgentStatus, LiveAgent, TaskStatus};
use chrono::TimeDelta;

use super::happening::{agent_id, moved};
use super::scribe::{Scribe, at, draft, noon, note, status, task};
use crate::suite::{Finding, Outcome, equal};

pub(super) async fn an_agent_lives_from_its_first_move_to_the_end_of_its_task(
    scribe: Scribe,
) -> Outcome {
    scribe.create(&task(1)).await?;
    equal("the agents before any move", &ids(&scribe).await?, &vec![])?;
    scribe.write(draft(&task(1), at(1), vec![moved(7, AgentState::Idle)])).await?;
    scribe.write(draft(&task(1), at(2), vec![status(TaskStatus::InputRequired), note(1)])).await?;
    equal("the agents at work", &ids(&scribe).await?, &vec![agent_id(7)])?;
    scribe.write(draft(&task(1), at(4), vec![status(TaskStatus::Failed)])).await?;
    equal("the agents after the end", &ids(&scribe).await?, &vec![])?;

    // It may begin and end in one append.
    scribe.create(&task(2)).await?;
    let whole = vec![moved(8, AgentState::Idle), status(TaskStatus::Completed)];
    scribe.write(draft(&task(2), at(1), whole)).await?;
    equal("the agents after the end", &ids(&scribe).await?, &vec![])
}

pub(super) async fn an_agent_stands_where_it_moved_last(scribe: Scribe) -> Outcome {
    scribe.create(&task(1)).await?;
    let steps = [
        (7, AgentState::Idle, AgentState::Thinking, 1),
        (7, AgentState::Thinking, AgentState::ToolCall, 1),
        (7, AgentState::ToolCall, AgentState::Reflecting, 1),
        (7, AgentState::Reflecting, AgentState::Idle, 1),
        (7, AgentState::Idle, AgentState::Thinking, 2),
        // After a restart another one takes over, and has taken nothing yet.
        (8, AgentState::Idle, AgentState::Thinking, 1),
    ];
    for (seq, (agent, from, state, messages_processed)) in (1..).zip(steps) {
        let last_activity = noon() + TimeDelta::microseconds(seq);
        let step = draft(&task(1), at(seq.unsigned_abs()), vec![moved(agent, from)]);
        scribe.write(Append { at: last_activity, ..step }).await?;
        let id = agent_id(agent);
        let status = AgentStatus { id, state, last_activity, messages_processed };
        let expected = LiveAgent { agent: "scribe".to_owned(), task_id: task(1), status };
        equal("the agent", &scribe.agents(10).await?, &vec![expected])?;
    }
    Ok(())
}

pub(super) async fn agents_are_listed_by_their_tasks_the_newest_first(scribe: Scribe) -> Outcome {
    for number in 1..=3 {
        scribe.create(&task(number)).await?;
    }
    for number in [2, 3, 1] {
        let step = vec![moved(number.into(), AgentState::Idle)];
        scribe.write(draft(&task(number), at(1), step)).await?;
    }
    let expected = vec![agent_id(3), agent_id(2), agent_id(1)];
    equal("the agents", &ids(&scribe).await?, &expected)
}

async fn ids(scribe: &Scribe) -> Result<Vec<AgentId>, Finding> {
    Ok(scribe.agents(10).await?.into_iter().map(|agent| agent.status.id).collect())
}
