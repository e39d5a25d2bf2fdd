//! What was spent so far this month, kept in memory so that asking costs nothing.
//!
//! It is the journal's spending, and what was written since. It is read from there before anything
//! depends on it, and again when a write was cut off of which nobody knows whether it happened; what is
//! written meanwhile is told apart by its position. So it is the same after a restart, to the last token.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};

use antiphon_core::port::{Append, Appended, Journal, JournalError};
use antiphon_core::{
    Cost, DayRange, EventBody, ModelRef, Position, PriceTable, RaisedLimit, SpendWindow, Spending,
    Usage,
};
use chrono::{DateTime, NaiveDate, Utc};

use crate::budget::{BudgetScope, Sums};
use crate::inner::Inner;

/// Days that are kept before those of earlier months are forgotten.
const DAYS_MAX: usize = 64;

/// What was spent so far this month.
#[derive(Debug, Default)]
pub(crate) struct SpendCache(Mutex<Book>);

#[derive(Debug, Default)]
struct Book {
    /// `None` until it was read, and when it is in doubt.
    sums: Option<Known>,
    /// How often it was doubted: what was read before the last time is not believed.
    doubts: u64,
    /// How many are reading it from the journal.
    reading: usize,
    /// What was written while somebody reads.
    meanwhile: Vec<(Position, Entry)>,
}

/// Something that was spent or allowed.
#[derive(Debug, Clone)]
enum Entry {
    Paid { day: NaiveDate, payer: Option<String>, model: String, calls: u64, usage: Usage },
    Raised(RaisedLimit),
}

#[derive(Debug, Default)]
struct Known {
    /// Everything up to here is in it.
    head: Position,
    days: BTreeMap<NaiveDate, HashMap<BudgetScope, Day>>,
    /// Money is rounded once for all that a model took for somebody in a day, whatever the order.
    taken: HashMap<(NaiveDate, Option<String>, String), Usage>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Day {
    spent: Cost,
    raised: Cost,
    unpriced_calls: u64,
}

impl SpendCache {
    fn book(&self) -> MutexGuard<'_, Book> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has it read from the journal, unless it is known.
    pub(crate) async fn ready(
        &self,
        journal: &dyn Journal,
        prices: &PriceTable,
        now: DateTime<Utc>,
    ) -> Result<(), JournalError> {
        // A clock may go back a little, and a month may end meanwhile.
        let yesterday = now.checked_sub_signed(chrono::TimeDelta::days(1)).unwrap_or(now);
        let from = SpendWindow::Month.first_day(yesterday);
        while let Some(reading) = self.begin_to_read() {
            let found = journal.spending(DayRange { from, to: NaiveDate::MAX }).await?;
            reading.end(Known::of(found, prices), prices);
        }
        Ok(())
    }

    fn begin_to_read(&self) -> Option<Reading<'_>> {
        let mut book = self.book();
        if book.sums.is_some() {
            return None;
        }
        book.reading += 1;
        Some(Reading { purse: self, doubts: book.doubts })
    }

    /// Adds what was written.
    fn add(&self, position: Position, entries: Vec<Entry>, prices: &PriceTable) {
        let mut book = self.book();
        for entry in entries {
            if book.reading > 0 {
                book.meanwhile.push((position, entry.clone()));
            }
            if let Some(known) = &mut book.sums {
                known.add(position, entry, prices);
            }
        }
    }

    /// Something may have been written, and nobody knows.
    fn doubt(&self) {
        let mut book = self.book();
        book.sums = None;
        book.doubts += 1;
    }

    /// What was spent and allowed of one scope; `None` while that is not known.
    pub(crate) fn sums(&self, scope: &BudgetScope, now: DateTime<Utc>) -> Option<Sums> {
        self.book().sums.as_ref().map(|known| known.sums(scope, now))
    }

    /// Everybody who spent something this month or may spend more.
    pub(crate) fn scopes(&self, now: DateTime<Utc>) -> Vec<BudgetScope> {
        let book = self.book();
        let Some(known) = &book.sums else { return Vec::new() };
        let days = known.days.range(SpendWindow::Month.first_day(now)..=now.date_naive());
        let scopes: std::collections::BTreeSet<BudgetScope> =
            days.flat_map(|(_, day)| day.keys().cloned()).collect();
        scopes.into_iter().collect()
    }
}

/// Somebody who reads; what is written meanwhile is kept as long as there is one.
struct Reading<'a> {
    purse: &'a SpendCache,
    doubts: u64,
}

impl Reading<'_> {
    /// Takes what was read, unless somebody has doubts since.
    fn end(self, mut known: Known, prices: &PriceTable) {
        let mut book = self.purse.book();
        if book.doubts != self.doubts {
            return;
        }
        for (position, entry) in &book.meanwhile {
            known.add(*position, entry.clone(), prices);
        }
        book.sums = Some(known);
    }
}

impl Drop for Reading<'_> {
    fn drop(&mut self) {
        let mut book = self.purse.book();
        book.reading -= 1;
        if book.reading == 0 {
            book.meanwhile = Vec::new();
        }
    }
}

/// Doubts what was spent, unless it is told what became of a write.
struct Writing<'a> {
    purse: &'a SpendCache,
    known: bool,
}

impl<'a> Writing<'a> {
    fn begin(purse: &'a SpendCache) -> Self {
        Self { purse, known: false }
    }

