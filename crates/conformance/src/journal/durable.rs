//! The contents of a journal after it was closed and opened again.
//!
//! Closing is dropping: an answered append needs no other call.
//!
//! ```ignore
//! journal::durable::check(
//!     || tempfile::tempdir().unwrap(),
//!     async |dir: &TempDir| SqliteJournal::open(dir.path()).await.unwrap(),
//! ).await.unwrap();
//! ```

use antiphon_core::port::{Appended, Expected, Journal, JournalError, TaskSelector};
use antiphon_core::{
    AgentState, Approval, BudgetRaised, LiveAgent, MessageQueued, Position, QueuedMessage,
    ResponseStatus, Seq, SessionSummary, TaskStatus, TaskSummary, Usage,
};
use async_trait::async_trait;

use super::all_events::specimens;
use super::sample_events::{
    asked, handed_over, interaction_id, moved, paid, queued, replied, requested,
};
use super::test_journal::{TestJournal, at, behind, created, draft, keyed, note, status, task};
use crate::suite::{self, CHECK_LIMIT, Check, Finding, Outcome, checks, equal};
use crate::{Passed, Violations};

/// Runs every check of this part. `place` makes a new, empty location; `open`
/// opens the journal there, for the first time or again.
pub async fn check<P, J: Journal + 'static>(
    place: impl Fn() -> P,
    open: impl AsyncFn(&P) -> J,
) -> Result<Passed, Violations> {
    let open = &open;
    suite::run(list(), CHECK_LIMIT, async || {
        Box::new(Site { place: place(), open }) as Box<dyn Reopen + '_>
    })
    .await
}

/// The names of the checks.
pub fn checks() -> Vec<&'static str> {
    list().iter().map(|check| check.name).collect()
}

fn list<'a>() -> [Check<'a, Box<dyn Reopen + 'a>>; 8] {
    use self as durable;
    checks![Required: durable::{
        appended_events_exist_after_reopening,
        positions_continue_after_reopening,
        keys_still_count_after_reopening,
        writers_are_still_refused_after_reopening,
        arrivals_still_do_not_conflict_after_reopening,
        answers_to_requests_exist_after_reopening,
        the_index_is_the_same_after_reopening,
        spending_is_still_known_after_reopening,
    }]
}

/// Opens the same journal any number of times.
#[async_trait(?Send)]
trait Reopen {
    async fn open(&self) -> TestJournal;
}

struct Site<'a, P, F> {
    place: P,
    open: &'a F,
}

#[async_trait(?Send)]
impl<P, J: Journal + 'static, F: AsyncFn(&P) -> J> Reopen for Site<'_, P, F> {
    async fn open(&self) -> TestJournal {
        TestJournal::new((self.open)(&self.place).await)
    }
}

async fn appended_events_exist_after_reopening(site: Box<dyn Reopen + '_>) -> Outcome {
    let mut written = Vec::new();
    for (n, body) in (0..).zip(specimens()?) {
        let journal = site.open().await;
        let before = journal.all().await?;
        equal("what was there before", &before, &written)?;
        let expected = match n {
            0 => Expected::NoTask,
            seq => at(seq),
        };
        journal.write(draft(&task(1), expected, vec![body])).await?;
        written = journal.all().await?;
    }
    let found = site.open().await.all().await?;
    equal("what is there after reopening", &found, &written)
}

async fn positions_continue_after_reopening(site: Box<dyn Reopen + '_>) -> Outcome {
    site.open().await.create_up_to(&task(1), 3).await?;
    let appended = site.open().await.create(&task(2)).await?;
    let expected =
        Appended { task_id: task(2), position: Position(4), seq: Seq(1), deduplicated: false };
    equal("the first append after reopening", &appended, &expected)
}

async fn keys_still_count_after_reopening(site: Box<dyn Reopen + '_>) -> Outcome {
    let create = draft(&task(1), Expected::NoTask, vec![created()]);
    let first = site.open().await.write(keyed("k", create)).await?;
    let again = draft(&task(2), Expected::NoTask, vec![created()]);
    let journal = site.open().await;
    let expected = Appended { deduplicated: true, ..first };
    let known = journal.answered("k").await?;
    equal("the answer of a key", &known, &Some(expected.clone()))?;
    let answer = journal.write(keyed("k", again)).await?;
    equal("the answer to a repeated key", &answer, &expected)?;
    equal("events written", &journal.all().await?.len(), &1)
}

async fn writers_are_still_refused_after_reopening(site: Box<dyn Reopen + '_>) -> Outcome {
    let journal = site.open().await;
    journal.create(&task(1)).await?;
    let end = vec![status(TaskStatus::Completed)];
    journal.write(draft(&task(1), at(1), end)).await?;
    journal.create_up_to(&task(2), 2).await?;
    drop(journal);

    let journal = site.open().await;
    let late = draft(&task(1), at(2), vec![note(9)]);
    let ended = JournalError::Ended { task_id: task(1) };
    equal("the refusal", &journal.refused(late).await?, &ended)?;
    let stale = draft(&task(2), at(1), vec![note(9)]);
    let expected = JournalError::Stale { task_id: task(2), expected: Seq(1), actual: Seq(2) };
    equal("the refusal", &journal.refused(stale).await?, &expected)
}

