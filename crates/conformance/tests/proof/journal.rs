//! The journal's suite, proved.

mod disk_journal;
mod faulty_journal;
mod json_journal;

use antiphon_conformance::journal;
use antiphon_conformance::model::{MemoryJournal, PAGE_EVENTS_MAX};
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
    (Fault::LetsQuietArrivalsGetInTheWay, "arrivals_are_in_nobodys_way"),
    (Fault::WritesBehindAnything, "what_is_more_than_an_arrival_is_in_the_way"),
    (Fault::LooksAtTheLastEventOnly, "what_is_more_than_an_arrival_is_in_the_way"),
    (Fault::WritesBehindWhatIsToCome, "nobody_writes_behind_what_is_not_there_yet"),
    (Fault::CreatesWhatShouldBeThere, "a_task_is_there_once_it_is_created"),
    (Fault::CreatesWhatIsMissing, "a_task_begins_with_its_creation"),
    (Fault::IgnoresLateCreations, "a_task_is_created_at_its_beginning_only"),
    (Fault::ForgetsThatTasksEnd, "nothing_follows_a_terminal_status"),
    (Fault::DropsWhatFollowsAnEnd, "a_terminal_status_is_the_last_of_its_batch"),
    (Fault::CallsEndedTasksStale, "an_ended_task_says_so_whatever_was_expected"),
    (Fault::FindsEndedTasksThere, "an_ended_task_says_so_whatever_was_expected"),
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
    (Fault::StartsOverBehindTheEnd, "reading_starts_behind_the_given_position"),
    (Fault::SkipsOneBetweenPages, "pages_cover_everything_exactly_once"),
    (Fault::ReadsOneMore, "a_page_is_never_longer_than_asked"),
    (Fault::ForgetsWhereTheReaderWas, "a_reader_at_the_end_goes_on_from_there"),
    (Fault::TakesTheTasksEndForTheHead, "the_head_is_the_last_position_of_the_whole_journal"),
    (Fault::ListsByName, "tasks_are_listed_the_newest_first"),
    (Fault::ListsOneMore, "a_list_is_never_longer_than_asked"),
    (Fault::TakesWaitingForDone, "a_task_is_unfinished_until_its_terminal_status"),
    (Fault::ListsOneMoreSession, "a_list_is_never_longer_than_asked"),
    (Fault::ListsOneMoreApproval, "a_list_is_never_longer_than_asked"),
    (Fault::ListsOneMoreAgent, "a_list_is_never_longer_than_asked"),
    (Fault::ListsOneMoreMessage, "a_list_is_never_longer_than_asked"),
    (Fault::IgnoresCursorOfSessions, "a_list_continues_behind_its_cursor"),
    (Fault::IgnoresCursorOfApprovals, "a_list_continues_behind_its_cursor"),
    (Fault::IgnoresCursorOfAgents, "a_list_continues_behind_its_cursor"),
    (Fault::IgnoresCursorOfMessages, "a_list_continues_behind_its_cursor"),
    (Fault::FindsUnfinishedTasksOnly, "a_task_is_found_by_its_id"),
    (Fault::TakesBeginningsForPatterns, "tasks_are_found_by_the_beginning_of_their_ids"),
    (Fault::LeavesOutGrandchildren, "a_tree_is_listed_from_its_top"),
    (Fault::LeavesOutTheTop, "a_tree_is_listed_from_its_top"),
    (Fault::TakesChildrenForTops, "a_tree_is_listed_from_its_top"),
    (Fault::FindsSessionsByPrefix, "the_tasks_of_a_session_are_listed_alone"),
    (Fault::LooksAtTheStatusOnly, "tasks_are_found_by_all_that_is_asked_of_them"),
    (Fault::BeginsAPageWithTheLastOne, "pages_of_a_list_stay_as_they_are_while_tasks_are_added"),
    (Fault::BeginsAnewBehindNothing, "nothing_was_created_before_a_task_that_is_not_there"),
    (
        Fault::TakesAllOfThatNameForOrders,
        "what_is_kept_of_orders_is_left_out_of_a_list_that_should_not_have_it",
    ),
    (Fault::LetsTheOwnerPay, "spending_is_told_by_day_payer_agent_and_model"),
    (Fault::CountsNoCalls, "spending_is_told_by_day_payer_agent_and_model"),
    (Fault::ChargesWhoeverTookOver, "who_was_at_work_is_who_spent"),
    (Fault::AllowsItToAll, "what_was_allowed_is_told_by_day_and_payer"),
    (Fault::CountsFurtherThanItDoes, "spending_says_how_far_it_counts"),
    (Fault::SpendsWhatItRefused, "what_was_refused_was_not_spent"),
    (Fault::ForgetsParents, "a_new_task_is_what_its_creation_says"),
    (Fault::ForgetsWhatIsWaitedFor, "a_summary_follows_the_status"),
    (Fault::KeepsTheFirstAgent, "a_task_belongs_to_whoever_it_was_handed_over_to"),
    (Fault::KeepsTheFirstModel, "a_task_belongs_to_whoever_it_was_handed_over_to"),
    (Fault::CallsAgentsByTheirFirstNames, "a_task_belongs_to_whoever_it_was_handed_over_to"),
    (Fault::LagsBehind, "a_summary_stands_at_the_last_event"),
    (Fault::CountsCompactionsAsTurns, "a_summary_counts_turns_calls_and_messages"),
    (Fault::TitlesByTheLatestQuestion, "a_summary_has_the_first_question_and_the_last_answer"),
    (Fault::AddsUpAllModels, "a_summary_adds_up_what_each_model_took"),
    (Fault::RoundsTimesOfSummaries, "a_summary_has_the_times_of_its_events"),
    (Fault::ListsSessionsByTheirFirstTasks, "sessions_are_listed_by_their_newest_tasks"),
    (Fault::CountsUnfinishedTasksOnly, "a_session_counts_its_tasks"),
    (
        Fault::TitlesSessionsByTheirLastTask,
        "a_session_begins_with_its_first_task_and_stands_at_its_last",
    ),
    (Fault::ForgetsWhenApprovalsExpire, "an_approval_is_listed_as_it_was_asked_for"),
    (Fault::ListsApprovalsByTask, "approvals_are_listed_the_oldest_first"),
    (Fault::KeepsAllowedOnesPending, "an_answer_ends_the_wait"),
    (Fault::LetsTheLastAnswerCount, "an_approval_is_answered_once_and_in_its_own_task"),
    (Fault::AsksAgain, "an_approval_that_is_asked_for_again_is_the_first_one"),
    (Fault::LetsApprovalsOutliveTheirTasks, "an_approval_is_void_when_its_task_ends_first"),
    (
        Fault::LetsAgentsOutliveTheirTasks,
        "an_agent_lives_from_its_first_move_to_the_end_of_its_task",
    ),
    (Fault::CountsEveryMove, "an_agent_stands_where_it_moved_last"),
    (Fault::ListsTheOldestAgentFirst, "agents_are_listed_by_their_tasks_the_newest_first"),
    (Fault::NeverTakesFromTheQueue, "a_message_waits_until_it_has_its_turn"),
    (Fault::ListsMessagesByTask, "messages_wait_in_the_order_of_their_arrival"),
    (Fault::QueuesTwice, "a_message_waits_once_in_each_task"),
    (Fault::LetsMessagesOutliveTheirTasks, "nothing_waits_in_a_task_that_has_ended"),
    (Fault::KeepsWhatIsReplaced, "what_is_replaced_does_not_wait_any_more"),
    (Fault::ReplacesInEveryTask, "what_is_replaced_does_not_wait_any_more"),
    (Fault::KeepsWhatIsAnswered, "a_request_waits_until_its_task_answers_it"),
    (Fault::LetsTheLastReplyCount, "a_request_has_its_first_final_answer"),
    (Fault::TakesAcceptedForAnAnswer, "an_answer_that_another_one_follows_does_not_count"),
    (Fault::FindsRepliesOfUnfinishedTasksOnly, "an_answer_is_found_wherever_it_was_written"),
    (Fault::FindsRepliesWhereTheRequestCame, "an_answer_is_found_wherever_it_was_written"),
    (Fault::ChecksWritersTooEarly, "one_of_many_writers_wins_each_seq"),
    (Fault::AnswersWithTheHead, "writers_on_many_tasks_leave_no_gap"),
    (Fault::LooksForTheTaskTooEarly, "arrivals_and_the_one_who_works_are_not_in_each_others_way"),
    (Fault::LooksForArrivalsTooEarly, "arrivals_and_the_one_who_works_are_not_in_each_others_way"),
    (Fault::ShowsWritesOutOfOrder, "a_follower_misses_nothing_while_others_write"),
    (Fault::NormalizesJson, "events_come_back_as_they_were_written"),
    (Fault::RoundsTimes, "times_come_back_to_the_nanosecond"),
];

const DISK_FAULTS: &[(DiskFault, &str)] = &[
    (DiskFault::LosesTheLastOfMany, "what_was_appended_is_there_after_reopening"),
    (DiskFault::Leaps, "positions_go_on_after_reopening"),
    (DiskFault::ForgetsKeys, "keys_still_count_after_reopening"),
    (DiskFault::ForgetsAnswers, "keys_still_count_after_reopening"),
    (DiskFault::ForgetsEnds, "writers_are_still_refused_after_reopening"),
    (DiskFault::ForgetsWhatArrived, "arrivals_are_still_in_nobodys_way_after_reopening"),
    (DiskFault::TakesAllForArrivals, "arrivals_are_still_in_nobodys_way_after_reopening"),
    (DiskFault::ForgetsReplies, "answers_to_requests_are_still_there_after_reopening"),
    (DiskFault::ForgetsSpending, "spending_is_still_known_after_reopening"),
    (DiskFault::ForgetsAgents, "what_was_at_hand_is_at_hand_after_reopening"),
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
