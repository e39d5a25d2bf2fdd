//! Spending of this month, in memory so that a check reads nothing.
//!
//! It is the journal's spending plus everything appended since. It is read before the first check, and
//! again when an append ended with an unknown outcome. Appends during a read are distinguished by their
//! position, so that the sums are exactly those after a restart.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};

use antiphon_core::port::{Append, Appended, Journal, JournalError};
use antiphon_core::{
    Cost, DayRange, EventBody, ModelRef, Position, PriceTable, RaisedLimit, SpendWindow, Spending,
    Usage,
};
use chrono::{DateTime, NaiveDate, Utc};

use crate::budget::spend_limits::{BudgetScope, Sums};
use crate::budget::tree_usage::Trees;

/// Number of days that are kept before the oldest is dropped.
const DAYS_MAX: usize = 64;

/// What was spent this month.
#[derive(Debug, Default)]
pub(crate) struct SpendCache(Mutex<CacheState>);

#[derive(Debug, Default)]
struct CacheState {
    /// `None` until it is read, and after an append with an unknown outcome.
    sums: Option<MonthTotals>,
    /// Number of invalidations: what was read before the last one is dropped.
    invalidations: u64,
    /// Number of reads in progress.
    reading: usize,
    /// Entries appended during a read.
    appended_meanwhile: Vec<(Position, Entry)>,
}

/// An amount that was spent or allowed.
#[derive(Debug, Clone)]
enum Entry {
    Paid { day: NaiveDate, payer: Option<String>, model: String, calls: u64, usage: Usage },
    Raised(RaisedLimit),
}

#[derive(Debug, Default)]
struct MonthTotals {
    /// Position up to which everything is included.
    head: Position,
    days: BTreeMap<NaiveDate, HashMap<BudgetScope, Day>>,
    /// Usage by day, payer and model: costs are rounded once for each, in any order.
    usage_so_far: HashMap<(NaiveDate, Option<String>, String), Usage>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Day {
    spent: Cost,
    raised: Cost,
    unpriced_calls: u64,
}

impl SpendCache {
    fn state(&self) -> MutexGuard<'_, CacheState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads the sums from the journal, unless they are known.
    pub(crate) async fn ensure_loaded(
        &self,
        journal: &dyn Journal,
        prices: &PriceTable,
        now: DateTime<Utc>,
    ) -> Result<(), JournalError> {
        // The clock may go back a little, or a month may end during the read.
        let yesterday = now.checked_sub_signed(chrono::TimeDelta::days(1)).unwrap_or(now);
        let from = SpendWindow::Month.first_day(yesterday);
        while let Some(reading) = self.begin_read() {
            let found = journal.spending(DayRange { from, to: NaiveDate::MAX }).await?;
            reading.end(MonthTotals::of(found, prices), prices);
        }
        Ok(())
    }

    /// Notes an append that is about to be written. Its spending counts once [`PendingAppend::end`] has its
    /// outcome.
    pub(crate) fn begin_append(&self, append: &Append, trees: &Trees) -> PendingAppend<'_> {
        if !spends(append) {
            return PendingAppend { cache: self, spending: PendingSpending::None };
        }
        // The tree of a task that spends is registered, because the task runs.
        let tree = trees.find(&append.task_id);
        let paid = tree.map(|tree| entries(append, tree.payer.as_ref()));
        let raises = append.events.iter().any(|body| matches!(body, EventBody::BudgetRaised(_)));
        let paid = paid.or_else(|| raises.then(|| entries(append, None)));
        let spending = paid.map_or(PendingSpending::UnknownPayer, PendingSpending::Entries);
        PendingAppend { cache: self, spending }
    }

    fn begin_read(&self) -> Option<ReadGuard<'_>> {
        let mut state = self.state();
        if state.sums.is_some() {
            return None;
        }
        state.reading += 1;
        Some(ReadGuard { cache: self, invalidations: state.invalidations })
    }

    /// Adds appended entries.
    fn add(&self, position: Position, entries: Vec<Entry>, prices: &PriceTable) {
        let mut state = self.state();
        for entry in entries {
            if state.reading > 0 {
                state.appended_meanwhile.push((position, entry.clone()));
            }
            if let Some(totals) = &mut state.sums {
                totals.add(position, entry, prices);
            }
        }
    }

    /// Invalidates the sums, after an append with an unknown outcome.
    fn invalidate(&self) {
        let mut state = self.state();
        state.sums = None;
        state.invalidations += 1;
    }

    /// Amounts of one limit; `None` while they are unknown.
    pub(crate) fn sums(&self, scope: &BudgetScope, now: DateTime<Utc>) -> Option<Sums> {
        self.state().sums.as_ref().map(|totals| totals.sums(scope, now))
    }

    /// All payers that spent or were allowed something this month.
    pub(crate) fn scopes(&self, now: DateTime<Utc>) -> Vec<BudgetScope> {
        let state = self.state();
        let Some(totals) = &state.sums else { return Vec::new() };
        let days = totals.days.range(SpendWindow::Month.first_day(now)..=now.date_naive());
        let scopes: std::collections::BTreeSet<BudgetScope> =
            days.flat_map(|(_, day)| day.keys().cloned()).collect();
        scopes.into_iter().collect()
    }
}

