//! Spending by day: a fold over events, so that every journal has the same index.
//!
//! A day is a day of UTC, by the time of the event. The fold counts tokens, not money: the cost
//! follows from the price table, and a model without a price has an unknown cost.

use std::collections::BTreeMap;

use chrono::{DateTime, NaiveDate, Utc};
use serde::{Deserialize, Serialize};

use crate::{
    BudgetRaised, Cost, EventBody, ModelRef, Position, PriceTable, TaskSummary, Usage,
    UsageRecorded,
};

/// What spending is grouped by.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Account {
    /// Day, in UTC.
    pub day: NaiveDate,
    /// Id of the API key that pays. Absent: the owner pays.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payer: Option<String>,
    /// Name of the agent that worked.
    pub agent: String,
    /// Model, as `PROVIDER/MODEL`.
    pub model: String,
}

/// Spending of one account.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccountSpending {
    /// The account.
    #[serde(flatten)]
    pub account: Account,
    /// Number of model calls.
    pub calls: u64,
    /// Tokens used.
    #[serde(flatten)]
    pub usage: Usage,
}

/// Amount that was added to the limits of a day and of its month.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RaisedLimit {
    /// Day, in UTC.
    pub day: NaiveDate,
    /// Id of the API key whose limits were raised. Absent: the total limits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payer: Option<String>,
    /// Amount.
    pub by: Cost,
}

/// Spending in a range of days.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Spending {
    /// Spending, in the order of accounts.
    pub spent: Vec<AccountSpending>,
    /// Raised limits, in the order of days and payers.
    pub raised: Vec<RaisedLimit>,
    /// Position of the last event that is counted.
    pub head: Position,
}

/// A range of days, first and last included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DayRange {
    /// First day.
    pub from: NaiveDate,
    /// Last day.
    pub to: NaiveDate,
}

/// Adds up spending. The order of events makes no difference.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SpendingFold {
    spent: BTreeMap<Account, (u64, Usage)>,
    raised: BTreeMap<(NaiveDate, Option<String>), Cost>,
}

impl Account {
    /// The account of a model call. `task` is the summary at the time of the call.
    pub fn of(task: &TaskSummary, paid: &UsageRecorded, at: DateTime<Utc>) -> Self {
        Self {
            day: at.date_naive(),
            payer: named(task.payer.as_ref()),
            agent: task.agent.clone(),
            model: paid.summed_under(),
        }
    }
}

impl AccountSpending {
    /// The cost; `None` when the model has no price. Add up costs, not tokens.
    pub fn cost(&self, prices: &PriceTable) -> Option<Cost> {
        let model = ModelRef::parse(&self.account.model).ok()?;
        prices.cost(&model, self.usage)
    }
}

impl RaisedLimit {
    /// The raised limit that an event records.
    pub fn of(raised: &BudgetRaised, at: DateTime<Utc>) -> Self {
        let (payer, by) = (named(raised.payer.as_ref()), Cost { nano_usd: raised.nano_usd });
        Self { day: at.date_naive(), payer, by }
    }
}

impl SpendingFold {
    /// Applies an event of a task. `task` is its summary at that time.
    pub fn apply(&mut self, task: &TaskSummary, body: &EventBody, at: DateTime<Utc>) {
        if let EventBody::UsageRecorded(paid) = body {
            self.spend(Account::of(task, paid, at), 1, paid.usage);
        } else if let EventBody::BudgetRaised(raised) = body {
            self.raise(RaisedLimit::of(raised, at));
        }
    }

    /// Adds spending to an account.
    pub fn spend(&mut self, account: Account, calls: u64, usage: Usage) {
        let spent = self.spent.entry(account).or_default();
        spent.0 = spent.0.saturating_add(calls);
        spent.1 += usage;
    }

    /// Raises the limits of a day.
    pub fn raise(&mut self, raised: RaisedLimit) {
        *self.raised.entry((raised.day, raised.payer)).or_default() += raised.by;
    }

    /// Whether there is neither spending nor a raised limit.
    pub fn is_empty(&self) -> bool {
        self.spent.is_empty() && self.raised.is_empty()
    }

    /// Spending in these days. `head` is the position of the last event that was applied.
    pub fn during(&self, days: DayRange, head: Position) -> Spending {
        let inside = |day: &NaiveDate| (days.from..=days.to).contains(day);
        let spent = self.spent.iter().filter(|(account, _)| inside(&account.day));
        let raised = self.raised.iter().filter(|((day, _), _)| inside(day));
        Spending {
            spent: spent
                .map(|(account, (calls, usage))| AccountSpending {
                    account: account.clone(),
                    calls: *calls,
                    usage: *usage,
                })
                .collect(),
            raised: raised
                .map(|((day, payer), by)| RaisedLimit { day: *day, payer: payer.clone(), by: *by })
                .collect(),
            head,
        }
    }

    /// Removes and returns everything.
    pub fn take(&mut self) -> Spending {
        let days = DayRange { from: NaiveDate::MIN, to: NaiveDate::MAX };
        let all = self.during(days, Position(0));
        *self = Self::default();
        all
    }
}

/// An empty payer counts as no payer.
fn named(payer: Option<&String>) -> Option<String> {
    payer.filter(|payer| !payer.is_empty()).cloned()
}
