//! Proof of the journal suite.

mod disk_journal;
mod faulty_journal;
mod json_journal;

use antiphon_conformance::journal;
use antiphon_conformance::reference::{MemoryJournal, PAGE_EVENTS_MAX};
use antiphon_core::port::{Append, Expected, JournalError, JournalLog, Read};
use antiphon_core::{Position, Seq, TaskCreated, TaskId};
use chrono::DateTime;
use std::num::NonZeroUsize;
use uuid::Uuid;

use crate::verdict::{each_check_has_a_fault, each_fault_is_caught_by_its_own_check};
use disk_journal::{Disk, DiskFault, DiskJournal};
use faulty_journal::{Fault, FaultyJournal};
use json_journal::JsonJournal;

const FAULTS: &[(Fault, &str)] = &[
    (Fault::AnswersWithTheFirstOfABatch, "positions_and_seqs_count_from_one_without_a_gap"),
    (Fault::ReversesBatches, "a_batch_is_written_whole_and_in_order"),
    (Fault::WritesWhatIsValidOfABatch, "a_refused_batch_leaves_nothing_behind"),
    (Fault::LetsWritersRunAhead, "a_stale_writer_is_refused_and_nothing_is_written"),
    (Fault::CreatesAgain, "a_task_that_exists_is_not_created_again"),
    (Fault::CallsOrphansInvalid, "a_task_that_does_not_exist_is_at_zero"),
    (Fault::AcceptsNothing, "an_empty_append_is_invalid"),
    (Fault::SplitsLongAppends, "too_many_events_at_once_are_invalid"),
    (Fault::CutsLongKeys, "a_key_that_is_too_long_is_invalid"),
    (Fault::LetsQuietArrivalsGetInTheWay, "arrivals_do_not_conflict_with_the_writer"),
    (Fault::WritesBehindAnything, "other_events_conflict_with_the_writer"),
    (Fault::LooksAtTheLastEventOnly, "other_events_conflict_with_the_writer"),
    (Fault::WritesBehindWhatIsToCome, "a_writer_cannot_expect_a_future_event"),
    (Fault::CreatesWhatShouldBeThere, "a_task_exists_once_it_is_created"),
    (Fault::CreatesWhatIsMissing, "a_task_begins_with_its_creation"),
    (Fault::IgnoresLateCreations, "a_task_is_created_at_its_beginning_only"),
    (Fault::ForgetsThatTasksEnd, "nothing_follows_a_terminal_status"),
    (Fault::DropsWhatFollowsAnEnd, "a_terminal_status_is_the_last_of_its_batch"),
    (Fault::CallsEndedTasksStale, "an_ended_task_refuses_appends_with_any_expected_position"),
    (Fault::FindsEndedTasksThere, "an_ended_task_refuses_appends_with_any_expected_position"),
    (Fault::TakesAPauseForAnEnd, "a_task_goes_on_after_any_other_status"),
    (Fault::AnswersKeysWithTheNewest, "a_repeated_key_gets_the_first_answer_and_writes_nothing"),
    (Fault::KeepsKeysPerTask, "a_key_used_for_another_task_gets_the_first_ones_answer"),
    (Fault::LooksAtTheEndBeforeTheKey, "a_key_still_counts_when_its_task_has_ended"),
    (Fault::UsesUpKeysOfRefusals, "a_refused_append_leaves_its_key_unused"),
    (Fault::LooksUpKeysTooEarly, "one_key_used_by_many_at_once_is_written_once"),
    (Fault::AnswersForWhatItRefused, "a_key_that_was_not_used_has_no_answer"),
    (Fault::TellsTheNewestPlace, "a_key_that_was_used_has_its_first_answer"),
    (Fault::ReadsByPrefix, "a_task_is_read_alone_and_in_order"),
    (Fault::RefusesToReadUnknownTasks, "a_task_that_does_not_exist_reads_as_empty"),
    (Fault::LeavesOutAFirstEvent, "the_first_events_of_tasks_are_read_together"),
    (Fault::StartsOverBehindTheEnd, "reading_starts_behind_the_given_position"),
    (Fault::SkipsOneBetweenPages, "pages_cover_everything_exactly_once"),
    (Fault::ReadsOneMore, "a_page_is_never_longer_than_its_limit"),
    (Fault::ForgetsWhereTheReaderWas, "a_reader_at_the_end_continues_from_there"),
    (Fault::TakesTheTasksEndForTheHead, "the_head_is_the_last_position_of_the_whole_journal"),
    (Fault::RecallsTwoTasks, "a_history_goes_through_every_task_it_continues"),
    (Fault::RecallsToTheEnd, "a_history_ends_with_the_event_it_names"),
    (Fault::RecallsEverything, "a_recent_history_begins_with_what_the_compaction_kept"),
    (Fault::TellsTheFirstStatus, "the_last_status_of_a_task_has_its_detail"),
    (Fault::KeepsTheFirstCheckpoint, "a_checkpoint_is_the_last_one_of_its_task"),
    (Fault::BelievesEveryCheckpoint, "a_checkpoint_that_does_not_fit_the_log_is_none"),
    (Fault::ListsByName, "tasks_are_listed_the_newest_first"),
    (Fault::ListsOneMore, "a_list_is_never_longer_than_its_limit"),
    (Fault::TakesWaitingForDone, "a_task_is_unfinished_until_its_terminal_status"),
    (Fault::ListsOneMoreSession, "a_list_is_never_longer_than_its_limit"),
    (Fault::ListsOneMoreApproval, "a_list_is_never_longer_than_its_limit"),
    (Fault::ListsOneMoreAgent, "a_list_is_never_longer_than_its_limit"),
    (Fault::ListsOneMoreMessage, "a_list_is_never_longer_than_its_limit"),
    (Fault::IgnoresCursorOfSessions, "a_list_continues_behind_its_cursor"),
    (Fault::IgnoresCursorOfApprovals, "a_list_continues_behind_its_cursor"),
    (Fault::IgnoresCursorOfAgents, "a_list_continues_behind_its_cursor"),
    (Fault::IgnoresCursorOfMessages, "a_list_continues_behind_its_cursor"),
    (Fault::FindsUnfinishedTasksOnly, "a_task_is_found_by_its_id"),
    (Fault::TakesBeginningsForPatterns, "tasks_are_found_by_a_prefix_of_their_ids"),
    (Fault::KnowsNoRandomParts, "tasks_are_found_by_the_random_part_of_their_ids"),
    (Fault::LeavesOutGrandchildren, "a_tree_is_listed_from_its_root"),
    (Fault::LeavesOutTheTop, "a_tree_is_listed_from_its_root"),
    (Fault::TakesChildrenForTops, "a_tree_is_listed_from_its_root"),
    (Fault::FindsSessionsByPrefix, "the_tasks_of_a_session_are_listed_alone"),
    (Fault::LooksAtTheStatusOnly, "tasks_are_found_by_every_condition_of_a_filter"),
    (Fault::BeginsAPageWithTheLastOne, "pages_of_a_list_stay_as_they_are_while_tasks_are_added"),
    (Fault::BeginsAnewBehindNothing, "a_cursor_that_does_not_exist_gives_an_empty_page"),
    (Fault::TakesAllOfThatNameForOrders, "a_filter_leaves_out_records_of_orders"),
    (Fault::LetsTheOwnerPay, "spending_is_grouped_by_day_payer_agent_and_model"),
    (Fault::CountsNoCalls, "spending_is_grouped_by_day_payer_agent_and_model"),
    (Fault::ChargesWhoeverTookOver, "spending_belongs_to_the_agent_of_that_time"),
    (Fault::AllowsItToAll, "raised_limits_are_grouped_by_day_and_payer"),
    (Fault::CountsFurtherThanItDoes, "spending_has_the_position_of_the_last_event"),
    (Fault::SpendsWhatItRefused, "a_refused_append_spends_nothing"),
    (Fault::ForgetsParents, "a_new_summary_is_what_the_creation_says"),
    (Fault::ForgetsWhatIsWaitedFor, "a_summary_follows_the_status"),
    (Fault::ForgetsWhyItWaits, "a_summary_says_why_a_task_waits_for_its_model"),
    (Fault::KeepsTheFirstAgent, "a_handover_changes_the_agent_of_a_task"),
    (Fault::KeepsTheFirstModel, "a_handover_changes_the_agent_of_a_task"),
    (Fault::CallsAgentsByTheirFirstNames, "a_handover_changes_the_agent_of_a_task"),
    (Fault::LagsBehind, "a_summary_has_the_seq_of_the_last_event"),
    (Fault::CountsCompactionsAsTurns, "a_summary_counts_turns_calls_and_messages"),
    (Fault::TitlesByTheLatestQuestion, "a_summary_has_the_first_message_and_the_last_answer"),
    (Fault::AddsUpAllModels, "a_summary_adds_up_the_tokens_of_each_model"),
    (Fault::RoundsTimesOfSummaries, "a_summary_has_the_times_of_its_events"),
    (Fault::ListsSessionsByTheirFirstTasks, "sessions_are_listed_by_their_newest_tasks"),
    (Fault::CountsUnfinishedTasksOnly, "a_session_counts_its_tasks"),
    (
        Fault::TitlesSessionsByTheirLastTask,
        "a_session_has_the_title_of_its_first_task_and_the_status_of_its_last",
    ),
    (
        Fault::DatesImportsByTheirEvents,
        "an_imported_session_has_the_times_of_its_file_until_it_is_continued",
    ),
    (Fault::ForgetsWhenApprovalsExpire, "an_approval_is_listed_as_it_was_requested"),
    (Fault::ListsApprovalsByTask, "approvals_are_listed_the_oldest_first"),
    (
        Fault::ListsPendingApprovalsOfEveryTree,
        "pending_approvals_are_found_by_the_root_of_their_tree",
    ),
    (Fault::ListsApprovalsOfEveryPayer, "approvals_are_found_by_the_payer_of_their_task"),
    (Fault::IgnoresPayers, "tasks_are_found_by_every_condition_of_a_filter"),
    (Fault::KeepsAllowedOnesPending, "a_decision_ends_an_approval"),
    (Fault::LetsTheLastAnswerCount, "an_approval_is_decided_once_and_in_its_own_task"),
    (Fault::AsksAgain, "an_approval_that_is_requested_again_stays_the_first_one"),
    (Fault::LetsApprovalsOutliveTheirTasks, "an_approval_is_void_when_its_task_ends_first"),
    (
        Fault::LetsAgentsOutliveTheirTasks,
        "an_agent_is_live_from_its_first_state_to_the_end_of_its_task",
    ),
    (Fault::CountsEveryMove, "an_agent_has_its_last_state"),
    (Fault::ListsTheOldestAgentFirst, "agents_are_listed_by_their_tasks_the_newest_first"),
    (Fault::NeverTakesFromTheQueue, "a_message_is_queued_until_it_joins_the_conversation"),
    (Fault::ListsMessagesByTask, "messages_are_queued_in_the_order_of_arrival"),
    (Fault::QueuesTwice, "a_message_is_queued_once_in_each_task"),
    (Fault::LetsMessagesOutliveTheirTasks, "nothing_is_queued_in_a_task_that_has_ended"),
    (Fault::KeepsWhatIsReplaced, "a_replaced_message_leaves_the_inbox"),
    (Fault::ReplacesInEveryTask, "a_replaced_message_leaves_the_inbox"),
    (Fault::KeepsWhatIsAnswered, "a_request_is_queued_until_its_task_answers_it"),
    (Fault::LetsTheLastReplyCount, "a_request_has_its_first_final_answer"),
    (Fault::TakesAcceptedForAnAnswer, "an_accepted_answer_is_not_final"),
    (Fault::FindsRepliesOfUnfinishedTasksOnly, "an_answer_is_found_in_any_task"),
    (Fault::FindsRepliesWhereTheRequestCame, "an_answer_is_found_in_any_task"),
    (Fault::ChecksWritersTooEarly, "one_of_many_writers_wins_each_seq"),
    (Fault::AnswersWithTheHead, "writers_on_many_tasks_leave_no_gap"),
    (Fault::LooksForTheTaskTooEarly, "arrivals_and_the_writer_do_not_conflict"),
    (Fault::LooksForArrivalsTooEarly, "arrivals_and_the_writer_do_not_conflict"),
    (Fault::ShowsWritesOutOfOrder, "a_follower_misses_nothing_while_others_write"),
    (Fault::NormalizesJson, "events_come_back_as_they_were_written"),
    (Fault::RoundsTimes, "times_come_back_to_the_nanosecond"),
];

