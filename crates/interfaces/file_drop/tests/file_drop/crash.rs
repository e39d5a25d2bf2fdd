//! Killed at any point: each request is executed once and answered once.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use antiphon_core::port::OrderExecutor;
use antiphon_core::{Order, OrderError, OrderResult, OrderStatus};
use antiphon_file_drop::{FileDropSettings, answer_waiting, watch};
use async_trait::async_trait;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::world::{WAIT_MAX, World, names, read, stop, target};

const PROJECT: &str = "FILE_DROP_TEST_PROJECT";
const DIE_AT: &str = "FILE_DROP_TEST_DIE_AT";

/// A journal of effects in a file. Exits the process at a chosen step.
struct EffectLog {
    path: PathBuf,
    done: Mutex<BTreeMap<String, String>>,
    steps: AtomicUsize,
    die_at: Option<usize>,
}

impl EffectLog {
    fn open(path: PathBuf, die_at: Option<usize>) -> Self {
        let text = fs::read_to_string(&path).unwrap_or_default();
        let line = |line: &str| {
            let (key, target) = line.split_once(' ')?;
            Some((key.to_owned(), target.to_owned()))
        };
        let done = text.lines().filter_map(line).collect();
        Self { path, done: Mutex::new(done), steps: AtomicUsize::new(0), die_at }
    }

    /// Exits here, if it is time.
    fn step(&self) {
        if Some(self.steps.fetch_add(1, Ordering::SeqCst)) == self.die_at {
            std::process::abort();
        }
    }
}

#[async_trait]
impl OrderExecutor for EffectLog {
    async fn execute(&self, order: Order, _: &str, key: &str) -> Result<OrderResult, OrderError> {
        self.step();
        {
            let mut done = self.done.lock().unwrap();
            if !done.contains_key(key) {
                let target = target(&order);
                let mut file =
                    OpenOptions::new().append(true).create(true).open(&self.path).unwrap();
                file.write_all(format!("{key} {target}\n").as_bytes()).unwrap();
                done.insert(key.to_owned(), target);
            }
        }
        self.step();
        Ok(OrderResult { agent: Some(target(&order)), ..OrderResult::new(OrderStatus::Stopped) })
    }
}

/// Watches until it is killed.
#[test]
#[ignore = "the child of the tests below"]
fn the_child() {
    let Ok(project) = std::env::var(PROJECT) else { return };
    let die_at = std::env::var(DIE_AT).ok().and_then(|at| at.parse().ok());
    let ledger = EffectLog::open(Path::new(&project).join("ledger"), die_at);
    let settings = FileDropSettings { settle: Duration::ZERO, ..FileDropSettings::default() };
    let watching = watch(project, settings, Arc::new(ledger), CancellationToken::new());
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(watching).unwrap();
}

fn child(project: &Path, die_at: Option<usize>) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "crash::the_child", "--ignored", "--nocapture"]);
    command.env(PROJECT, project).stdout(Stdio::null()).stderr(Stdio::null());
    if let Some(at) = die_at {
        command.env(DIE_AT, at.to_string());
    }
    command.spawn().unwrap()
}

/// Drops valid and invalid requests.
fn drop_some(world: &World, files: usize) {
    for nth in 0..files {
        let text =
            if nth % 5 == 4 { "nonsense".to_owned() } else { stop(&format!("a{}", nth % 7)) };
        world.drop(&format!("{nth}.json"), &text);
    }
}