    /// It is known what became of it.
    fn end(mut self) {
        self.known = true;
    }
}

impl Drop for Writing<'_> {
    fn drop(&mut self) {
        if !self.known {
            self.purse.doubt();
        }
    }
}

impl Inner {
    /// Writes, and counts what is spent and allowed: the one place where that is done.
    pub(crate) async fn write(&self, append: Append) -> Result<Appended, JournalError> {
        if !spends(&append) {
            return self.world.journal.append(append).await;
        }
        // Whoever is paid runs, and is known then.
        let tree = self.trees.shared(&append.task_id);
        let paid = tree.map(|tree| entries(&append, tree.payer.as_ref()));
        let raises = append.events.iter().any(|body| matches!(body, EventBody::BudgetRaised(_)));
        let paid = paid.or_else(|| raises.then(|| entries(&append, None)));
        let writing = Writing::begin(&self.purse);
        let appended = self.world.journal.append(append).await;
        match (&appended, paid) {
            (Ok(appended), Some(paid)) => {
                if !appended.deduplicated {
                    self.purse.add(appended.position, paid, &self.world.prices);
                }
                writing.end();
            }
            (
                Err(
                    JournalError::Stale { .. }
                    | JournalError::Ended { .. }
                    | JournalError::Invalid { .. },
                ),
                _,
            ) => writing.end(),
            (Ok(_), None)
            | (Err(JournalError::Unavailable { .. } | JournalError::Corrupt { .. }), _) => {}
        }
        appended
    }
}

/// What an append spends and allows, if `payer` pays for its task.
fn entries(append: &Append, payer: Option<&String>) -> Vec<Entry> {
    let entry = |body: &EventBody| {
        if let EventBody::UsageRecorded(paid) = body {
            return Some(Entry::Paid {
                day: append.at.date_naive(),
                payer: payer.cloned(),
                model: paid.model.clone(),
                calls: 1,
                usage: paid.usage,
            });
        }
        let EventBody::BudgetRaised(raised) = body else { return None };
        Some(Entry::Raised(RaisedLimit::of(raised, append.at)))
    };
    append.events.iter().filter_map(entry).collect()
}

/// Whether an append spends or allows anything.
fn spends(append: &Append) -> bool {
    let spends =
        |body: &EventBody| matches!(body, EventBody::UsageRecorded(_) | EventBody::BudgetRaised(_));
    append.events.iter().any(spends)
}

impl Known {
    fn of(found: Spending, prices: &PriceTable) -> Self {
        let mut known = Self::default();
        for spent in found.spent {
            let (account, calls, usage) = (spent.account, spent.calls, spent.usage);
            let (day, payer, model) = (account.day, account.payer, account.model);
            known.enter(Entry::Paid { day, payer, model, calls, usage }, prices);
        }
        for raised in found.raised {
            known.enter(Entry::Raised(raised), prices);
        }
        known.head = found.head;
        known
    }

    fn add(&mut self, position: Position, entry: Entry, prices: &PriceTable) {
        if position > self.head {
            self.enter(entry, prices);
        }
    }

    fn enter(&mut self, entry: Entry, prices: &PriceTable) {
        match entry {
            Entry::Raised(RaisedLimit { day, payer, by }) => {
                let scope = payer.map_or(BudgetScope::Total, BudgetScope::Key);
                self.day(day, scope).raised += by;
            }
            Entry::Paid { day, payer, model, calls, usage } => {
                let price = ModelRef::parse(&model).ok().and_then(|model| prices.price(&model));
                let taken = self.taken.entry((day, payer.clone(), model)).or_default();
                let before = *taken;
                *taken += usage;
                let cost = price.map(|price| {
                    let (before, after) = (price.cost(before), price.cost(*taken));
                    Cost { nano_usd: after.nano_usd.saturating_sub(before.nano_usd) }
                });
                let scopes = [Some(BudgetScope::Total), payer.map(BudgetScope::Key)];
                for scope in scopes.into_iter().flatten() {
                    let day = self.day(day, scope);
                    match cost {
                        Some(cost) => day.spent += cost,
                        None => day.unpriced_calls = day.unpriced_calls.saturating_add(calls),
                    }
                }
            }
        }
    }

    fn day(&mut self, day: NaiveDate, scope: BudgetScope) -> &mut Day {
        if self.days.len() > DAYS_MAX && !self.days.contains_key(&day) {
            self.days.pop_first();
            let first = self.days.keys().next().copied().unwrap_or(day);
            self.taken.retain(|(day, ..), _| *day >= first);
        }
        self.days.entry(day).or_default().entry(scope).or_default()
    }

    fn sums(&self, scope: &BudgetScope, now: DateTime<Utc>) -> Sums {
        let today = now.date_naive();
        let mut sums = Sums::default();
        for (day, scopes) in self.days.range(SpendWindow::Month.first_day(now)..=today) {
            let Some(found) = scopes.get(scope) else { continue };
            sums.spent.this_month += found.spent;
            sums.raised.this_month += found.raised;
            sums.unpriced_calls = sums.unpriced_calls.saturating_add(found.unpriced_calls);
            if *day == today {
                (sums.spent.today, sums.raised.today) = (found.spent, found.raised);
            }
        }
        sums
    }
}
