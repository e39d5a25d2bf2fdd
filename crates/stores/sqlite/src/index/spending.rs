//! Spending as rows: written in the transaction of its events, and listed by day.

use antiphon_core::port::JournalError;
use antiphon_core::{
    Account, AccountSpending, Cost, DayRange, Position, RaisedLimit, Spending, Usage,
};
use chrono::{Datelike, NaiveDate};
use rusqlite::{Connection, OptionalExtension, Row, Transaction};

use crate::fault::fault;
use crate::reader::index_queries::LIST_ROWS_MAX;
use crate::row::column::{read_usage, usage};

/// Adds spending and raised limits.
pub(crate) fn add(transaction: &Transaction<'_>, more: &Spending) -> rusqlite::Result<()> {
    for spent in &more.spent {
        spend(transaction, spent)?;
    }
    for raised in &more.raised {
        raise(transaction, raised)?;
    }
    Ok(())
}

fn spend(transaction: &Transaction<'_>, more: &AccountSpending) -> rusqlite::Result<()> {
    let Account { day, payer, agent, model } = &more.account;
    let (day, payer) = (day.num_days_from_ce(), payer.as_deref().unwrap_or_default());
    let before = transaction
        .prepare_cached(
            "SELECT calls, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens
             FROM spending WHERE day = ? AND payer = ? AND agent = ? AND model = ?",
        )?
        .query_row((day, payer, agent, model), |row| Ok((read_count(row, 0)?, read_usage(row, 1)?)))
        .optional()?;
    let (calls, mut total): (u64, Usage) = before.unwrap_or_default();
    total += more.usage;
    let calls = calls.saturating_add(more.calls).cast_signed();
    let (input, output, read, written) = usage(&total);
    transaction
        .prepare_cached("INSERT OR REPLACE INTO spending VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)")?
        .execute((day, payer, agent, model, calls, input, output, read, written))?;
    Ok(())
}

fn raise(transaction: &Transaction<'_>, more: &RaisedLimit) -> rusqlite::Result<()> {
    let (day, payer) = (more.day.num_days_from_ce(), more.payer.as_deref().unwrap_or_default());
    let before = transaction
        .prepare_cached("SELECT nano_usd FROM raised WHERE day = ? AND payer = ?")?
        .query_row((day, payer), |row| read_count(row, 0))
        .optional()?;
    let total = before.unwrap_or_default().saturating_add(more.by.nano_usd);
    transaction.prepare_cached("INSERT OR REPLACE INTO raised VALUES (?, ?, ?)")?.execute((
        day,
        payer,
        total.cast_signed(),
    ))?;
    Ok(())
}

const SPENT: &str = "SELECT day, payer, agent, model, calls, input_tokens, output_tokens,
                            cache_read_tokens, cache_write_tokens
                     FROM spending WHERE day BETWEEN ? AND ?
                     ORDER BY day, payer, agent, model LIMIT ?";

const RAISED: &str = "SELECT day, payer, nano_usd FROM raised WHERE day BETWEEN ? AND ?
                      ORDER BY day, payer LIMIT ?";

const HEAD: &str = "SELECT coalesce(max(position), 0) FROM events";

/// Spending in these days. More rows than a list may have are an error: a partial sum
/// would be wrong.
pub(crate) fn during(
    connection: &mut Connection,
    days: DayRange,
) -> Result<Spending, JournalError> {
    let read = |connection: &mut Connection| {
        let moment = connection.transaction()?;
        let days = (days.from.num_days_from_ce(), days.to.num_days_from_ce(), LIST_ROWS_MAX + 1);
        let head = moment.query_row(HEAD, (), |row| row.get(0).map(Position))?;
        let spent = moment
            .prepare_cached(SPENT)?
            .query_map(days, read_spent)?
            .collect::<Result<Vec<_>, _>>()?;
        let raised = moment
            .prepare_cached(RAISED)?
            .query_map(days, read_raised)?
            .collect::<Result<Vec<_>, _>>()?;
        rusqlite::Result::Ok(Spending { spent, raised, head })
    };
    let found = read(connection).map_err(|error| fault(Position(0), &error))?;
    if found.spent.len() > LIST_ROWS_MAX || found.raised.len() > LIST_ROWS_MAX {
        let reason = format!("more than {LIST_ROWS_MAX} rows: ask for fewer days");
        return Err(JournalError::Unavailable { reason });
    }
    Ok(found)
}

fn read_spent(row: &Row<'_>) -> rusqlite::Result<AccountSpending> {
    let account = Account {
        day: read_day(row, 0)?,
        payer: read_payer(row, 1)?,
        agent: row.get(2)?,
        model: row.get(3)?,
    };
    Ok(AccountSpending { account, calls: read_count(row, 4)?, usage: read_usage(row, 5)? })
}

fn read_raised(row: &Row<'_>) -> rusqlite::Result<RaisedLimit> {
    let by = Cost { nano_usd: read_count(row, 2)? };
    Ok(RaisedLimit { day: read_day(row, 0)?, payer: read_payer(row, 1)?, by })
}

fn read_count(row: &Row<'_>, index: usize) -> rusqlite::Result<u64> {
    row.get::<_, i64>(index).map(i64::cast_unsigned)
}

fn read_payer(row: &Row<'_>, index: usize) -> rusqlite::Result<Option<String>> {
    row.get(index).map(|payer: String| Some(payer).filter(|payer| !payer.is_empty()))
}

fn read_day(row: &Row<'_>, index: usize) -> rusqlite::Result<NaiveDate> {
    let day: i32 = row.get(index)?;
    NaiveDate::from_num_days_from_ce_opt(day)
        .ok_or(rusqlite::Error::IntegralValueOutOfRange(index, i64::from(day)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::schema::in_memory;

    #[test]
    fn some_days_of_many_are_looked_up_and_come_in_their_order() {
        let connection = in_memory().unwrap();
        for statement in [SPENT, RAISED] {
            let mut explain =
                connection.prepare(&format!("EXPLAIN QUERY PLAN {statement}")).unwrap();
            let lines = explain.query_map((1, 2, 3), |row| row.get::<_, String>(3)).unwrap();
            let plan = lines.map(Result::unwrap).collect::<Vec<_>>().join("\n");
            assert!(plan.starts_with("SEARCH") && !plan.contains("TEMP B-TREE"), "{plan}");
        }
    }
}
