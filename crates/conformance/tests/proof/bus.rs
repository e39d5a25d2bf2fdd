//! Proof of the bus suite.

mod faulty_bus;

use std::time::Duration;

use antiphon_conformance::bus::{self, BusTimings};
use antiphon_conformance::reference::{MemoryBus, QUEUE_ITEMS_MAX};
use antiphon_core::port::{Bus, BusError, Topic, WorkItem};

use crate::verdict::{each_check_has_a_fault, each_fault_is_caught_by_its_own_check};
use faulty_bus::{Fault, FaultyBus};

const FAULTS: &[(Fault, &str)] = &[
    (Fault::ServesTwoSubscribersAtMost, "every_subscriber_gets_everything_in_order"),
    (Fault::RetainsTheLast, "nothing_from_before_the_subscription_is_seen"),
    (Fault::MatchesPrefixes, "other_topics_are_not_seen"),
    (Fault::NeedsAnAudience, "publishing_without_subscribers_is_not_an_error"),
    (Fault::TakesPayloadsForText, "payloads_come_back_byte_for_byte"),
    (Fault::DropsSilently, "a_slow_subscriber_learns_how_many_it_missed_and_continues"),
    (Fault::WaitsForTheSlow, "a_slow_subscriber_does_not_delay_others"),
    (Fault::CountsWaitingTwice, "a_waiting_id_is_not_queued_twice"),
    (Fault::CountsClaimedTwice, "a_claimed_id_is_not_queued_twice"),
    (Fault::RemembersForEver, "a_finished_id_can_be_queued_again"),
    (Fault::BringsFinishedBack, "a_finished_item_does_not_come_back"),
    (Fault::TakesWorkForText, "work_comes_back_byte_for_byte"),
    (Fault::TakesTheNewest, "work_is_claimed_oldest_first"),
    (Fault::MixesQueues, "queues_do_not_mix"),
    (Fault::WakesNobody, "a_claim_waits_for_work"),
    (Fault::HandsOutTwice, "one_worker_has_an_item_at_a_time"),
    (Fault::LetsLeasesRunOutUnseen, "a_waiting_worker_gets_an_item_whose_lease_ran_out"),
    (Fault::LetsTheLateFinish, "a_claim_that_was_lost_can_do_nothing"),
    (Fault::KeepsWhatIsReleased, "a_released_item_can_be_claimed_at_once"),
    (Fault::ExtendsByTooLittle, "an_extended_claim_is_kept"),
    (Fault::StartsFencesOver, "a_later_claim_has_a_greater_fence"),
    (Fault::LosesDroppedClaims, "a_dropped_claim_takes_nothing"),
    (Fault::WakesTheFirstOnly, "a_dropped_claim_takes_no_wake_up_with_it"),
];

#[tokio::test(start_paused = true)]
async fn the_memory_bus_keeps_the_contract() {
    let passed = bus::check(BusTimings::default(), async || MemoryBus::new()).await.unwrap();
    assert_eq!(passed.checks, bus::checks());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_memory_bus_keeps_the_contract_on_many_threads() {
    let timings = BusTimings {
        lease: Duration::from_millis(500),
        quiet: Duration::from_millis(20),
        ..BusTimings::default()
    };
    bus::check(timings, async || MemoryBus::new()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn each_fault_of_a_bus_is_caught_by_its_own_check() {
    each_check_has_a_fault(&bus::checks(), FAULTS);
    each_fault_is_caught_by_its_own_check(FAULTS, async |fault| {
        bus::check(BusTimings::default(), async || FaultyBus::new(fault)).await
    })
    .await;
}

#[tokio::test]
async fn a_full_queue_refuses_one_more() {
    let bus = MemoryBus::new();
    let queue = Topic::parse("work").unwrap();
    let item = |n: usize| WorkItem { id: n.to_string(), payload: vec![] };
    for n in 0..QUEUE_ITEMS_MAX {
        bus.enqueue(&queue, item(n)).await.unwrap();
    }
    let refused = bus.enqueue(&queue, item(QUEUE_ITEMS_MAX)).await;
    assert_eq!(refused, Err(BusError::Full { queue, limit: QUEUE_ITEMS_MAX }));
}
