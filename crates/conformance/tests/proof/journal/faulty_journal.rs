//! Journals that are wrong in one respect each.

mod answering;
mod arriving;
mod listing;
mod racing;
mod reading;
mod recalling;
mod spending;
mod summing;
mod waiting;
mod writing;

use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::sync::Mutex;
use std::sync::atomic::AtomicUsize;

use antiphon_conformance::reference::MemoryJournal;
use antiphon_core::port::{
    AgentQuery, Append, Appended, ApprovalQuery, Checkpoint, History, HistoryExtent,
    IdempotencyKey, JournalError, JournalIndex, JournalLog, Page, QueuedQuery, Read, SessionQuery,
    TaskIndex, TaskQuery,
};
use antiphon_core::{
    Approval, DayRange, Event, EventBody, HistoryRef, InteractionId, LiveAgent, Position,
    QueuedMessage, Replied, Seq, SessionSummary, Spending, StatusChanged, TaskCreated, TaskId,
    TaskSummary,
};
use async_trait::async_trait;

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Fault {
    AnswersWithTheFirstOfABatch,
    ReversesBatches,
    WritesWhatIsValidOfABatch,
    LetsWritersRunAhead,
    CreatesAgain,
    CallsOrphansInvalid,
    AcceptsNothing,
    SplitsLongAppends,
    CutsLongKeys,
    CreatesWhatIsMissing,
    IgnoresLateCreations,
    ForgetsThatTasksEnd,
    DropsWhatFollowsAnEnd,
    CallsEndedTasksStale,
    TakesAPauseForAnEnd,
    AnswersKeysWithTheNewest,
    KeepsKeysPerTask,
    LooksAtTheEndBeforeTheKey,
    UsesUpKeysOfRefusals,
    LooksUpKeysTooEarly,
    ReadsByPrefix,
    RefusesToReadUnknownTasks,
    LeavesOutAFirstEvent,
    StartsOverBehindTheEnd,
    SkipsOneBetweenPages,
    ReadsOneMore,
    ForgetsWhereTheReaderWas,
    TakesTheTasksEndForTheHead,
    ChecksWritersTooEarly,
    AnswersWithTheHead,
    ShowsWritesOutOfOrder,
    NormalizesJson,
    RoundsTimes,
    ListsByName,
    ListsOneMore,
    TakesWaitingForDone,
    ListsOneMoreSession,
    ListsOneMoreApproval,
    ListsOneMoreAgent,
    ListsOneMoreMessage,
    FindsUnfinishedTasksOnly,
    TakesBeginningsForPatterns,
    KnowsNoRandomParts,
    ForgetsWhyItWaits,
    DatesImportsByTheirEvents,
    LeavesOutGrandchildren,
    LeavesOutTheTop,
    TakesChildrenForTops,
    FindsSessionsByPrefix,
    ForgetsParents,
    ForgetsWhatIsWaitedFor,
    KeepsTheFirstAgent,
    KeepsTheFirstModel,
    CallsAgentsByTheirFirstNames,
    LagsBehind,
    CountsCompactionsAsTurns,
    TitlesByTheLatestQuestion,
    AddsUpAllModels,
    RoundsTimesOfSummaries,
    ListsSessionsByTheirFirstTasks,
    CountsUnfinishedTasksOnly,
    TitlesSessionsByTheirLastTask,
    ForgetsWhenApprovalsExpire,
    ListsApprovalsByTask,
    ListsPendingApprovalsOfEveryTree,
    ListsApprovalsOfEveryPayer,
    IgnoresPayers,
    KeepsAllowedOnesPending,
    LetsTheLastAnswerCount,
    AsksAgain,
    LetsApprovalsOutliveTheirTasks,
    LetsAgentsOutliveTheirTasks,
    CountsEveryMove,
    ListsTheOldestAgentFirst,
    NeverTakesFromTheQueue,
    ListsMessagesByTask,
    QueuesTwice,
    LetsMessagesOutliveTheirTasks,
    LetsQuietArrivalsGetInTheWay,
    WritesBehindAnything,
    LooksAtTheLastEventOnly,
    WritesBehindWhatIsToCome,
    CreatesWhatShouldBeThere,
    FindsEndedTasksThere,
    LooksForTheTaskTooEarly,
    LooksForArrivalsTooEarly,
    AnswersForWhatItRefused,
    TellsTheNewestPlace,
    KeepsWhatIsReplaced,
    ReplacesInEveryTask,
    KeepsWhatIsAnswered,
    LetsTheLastReplyCount,
    TakesAcceptedForAnAnswer,
    FindsRepliesOfUnfinishedTasksOnly,
    FindsRepliesWhereTheRequestCame,
    LooksAtTheStatusOnly,
    BeginsAPageWithTheLastOne,
    BeginsAnewBehindNothing,
    TakesAllOfThatNameForOrders,
    LetsTheOwnerPay,
    CountsNoCalls,
    ChargesWhoeverTookOver,
    AllowsItToAll,
    CountsFurtherThanItDoes,
    SpendsWhatItRefused,
    IgnoresCursorOfSessions,
    IgnoresCursorOfApprovals,
    IgnoresCursorOfAgents,
    IgnoresCursorOfMessages,
    RecallsTwoTasks,
    RecallsToTheEnd,
    RecallsEverything,
    TellsTheFirstStatus,
    KeepsTheFirstCheckpoint,
    BelievesEveryCheckpoint,
}

