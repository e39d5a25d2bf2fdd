//! Agents of tasks that have not ended.

use antiphon_core::port::Append;
use antiphon_core::{AgentId, AgentState, AgentStatus, LiveAgent, TaskStatus};
use chrono::TimeDelta;

use super::sample_events::{agent_id, moved, queued, taken};
use super::test_journal::{TestJournal, at, draft, noon, note, status, task};
use crate::suite::{Finding, Outcome, equal};

pub(super) async fn an_agent_is_live_from_its_first_state_to_the_end_of_its_task(
    journal: TestJournal,
) -> Outcome {
    journal.create(&task(1)).await?;
    equal("the agents before any move", &ids(&journal).await?, &vec![])?;
    journal.write(draft(&task(1), at(1), vec![moved(7, AgentState::Idle)])).await?;
    journal.write(draft(&task(1), at(2), vec![status(TaskStatus::InputRequired), note(1)])).await?;
    equal("the agents at work", &ids(&journal).await?, &vec![agent_id(7)])?;
    journal.write(draft(&task(1), at(4), vec![status(TaskStatus::Failed)])).await?;
    equal("the agents after the end", &ids(&journal).await?, &vec![])?;

    // An agent may start and end in one append.
    journal.create(&task(2)).await?;
    let whole = vec![moved(8, AgentState::Idle), status(TaskStatus::Completed)];
    journal.write(draft(&task(2), at(1), whole)).await?;
    equal("the agents after the end", &ids(&journal).await?, &vec![])
}

pub(super) async fn an_agent_has_its_last_state(journal: TestJournal) -> Outcome {
    journal.create(&task(1)).await?;
    let steps = [
        (7, AgentState::Idle, AgentState::Thinking, 1),
        (7, AgentState::Thinking, AgentState::ToolCall, 1),
        (7, AgentState::ToolCall, AgentState::Reflecting, 1),
        (7, AgentState::Reflecting, AgentState::Idle, 1),
        (7, AgentState::Idle, AgentState::Thinking, 1),
        // After a restart a new agent takes over, and has processed nothing yet.
        (8, AgentState::Idle, AgentState::Thinking, 1),
    ];
    for (seq, (agent, from, state, messages_processed)) in (1..).zip(steps) {
        let last_activity = noon() + TimeDelta::microseconds(seq);
        let step = draft(&task(1), at(seq.unsigned_abs()), vec![moved(agent, from)]);
        journal.write(Append { at: last_activity, ..step }).await?;
        let id = agent_id(agent);
        let status = AgentStatus { id, state, last_activity, messages_processed };
        let expected = LiveAgent { agent: "scribe".to_owned(), task_id: task(1), status };
        equal("the agent", &journal.agents(10).await?, &vec![expected])?;
    }
    // Each message that it reads counts, also several in one turn.
    for (seq, read) in [(7, 1), (8, 2)] {
        journal.write(draft(&task(1), at(seq), vec![queued(read).into()])).await?;
    }
    journal.write(draft(&task(1), at(9), vec![taken(1), taken(2)])).await?;
    let agents = journal.agents(10).await?;
    let counts: Vec<u64> = agents.iter().map(|agent| agent.status.messages_processed).collect();
    equal("the messages of the agent", &counts, &vec![3])
}

pub(super) async fn agents_are_listed_by_their_tasks_the_newest_first(
    journal: TestJournal,
) -> Outcome {
    for number in 1..=3 {
        journal.create(&task(number)).await?;
    }
    for number in [2, 3, 1] {
        let step = vec![moved(number.into(), AgentState::Idle)];
        journal.write(draft(&task(number), at(1), step)).await?;
    }
    let expected = vec![agent_id(3), agent_id(2), agent_id(1)];
    equal("the agents", &ids(&journal).await?, &expected)
}

async fn ids(journal: &TestJournal) -> Result<Vec<AgentId>, Finding> {
    Ok(journal.agents(10).await?.into_iter().map(|agent| agent.status.id).collect())
}
