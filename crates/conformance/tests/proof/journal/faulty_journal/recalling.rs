//! Faults of histories, of the last status and of checkpoints.

use antiphon_core::port::{
    Checkpoint, History, HistoryExtent, JournalError, JournalIndex, JournalLog,
};
use antiphon_core::{EventBody, HistoryRef, Seq, StatusChanged, TaskId};

use super::{Fault, FaultyJournal};

impl FaultyJournal {
    pub(super) async fn history_wrongly(
        &self,
        mut until: HistoryRef,
        mut extent: HistoryExtent,
    ) -> Result<History, JournalError> {
        if self.fault == Fault::RecallsToTheEnd {
            until.seq = Seq(u64::MAX);
        }
        if self.fault == Fault::RecallsEverything {
            extent = HistoryExtent::All;
        }
        let mut history = self.inner.history(until, extent).await?;
        if self.fault == Fault::RecallsTwoTasks {
            let mut tasks: Vec<TaskId> =
                history.events.iter().rev().map(|event| event.task_id.clone()).collect();
            tasks.dedup();
            tasks.truncate(2);
            history.events.retain(|event| tasks.contains(&event.task_id));
        }
        Ok(history)
    }

    pub(super) async fn last_status_wrongly(
        &self,
        task_id: &TaskId,
    ) -> Result<Option<StatusChanged>, JournalError> {
        if self.fault != Fault::TellsTheFirstStatus {
            return self.inner.last_status(task_id).await;
        }
        let events = self.events(Some(task_id)).await.into_iter();
        Ok(events.into_iter().find_map(|event| {
            let EventBody::StatusChanged(change) = event.body else { return None };
            Some(change)
        }))
    }

    pub(super) async fn save_checkpoint_wrongly(
        &self,
        checkpoint: Checkpoint,
    ) -> Result<(), JournalError> {
        let task_id = checkpoint.task_id.clone();
        if self.fault == Fault::KeepsTheFirstCheckpoint
            && self.inner.checkpoint(&task_id).await?.is_some()
        {
            return Ok(());
        }
        self.checkpoints.lock().unwrap().insert(task_id, checkpoint.clone());
        self.inner.save_checkpoint(checkpoint).await
    }

    pub(super) async fn checkpoint_wrongly(
        &self,
        task_id: &TaskId,
    ) -> Result<Option<Checkpoint>, JournalError> {
        if self.fault == Fault::BelievesEveryCheckpoint {
            return Ok(self.checkpoints.lock().unwrap().get(task_id).cloned());
        }
        self.inner.checkpoint(task_id).await
    }
}
