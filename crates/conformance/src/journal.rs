//! The journal's contract. Each check opens a journal of its own, which must be empty.
//!
//! ```
//! # use antiphon_conformance::{journal, model::MemoryJournal};
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! journal::check(async || MemoryJournal::new()).await.unwrap();
//! # }
//! ```
//!
//! A journal that outlives its process runs [`durable`] as well.

mod agent;
mod approval;
mod arrival;
pub mod durable;
mod happening;
mod inbox;
mod keys;
mod life;
mod listing;
mod matching;
mod order;
mod racing;
mod reading;
mod reply;
mod round_trip;
mod scribe;
mod session;
mod specimen;
mod spending;
mod summary;
mod writing;

use antiphon_core::port::Journal;

use crate::suite::{self, CHECK_LIMIT, Check, checks};
use crate::{Passed, Violations};
use scribe::Scribe;

/// Runs every check against what `open` opens.
pub async fn check<J: Journal + 'static>(open: impl AsyncFn() -> J) -> Result<Passed, Violations> {
    suite::run(list(), CHECK_LIMIT, async || Scribe::new(open().await)).await
}

/// The names of the checks.
pub fn checks() -> Vec<&'static str> {
    list().iter().map(|check| check.name).collect()
}

fn list() -> Vec<Check<'static, Scribe>> {
    let mut checks = of_events();
    checks.extend(of_lists());
    checks
}

/// What is written and read.
fn of_events() -> Vec<Check<'static, Scribe>> {
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
            arrivals_are_in_nobodys_way,
            what_is_more_than_an_arrival_is_in_the_way,
            nobody_writes_behind_what_is_not_there_yet,
            a_task_is_there_once_it_is_created,
        },
        life::{
            a_task_begins_with_its_creation,
            a_task_is_created_at_its_beginning_only,
            nothing_follows_a_terminal_status,
            a_terminal_status_is_the_last_of_its_batch,
            an_ended_task_says_so_whatever_was_expected,
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
            reading_starts_behind_the_given_position,
            pages_cover_everything_exactly_once,
            a_page_is_never_longer_than_asked,
            a_reader_at_the_end_goes_on_from_there,
            the_head_is_the_last_position_of_the_whole_journal,
        },
        racing::{
            one_of_many_writers_wins_each_seq,
            writers_on_many_tasks_leave_no_gap,
            arrivals_and_the_one_who_works_are_not_in_each_others_way,
            a_follower_misses_nothing_while_others_write,
        },
        round_trip::{
            events_come_back_as_they_were_written,
            times_come_back_to_the_nanosecond,
        },
    ])
}

/// What is kept at hand beside it.
fn of_lists() -> Vec<Check<'static, Scribe>> {
    Vec::from(checks![Required:
        listing::{
            tasks_are_listed_the_newest_first,
            a_list_is_never_longer_than_asked,
            a_list_continues_behind_its_cursor,
            a_task_is_unfinished_until_its_terminal_status,
            a_task_is_found_by_its_id,
            tasks_are_found_by_the_beginning_of_their_ids,
            a_tree_is_listed_from_its_top,
            the_tasks_of_a_session_are_listed_alone,
        },
        matching::{
            tasks_are_found_by_all_that_is_asked_of_them,
            pages_of_a_list_stay_as_they_are_while_tasks_are_added,
            nothing_was_created_before_a_task_that_is_not_there,
            what_is_kept_of_orders_is_left_out_of_a_list_that_should_not_have_it,
        },
        summary::{
            a_new_task_is_what_its_creation_says,
            a_summary_follows_the_status,
            a_task_belongs_to_whoever_it_was_handed_over_to,
            a_summary_stands_at_the_last_event,
            a_summary_counts_turns_calls_and_messages,
            a_summary_has_the_first_question_and_the_last_answer,
            a_summary_adds_up_what_each_model_took,
            a_summary_has_the_times_of_its_events,
        },
        session::{
            sessions_are_listed_by_their_newest_tasks,
            a_session_counts_its_tasks,
            a_session_begins_with_its_first_task_and_stands_at_its_last,
        },
        approval::{
            an_approval_is_listed_as_it_was_asked_for,
            approvals_are_listed_the_oldest_first,
            an_answer_ends_the_wait,
            an_approval_is_answered_once_and_in_its_own_task,
            an_approval_that_is_asked_for_again_is_the_first_one,
            an_approval_is_void_when_its_task_ends_first,
        },
        agent::{
            an_agent_lives_from_its_first_move_to_the_end_of_its_task,
            an_agent_stands_where_it_moved_last,
            agents_are_listed_by_their_tasks_the_newest_first,
        },
        inbox::{
            a_message_waits_until_it_has_its_turn,
            messages_wait_in_the_order_of_their_arrival,
            a_message_waits_once_in_each_task,
            nothing_waits_in_a_task_that_has_ended,
            what_is_replaced_does_not_wait_any_more,
            a_request_waits_until_its_task_answers_it,
        },
        reply::{
            a_request_has_its_first_final_answer,
            an_answer_that_another_one_follows_does_not_count,
            an_answer_is_found_wherever_it_was_written,
        },
        spending::{
            spending_is_told_by_day_payer_agent_and_model,
            who_was_at_work_is_who_spent,
            what_was_allowed_is_told_by_day_and_payer,
            spending_says_how_far_it_counts,
            what_was_refused_was_not_spent,
        },
    ])
}
