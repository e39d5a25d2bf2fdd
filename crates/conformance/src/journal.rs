//! The contract of the journal. Each check opens its own, empty journal.
//!
//! ```
//! # use antiphon_conformance::{journal, reference::MemoryJournal};
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! journal::check(async || MemoryJournal::new()).await.unwrap();
//! # }
//! ```
//!
//! A journal that outlives its process runs [`durable`] as well.

mod agent;
mod all_events;
mod approval;
mod arrival;
mod checkpoint;
pub mod durable;
mod history;
mod inbox;
mod keys;
mod lifecycle;
mod listing;
mod matching;
mod order;
mod racing;
mod reading;
mod reply;
mod round_trip;
mod sample_events;
mod session;
mod spending;
mod summary;
mod test_journal;
mod writing;

use antiphon_core::port::Journal;

use crate::suite::{self, CHECK_LIMIT, Check, checks};
use crate::{Passed, Violations};
use test_journal::TestJournal;

/// Runs every check, each against a journal of its own from `open`.
pub async fn check<J: Journal + 'static>(open: impl AsyncFn() -> J) -> Result<Passed, Violations> {
    suite::run(list(), CHECK_LIMIT, async || TestJournal::new(open().await)).await
}

/// The names of the checks.
pub fn checks() -> Vec<&'static str> {
    list().iter().map(|check| check.name).collect()
}

fn list() -> Vec<Check<'static, TestJournal>> {
    let mut checks = of_events();
    checks.extend(of_states());
    checks.extend(of_lists());
    checks.extend(of_work());
    checks
}

/// Checks of the log.
fn of_events() -> Vec<Check<'static, TestJournal>> {
    Vec::from(checks![Required:
        order::{
            positions_and_seqs_count_from_one_without_a_gap,
            a_batch_is_written_whole_and_in_order,
            a_refused_batch_leaves_nothing_behind,
        },
        writing::{
            a_stale_writer_is_refused_and_nothing_is_written,
            a_task_that_exists_is_not_created_again,
            a_task_that_does_not_exist_is_at_zero,
            an_empty_append_is_invalid,
            too_many_events_at_once_are_invalid,
            a_key_that_is_too_long_is_invalid,
        },
        arrival::{
            arrivals_do_not_conflict_with_the_writer,
            other_events_conflict_with_the_writer,
            a_writer_cannot_expect_a_future_event,
            a_task_exists_once_it_is_created,
        },
        lifecycle::{
            a_task_begins_with_its_creation,
            a_task_is_created_at_its_beginning_only,
            nothing_follows_a_terminal_status,
            a_terminal_status_is_the_last_of_its_batch,
            an_ended_task_refuses_appends_with_any_expected_position,
            a_task_goes_on_after_any_other_status,
        },
        keys::{
            a_repeated_key_gets_the_first_answer_and_writes_nothing,
            a_key_used_for_another_task_gets_the_first_ones_answer,
            a_key_still_counts_when_its_task_has_ended,
            a_refused_append_leaves_its_key_unused,
            one_key_used_by_many_at_once_is_written_once,
            a_key_that_was_not_used_has_no_answer,
            a_key_that_was_used_has_its_first_answer,
        },
        reading::{
            a_task_is_read_alone_and_in_order,
            a_task_that_does_not_exist_reads_as_empty,
            the_first_events_of_tasks_are_read_together,
            reading_starts_behind_the_given_position,
            pages_cover_everything_exactly_once,
            a_page_is_never_longer_than_its_limit,
            a_reader_at_the_end_continues_from_there,
            the_head_is_the_last_position_of_the_whole_journal,
        },
        racing::{
            one_of_many_writers_wins_each_seq,
            writers_on_many_tasks_leave_no_gap,
            arrivals_and_the_writer_do_not_conflict,
            a_follower_misses_nothing_while_others_write,
        },
        round_trip::{
            events_come_back_as_they_were_written,
            times_come_back_to_the_nanosecond,
        },
    ])
}

