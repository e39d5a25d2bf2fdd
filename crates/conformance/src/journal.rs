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

pub mod durable;
mod keys;
mod life;
mod listing;
mod order;
mod racing;
mod reading;
mod round_trip;
mod scribe;
mod specimen;
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
        listing::{
            tasks_are_listed_the_newest_first,
            a_list_is_never_longer_than_asked,
            a_task_is_unfinished_until_its_terminal_status,
        },
        racing::{
            one_of_many_writers_wins_each_seq,
            writers_on_many_tasks_leave_no_gap,
            a_follower_misses_nothing_while_others_write,
        },
        round_trip::{
            events_come_back_as_they_were_written,
            times_come_back_to_the_nanosecond,
        },
    ])
}