/// A correct journal with a fault around it.
pub(super) struct FaultyJournal {
    inner: MemoryJournal,
    fault: Fault,
    writing: AtomicUsize,
    answers: Mutex<HashMap<IdempotencyKey, Result<Appended, JournalError>>>,
    /// Every append, also the refused ones.
    tried: Mutex<Vec<Append>>,
    /// Checkpoints that were not compared with the log.
    checkpoints: Mutex<HashMap<TaskId, Checkpoint>>,
}

#[expect(clippy::wildcard_enum_match_arm, reason = "a fault is wrong in one respect")]
impl FaultyJournal {
    pub(super) fn new(fault: Fault) -> Self {
        Self {
            inner: MemoryJournal::new(),
            fault,
            writing: AtomicUsize::new(0),
            answers: Mutex::default(),
            tried: Mutex::default(),
            checkpoints: Mutex::default(),
        }
    }

    async fn events(&self, task_id: Option<&TaskId>) -> Vec<Event> {
        let read = Read { task_id: task_id.cloned(), after: Position(0), limit: NonZeroUsize::MAX };
        self.inner.read(read).await.unwrap().events
    }

    async fn seq(&self, task_id: &TaskId) -> Seq {
        Seq(self.events(Some(task_id)).await.len() as u64)
    }

    async fn last(&self, task_id: &TaskId) -> Option<Event> {
        self.events(Some(task_id)).await.pop()
    }

    /// The creation of a task.
    async fn creation(&self, task_id: &TaskId) -> TaskCreated {
        let begins = |event: Event| match event.body {
            EventBody::TaskCreated(created) => Some(created),
            _ => None,
        };
        self.events(Some(task_id)).await.into_iter().find_map(begins).unwrap()
    }

    /// The answer of an append that wrote nothing but should have succeeded.
    async fn pretended(&self, task_id: &TaskId) -> Appended {
        let last = self.last(task_id).await;
        Appended {
            task_id: task_id.clone(),
            position: last.as_ref().map_or(Position(0), |event| event.position),
            seq: last.map_or(Seq(0), |event| event.seq),
            deduplicated: false,
        }
    }
}

