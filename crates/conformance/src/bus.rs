//! The bus's contract. Each check opens a bus of its own, on which nothing is going on.
//!
//! ```
//! # use antiphon_conformance::{bus, model::MemoryBus};
//! # #[tokio::main(flavor = "current_thread", start_paused = true)]
//! # async fn main() {
//! bus::check(bus::Terms::default(), async || MemoryBus::new()).await.unwrap();
//! # }
//! ```
//!
//! Leases take time. [`Terms`] says how much; a bus that lives in this process and takes its time
//! from tokio is checked in no time at all on a runtime whose clock is paused.

mod depot;
mod lease;
mod live;
mod work;

use std::time::Duration;

use antiphon_core::port::Bus;

use crate::suite::{self, CHECK_LIMIT, Check, checks};
use crate::{Passed, Violations};
use depot::Depot;

/// What the checks may assume of a bus.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Terms {
    /// A lease that the checks let run out: long against the time any call takes.
    pub lease: Duration,
    /// When nothing came for so long, nothing will: long against the time any call takes, and at
    /// most half of `lease`.
    pub quiet: Duration,
    /// More unread payloads than the bus keeps for a subscriber.
    pub overflow: usize,
}

impl Default for Terms {
    /// For a bus within this process.
    fn default() -> Self {
        Self { lease: Duration::from_secs(1), quiet: Duration::from_millis(100), overflow: 2000 }
    }
}

/// Runs every check against what `open` opens.
pub async fn check<B: Bus + 'static>(
    terms: Terms,
    open: impl AsyncFn() -> B,
) -> Result<Passed, Violations> {
    let limit = CHECK_LIMIT + 8 * terms.lease;
    suite::run(list(), limit, async || Depot::new(open().await, terms)).await
}

/// The names of the checks.
pub fn checks() -> Vec<&'static str> {
    list().iter().map(|check| check.name).collect()
}

fn list() -> Vec<Check<'static, Depot>> {
    Vec::from(checks![Required:
        live::{
            every_subscriber_gets_everything_in_order,
            nothing_from_before_the_subscription_is_seen,
            other_topics_are_not_seen,
            publishing_to_nobody_is_no_error,
            payloads_come_back_byte_for_byte,
            a_slow_subscriber_is_told_how_many_it_missed_and_goes_on,
            a_slow_subscriber_holds_nobody_up,
        },
        work::{
            a_waiting_id_is_not_queued_twice,
            a_claimed_id_is_not_queued_twice,
            a_finished_id_can_be_queued_again,
            a_finished_item_does_not_come_back,
            work_comes_back_byte_for_byte,
            work_is_claimed_oldest_first,
            queues_do_not_mix,
            a_claim_waits_for_work,
            one_worker_has_an_item_at_a_time,
        },
        lease::{
            a_waiting_worker_gets_an_item_whose_lease_ran_out,
            a_claim_that_was_lost_can_do_nothing,
            a_released_item_can_be_claimed_at_once,
            an_extended_claim_is_kept,
            a_later_claim_has_a_greater_fence,
            a_dropped_claim_takes_nothing,
            a_dropped_claim_takes_no_wake_up_with_it,
        },
    ])
}
