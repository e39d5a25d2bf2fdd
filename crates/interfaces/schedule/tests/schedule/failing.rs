//! Ticks that cannot be delivered.

use antiphon_schedule::DeliverError;

use super::schedules;
use super::world::{Reply, World, minutes};

const HOURLY: &str = "[schedules.s]\nagent = \"a\"\nevery = \"1h\"";

fn away() -> Reply {
    Reply::Fails(DeliverError::Unavailable { reason: "away".to_owned() })
}

#[tokio::test(start_paused = true)]
async fn a_refused_tick_is_skipped() {
    let mut world = World::at("2026-11-15T18:59:00Z");
    world.replies([Reply::Fails(DeliverError::Refused { reason: "no such agent".to_owned() })]);
    world.run(&schedules(HOURLY), minutes(62)).await;
    let expected = [
        "2026-11-15T19:00:00Z schedule:s:2026-11-15T19:00:00Z refused: no such agent",
        "2026-11-15T20:00:00Z schedule:s:2026-11-15T20:00:00Z new",
    ];
    assert_eq!(world.attempts(), expected);
}

#[tokio::test(start_paused = true)]
async fn an_unavailable_inbox_is_tried_again_with_growing_pauses() {
    let mut world = World::at("2026-11-15T18:59:00Z");
    world.replies(vec![away(); 7]);
    world.run(&schedules(HOURLY), minutes(10)).await;
    let expected = [
        "2026-11-15T19:00:00Z schedule:s:2026-11-15T19:00:00Z unavailable: away",
        "2026-11-15T19:00:01Z schedule:s:2026-11-15T19:00:00Z unavailable: away",
        "2026-11-15T19:00:03Z schedule:s:2026-11-15T19:00:00Z unavailable: away",
        "2026-11-15T19:00:07Z schedule:s:2026-11-15T19:00:00Z unavailable: away",
        "2026-11-15T19:00:15Z schedule:s:2026-11-15T19:00:00Z unavailable: away",
        "2026-11-15T19:00:31Z schedule:s:2026-11-15T19:00:00Z unavailable: away",
        "2026-11-15T19:01:01Z schedule:s:2026-11-15T19:00:00Z unavailable: away",
        "2026-11-15T19:01:31Z schedule:s:2026-11-15T19:00:00Z new",
    ];
    assert_eq!(world.attempts(), expected);
}

#[tokio::test(start_paused = true)]
async fn the_next_tick_replaces_one_that_could_not_be_delivered() {
    let mut world = World::at("2026-11-15T18:00:00Z");
    world.replies(vec![away(); 5]);
    let all = schedules("[schedules.s]\nagent = \"a\"\nevery = \"5s\"");
    world.run(&all, minutes(1) / 4).await;
    let expected = [
        "2026-11-15T18:00:05Z schedule:s:2026-11-15T18:00:05Z unavailable: away",
        "2026-11-15T18:00:06Z schedule:s:2026-11-15T18:00:05Z unavailable: away",
        "2026-11-15T18:00:08Z schedule:s:2026-11-15T18:00:05Z unavailable: away",
        "2026-11-15T18:00:10Z schedule:s:2026-11-15T18:00:10Z unavailable: away",
        "2026-11-15T18:00:11Z schedule:s:2026-11-15T18:00:10Z unavailable: away",
        "2026-11-15T18:00:13Z schedule:s:2026-11-15T18:00:10Z new",
        "2026-11-15T18:00:15Z schedule:s:2026-11-15T18:00:15Z new",
    ];
    assert_eq!(world.attempts(), expected);
}

#[tokio::test(start_paused = true)]
async fn a_single_time_is_tried_until_it_is_delivered() {
    let mut world = World::at("2026-11-15T18:00:00Z");
    world.replies(vec![away(); 5000]);
    let all = schedules("[schedules.s]\nagent = \"a\"\nat = \"2026-11-15T18:00:01Z\"");
    world.run(&all, minutes(60 * 48)).await;
    let last = world.attempts().pop().unwrap();
    assert!(last.ends_with("schedule:s:2026-11-15T18:00:01Z new"), "{last}");
    assert!(last.starts_with("2026-11-17T"), "{last}");
}

#[tokio::test(start_paused = true)]
async fn a_delivery_without_an_answer_is_tried_again() {
    let mut world = World::at("2026-11-15T18:59:00Z");
    world.replies([Reply::Silent]);
    world.run(&schedules(HOURLY), minutes(10)).await;
    let expected = [
        "2026-11-15T19:00:00Z schedule:s:2026-11-15T19:00:00Z silence",
        "2026-11-15T19:01:01Z schedule:s:2026-11-15T19:00:00Z new",
    ];
    assert_eq!(world.attempts(), expected);
}

#[tokio::test(start_paused = true)]
async fn a_blocked_delivery_delays_no_other_schedule() {
    let mut world = World::at("2026-11-15T18:59:59Z");
    // The first delivery at 19:00 gets no answer.
    world.replies([Reply::Silent]);
    let all = schedules(
        "[schedules.a]\nagent = \"a\"\ncron = \"0 19 * * *\"\n[schedules.b]\nagent = \"b\"\nat = \"2026-11-15T19:00:01Z\"",
    );
    world.run(&all, minutes(1) / 2).await;
    let expected = [
        "2026-11-15T19:00:00Z schedule:a:2026-11-15T19:00:00Z silence",
        "2026-11-15T19:00:01Z schedule:b:2026-11-15T19:00:01Z new",
    ];
    assert_eq!(world.attempts(), expected);
}
