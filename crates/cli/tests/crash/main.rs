//! The crash harness: the real binary with real tools, killed with SIGKILL at a chosen write to its
//! journal or at a random moment, and started again until its work is done.
//!
//! | scenario    | what holds after each                                                              |
//! |-------------|------------------------------------------------------------------------------------|
//! | single task | it completed, no tool with side effects ran twice, no event is lost, reordered or doubled, and its conversation is that of an undisturbed run wherever no call was interrupted |
//! | tree        | its top completed, every dispatched child exists once and has ended, every join and every report says how they ended, nothing was done twice, no process is left |
//! | messaging   | every accepted interaction is read once, every request has one final answer, every request file has one response and one effect, no mark was written twice, no event is lost, reordered or doubled, no process is left |
//! | load        | every request that was repeated until it was answered is one task with one answer, the one in the journal; a watcher that returned with its last event missed none and saw none twice; no process is left |
//!
//! `make crash N=2000` asks for more kills than the few that every test run makes.
//!
//! | setting       | means                                                                            |
//! |---------------|----------------------------------------------------------------------------------|
//! | `CRASH_KILLS` | kills of all scenarios together; 100 when absent. 30 % are of trees, 20 % of messaging, 20 % under load |
//! | `CRASH_SEED`  | the seed of the random numbers; 1 when absent. A failure names it. Tasks and trees die at the same writes again; messaging and load run in parallel, so the work is the same and not the moment of the kill |

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod kill;
mod load;
mod messaging;
mod project;
#[path = "../support/project_folder.rs"]
mod project_folder;
mod random;
mod single_task;
mod team;
mod tree;

use std::time::Instant;

use load::{Load, Stop};
use messaging::Messaging;
use project::Exit;
use random::Random;
use single_task::SingleTask;
use team::{Placement, Team};

/// Kills in an ordinary test run.
const KILLS_DEFAULT: u64 = 100;

/// Percent of the kills that hit trees.
const TREES_PERCENT: u64 = 30;

/// Percent that hit messaging.
const MESSAGING_PERCENT: u64 = 20;

/// Percent that hit servers under load.
const LOADS_PERCENT: u64 = 20;

/// Writes to the journal within which a single task is killed.
const TASK_WRITES: u64 = 60;

/// The same for a tree, which writes more than a thousand times.
const TREE_WRITES: u64 = 400;

/// The same for messaging: the journal, and the responses to request files.
const MESSAGING_WRITES: u64 = 400;

/// The same for a server under load.
const LOAD_WRITES: u64 = 250;

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(default)
}

/// Kills of each scenario.
struct Kills {
    tasks: u64,
    trees: u64,
    messaging: u64,
    loads: u64,
}

fn kills_wanted() -> Kills {
    let all = setting("CRASH_KILLS", KILLS_DEFAULT);
    let part = |percent| all * percent / 100;
    let (trees, messaging) = (part(TREES_PERCENT), part(MESSAGING_PERCENT));
    let loads = part(LOADS_PERCENT);
    Kills { tasks: all - trees - messaging - loads, trees, messaging, loads }
}

/// Milliseconds of a run that is not killed.
fn millis_of(work: impl FnOnce() -> Exit) -> u64 {
    let began = Instant::now();
    assert_eq!(work(), Exit::Completed, "the undisturbed run");
    u64::try_from(began.elapsed().as_millis()).unwrap() + 1
}

#[test]
fn nothing_is_lost_and_nothing_is_done_twice_however_often_it_is_killed() {
    let (wanted, seed) = (kills_wanted().tasks, setting("CRASH_SEED", 1));
    let mut random = Random(seed);
    let began = Instant::now();
    let undisturbed = SingleTask::new();
    let millis = millis_of(|| undisturbed.start(None));
    let expected = undisturbed.outcome();
    let (mut kills, mut tasks, mut interrupted) = (0, 0, 0);
    while kills < wanted {
        let task = SingleTask::new();
        let mut deaths = Vec::new();
        loop {
            // Early and late kills: it dies at the beginning, and makes progress too.
            let kill = random.kill(TASK_WRITES, millis);
            if task.start(Some(kill)) == Exit::Completed {
                break;
            }
            deaths.push(kill);
        }
        kills += deaths.len() as u64;
        tasks += 1;
        let outcome = task.outcome();
        let context = format!("seed {seed}, task {tasks}, killed {deaths:?}");
        assert_eq!(outcome.status, "completed", "{context}");
        task.check_events(&context);
        task.check_effects(&outcome, &context);
        assert_eq!(outcome.messages.len(), expected.messages.len(), "{context}");
        for (message, expected) in outcome.messages.iter().zip(&expected.messages) {
            if !message.contains("outcome unknown") {
                assert_eq!(message, expected, "{context}");
            }
        }
        interrupted += outcome.interrupted();
    }
    println!(
        "{kills} kills, {tasks} tasks, {interrupted} calls interrupted, {:.0} s, seed {seed}",
        began.elapsed().as_secs_f64()
    );
}