/// Checks of what a task goes on with.
fn of_states() -> Vec<Check<'static, TestJournal>> {
    Vec::from(checks![Required:
        history::{
            a_history_goes_through_every_task_it_continues,
            a_history_ends_with_the_event_it_names,
            a_recent_history_begins_with_what_the_compaction_kept,
            the_last_status_of_a_task_has_its_detail,
        },
        checkpoint::{
            a_checkpoint_is_the_last_one_of_its_task,
            a_checkpoint_that_does_not_fit_the_log_is_none,
        },
    ])
}

/// Checks of the index.
fn of_lists() -> Vec<Check<'static, TestJournal>> {
    Vec::from(checks![Required:
        listing::{
            tasks_are_listed_the_newest_first,
            a_list_is_never_longer_than_its_limit,
            a_list_continues_behind_its_cursor,
            a_task_is_unfinished_until_its_terminal_status,
            a_task_is_found_by_its_id,
            tasks_are_found_by_a_prefix_of_their_ids,
            tasks_are_found_by_the_random_part_of_their_ids,
            a_tree_is_listed_from_its_root,
            the_tasks_of_a_session_are_listed_alone,
        },
        matching::{
            tasks_are_found_by_every_condition_of_a_filter,
            pages_of_a_list_stay_as_they_are_while_tasks_are_added,
            a_cursor_that_does_not_exist_gives_an_empty_page,
            a_filter_leaves_out_records_of_orders,
        },
        summary::{
            a_new_summary_is_what_the_creation_says,
            a_summary_follows_the_status,
            a_summary_says_why_a_task_waits_for_its_model,
            a_handover_changes_the_agent_of_a_task,
            a_summary_has_the_seq_of_the_last_event,
            a_summary_counts_turns_calls_and_messages,
            a_summary_has_the_first_message_and_the_last_answer,
            a_summary_adds_up_the_tokens_of_each_model,
            a_summary_has_the_times_of_its_events,
        },
        session::{
            sessions_are_listed_by_their_newest_tasks,
            a_session_counts_its_tasks,
            a_session_has_the_title_of_its_first_task_and_the_status_of_its_last,
            an_imported_session_has_the_times_of_its_file_until_it_is_continued,
        },
    ])
}

/// Checks of what waits in tasks, and of what they spent.
fn of_work() -> Vec<Check<'static, TestJournal>> {
    Vec::from(checks![Required:
        approval::{
            an_approval_is_listed_as_it_was_requested,
            approvals_are_listed_the_oldest_first,
            pending_approvals_are_found_by_the_root_of_their_tree,
            approvals_are_found_by_the_payer_of_their_task,
            a_decision_ends_an_approval,
            an_approval_is_decided_once_and_in_its_own_task,
            an_approval_that_is_requested_again_stays_the_first_one,
            an_approval_is_void_when_its_task_ends_first,
        },
        agent::{
            an_agent_is_live_from_its_first_state_to_the_end_of_its_task,
            an_agent_has_its_last_state,
            agents_are_listed_by_their_tasks_the_newest_first,
        },
        inbox::{
            a_message_is_queued_until_it_joins_the_conversation,
            messages_are_queued_in_the_order_of_arrival,
            a_message_is_queued_once_in_each_task,
            nothing_is_queued_in_a_task_that_has_ended,
            a_replaced_message_leaves_the_inbox,
            a_request_is_queued_until_its_task_answers_it,
        },
        reply::{
            a_request_has_its_first_final_answer,
            an_accepted_answer_is_not_final,
            an_answer_is_found_in_any_task,
        },
        spending::{
            spending_is_grouped_by_day_payer_agent_and_model,
            spending_belongs_to_the_agent_of_that_time,
            raised_limits_are_grouped_by_day_and_payer,
            spending_has_the_position_of_the_last_event,
            a_refused_append_spends_nothing,
        },
    ])
}
