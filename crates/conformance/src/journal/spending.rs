//! Spending and raised limits.

use antiphon_core::port::{Append, Expected};
use antiphon_core::{
    Account, AccountSpending, BudgetRaised, Cost, EventBody, Position, RaisedLimit, SessionId,
    Spending, TaskCreated, TaskStatus, Usage,
};
use chrono::{DateTime, Days, Utc};

use super::sample_events::{handed_over, paid};
use super::test_journal::{TestJournal, at, created, draft, february, noon, note, status, task};
use crate::suite::{During, Finding, Outcome, equal};

/// Noon of a day of February; the checks use the 18th.
fn on(day: u64) -> DateTime<Utc> {
    let first = noon().checked_sub_days(Days::new(17)).unwrap_or_default();
    first.checked_add_days(Days::new(day - 1)).unwrap_or_default()
}

fn tokens(input_tokens: u64, cache_read_tokens: Option<u64>) -> Usage {
    Usage { input_tokens, output_tokens: 1, cache_read_tokens, cache_write_tokens: None }
}

fn row(
    day: u32,
    who: (Option<&str>, &str, &str),
    calls: u64,
    usage: Usage,
) -> Result<AccountSpending, Finding> {
    let (payer, agent, model) = who;
    let (payer, agent) = (payer.map(str::to_owned), agent.to_owned());
    let account = Account { day: february(day)?, payer, agent, model: model.to_owned() };
    Ok(AccountSpending { account, calls, usage })
}

fn raise(nano_usd: u64, payer: Option<&str>) -> EventBody {
    let payer = payer.map(str::to_owned);
    BudgetRaised { nano_usd, payer, by: "ada".to_owned(), comment: None }.into()
}

async fn begin(journal: &TestJournal, number: u64, agent: &str, payer: Option<&str>) -> Outcome {
    let session_id = SessionId::parse("talk").during("a session id")?;
    let payer = payer.map(str::to_owned);
    let created = TaskCreated { payer, ..TaskCreated::new(agent, session_id) };
    journal.write(draft(&task(number), Expected::NoTask, vec![created.into()])).await?;
    Ok(())
}

pub(super) async fn spending_is_grouped_by_day_payer_agent_and_model(
    journal: TestJournal,
) -> Outcome {
    equal("nothing was spent yet", &journal.spending(1, 28).await?, &Spending::default())?;
    begin(&journal, 1, "dev", None).await?;
    begin(&journal, 2, "dev", Some("key")).await?;
    begin(&journal, 3, "lead", None).await?;
    begin(&journal, 4, "dev", None).await?;
    let small = |n| paid("a/small", tokens(n, None));
    let steps = [
        (1, 1, 17, vec![small(1), small(2)]),
        (1, 3, 18, vec![small(4)]),
        (2, 1, 18, vec![small(8)]),
        (3, 1, 18, vec![small(16), paid("b/large", tokens(u64::MAX, Some(0)))]),
        (3, 3, 18, vec![paid("b/large", tokens(5, Some(7)))]),
        (4, 1, 18, vec![small(32), status(TaskStatus::Failed)]),
    ];
    for (number, seq, day, events) in steps {
        journal.write(Append { at: on(day), ..draft(&task(number), at(seq), events) }).await?;
    }
    let two = |usage| Usage { output_tokens: 2, ..usage };
    let yesterday = row(17, (None, "dev", "a/small"), 2, two(tokens(3, None)))?;
    let today = vec![
        row(18, (None, "dev", "a/small"), 2, two(tokens(36, None)))?,
        row(18, (None, "lead", "a/small"), 1, tokens(16, None))?,
        row(18, (None, "lead", "b/large"), 2, two(tokens(u64::MAX, Some(7))))?,
        row(18, (Some("key"), "dev", "a/small"), 1, tokens(8, None))?,
    ];
    equal("what was spent that day", &journal.spending(18, 18).await?.spent, &today)?;
    equal("the day before", &journal.spending(17, 17).await?.spent, &vec![yesterday.clone()])?;
    let both = [vec![yesterday], today].concat();
    equal("both days", &journal.spending(17, 18).await?.spent, &both)?;
    equal("other days", &journal.spending(19, 28).await?.spent, &vec![])?;
    equal("days that end before they begin", &journal.spending(18, 17).await?.spent, &vec![])
}

pub(super) async fn spending_belongs_to_the_agent_of_that_time(journal: TestJournal) -> Outcome {
    begin(&journal, 1, "dev", None).await?;
    let pay = |n| paid("a/small", tokens(n, None));
    let events = vec![pay(1), handed_over("lawyer", None)?, pay(2)];
    journal.write(draft(&task(1), at(1), events)).await?;
    journal.write(draft(&task(1), at(4), vec![handed_over("clerk", None)?, pay(4)])).await?;
    let expected = vec![
        row(18, (None, "clerk", "a/small"), 1, tokens(4, None))?,
        row(18, (None, "dev", "a/small"), 1, tokens(1, None))?,
        row(18, (None, "lawyer", "a/small"), 1, tokens(2, None))?,
    ];
    equal("who spent what", &journal.spending(18, 18).await?.spent, &expected)
}

pub(super) async fn raised_limits_are_grouped_by_day_and_payer(journal: TestJournal) -> Outcome {
    let steps = [(1, 17, None, 1), (2, 18, None, 2), (3, 18, None, 4), (4, 18, Some("key"), 8)];
    for (number, day, payer, nano_usd) in steps {
        let events = vec![created(), raise(nano_usd, payer), status(TaskStatus::Completed)];
        let append = draft(&task(number), Expected::NoTask, events);
        journal.write(Append { at: on(day), ..append }).await?;
    }
    let raised = |day, payer: Option<&str>, nano_usd| -> Result<RaisedLimit, Finding> {
        let payer = payer.map(str::to_owned);
        Ok(RaisedLimit { day: february(day)?, payer, by: Cost { nano_usd } })
    };
    let today = vec![raised(18, None, 6)?, raised(18, Some("key"), 8)?];
    equal("what was allowed that day", &journal.spending(18, 18).await?.raised, &today)?;
    let found = journal.spending(17, 17).await?.raised;
    equal("the day before", &found, &vec![raised(17, None, 1)?])
}

pub(super) async fn spending_has_the_position_of_the_last_event(journal: TestJournal) -> Outcome {
    begin(&journal, 1, "dev", None).await?;
    journal.write(draft(&task(1), at(1), vec![paid("a/small", tokens(1, None)), note(1)])).await?;
    equal("how far it counts", &journal.spending(18, 18).await?.head, &Position(3))?;
    equal("of no days either", &journal.spending(1, 1).await?.head, &Position(3))
}

pub(super) async fn a_refused_append_spends_nothing(journal: TestJournal) -> Outcome {
    begin(&journal, 1, "dev", None).await?;
    let events = || vec![paid("a/small", tokens(1, None)), raise(1, None)];
    journal.refused(draft(&task(1), at(0), events())).await?;
    equal("what was refused", &journal.spending(18, 18).await?.spent, &vec![])?;
    equal("nor was it allowed", &journal.spending(18, 18).await?.raised, &vec![])?;
    let keyed = |append| super::test_journal::keyed("once", append);
    for _ in 0..2 {
        journal.write(keyed(draft(&task(1), at(1), events()))).await?;
    }
    let expected = vec![row(18, (None, "dev", "a/small"), 1, tokens(1, None))?];
    equal("what was written once", &journal.spending(18, 18).await?.spent, &expected)
}