#[test]
fn a_tree_is_complete_however_often_it_is_killed() {
    let (wanted, seed) = (kills_wanted().trees, setting("CRASH_SEED", 1));
    let mut random = Random(seed);
    let began = Instant::now();
    let undisturbed = Team::new(Placement::Sandboxed);
    let millis = millis_of(|| undisturbed.start(None));
    assert_eq!(undisturbed.check("undisturbed"), 0, "no call is interrupted");
    let (mut kills, mut trees, mut sandboxed, mut interrupted) = (0, 0, 0, 0);
    while kills < wanted {
        let placement =
            if random.below(3) == 0 { Placement::Sandboxed } else { Placement::InProcess };
        let team = Team::new(placement);
        let mut deaths = Vec::new();
        loop {
            let kill = random.kill(TREE_WRITES, millis);
            if team.start(Some(kill)) == Exit::Completed {
                break;
            }
            deaths.push(kill);
        }
        kills += deaths.len() as u64;
        trees += 1;
        sandboxed += u64::from(placement == Placement::Sandboxed);
        let context = format!("seed {seed}, tree {trees}, {placement:?}, killed {deaths:?}");
        interrupted += team.check(&context);
    }
    println!(
        "{kills} kills, {trees} trees ({sandboxed} of them with a sandbox), {interrupted} calls interrupted, \
         {:.0} s, seed {seed}",
        began.elapsed().as_secs_f64()
    );
}

#[test]
fn every_interaction_is_handled_once_however_often_the_server_is_killed() {
    let (wanted, seed) = (kills_wanted().messaging, setting("CRASH_SEED", 1));
    let mut random = Random(seed);
    let began = Instant::now();
    let mut undisturbed = Messaging::new(&mut random);
    let millis = millis_of(|| undisturbed.run(None));
    let counts = undisturbed.check("undisturbed");
    assert_eq!(counts.interrupted, 0, "no call is interrupted");
    let (mut kills, mut runs, mut counts) = (0, 0, messaging::Counts::default());
    while kills < wanted {
        let mut messaging = Messaging::new(&mut random);
        let mut deaths = Vec::new();
        loop {
            let kill = random.kill(MESSAGING_WRITES, millis / 3);
            if messaging.run(Some(kill)) == Exit::Completed {
                break;
            }
            deaths.push(kill);
        }
        kills += deaths.len() as u64;
        runs += 1;
        let context = format!("seed {seed}, messaging {runs}, killed {deaths:?}");
        counts += messaging.check(&context);
    }
    println!(
        "{kills} kills, {runs} runs ({counts}), {millis} ms undisturbed, {:.0} s, seed {seed}",
        began.elapsed().as_secs_f64()
    );
}

#[test]
fn a_server_under_load_answers_every_request_once_and_no_watcher_misses_an_event() {
    let (wanted, seed) = (kills_wanted().loads, setting("CRASH_SEED", 1));
    let mut random = Random(seed);
    let began = Instant::now();
    let undisturbed = Load::new();
    let millis = millis_of(|| {
        let stops = undisturbed.run(|| None);
        if stops.is_empty() { Exit::Completed } else { Exit::Killed }
    });
    undisturbed.check("undisturbed");
    let (mut kills, mut terminated, mut loads, mut counts) = (0, 0, 0, load::Counts::default());
    while kills < wanted {
        let load = Load::new();
        let stops = load.run(|| Some(Stop::random(&mut random, LOAD_WRITES, millis / 3)));
        let in_order =
            stops.iter().filter(|stop| matches!(stop, Stop::Terminated(_))).count() as u64;
        kills += stops.len() as u64 - in_order;
        terminated += in_order;
        loads += 1;
        counts += load.check(&format!("seed {seed}, load {loads}, stopped {stops:?}"));
    }
    println!(
        "{kills} kills, {terminated} terminations, {loads} loads ({counts}), {millis} ms undisturbed, {:.0} s, \
         seed {seed}",
        began.elapsed().as_secs_f64()
    );
}
