//! Faults of summaries.

use antiphon_core::{EventBody, InputBlock, Message, Seq, TaskSummary, Usage};
use chrono::SubsecRound;

use super::{Fault, FaultyJournal};

#[expect(clippy::wildcard_enum_match_arm, reason = "a fault is wrong in one respect")]
impl FaultyJournal {
    pub(super) async fn sum_up_wrongly(&self, task: &mut TaskSummary) {
        match self.fault {
            Fault::ForgetsParents => task.parent = None,
            Fault::ForgetsWhatIsWaitedFor => task.waiting_for = None,
            Fault::ForgetsWhyItWaits => task.wait = None,
            Fault::KeepsTheFirstAgent => task.agent = self.creation(&task.task_id).await.agent,
            Fault::KeepsTheFirstModel => task.model = self.creation(&task.task_id).await.model,
            Fault::LagsBehind if task.seq > Seq(1) => task.seq.0 -= 1,
            Fault::CountsCompactionsAsTurns => task.turns = self.payments(task).await,
            Fault::TitlesByTheLatestQuestion => {
                if let Some(title) = self.latest_question(task).await {
                    task.title = title;
                }
            }
            Fault::AddsUpAllModels if task.spent.len() > 1 => {
                let mut total = Usage::default();
                for spent in task.spent.values() {
                    total += *spent;
                }
                for spent in task.spent.values_mut() {
                    *spent = total;
                }
            }
            Fault::RoundsTimesOfSummaries => {
                task.last_event_at = task.last_event_at.trunc_subsecs(3);
                task.ended_at = task.ended_at.map(|at| at.trunc_subsecs(3));
            }
            _ => {}
        }
    }

    async fn payments(&self, task: &TaskSummary) -> u32 {
        let events = self.events(Some(&task.task_id)).await;
        let paid = events.iter().filter(|e| matches!(e.body, EventBody::UsageRecorded(_)));
        u32::try_from(paid.count()).unwrap()
    }

    async fn latest_question(&self, task: &TaskSummary) -> Option<String> {
        let events = self.events(Some(&task.task_id)).await;
        events.iter().rev().find_map(|event| match &event.body {
            EventBody::MessageAppended(appended) => match &*appended.message {
                Message::User(user) => match user.content.first() {
                    Some(InputBlock::Text(text)) if !text.text.starts_with('\n') => {
                        Some(text.text.clone())
                    }
                    _ => None,
                },
                _ => None,
            },
            _ => None,
        })
    }
}
