//! Missed ticks.

use antiphon_schedule::{DeliverError, MissedPolicy};
use chrono::TimeDelta;

use super::schedules;
use super::world::{Reply, World, hours, minutes};

const DAILY: &str = "[schedules.s]\nagent = \"a\"\ncron = \"0 9 * * *\"";
const WEEKLY: &str = "[schedules.s]\nagent = \"a\"\ncron = \"0 9 * * mon\"";
const ONCE: &str = "[schedules.s]\nagent = \"a\"\nat = \"2026-11-16T09:00:00Z\"";

/// Runs schedules for a minute, stops for `away`, runs them again, and returns the attempts.
async fn after_a_break(text: &str, start: &str, away: TimeDelta) -> (World, Vec<String>) {
    let mut world = World::at(start);
    let all = schedules(text);
    world.run(&all, minutes(1)).await;
    world.clock.jump(away);
    world.run(&all, minutes(1)).await;
    let attempts = world.attempts();
    (world, attempts)
}

#[tokio::test(start_paused = true)]
async fn a_new_schedule_has_no_ticks_of_yesterday() {
    for text in [DAILY, ONCE, "[schedules.s]\nagent = \"a\"\nevery = \"1h\""] {
        let mut world = World::at("2026-11-16T09:10:00Z");
        world.run(&schedules(text), minutes(10)).await;
        assert_eq!(world.attempts(), [""; 0], "{text}");
    }
}

#[tokio::test(start_paused = true)]
async fn of_several_missed_ticks_the_last_is_delivered_once() {
    let (mut world, attempts) =
        after_a_break(DAILY, "2026-11-15T18:00:00Z", TimeDelta::hours(66)).await;
    let tick = "schedule:s:2026-11-18T09:00:00Z";
    assert_eq!(attempts, [format!("2026-11-18T12:01:00Z {tick} new")]);
    // The next run does not know that; the inbox does.
    world.run(&schedules(DAILY), minutes(1)).await;
    assert_eq!(world.attempts(), [format!("2026-11-18T12:02:00Z {tick} before")]);
}

#[tokio::test(start_paused = true)]
async fn a_tick_missed_too_long_ago_is_skipped() {
    let start = "2026-11-15T18:00:00Z";
    let late = "schedule:s:2026-11-16T09:00:00Z";
    // A day after the tick, less the minute of the first run.
    let (_, attempts) = after_a_break(WEEKLY, start, TimeDelta::minutes(39 * 60 - 1)).await;
    assert_eq!(attempts, [format!("2026-11-17T09:00:00Z {late} new")]);
    let (_, attempts) = after_a_break(WEEKLY, start, TimeDelta::minutes(39 * 60)).await;
    assert_eq!(attempts, [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn the_age_limit_of_missed_ticks_is_configurable() {
    let mut world = World::at("2026-11-15T18:00:00Z");
    let all = schedules(WEEKLY);
    world.run(&all, minutes(1)).await;
    world.clock.jump(TimeDelta::days(3));
    world.missed = MissedPolicy { age_max: hours(72) };
    world.run(&all, minutes(1)).await;
    let expected = ["2026-11-18T18:01:00Z schedule:s:2026-11-16T09:00:00Z new"];
    assert_eq!(world.attempts(), expected);
}

#[tokio::test(start_paused = true)]
async fn a_single_time_is_delivered_however_late() {
    let (mut world, attempts) =
        after_a_break(ONCE, "2026-11-15T18:00:00Z", TimeDelta::days(365)).await;
    let tick = "schedule:s:2026-11-16T09:00:00Z";
    assert_eq!(attempts, [format!("2027-11-15T18:01:00Z {tick} new")]);
    world.run(&schedules(ONCE), minutes(1)).await;
    assert_eq!(world.attempts(), [format!("2027-11-15T18:01:00Z {tick} before")]);
}

#[tokio::test(start_paused = true)]
async fn a_tick_whose_delivery_was_interrupted_is_delivered_by_the_next_run() {
    let mut world = World::at("2026-11-16T08:59:30Z");
    world.replies([Reply::Silent]);
    let all = schedules(DAILY);
    world.run(&all, minutes(1)).await;
    world.run(&all, minutes(1)).await;
    let tick = "schedule:s:2026-11-16T09:00:00Z";
    let expected = [
        format!("2026-11-16T09:00:00Z {tick} silence"),
        format!("2026-11-16T09:00:30Z {tick} new"),
    ];
    assert_eq!(world.attempts(), expected);
}

#[tokio::test(start_paused = true)]
async fn a_tick_that_fails_for_too_long_is_skipped() {
    let mut world = World::at("2026-11-16T08:59:59Z");
    world.missed = MissedPolicy { age_max: minutes(1) };
    let away = Reply::Fails(DeliverError::Unavailable { reason: "away".to_owned() });
    world.replies(vec![away; 100]);
    world.run(&schedules(DAILY), hours(23)).await;
    let last = "2026-11-16T09:00:31Z schedule:s:2026-11-16T09:00:00Z unavailable: away";
    assert_eq!(world.attempts().last().unwrap(), last);
}

#[tokio::test(start_paused = true)]
async fn a_schedule_with_a_changed_time_counts_as_new() {
    let mut world = World::at("2026-11-15T18:00:00Z");
    world.run(&schedules(DAILY), minutes(1)).await;
    world.clock.jump(TimeDelta::hours(16));
    let earlier = schedules("[schedules.s]\nagent = \"a\"\ncron = \"0 8 * * *\"");
    world.run(&earlier, minutes(1)).await;
    assert_eq!(world.attempts(), [""; 0]);
}
