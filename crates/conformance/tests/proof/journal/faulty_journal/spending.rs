//! Faults of spending.

use std::num::NonZeroUsize;

use antiphon_core::port::{JournalError, JournalIndex, TaskIndex, TaskQuery, TaskSelector};
use antiphon_core::{DayRange, Position, Spending, SpendingFold};

use super::{Fault, FaultyJournal};

#[expect(clippy::wildcard_enum_match_arm, reason = "a fault is wrong in one respect")]
impl FaultyJournal {
    pub(super) async fn spending_wrongly(&self, days: DayRange) -> Result<Spending, JournalError> {
        let mut found = self.inner.spending(days).await?;
        match self.fault {
            Fault::LetsTheOwnerPay => {
                let mut fold = SpendingFold::default();
                for mut spent in found.spent {
                    spent.account.payer = None;
                    fold.spend(spent.account, spent.calls, spent.usage);
                }
                found.spent = fold.take().spent;
            }
            Fault::CountsNoCalls if found.spent.len() > 3 => {
                found.spent.iter_mut().for_each(|spent| spent.calls = 1);
            }
            Fault::ChargesWhoeverTookOver if found.spent.len() == 3 => {
                let all = TaskQuery { which: TaskSelector::All, limit: NonZeroUsize::MAX };
                let last = self.inner.tasks(all).await?.remove(0).agent;
                found.spent.iter_mut().for_each(|spent| spent.account.agent.clone_from(&last));
            }
            Fault::AllowsItToAll => {
                found.raised.iter_mut().for_each(|raised| raised.payer = None);
            }
            Fault::CountsFurtherThanItDoes if found.head == Position(3) => found.head.0 += 1,
            Fault::SpendsWhatItRefused => return Ok(self.tried(days, found.head).await),
            _ => {}
        }
        Ok(found)
    }

    /// Every append, once.
    async fn tried(&self, days: DayRange, head: Position) -> Spending {
        let all = TaskQuery { which: TaskSelector::All, limit: NonZeroUsize::MAX };
        let tasks = self.inner.tasks(all).await.unwrap();
        let tried = self.tried.lock().unwrap().clone();
        let refused = tried.iter().any(|append| append.expected == super::behind_all());
        if !refused {
            return self.inner.spending(days).await.unwrap();
        }
        let mut fold = SpendingFold::default();
        for append in &tried {
            let Some(task) = tasks.iter().find(|task| task.task_id == append.task_id) else {
                continue;
            };
            for body in &append.events {
                fold.apply(task, body, append.at);
            }
        }
        fold.during(days, head)
    }
}