/// A read in progress. Appended entries are kept while there is one.
struct ReadGuard<'a> {
    cache: &'a SpendCache,
    invalidations: u64,
}

impl ReadGuard<'_> {
    /// Stores what was read, unless the sums were invalidated during the read.
    fn end(self, mut totals: MonthTotals, prices: &PriceTable) {
        let mut state = self.cache.state();
        if state.invalidations != self.invalidations {
            return;
        }
        for (position, entry) in &state.appended_meanwhile {
            totals.add(*position, entry.clone(), prices);
        }
        state.sums = Some(totals);
    }
}

impl Drop for ReadGuard<'_> {
    fn drop(&mut self) {
        let mut state = self.cache.state();
        state.reading -= 1;
        if state.reading == 0 {
            state.appended_meanwhile = Vec::new();
        }
    }
}

/// An append in progress. Dropped before its outcome is known, it invalidates the sums.
pub(crate) struct PendingAppend<'a> {
    cache: &'a SpendCache,
    spending: PendingSpending,
}

/// What an append in progress spends and allows.
enum PendingSpending {
    /// Nothing, or what it spends is counted.
    None,
    Entries(Vec<Entry>),
    /// It spends, and the payer is not known.
    UnknownPayer,
}

impl PendingAppend<'_> {
    /// Adds what the append spends and allows, if it was written.
    pub(crate) fn end(mut self, appended: &Result<Appended, JournalError>, prices: &PriceTable) {
        match (appended, std::mem::replace(&mut self.spending, PendingSpending::None)) {
            (Ok(appended), PendingSpending::Entries(entries)) if !appended.deduplicated => {
                self.cache.add(appended.position, entries, prices);
            }
            (Ok(_), PendingSpending::Entries(_) | PendingSpending::None)
            | (
                Err(
                    JournalError::Stale { .. }
                    | JournalError::Ended { .. }
                    | JournalError::Invalid { .. },
                ),
                _,
            ) => {}
            (Ok(_), unknown @ PendingSpending::UnknownPayer)
            | (Err(JournalError::Unavailable { .. } | JournalError::Corrupt { .. }), unknown) => {
                self.spending = unknown;
            }
        }
    }
}

impl Drop for PendingAppend<'_> {
    fn drop(&mut self) {
        match self.spending {
            PendingSpending::None => {}
            PendingSpending::Entries(_) | PendingSpending::UnknownPayer => self.cache.invalidate(),
        }
    }
}

/// The entries of an append; `payer` pays for its task.
fn entries(append: &Append, payer: Option<&String>) -> Vec<Entry> {
    let entry = |body: &EventBody| {
        if let EventBody::UsageRecorded(paid) = body {
            return Some(Entry::Paid {
                day: append.at.date_naive(),
                payer: payer.cloned(),
                model: paid.summed_under(),
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

impl MonthTotals {
    fn of(found: Spending, prices: &PriceTable) -> Self {
        let mut totals = Self::default();
        for spent in found.spent {
            let (account, calls, usage) = (spent.account, spent.calls, spent.usage);
            let (day, payer, model) = (account.day, account.payer, account.model);
            totals.add_entry(Entry::Paid { day, payer, model, calls, usage }, prices);
        }
        for raised in found.raised {
            totals.add_entry(Entry::Raised(raised), prices);
        }
        totals.head = found.head;
        totals
    }

    fn add(&mut self, position: Position, entry: Entry, prices: &PriceTable) {
        if position > self.head {
            self.add_entry(entry, prices);
        }
    }

    fn add_entry(&mut self, entry: Entry, prices: &PriceTable) {
        match entry {
            Entry::Raised(RaisedLimit { day, payer, by }) => {
                let scope = payer.map_or(BudgetScope::Total, BudgetScope::Key);
                self.day(day, scope).raised += by;
            }
            Entry::Paid { day, payer, model, calls, usage } => {
                let price = ModelRef::parse(&model).ok().and_then(|model| prices.price(&model));
                let usage_so_far =
                    self.usage_so_far.entry((day, payer.clone(), model)).or_default();
                let before = *usage_so_far;
                *usage_so_far += usage;
                let cost = price.map(|price| {
                    let (before, after) = (price.cost(before), price.cost(*usage_so_far));
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
            self.usage_so_far.retain(|(day, ..), _| *day >= first);
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
