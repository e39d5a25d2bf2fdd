//! One pass over the present requests, without a running service.

use antiphon_file_drop::PassCounts;

use crate::world::{World, stop, stopped};

#[tokio::test]
async fn a_pass_answers_the_present_requests_and_counts_them() {
    let world = World::new();
    assert_eq!(world.pass().await, PassCounts::default());
    world.drop("a.json", &stop("a"));
    world.drop("b.json", &stop("nobody"));
    world.drop("c.json", "nonsense");
    world.drop("d.json", r#"{"action":"x"}"#);
    let tally = PassCounts { answered: 2, set_aside: 2, ..PassCounts::default() };
    assert_eq!(world.pass().await, tally);
    assert_eq!(world.pass().await, PassCounts::default());
    assert_eq!(world.orders.effects(), [stopped("a")]);
}

#[tokio::test]
async fn a_pass_postpones_what_cannot_be_executed_now() {
    let world = World::new();
    world.drop("a.json", &stop("a"));
    world.drop("b.json", &stop("a"));
    world.orders.unavailable(1);
    assert_eq!(
        world.pass().await,
        PassCounts { answered: 1, postponed: 1, ..PassCounts::default() }
    );
    assert_eq!(world.pass().await, PassCounts { answered: 1, ..PassCounts::default() });
    assert_eq!(world.pass().await, PassCounts::default());
}

#[tokio::test]
async fn a_pass_over_more_than_fits_into_memory_answers_everything() {
    let world = World::new();
    for nth in 0..3000 {
        world.drop(&format!("{nth}.json"), &stop(&format!("a{nth}")));
    }
    world.orders.unavailable(2000);
    assert_eq!(
        world.pass().await,
        PassCounts { answered: 1000, postponed: 2000, ..PassCounts::default() }
    );
}
