//! Ticks are delivered when they are due, each once.

use std::sync::Arc;

use antiphon_project::schedules::Schedules;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::schedules;
use super::world::{World, hours, minutes};

#[tokio::test(start_paused = true)]
async fn every_tick_is_delivered_when_it_is_due() {
    let mut world = World::at("2026-11-15T18:03:20Z");
    let all = schedules(
        r#"
        [schedules.often]
        agent = "a"
        every = "5m"

        [schedules.daily]
        agent = "b"
        cron = "10 19 * * *"
        zone = "Europe/Vienna"

        [schedules.once]
        agent = "c"
        at = "2026-11-15T18:07:30Z"
        "#,
    );
    world.run(&all, minutes(12)).await;
    let expected = [
        "2026-11-15T18:05:00Z schedule:often:2026-11-15T18:05:00Z new",
        "2026-11-15T18:07:30Z schedule:once:2026-11-15T18:07:30Z new",
        "2026-11-15T18:10:00Z schedule:daily:2026-11-15T18:10:00Z new",
        "2026-11-15T18:10:00Z schedule:often:2026-11-15T18:10:00Z new",
        "2026-11-15T18:15:00Z schedule:often:2026-11-15T18:15:00Z new",
    ];
    let mut attempts = world.attempts();
    attempts.sort();
    assert_eq!(attempts, expected);
}

#[tokio::test(start_paused = true)]
async fn the_shortest_period_ticks_every_second() {
    let mut world = World::at("2026-11-15T18:00:00.250Z");
    let all = schedules("[schedules.s]\nagent = \"a\"\nevery = \"1s\"");
    world.run(&all, hours(1)).await;
    let attempts = world.attempts();
    assert_eq!(attempts.len(), 3600);
    assert!(attempts.iter().all(|attempt| attempt.ends_with(" new")));
    assert_eq!(attempts[0], "2026-11-15T18:00:01Z schedule:s:2026-11-15T18:00:01Z new");
    assert_eq!(attempts[3599], "2026-11-15T19:00:00Z schedule:s:2026-11-15T19:00:00Z new");
}

#[tokio::test(start_paused = true)]
async fn the_scheduler_ends_when_no_schedule_has_a_tick_left() {
    let mut world = World::at("2026-11-15T18:00:00Z");
    let all = schedules("[schedules.s]\nagent = \"a\"\nat = \"2026-11-16T18:00:00Z\"");
    world.scheduler(&all).run(CancellationToken::new()).await;
    let expected = ["2026-11-16T18:00:00Z schedule:s:2026-11-16T18:00:00Z new"];
    assert_eq!(world.attempts(), expected);
    world.scheduler(&Schedules::default()).run(CancellationToken::new()).await;
}

#[tokio::test(start_paused = true)]
async fn the_scheduler_ends_when_it_is_stopped() {
    let mut world = World::at("2026-11-15T18:00:00Z");
    let all = schedules("[schedules.s]\nagent = \"a\"\nevery = \"1m\"");
    let stop = CancellationToken::new();
    let stopped = async {
        sleep(minutes(1) + minutes(1) / 2).await;
        stop.cancel();
    };
    tokio::join!(world.scheduler(&all).run(stop.clone()), stopped);
    let expected = ["2026-11-15T18:01:00Z schedule:s:2026-11-15T18:01:00Z new"];
    assert_eq!(world.attempts(), expected);
}

#[tokio::test(start_paused = true)]
async fn two_schedulers_deliver_each_tick_once() {
    let mut world = World::at("2026-11-15T18:00:00Z");
    let mut other = world.clone();
    let all = Arc::new(schedules("[schedules.s]\nagent = \"a\"\nevery = \"1m\""));
    tokio::join!(world.run(&all, minutes(2)), other.run(&all, minutes(2)));
    let expected = [
        "2026-11-15T18:01:00Z schedule:s:2026-11-15T18:01:00Z new",
        "2026-11-15T18:01:00Z schedule:s:2026-11-15T18:01:00Z before",
        "2026-11-15T18:02:00Z schedule:s:2026-11-15T18:02:00Z new",
        "2026-11-15T18:02:00Z schedule:s:2026-11-15T18:02:00Z before",
    ];
    assert_eq!(world.attempts(), expected);
}
