//! How long a response takes. Printed, not asserted: `cargo nextest run -p antiphon-file-drop
//! --run-ignored only --no-capture latency`.

use std::time::Instant;

use crate::world::{World, read, stop};

const ROUNDS: usize = 500;

#[tokio::test(flavor = "multi_thread")]
#[ignore = "prints a measurement"]
async fn from_the_drop_to_the_response() {
    let world = World::watched().await;
    let mut took = Vec::new();
    for nth in 0..ROUNDS {
        let response = world.path(&format!("{nth}.response.json"));
        let request = stop(&format!("a{nth}"));
        let started = Instant::now();
        world.drop(&format!("{nth}.json"), &request);
        while read(&response).is_none() {
            tokio::task::yield_now().await;
        }
        took.push(started.elapsed());
    }
    took.sort();
    let at = |part: usize| took[(ROUNDS - 1) * part / 100];
    println!("median {:?}, 95 % {:?}, 99 % {:?}, most {:?}", at(50), at(95), at(99), at(100));
}
