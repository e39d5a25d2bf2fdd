//! The contract of the bus. Each check opens its own, empty bus.
//!
//! ```
//! # use antiphon_conformance::{bus, reference::MemoryBus};
//! # #[tokio::main(flavor = "current_thread", start_paused = true)]
//! # async fn main() {
//! bus::check(bus::BusTimings::default(), async || MemoryBus::new()).await.unwrap();
//! # }
//! ```
//!
//! Leases take time. [`BusTimings`] says how much. A bus in this process that uses tokio's clock
//! is checked without waiting, on a runtime with a paused clock.

mod lease;
mod live;
mod test_bus;
mod work;

use std::time::Duration;

use antiphon_core::port::Bus;

use crate::suite::{self, CHECK_LIMIT, Check, checks};
use crate::{Passed, Violations};
use test_bus::TestBus;

/// What the checks may assume of a bus.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BusTimings {
    /// A lease that the checks let run out: long compared with any call.
    pub lease: Duration,
    /// Time after which a check assumes that nothing arrives: long compared with any call, and at
    /// most half of `lease`.
    pub quiet: Duration,
    /// More unread payloads than the bus keeps for a subscriber.
    pub overflow: usize,
}

impl Default for BusTimings {
    /// For a bus within this process.
    fn default() -> Self {
        Self { lease: Duration::from_secs(1), quiet: Duration::from_millis(100), overflow: 2000 }
    }
}

/// Runs every check, each against a bus of its own from `open`.
pub async fn check<B: Bus + 'static>(
    terms: BusTimings,
    open: impl AsyncFn() -> B,
) -> Result<Passed, Violations> {
    let limit = CHECK_LIMIT + 8 * terms.lease;
    suite::run(list(), limit, async || TestBus::new(open().await, terms)).await
}

/// The names of the checks.
pub fn checks() -> Vec<&'static str> {
    list().iter().map(|check| check.name).collect()
}

fn list() -> Vec<Check<'static, TestBus>> {
    Vec::from(checks![Required:
        live::{
            every_subscriber_gets_everything_in_order,
            nothing_from_before_the_subscription_is_seen,
            other_topics_are_not_seen,
            publishing_without_subscribers_is_not_an_error,
            payloads_come_back_byte_for_byte,
            a_slow_subscriber_learns_how_many_it_missed_and_continues,
            a_slow_subscriber_does_not_delay_others,
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