#[async_trait]
#[expect(clippy::wildcard_enum_match_arm, reason = "a fault is wrong in one respect")]
impl JournalLog for FaultyJournal {
    async fn append(&self, append: Append) -> Result<Appended, JournalError> {
        self.tried.lock().unwrap().push(append.clone());
        match self.fault {
            Fault::AnswersWithTheFirstOfABatch => self.answering_with_the_first(append).await,
            Fault::ReversesBatches => self.reversing(append).await,
            Fault::WritesWhatIsValidOfABatch => self.writing_what_is_valid(append).await,
            Fault::LetsWritersRunAhead => self.letting_run_ahead(append).await,
            Fault::CreatesAgain => self.creating_again(append).await,
            Fault::CallsOrphansInvalid => self.calling_orphans_invalid(append).await,
            Fault::AcceptsNothing => self.accepting_nothing(append).await,
            Fault::SplitsLongAppends => self.splitting(append).await,
            Fault::CutsLongKeys => self.cutting_keys(append).await,
            Fault::CreatesWhatIsMissing => self.creating_what_is_missing(append).await,
            Fault::IgnoresLateCreations => self.ignoring_late_creations(append).await,
            Fault::ForgetsThatTasksEnd => self.forgetting_ends(append).await,
            Fault::DropsWhatFollowsAnEnd => self.dropping_what_follows(append).await,
            Fault::CallsEndedTasksStale => self.calling_ended_stale(append).await,
            Fault::TakesAPauseForAnEnd => self.taking_a_pause_for_an_end(append).await,
            Fault::AnswersKeysWithTheNewest => self.answering_with_the_newest(append).await,
            Fault::KeepsKeysPerTask => self.keeping_keys_per_task(append).await,
            Fault::LooksAtTheEndBeforeTheKey => self.looking_at_the_end_first(append).await,
            Fault::UsesUpKeysOfRefusals => self.using_up_keys(append).await,
            Fault::LooksUpKeysTooEarly => self.looking_up_keys_too_early(append).await,
            Fault::ChecksWritersTooEarly => self.checking_writers_too_early(append).await,
            Fault::AnswersWithTheHead => self.answering_with_the_head(append).await,
            Fault::ShowsWritesOutOfOrder => self.writing_slowly(append).await,
            Fault::LetsQuietArrivalsGetInTheWay
            | Fault::WritesBehindAnything
            | Fault::LooksAtTheLastEventOnly
            | Fault::WritesBehindWhatIsToCome
            | Fault::LooksForArrivalsTooEarly => self.writing_behind_wrongly(append).await,
            Fault::CreatesWhatShouldBeThere
            | Fault::FindsEndedTasksThere
            | Fault::LooksForTheTaskTooEarly => self.writing_there_wrongly(append).await,
            Fault::AnswersForWhatItRefused => self.remembering_refusals(append).await,
            Fault::RoundsTimes => self.rounding_times(append).await,
            // The other faults are in reading, not in writing.
            _ => self.inner.append(append).await,
        }
    }

    async fn read(&self, read: Read) -> Result<Page, JournalError> {
        self.read_wrongly(read).await
    }

    async fn first_events(&self, tasks: Vec<TaskId>) -> Result<Vec<Event>, JournalError> {
        let left_out = usize::from(self.fault == Fault::LeavesOutAFirstEvent);
        let first = self.inner.first_events(tasks).await?;
        Ok(first.into_iter().skip(left_out).collect())
    }

    async fn history(
        &self,
        until: HistoryRef,
        extent: HistoryExtent,
    ) -> Result<History, JournalError> {
        self.history_wrongly(until, extent).await
    }

    async fn last_status(&self, task_id: &TaskId) -> Result<Option<StatusChanged>, JournalError> {
        self.last_status_wrongly(task_id).await
    }

    async fn answered(&self, key: &IdempotencyKey) -> Result<Option<Appended>, JournalError> {
        self.answered_wrongly(key).await
    }
}

#[async_trait]
impl TaskIndex for FaultyJournal {
    async fn tasks(&self, query: TaskQuery) -> Result<Vec<TaskSummary>, JournalError> {
        self.list_wrongly(query).await
    }
}

#[async_trait]
impl JournalIndex for FaultyJournal {
    async fn sessions(&self, query: SessionQuery) -> Result<Vec<SessionSummary>, JournalError> {
        self.list_sessions_wrongly(query).await
    }

    async fn approvals(&self, query: ApprovalQuery) -> Result<Vec<Approval>, JournalError> {
        self.list_approvals_wrongly(query).await
    }

    async fn agents(&self, query: AgentQuery) -> Result<Vec<LiveAgent>, JournalError> {
        self.list_agents_wrongly(query).await
    }

    async fn queued(&self, query: QueuedQuery) -> Result<Vec<QueuedMessage>, JournalError> {
        self.list_queued_wrongly(query).await
    }

    async fn reply(&self, request: InteractionId) -> Result<Option<Replied>, JournalError> {
        self.reply_wrongly(request).await
    }

    async fn spending(&self, days: DayRange) -> Result<Spending, JournalError> {
        self.spending_wrongly(days).await
    }

    async fn save_checkpoint(&self, checkpoint: Checkpoint) -> Result<(), JournalError> {
        self.save_checkpoint_wrongly(checkpoint).await
    }

    async fn checkpoint(&self, task_id: &TaskId) -> Result<Option<Checkpoint>, JournalError> {
        self.checkpoint_wrongly(task_id).await
    }

    async fn forget_checkpoints(&self) -> Result<(), JournalError> {
        self.checkpoints.lock().unwrap().clear();
        self.inner.forget_checkpoints().await
    }
}

fn is_end(body: &EventBody) -> bool {
    matches!(body, EventBody::StatusChanged(change) if change.status.is_terminal())
}

/// A position that the check of refused appends expects.
fn behind_all() -> antiphon_core::port::Expected {
    antiphon_core::port::Expected::At(Seq(0))
}