/// Later messages count as arrivals, whether they were written before or after.
async fn arrivals_still_do_not_conflict_after_reopening(site: Box<dyn Reopen + '_>) -> Outcome {
    let journal = site.open().await;
    journal.create_up_to(&task(1), 2).await?;
    journal.write(draft(&task(1), at(2), vec![queued(1).into(), queued(2).into()])).await?;
    drop(journal);

    let journal = site.open().await;
    let late = draft(&task(1), behind(1), vec![note(9)]);
    let stale = JournalError::Stale { task_id: task(1), expected: Seq(1), actual: Seq(4) };
    equal("the refusal", &journal.refused(late).await?, &stale)?;
    journal.write(draft(&task(1), Expected::Exists, vec![queued(3).into()])).await?;
    let appended = journal.write(draft(&task(1), behind(2), vec![note(9)])).await?;
    equal("where it was written", &appended.seq, &Seq(6))
}

async fn answers_to_requests_exist_after_reopening(site: Box<dyn Reopen + '_>) -> Outcome {
    let journal = site.open().await;
    let accepted = replied(1, ResponseStatus::Accepted, "soon");
    let first = replied(2, ResponseStatus::Completed, "first");
    let events = vec![created(), accepted.into(), first.clone().into()];
    journal.write(draft(&task(1), Expected::NoTask, events)).await?;
    drop(journal);

    let journal = site.open().await;
    equal("no answer yet", &journal.reply(1).await?, &None)?;
    equal("an answer", &journal.reply(2).await?, &Some(first.clone()))?;
    let failed = replied(1, ResponseStatus::Failed, "not after all");
    let second = replied(2, ResponseStatus::Failed, "second");
    journal.write(draft(&task(1), at(3), vec![failed.clone().into(), second.into()])).await?;
    drop(journal);

    let journal = site.open().await;
    let found = (journal.reply(1).await?, journal.reply(2).await?);
    equal("both answers", &found, &(Some(failed), Some(first)))
}

async fn the_index_is_the_same_after_reopening(site: Box<dyn Reopen + '_>) -> Outcome {
    let usage = Usage { input_tokens: 3, output_tokens: 1, ..Usage::default() };
    let newer = MessageQueued { replaces: Some(interaction_id(1)), ..queued(2) };
    let appends = [
        (Expected::NoTask, vec![created(), asked("First?")]),
        (at(2), vec![moved(7, AgentState::Idle), queued(1).into(), queued(3).into()]),
        (at(5), vec![requested(1)?.into(), paid("a/small", usage)]),
        (
            at(7),
            vec![
                moved(7, AgentState::Thinking),
                handed_over("lawyer", None)?,
                paid("a/small", usage),
                newer.into(),
                replied(3, ResponseStatus::Completed, "done").into(),
            ],
        ),
    ];
    for (expected, events) in appends {
        let journal = site.open().await;
        journal.write(draft(&task(1), expected, events)).await?;
        let before = index_lists(&journal).await?;
        drop(journal);
        let after = index_lists(&site.open().await).await?;
        equal("the index after reopening", &after, &before)?;
    }
    let found = site.open().await;
    let tasks = found.tasks(TaskSelector::All, 10).await?;
    let [summary] = &tasks[..] else {
        return Err(Finding::Broken(format!("there should be one task: {tasks:?}")));
    };
    let expected = ("First?", 2, Usage { input_tokens: 6, output_tokens: 2, ..usage });
    let counted = (summary.title.as_str(), summary.turns, summary.usage());
    equal("what was added up across openings", &counted, &expected)?;
    let agents = found.agents(10).await?;
    let expected = vec![("lawyer", AgentState::ToolCall, 1)];
    let agents: Vec<_> = agents
        .iter()
        .map(|live| (live.agent.as_str(), live.status.state, live.status.messages_processed))
        .collect();
    equal("where the agent stands", &agents, &expected)?;
    let waiting = (found.queued(10).await?.len(), found.approvals(10).await?.len());
    equal("messages and approvals that wait", &waiting, &(1, 1))
}

async fn spending_is_still_known_after_reopening(site: Box<dyn Reopen + '_>) -> Outcome {
    let usage = Usage { input_tokens: 3, output_tokens: 1, ..Usage::default() };
    let raised = BudgetRaised { nano_usd: 5, payer: None, by: "ada".to_owned(), comment: None };
    let pay = || paid("a/small", usage);
    let steps = [
        (Expected::NoTask, vec![created(), pay()]),
        (at(2), vec![pay(), raised.clone().into()]),
        (at(4), vec![raised.into(), pay()]),
    ];
    for (expected, events) in steps {
        let journal = site.open().await;
        journal.write(draft(&task(1), expected, events)).await?;
        let before = journal.spending(1, 28).await?;
        drop(journal);
        let after = site.open().await.spending(1, 28).await?;
        equal("what was spent, after reopening", &after, &before)?;
    }
    let found = site.open().await.spending(18, 18).await?;
    let spent: Vec<_> = found.spent.iter().map(|row| (row.calls, row.usage)).collect();
    let expected = Usage { input_tokens: 9, output_tokens: 3, ..usage };
    equal("what was added up across openings", &spent, &vec![(3, expected)])?;
    let raised: Vec<_> = found.raised.iter().map(|raised| raised.by.nano_usd).collect();
    equal("what was allowed across openings", &raised, &vec![10])
}

type IndexLists =
    (Vec<TaskSummary>, Vec<SessionSummary>, Vec<Approval>, Vec<LiveAgent>, Vec<QueuedMessage>);

async fn index_lists(journal: &TestJournal) -> Result<IndexLists, Finding> {
    Ok((
        journal.tasks(TaskSelector::All, 10).await?,
        journal.sessions(10).await?,
        journal.approvals(10).await?,
        journal.agents(10).await?,
        journal.queued(10).await?,
    ))
}
