//! Thousands of requests at once.

use std::fs;
use std::time::{Duration, Instant};

use antiphon_file_drop::PassCounts;

use crate::world::{World, names, read, stop, until};

const FILES: usize = 5_000;

/// Every request has one effect and one response, and no other file exists.
fn all_answered(world: &World) {
    let effects = world.orders.effects();
    assert_eq!((effects.len(), world.orders.calls()), (FILES, FILES));
    let names = world.names();
    assert_eq!(names.len(), 2 * FILES);
    for nth in 0..FILES {
        let response = read(&world.path(&format!("{nth}.response.json"))).unwrap();
        assert_eq!(response.agent, Some(format!("agent {}", nth % 50)));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn thousands_of_requests_dropped_before_the_start_are_answered_once_each() {
    let world = World::new();
    for nth in 0..FILES {
        let request = stop(&format!("agent {}", nth % 50));
        fs::write(world.path(&format!("{nth}.json")), request).unwrap();
    }
    let started = Instant::now();
    let tally = world.pass().await;
    println!("{FILES} that lay there: {:?}", started.elapsed());
    assert_eq!(tally, PassCounts { answered: FILES, ..PassCounts::default() });
    all_answered(&world);
}

#[tokio::test(flavor = "multi_thread")]
async fn thousands_of_requests_dropped_at_once_are_answered_once_each() {
    let world = World::watched().await;
    let started = Instant::now();
    for nth in 0..FILES {
        world.drop(&format!("{nth}.json"), &stop(&format!("agent {}", nth % 50)));
    }
    until(|| (world.orders.calls() >= FILES).then_some(())).await;
    until(|| (names(&world.path("")).len() == 2 * FILES).then_some(())).await;
    println!("{FILES} as they come: {:?}", started.elapsed());
    all_answered(&world);
}

#[tokio::test(flavor = "multi_thread")]
async fn many_invalid_requests_are_all_answered_along_with_the_valid_ones() {
    let world = World::watched().await;
    for nth in 0..300 {
        let text = if nth % 3 == 0 { "{" } else { &stop(&format!("a{nth}")) };
        world.drop(&format!("{nth}.json"), text);
    }
    for nth in 0..300 {
        assert_eq!(world.response(&nth.to_string()).await.ok, nth % 3 != 0);
    }
    until(|| (names(&world.path("rejected")).len() == 200).then_some(())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn thousands_of_incomplete_files_do_not_delay_others() {
    let mut world = World::new();
    world.settings.settle = Duration::from_secs(600);
    world.settings.rescan_every = Duration::from_millis(50);
    for nth in 0..3000 {
        fs::write(world.path(&format!("{nth}.json")), "{").unwrap();
    }
    world.start().await;
    world.drop("good.json", &stop("a"));
    assert!(world.response("good").await.ok);
    fs::write(world.path("2999.json"), stop("b")).unwrap();
    assert!(world.response("2999").await.ok);
    assert_eq!(world.names().len(), 3003);
}
