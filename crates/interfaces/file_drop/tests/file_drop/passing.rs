//! One pass over what lies there, for when nobody watches.

use antiphon_file_drop::Tally;

use crate::world::{World, stop, stopped};

#[tokio::test]
async fn a_pass_answers_what_is_there_and_counts() {
    let world = World::new();
    assert_eq!(world.pass().await, Tally::default());
    world.drop("a.json", &stop("a"));
    world.drop("b.json", &stop("nobody"));
    world.drop("c.json", "nonsense");
    world.drop("d.json", r#"{"action":"x"}"#);
    let tally = Tally { answered: 2, set_aside: 2, ..Tally::default() };
    assert_eq!(world.pass().await, tally);
    assert_eq!(world.pass().await, Tally::default());
    assert_eq!(world.book.effects(), [stopped("a")]);
}

#[tokio::test]
async fn a_pass_leaves_what_cannot_be_answered_now_to_the_next() {
    let world = World::new();
    world.drop("a.json", &stop("a"));
    world.drop("b.json", &stop("a"));
    world.book.unavailable(1);
    assert_eq!(world.pass().await, Tally { answered: 1, left: 1, ..Tally::default() });
    assert_eq!(world.pass().await, Tally { answered: 1, ..Tally::default() });
    assert_eq!(world.pass().await, Tally::default());
}

#[tokio::test]
async fn a_pass_over_more_than_fits_into_memory_leaves_nothing_that_it_can_answer() {
    let world = World::new();
    for nth in 0..3000 {
        world.drop(&format!("{nth}.json"), &stop(&format!("a{nth}")));
    }
    world.book.unavailable(2000);
    assert_eq!(world.pass().await, Tally { answered: 1000, left: 2000, ..Tally::default() });
}