/// Answers the remaining requests and checks that each was executed once.
async fn all_answered_once(world: &World, files: usize) {
    let ledger = world.project().join("ledger");
    let orders = Arc::new(EffectLog::open(ledger.clone(), None));
    let settings = FileDropSettings { settle: Duration::ZERO, ..FileDropSettings::default() };
    answer_waiting(world.project(), settings, orders, CancellationToken::new()).await.unwrap();
    let text = fs::read_to_string(ledger).unwrap();
    let keys: Vec<&str> = text.lines().map(|line| line.split_once(' ').unwrap().0).collect();
    let good = (0..files).filter(|nth| nth % 5 != 4).count();
    assert_eq!(keys.len(), good, "every good one has one effect");
    assert_eq!(keys.iter().collect::<BTreeSet<_>>().len(), good);
    let mut expected = vec!["rejected".to_owned()];
    for nth in 0..files {
        let bad = nth % 5 == 4;
        expected.push(format!("{nth}.response.json"));
        if !bad {
            expected.push(format!("{nth}.json"));
        }
        let response = read(&world.path(&format!("{nth}.response.json"))).unwrap();
        assert_eq!(response.ok, !bad, "{nth}");
    }
    expected.sort();
    assert_eq!(world.names(), expected);
    let bad = |nth: usize| [format!("{nth}.json"), format!("{nth}.json.reason.txt")];
    let mut expected: Vec<String> = (0..files).filter(|nth| nth % 5 == 4).flat_map(bad).collect();
    expected.sort();
    assert_eq!(names(&world.path("rejected")), expected);
}

#[tokio::test]
async fn killed_before_and_after_each_effect_no_request_is_lost_or_executed_twice() {
    for die_at in 0..10 {
        let world = World::new();
        drop_some(&world, 6);
        let ended = child(world.project(), Some(die_at)).wait_timeout();
        assert!(ended, "it died at step {die_at}");
        all_answered_once(&world, 6).await;
    }
}

#[tokio::test]
async fn killed_at_random_moments_no_request_is_lost_or_executed_twice() {
    let world = World::new();
    drop_some(&world, 300);
    for round in 0..25_u64 {
        let mut child = child(world.project(), None);
        // The moments differ from machine to machine on purpose.
        std::thread::sleep(Duration::from_millis(15 + round * 7 % 40));
        child.kill().unwrap();
        child.wait().unwrap();
    }
    all_answered_once(&world, 300).await;
}

/// A child that exits by itself.
trait Ends {
    fn wait_timeout(self) -> bool;
}

impl Ends for Child {
    fn wait_timeout(mut self) -> bool {
        let end = Instant::now() + WAIT_MAX;
        while Instant::now() < end {
            if self.try_wait().unwrap().is_some() {
                return true;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        self.kill().unwrap();
        self.wait().unwrap();
        false
    }
}

#[tokio::test]
async fn killed_between_the_effect_and_the_response_the_same_key_comes_again() {
    let mut world = World::watched().await;
    world.orders.hold("a");
    world.drop("a.json", &stop("a"));
    crate::world::until(|| (world.orders.calls() == 1).then_some(())).await;
    world.kill().await;
    world.orders.gate.add_permits(1);
    assert_eq!(world.pass().await.answered, 1);
    assert_eq!((world.orders.calls(), world.orders.effects().len()), (2, 1));
}

#[tokio::test]
async fn killed_between_the_response_and_the_move_a_rejected_file_is_moved_at_the_next_start() {
    let world = World::new();
    fs::write(world.path("a.json"), "nonsense").unwrap();
    world.pass().await;
    let response = world.response("a").await;
    // As if it had not been moved, with and without the reason.
    for reason in ["a.json", "a.json.reason.txt"] {
        fs::rename(world.path("rejected/a.json"), world.path("a.json")).unwrap();
        let _ = fs::remove_file(world.path("rejected").join(reason));
        assert_eq!(world.pass().await.set_aside, 1);
        assert_eq!(world.response("a").await, response);
        assert_eq!(names(&world.path("rejected")), ["a.json", "a.json.reason.txt"]);
        assert_eq!(world.names(), ["a.response.json", "rejected"]);
    }
}

#[tokio::test]
async fn killed_while_a_response_is_moved_one_response_remains() {
    let mut world = World::watched().await;
    world.drop("a.json", &stop("a"));
    let response = world.response("a").await;
    world.end().await;
    fs::rename(world.path("a.json"), world.path("b.json")).unwrap();
    // As if the new response had been written and the old one not removed.
    let mut moved: Value = serde_json::to_value(&response).unwrap();
    moved["request"] = "b.json".into();
    fs::write(world.path("b.response.json"), moved.to_string()).unwrap();
    world.pass().await;
    assert_eq!(world.orders.calls(), 1);
    assert_eq!(world.response("b").await.request, "b.json");
    assert_eq!(world.names(), ["b.json", "b.response.json"]);
}
