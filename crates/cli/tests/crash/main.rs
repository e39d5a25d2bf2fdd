//! The crash harness: the real binary with real tools, killed with SIGKILL at a chosen write to its
//! journal or at a random moment, and started again until its work is done.
//!
//! | scenario    | what holds after each                                                              |
//! |-------------|------------------------------------------------------------------------------------|
//! | single task | it completed, no tool with side effects ran twice, no event is lost, reordered or doubled, and its conversation is that of an undisturbed run wherever no call was interrupted |
//! | tree        | its top completed, every dispatched child exists once and has ended, every join and every report says how they ended, nothing was done twice, no process is left |
//! | messaging   | every accepted interaction is read once, every request has one final answer, every request file has one response and one effect, no mark was written twice, no event is lost, reordered or doubled, no process is left |
//! | cut off     | calls of `write`, `edit` and repeatable MCP tools settle, at whichever write the program dies; `bash` tells what is known |
//! | terminated  | the same as for a single task and for a tree, and of a single task no call was interrupted: commands finish before the program ends |
//! | full disk   | the same as for a single task and for a tree, and no call was interrupted: the task waits until there is room |
//! | interrupted | the same as for a single task and for a tree, although a person presses Ctrl-C again and again and resumes; no other task than the stopped calls' own knows of it |
//! | outages     | the same as for a single task, although its model refuses, is gone or cuts its answers again and again |
//! | peers       | a task on a peer, with messages and a cancellation in flight while either server or both are killed: no command ran twice, every accepted message was read once, both sides have the same conversation, a canceled task has ended on both sides and did nothing after the cancellation |
//! | A2A         | the same over A2A, where a canceled task may go on until the cancellation arrives |
//! | load        | every request that was repeated until it was answered is one task with one answer, the one in the journal; a watcher that returned with its last event missed none and saw none twice; no process is left |
//!
//! `make crash N=2000` asks for more kills than the few that every test run makes.
//!
//! | setting       | means                                                                            |
//! |---------------|----------------------------------------------------------------------------------|
//! | `CRASH_KILLS` | kills of all scenarios together; 100 when absent. 30 % are of trees, 20 % of messaging, 20 % under load |
//! |               | A tenth as many kills of servers and their peers come on top, and as many over A2A. |
//! |               | A quarter as many outages come on top; a twentieth of the number is terminated, as many are interrupted, and as many full disks are survived, of tasks and of trees each |
//! | `CRASH_SEED`  | the seed of the random numbers; 1 when absent. A failure names it. Tasks and trees die at the same writes again; messaging and load run in parallel, so the work is the same and not the moment of the kill |

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

#[path = "../support/anthropic_wire.rs"]
mod anthropic_wire;
mod cut_off;
mod full_disk;
mod kill;
mod load;
mod messaging;
mod outage;
mod peers;
#[path = "../support/preload.rs"]
mod preload;
mod project;
#[path = "../support/project_folder.rs"]
mod project_folder;
mod random;
mod signal;
mod single_task;
mod team;
mod tree;
#[path = "../support/two_servers.rs"]
mod two_servers;

use std::time::{Duration, Instant};

use load::{Load, Stop};
use messaging::Messaging;
use outage::OutageTask;
use peers::{Peers, Protocol};
use project::Exit;
use random::Random;
use signal::Signal;
use single_task::{SingleTask, is_interrupted};
use team::{Placement, Team};

/// Kills in an ordinary test run.
const KILLS_DEFAULT: u64 = 100;

/// Percent of the kills that hit trees.
const TREES_PERCENT: u64 = 30;

/// Percent that hit messaging.
const MESSAGING_PERCENT: u64 = 20;

/// Percent that hit servers under load.
const LOADS_PERCENT: u64 = 20;

