//! What was spent, by day: a fold over the journal, so that every journal keeps the same.
//!
//! A day is one of UTC, by the time of the event. Tokens are kept, not money: what they cost is known
//! where the prices are, and a model without a price costs nobody knows what.

use std::collections::BTreeMap;

use chrono::{DateTime, NaiveDate, Utc};
use serde::{Deserialize, Serialize};

use crate::{
    BudgetRaised, Cost, EventBody, ModelRef, Position, PriceTable, TaskSummary, Usage,
    UsageRecorded,
};

/// What spending is told apart by.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Account {
    /// When, in UTC.
    pub day: NaiveDate,
    /// The key that pays; the owner when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payer: Option<String>,
    /// Who worked.
    pub agent: String,
    /// Who was paid.
    pub model: String,
}

/// What one account took.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spent {
    /// Which.
    #[serde(flatten)]
    pub account: Account,
    /// How often a model was paid.
    pub calls: u64,
    /// Tokens.
    #[serde(flatten)]
    pub usage: Usage,
}

/// What was added to the limits of a day, and of its month.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Raised {
    /// When, in UTC.
    pub day: NaiveDate,
    /// The key whose limits; those of all together when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payer: Option<String>,
    /// By how much.
    pub by: Cost,
}

/// What was spent in some days.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Spending {
    /// In the order of accounts.
    pub spent: Vec<Spent>,
    /// In the order of days and payers.
    pub raised: Vec<Raised>,
    /// The last event that is counted.
    pub head: Position,
}

/// Some days, the first and the last included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DayRange {
    /// The first.
    pub from: NaiveDate,
    /// The last.
    pub to: NaiveDate,
}

/// Adds up what is spent. The order in which events come makes no difference.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SpendingFold {
    spent: BTreeMap<Account, (u64, Usage)>,
    raised: BTreeMap<(NaiveDate, Option<String>), Cost>,
}

impl Account {
    /// Who pays for what a task took. The task is as it was when it took it.
    pub fn of(task: &TaskSummary, paid: &UsageRecorded, at: DateTime<Utc>) -> Self {
        Self {
            day: at.date_naive(),
            payer: named(task.payer.as_ref()),
            agent: task.agent.clone(),
            model: paid.model.clone(),
        }
    }
}

impl Spent {
    /// What it cost; `None` when nobody knows. Sums of money are sums of these.
    pub fn cost(&self, prices: &PriceTable) -> Option<Cost> {
        let model = ModelRef::parse(&self.account.model).ok()?;
        prices.cost(&model, self.usage)
    }
}

impl Raised {
    /// What somebody allowed.
    pub fn of(raised: &BudgetRaised, at: DateTime<Utc>) -> Self {
        let (payer, by) = (named(raised.payer.as_ref()), Cost { nano_usd: raised.nano_usd });
        Self { day: at.date_naive(), payer, by }
    }
}

impl SpendingFold {
    /// Adds what happened to a task, which is as it was then.
    pub fn apply(&mut self, task: &TaskSummary, body: &EventBody, at: DateTime<Utc>) {
        if let EventBody::UsageRecorded(paid) = body {
            self.spend(Account::of(task, paid, at), 1, paid.usage);
        } else if let EventBody::BudgetRaised(raised) = body {
            self.raise(Raised::of(raised, at));
        }
    }

    /// Adds what an account took.
    pub fn spend(&mut self, account: Account, calls: u64, usage: Usage) {
        let spent = self.spent.entry(account).or_default();
        spent.0 = spent.0.saturating_add(calls);
        spent.1 += usage;
    }

    /// Adds to the limits of a day.
    pub fn raise(&mut self, raised: Raised) {
        *self.raised.entry((raised.day, raised.payer)).or_default() += raised.by;
    }

    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.spent.is_empty() && self.raised.is_empty()
    }

    /// What is in it of these days, up to the event at `head`.
    pub fn during(&self, days: DayRange, head: Position) -> Spending {
        let inside = |day: &NaiveDate| (days.from..=days.to).contains(day);
        let spent = self.spent.iter().filter(|(account, _)| inside(&account.day));
        let raised = self.raised.iter().filter(|((day, _), _)| inside(day));
        Spending {
            spent: spent
                .map(|(account, (calls, usage))| Spent {
                    account: account.clone(),
                    calls: *calls,
                    usage: *usage,
                })
                .collect(),
            raised: raised
                .map(|((day, payer), by)| Raised { day: *day, payer: payer.clone(), by: *by })
                .collect(),
            head,
        }
    }

    /// Everything in it, which is not in it any more.
    pub fn take(&mut self) -> Spending {
        let days = DayRange { from: NaiveDate::MIN, to: NaiveDate::MAX };
        let all = self.during(days, Position(0));
        *self = Self::default();
        all
    }
}

/// A payer without a name is none.
fn named(payer: Option<&String>) -> Option<String> {
    payer.filter(|payer| !payer.is_empty()).cloned()
}
