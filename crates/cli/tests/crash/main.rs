//! The crash harness: the real binary with real tools, killed with SIGKILL at a chosen write to its
//! journal or at a random moment, and taken up again until its work is done.
//!
//! | scene      | after each                                                                          |
//! |------------|-------------------------------------------------------------------------------------|
//! | one task   | it completed, no tool with side effects ran twice, no event is lost, reordered or doubled, and what was said is what an undisturbed run says wherever no call was cut off |
//! | a tree     | its top completed, every child that was named is there once and has ended, every join and every report tells how they ended, nothing was done twice, no process is left |
//! | an office  | what was accepted is read once, every request has one final answer, every file has one response and one effect, no mark was left twice, no event is lost, reordered or doubled, no process is left |
//! | under load | every request that was repeated until it was answered is one task with one answer, the one in the journal; whoever came back with the last event they saw missed none and saw none twice; no process is left |
//!
//! `make crash N=2000` asks for more kills than the few that every test run makes.
//!
//! | setting       | means                                                                            |
//! |---------------|----------------------------------------------------------------------------------|
//! | `CRASH_KILLS` | kills of all scenes together; 100 when absent. 30 % are of trees, 20 % of offices, 20 % under load |
//! | `CRASH_SEED`  | where the dice begin; 1 when absent. A failure names it. Tasks and trees die at the same writes again; in an office and under load everybody works at the same time, so it is the same load and not the same moment |

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod dice;
mod kill;
mod load;
mod office;
mod project;
mod scene;
mod team;
mod tree;

use std::time::Instant;

use dice::Dice;
use load::{Death, Load};
use office::Office;
use project::Fate;
use scene::Scene;
use team::{Housing, Team};

/// Kills in an ordinary test run.
const KILLS_DEFAULT: u64 = 100;

/// How many of a hundred kills are those of trees.
const TREES_PERCENT: u64 = 30;

/// How many are those of offices.
const OFFICES_PERCENT: u64 = 20;

/// How many are those of servers under load.
const LOADS_PERCENT: u64 = 20;

/// Writes of the journal within which one task dies.
const TASK_WRITES: u64 = 60;

/// The same for a tree, which writes more than a thousand times.
const TREE_WRITES: u64 = 400;

/// The same for an office: its journal, and the responses to its files.
const OFFICE_WRITES: u64 = 400;

/// The same for a server under load.
const LOAD_WRITES: u64 = 250;

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(default)
}

/// How many kills are wanted of each scene.
struct Wanted {
    tasks: u64,
    trees: u64,
    offices: u64,
    loads: u64,
}

fn wanted() -> Wanted {
    let all = setting("CRASH_KILLS", KILLS_DEFAULT);
    let part = |percent| all * percent / 100;
    let (trees, offices) = (part(TREES_PERCENT), part(OFFICES_PERCENT));
    let loads = part(LOADS_PERCENT);
    Wanted { tasks: all - trees - offices - loads, trees, offices, loads }
}

/// How many milliseconds something takes that gets to its end.
fn millis_of(work: impl FnOnce() -> Fate) -> u64 {
    let began = Instant::now();
    assert_eq!(work(), Fate::Ended, "the undisturbed run");
    u64::try_from(began.elapsed().as_millis()).unwrap() + 1
}

#[test]
fn nothing_is_lost_and_nothing_is_done_twice_however_often_it_is_killed() {
    let (wanted, seed) = (wanted().tasks, setting("CRASH_SEED", 1));
    let mut dice = Dice(seed);
    let began = Instant::now();
    let undisturbed = Scene::new();
    let millis = millis_of(|| undisturbed.start(None));
    let whole = undisturbed.told();
    let (mut kills, mut tasks, mut cut_off) = (0, 0, 0);
    while kills < wanted {
        let scene = Scene::new();
        let mut deaths = Vec::new();
        loop {
            // Often at once, sometimes after a while: it dies in the beginning and gets on too.
            let kill = dice.kill(TASK_WRITES, millis);
            if scene.start(Some(kill)) == Fate::Ended {
                break;
            }
            deaths.push(kill);
        }
        kills += deaths.len() as u64;
        tasks += 1;
        let told = scene.told();
        let place = format!("seed {seed}, task {tasks}, killed {deaths:?}");
        assert_eq!(told.status, "completed", "{place}");
        scene.check_events(&place);
        scene.check_effects(&told, &place);
        assert_eq!(told.said.len(), whole.said.len(), "{place}");
        for (said, expected) in told.said.iter().zip(&whole.said) {
            if !said.contains("outcome unknown") {
                assert_eq!(said, expected, "{place}");
            }
        }
        cut_off += told.cut_off();
    }
    println!(
        "{kills} kills, {tasks} tasks, {cut_off} calls cut off, {:.0} s, seed {seed}",
        began.elapsed().as_secs_f64()
    );
}

