//! Clocks that jump while schedules run.

use std::time::Duration;

use antiphon_project::schedules::Schedules;
use chrono::TimeDelta;
use tokio::time::sleep;

use super::schedules;
use super::world::{World, minutes};

fn quarterly() -> Schedules {
    schedules("[schedules.s]\nagent = \"a\"\nevery = \"15m\"")
}

/// Attempts of ten minutes; the clock jumps between two checks in the first minute.
async fn with_a_jump(world: &mut World, all: &Schedules, by: TimeDelta) -> Vec<String> {
    let clock = world.clock.clone();
    let jump = async {
        sleep(Duration::from_secs(50)).await;
        clock.jump(by);
    };
    tokio::join!(world.run(all, minutes(10)), jump);
    world.attempts()
}

#[tokio::test(start_paused = true)]
async fn a_machine_that_slept_delivers_the_last_tick_soon_after_it_wakes() {
    let mut world = World::at("2026-11-15T18:01:00Z");
    let attempts = with_a_jump(&mut world, &quarterly(), TimeDelta::minutes(63)).await;
    // It wakes at 19:04:50; 18:15, 18:30 and 18:45 are skipped.
    assert_eq!(attempts, ["2026-11-15T19:05:00Z schedule:s:2026-11-15T19:00:00Z new"]);
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_is_set_forward_is_noticed_within_half_a_minute() {
    let mut world = World::at("2026-11-15T18:01:10Z");
    let clock = world.clock.clone();
    let jump = async {
        sleep(Duration::from_secs(10)).await;
        clock.jump(TimeDelta::minutes(14));
    };
    let all = quarterly();
    tokio::join!(world.run(&all, minutes(1)), jump);
    let expected = ["2026-11-15T18:15:40Z schedule:s:2026-11-15T18:15:00Z new"];
    assert_eq!(world.attempts(), expected);
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_is_set_back_delivers_nothing_twice() {
    let mut world = World::at("2026-11-15T18:14:30Z");
    let attempts = with_a_jump(&mut world, &quarterly(), TimeDelta::minutes(-2)).await;
    let tick = "schedule:s:2026-11-15T18:15:00Z";
    let expected =
        [format!("2026-11-15T18:15:00Z {tick} new"), format!("2026-11-15T18:15:00Z {tick} before")];
    assert_eq!(attempts, expected);
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_was_years_ahead_delays_nothing() {
    let mut world = World::at("2036-11-15T18:14:30Z");
    let attempts = with_a_jump(&mut world, &quarterly(), TimeDelta::days(-3653)).await;
    let expected = ["2036-11-15T18:15:00Z schedule:s:2036-11-15T18:15:00Z new"];
    assert_eq!(attempts, expected);
    // It is 18:24:30, ten years earlier.
    world.run(&quarterly(), minutes(6)).await;
    let expected = ["2026-11-15T18:30:00Z schedule:s:2026-11-15T18:30:00Z new"];
    assert_eq!(world.attempts(), expected);
    // Ticks that are missed from now on are delivered again.
    world.clock.jump(TimeDelta::hours(2));
    world.run(&quarterly(), minutes(1)).await;
    let expected = ["2026-11-15T20:30:30Z schedule:s:2026-11-15T20:30:00Z new"];
    assert_eq!(world.attempts(), expected);
}
