//! The crash harness: the real binary with real tools, killed with SIGKILL at a chosen write to its
//! journal or at a random moment, and taken up again until its task is done.
//!
//! After every task: it completed, no tool with side effects ran twice, no event is lost,
//! reordered or doubled, and what was said is what an undisturbed run says wherever no call was cut
//! off. `make crash N=2000` asks for more kills than the few that every test run makes.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod scene;

use std::time::Instant;

use scene::{Kill, Scene};

/// Kills in an ordinary test run.
const KILLS_DEFAULT: usize = 60;

/// A number that looks random and is not: a failure can be had again.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }

    fn kill(&mut self, writes: u64, millis: u64) -> Kill {
        match self.below(4) {
            0 => Kill::Before(1 + self.below(writes)),
            1 => Kill::After(1 + self.below(writes)),
            2 => Kill::Torn(1 + self.below(writes)),
            _ => Kill::Time(self.below(millis)),
        }
    }
}

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(default)
}

#[test]
fn nothing_is_lost_and_nothing_is_done_twice_however_often_it_is_killed() {
    let wanted = usize::try_from(setting("CRASH_KILLS", KILLS_DEFAULT as u64)).unwrap();
    let seed = setting("CRASH_SEED", 1);
    let mut dice = Dice(seed);
    let began = Instant::now();
    let undisturbed = Scene::new();
    let took = Instant::now();
    assert!(undisturbed.start(None), "the undisturbed run");
    let millis = u64::try_from(took.elapsed().as_millis()).unwrap() + 1;
    let whole = undisturbed.told();
    let (mut kills, mut tasks, mut cut_off) = (0, 0, 0);
    while kills < wanted {
        let scene = Scene::new();
        let mut deaths = Vec::new();
        loop {
            // Often at once, sometimes after a while: it dies in the beginning and gets on too.
            let kill = dice.kill(60, millis);
            if scene.start(Some(kill)) {
                break;
            }
            deaths.push(kill);
        }
        kills += deaths.len();
        tasks += 1;
        let told = scene.told();
        let place = || format!("seed {seed}, task {tasks}, killed {deaths:?}");
        assert_eq!(told.status, "completed", "{}", place());
        scene.check_events(&place());
        scene.check_effects(&told, &place());
        assert_eq!(told.said.len(), whole.said.len(), "{}", place());
        for (said, expected) in told.said.iter().zip(&whole.said) {
            if !said.contains("outcome unknown") {
                assert_eq!(said, expected, "{}", place());
            }
        }
        cut_off += told.said.iter().filter(|said| said.contains("outcome unknown")).count();
    }
    println!(
        "{kills} kills, {tasks} tasks, {cut_off} calls cut off, {:.0} s, seed {seed}",
        began.elapsed().as_secs_f64()
    );
}