#[test]
fn a_tree_is_whole_however_often_it_is_killed() {
    let (wanted, seed) = (wanted().trees, setting("CRASH_SEED", 1));
    let mut dice = Dice(seed);
    let began = Instant::now();
    let undisturbed = Team::new(Housing::Boxed);
    let millis = millis_of(|| undisturbed.start(None));
    assert_eq!(undisturbed.check("undisturbed"), 0, "no call is cut off");
    let (mut kills, mut trees, mut boxed, mut cut_off) = (0, 0, 0, 0);
    while kills < wanted {
        let housing = if dice.below(3) == 0 { Housing::Boxed } else { Housing::Together };
        let team = Team::new(housing);
        let mut deaths = Vec::new();
        loop {
            let kill = dice.kill(TREE_WRITES, millis);
            if team.start(Some(kill)) == Fate::Ended {
                break;
            }
            deaths.push(kill);
        }
        kills += deaths.len() as u64;
        trees += 1;
        boxed += u64::from(housing == Housing::Boxed);
        let place = format!("seed {seed}, tree {trees}, {housing:?}, killed {deaths:?}");
        cut_off += team.check(&place);
    }
    println!(
        "{kills} kills, {trees} trees ({boxed} of them with a sandbox), {cut_off} calls cut off, \
         {:.0} s, seed {seed}",
        began.elapsed().as_secs_f64()
    );
}

#[test]
fn an_office_answers_everybody_once_however_often_it_is_killed() {
    let (wanted, seed) = (wanted().offices, setting("CRASH_SEED", 1));
    let mut dice = Dice(seed);
    let began = Instant::now();
    let mut undisturbed = Office::new(&mut dice);
    let millis = millis_of(|| undisturbed.open(None));
    let calm = undisturbed.check("undisturbed");
    assert_eq!(calm.cut_off, 0, "no call is cut off");
    let (mut kills, mut offices, mut whole) = (0, 0, office::Seen::default());
    while kills < wanted {
        let mut office = Office::new(&mut dice);
        let mut deaths = Vec::new();
        loop {
            let kill = dice.kill(OFFICE_WRITES, millis / 3);
            if office.open(Some(kill)) == Fate::Ended {
                break;
            }
            deaths.push(kill);
        }
        kills += deaths.len() as u64;
        offices += 1;
        let place = format!("seed {seed}, office {offices}, killed {deaths:?}");
        whole += office.check(&place);
    }
    println!(
        "{kills} kills, {offices} offices ({whole}), {millis} ms undisturbed, {:.0} s, seed {seed}",
        began.elapsed().as_secs_f64()
    );
}

#[test]
fn a_server_under_load_answers_everybody_once_and_nobody_misses_an_event() {
    let (wanted, seed) = (wanted().loads, setting("CRASH_SEED", 1));
    let mut dice = Dice(seed);
    let began = Instant::now();
    let undisturbed = Load::new();
    let millis = millis_of(|| {
        let died = undisturbed.bear(|| None);
        if died.is_empty() { Fate::Ended } else { Fate::Died }
    });
    undisturbed.check("undisturbed");
    let (mut kills, mut told, mut loads, mut whole) = (0, 0, 0, load::Seen::default());
    while kills < wanted {
        let load = Load::new();
        let deaths = load.bear(|| Some(Death::throw(&mut dice, LOAD_WRITES, millis / 3)));
        let in_order = deaths.iter().filter(|death| matches!(death, Death::Told(_))).count() as u64;
        kills += deaths.len() as u64 - in_order;
        told += in_order;
        loads += 1;
        whole += load.check(&format!("seed {seed}, load {loads}, killed {deaths:?}"));
    }
    println!(
        "{kills} kills, {told} ends in order, {loads} loads ({whole}), {millis} ms undisturbed, {:.0} s, \
         seed {seed}",
        began.elapsed().as_secs_f64()
    );
}