const DISK_FAULTS: &[(DiskFault, &str)] = &[
    (DiskFault::LosesTheLastOfMany, "appended_events_exist_after_reopening"),
    (DiskFault::Leaps, "positions_continue_after_reopening"),
    (DiskFault::ForgetsKeys, "keys_still_count_after_reopening"),
    (DiskFault::ForgetsAnswers, "keys_still_count_after_reopening"),
    (DiskFault::ForgetsEnds, "writers_are_still_refused_after_reopening"),
    (DiskFault::ForgetsWhatArrived, "arrivals_still_do_not_conflict_after_reopening"),
    (DiskFault::TakesAllForArrivals, "arrivals_still_do_not_conflict_after_reopening"),
    (DiskFault::ForgetsReplies, "answers_to_requests_exist_after_reopening"),
    (DiskFault::ForgetsSpending, "spending_is_still_known_after_reopening"),
    (DiskFault::ForgetsAgents, "the_index_is_the_same_after_reopening"),
];

#[tokio::test]
async fn the_memory_journal_keeps_the_contract() {
    let passed = journal::check(async || MemoryJournal::new()).await.unwrap();
    assert_eq!(passed.checks, journal::checks());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_memory_journal_keeps_the_contract_on_many_threads() {
    journal::check(async || MemoryJournal::new()).await.unwrap();
}

#[tokio::test]
async fn a_journal_that_keeps_events_as_the_text_of_their_json_keeps_the_contract() {
    journal::check(async || JsonJournal::new()).await.unwrap();
}

#[tokio::test]
async fn a_full_memory_journal_refuses_one_more_and_goes_on_reading() {
    let journal = MemoryJournal::with_events_max(PAGE_EVENTS_MAX + 1);
    for n in 0..=PAGE_EVENTS_MAX as u64 {
        journal.append(creation(n)).await.unwrap();
    }
    let refused = journal.append(creation(u64::MAX)).await;
    assert!(matches!(refused, Err(JournalError::Unavailable { .. })), "{refused:?}");

    let read = |after| Read { task_id: None, after, limit: NonZeroUsize::MAX };
    let first = journal.read(read(Position(0))).await.unwrap();
    let second = journal.read(read(first.next)).await.unwrap();
    assert_eq!((first.events.len(), second.events.len()), (PAGE_EVENTS_MAX, 1));
    assert_eq!(second.events[0].seq, Seq(1));
}

/// The creation of the `n`th task.
fn creation(n: u64) -> Append {
    let created = TaskCreated::new("a", Uuid::from_u128(1).into());
    Append {
        task_id: TaskId::from(Uuid::from_u64_pair(0, n)),
        expected: Expected::NoTask,
        at: DateTime::default(),
        events: vec![created.into()],
        key: None,
    }
}

#[tokio::test]
async fn each_fault_of_a_journal_is_caught_by_its_own_check() {
    each_check_has_a_fault(&journal::checks(), FAULTS);
    each_fault_is_caught_by_its_own_check(FAULTS, async |fault| {
        journal::check(async || FaultyJournal::new(fault)).await
    })
    .await;
}

#[tokio::test]
async fn a_journal_that_is_read_back_from_disk_is_durable() {
    let open = async |disk: &Disk| DiskJournal::open(disk, None).await;
    let passed = journal::durable::check(Disk::default, open).await.unwrap();
    assert_eq!(passed.checks, journal::durable::checks());
}

#[tokio::test]
async fn each_fault_of_a_disk_is_caught_by_its_own_check() {
    each_check_has_a_fault(&journal::durable::checks(), DISK_FAULTS);
    each_fault_is_caught_by_its_own_check(DISK_FAULTS, async |fault| {
        let open = async |disk: &Disk| DiskJournal::open(disk, Some(fault)).await;
        journal::durable::check(Disk::default, open).await
    })
    .await;
}