/// One in this many stops is a termination, and one more a full disk.
const GENTLE_PART: u64 = 20;

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
            // A call that was cut off has another result, unless it ran again.
            if !message.contains("outcome unknown") && !message.contains("A look found") {
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

/// Terminations, and full disks, of a run.
fn gentle_stops_wanted() -> u64 {
    (setting("CRASH_KILLS", KILLS_DEFAULT) / GENTLE_PART).max(1)
}

/// Checks a task that was stopped, but never killed: it is as if it had not been, apart from answers that broke off.
fn check_undisturbed(task: &SingleTask, expected: &[String], context: &str) {
    let outcome = task.outcome();
    assert_eq!(outcome.status, "completed", "{context}");
    assert_eq!(outcome.interrupted(), 0, "{context}");
    task.check_events(context);
    task.check_effects(&outcome, context);
    let messages: Vec<&String> = expected.iter().collect();
    assert_eq!(outcome.without_interrupted_answers(), messages, "{context}");
}

#[test]
fn nothing_is_interrupted_however_often_it_is_terminated() {
    let (wanted, seed) = (gentle_stops_wanted(), setting("CRASH_SEED", 1));
    let mut random = Random(seed);
    let undisturbed = SingleTask::new();
    let millis = millis_of(|| undisturbed.start(None));
    let expected = undisturbed.outcome().messages;
    let (mut terminations, mut tasks) = (0, 0);
    while terminations < wanted {
        let task = SingleTask::new();
        let mut stops = Vec::new();
        loop {
            let after = random.below(millis);
            let after_time = Duration::from_millis(after);
            if task.start_and_signal(Signal::Terminate, after_time) == Exit::Completed {
                break;
            }
            stops.push(after);
        }
        terminations += stops.len() as u64;
        tasks += 1;
        let context = format!("seed {seed}, task {tasks}, terminated after {stops:?} ms");
        check_undisturbed(&task, &expected, &context);
    }
    println!("{terminations} terminations, {tasks} tasks, seed {seed}");
}

#[test]
fn a_task_goes_on_however_often_a_person_interrupts_it() {
    let (wanted, seed) = (gentle_stops_wanted(), setting("CRASH_SEED", 1));
    let mut random = Random(seed);
    let undisturbed = SingleTask::new();
    let millis = millis_of(|| undisturbed.start(None));
    let expected = undisturbed.outcome();
    let (mut interrupts, mut tasks) = (0, 0);
    while interrupts < wanted {
        let task = SingleTask::new();
        let mut stops = Vec::new();
        loop {
            let after = random.below(millis);
            let after_time = Duration::from_millis(after);
            if task.start_and_signal(Signal::Interrupt, after_time) == Exit::Completed {
                break;
            }
            stops.push(after);
        }
        interrupts += stops.len() as u64;
        tasks += 1;
        let context = format!("seed {seed}, task {tasks}, interrupted after {stops:?} ms");
        let outcome = task.outcome();
        assert_eq!(outcome.status, "completed", "{context}");
        task.check_events(&context);
        // A change of a file that a person stopped was not made.
        task.check_commands(&outcome, &context);
        let messages = outcome.without_interrupted_answers();
        assert_eq!(messages.len(), expected.messages.len(), "{context}: {messages:#?}");
        // A call that was stopped has another result, and so may those after it.
        let is_other =
            |message: &&String| is_interrupted(message) || message.contains("A look found");
        let same = messages.iter().position(is_other).unwrap_or(messages.len());
        for (message, expected) in messages.into_iter().zip(&expected.messages).take(same) {
            assert_eq!(message, expected, "{context}");
        }
    }
    println!("{interrupts} interrupts, {tasks} tasks, seed {seed}");
}

/// Stops trees with a signal until each has completed. Returns how many calls were interrupted.
fn signal_trees(signal: Signal, wanted: u64) -> usize {
    let seed = setting("CRASH_SEED", 1);
    let mut random = Random(seed);
    let undisturbed = Team::new(Placement::Sandboxed);
    let millis = millis_of(|| undisturbed.start(None));
    let (mut stopped, mut trees, mut interrupted) = (0, 0, 0);
    while stopped < wanted {
        let placement =
            if random.below(3) == 0 { Placement::Sandboxed } else { Placement::InProcess };
        let team = Team::new(placement);
        let mut stops = Vec::new();
        loop {
            let after = random.below(millis);
            if team.start_and_signal(signal, Duration::from_millis(after)) == Exit::Completed {
                break;
            }
            stops.push(after);
        }
        stopped += stops.len() as u64;
        trees += 1;
        let context =
            format!("seed {seed}, tree {trees}, {placement:?}, {signal:?} after {stops:?} ms");
        interrupted += team.check(&context);
    }
    println!(
        "{stopped} times {signal:?}, {trees} trees, {interrupted} calls interrupted, seed {seed}"
    );
    interrupted
}

#[test]
fn a_tree_goes_on_however_often_a_person_interrupts_it() {
    signal_trees(Signal::Interrupt, gentle_stops_wanted());
}

#[test]
fn a_tree_goes_on_however_often_it_is_terminated() {
    signal_trees(Signal::Terminate, gentle_stops_wanted());
}

#[test]
fn a_tree_on_a_disk_that_is_full_again_and_again_only_takes_time() {
    let (wanted, seed) = (gentle_stops_wanted(), setting("CRASH_SEED", 1));
    let mut random = Random(seed);
    let (mut outages, mut trees) = (0, 0);
    while outages < wanted {
        let team = Team::new(Placement::InProcess);
        outages += team.run_on_full_disk(|limit| random.below(limit));
        trees += 1;
        let context = format!("seed {seed}, full disk, tree {trees}");
        assert_eq!(team.check(&context), 0, "no call is interrupted: {context}");
    }
    println!("{outages} full disks, {trees} trees, seed {seed}");
}

#[test]
fn a_disk_that_is_full_again_and_again_only_takes_time() {
    let (wanted, seed) = (gentle_stops_wanted(), setting("CRASH_SEED", 1));
    let mut random = Random(seed);
    let undisturbed = SingleTask::new();
    assert_eq!(undisturbed.start(None), Exit::Completed);
    let expected = undisturbed.outcome().messages;
    let (mut outages, mut tasks) = (0, 0);
    while outages < wanted {
        let task = SingleTask::new();
        outages += task.run_on_full_disk(|limit| random.below(limit));
        tasks += 1;
        check_undisturbed(&task, &expected, &format!("seed {seed}, full disk, task {tasks}"));
    }
    println!("{outages} full disks, {tasks} tasks, seed {seed}");
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

#[test]
fn a_task_is_done_however_often_its_model_is_away_and_it_is_killed() {
    let (wanted, seed) = (setting("CRASH_KILLS", KILLS_DEFAULT) / 4, setting("CRASH_SEED", 1));
    let mut random = Random(seed);
    let began = Instant::now();
    let (mut outages, mut kills, mut tasks, mut interrupted) = (0, 0, 0, 0);
    while outages < wanted {
        let task = OutageTask::new(random.below(u64::MAX >> 33));
        let mut deaths = Vec::new();
        loop {
            // Half of the runs are not killed, so that waits end by themselves as well.
            let kill = (random.below(2) == 0).then(|| random.kill(TASK_WRITES, 3000));
            if task.start(kill) == Exit::Completed {
                break;
            }
            deaths.push(kill);
        }
        kills += deaths.len();
        tasks += 1;
        let context = format!("seed {seed}, outage task {tasks}, killed {deaths:?}");
        let (waits, unknown) = task.check(&context);
        outages += waits as u64;
        interrupted += unknown;
    }
    println!(
        "{outages} outages, {kills} kills, {tasks} tasks, {interrupted} calls interrupted, {:.0} s, seed {seed}",
        began.elapsed().as_secs_f64()
    );
}

#[test]
fn a_task_on_a_peer_loses_nothing_however_often_either_side_is_killed() {
    kill_peers(Protocol::Native);
}

#[test]
fn a_task_over_a2a_loses_nothing_however_often_either_side_is_killed() {
    kill_peers(Protocol::A2a);
}

fn kill_peers(protocol: Protocol) {
    let (wanted, seed) = (setting("CRASH_KILLS", KILLS_DEFAULT) / 10, setting("CRASH_SEED", 1));
    let mut random = Random(seed);
    let began = Instant::now();
    let (mut kills, mut runs, mut accepted, mut canceled) = (0, 0, 0, 0);
    while kills < wanted {
        runs += 1;
        let counts = Peers::new(protocol).run(&mut random, &format!("seed {seed}, peers {runs}"));
        kills += counts.kills;
        accepted += counts.accepted;
        canceled += u64::from(counts.canceled);
    }
    println!(
        "{protocol:?}: {kills} kills, {runs} tasks on a peer ({canceled} canceled, {accepted} messages), {:.0} s, seed {seed}",
        began.elapsed().as_secs_f64()
    );
}
