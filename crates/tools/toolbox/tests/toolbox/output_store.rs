//! Stored results.

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use antiphon_core::port::ToolContext;
use antiphon_core::{Effect, RawJson, Tool, ToolError, ToolExecutor, ToolResult};
use antiphon_toolbox::paging::LINE_CHARS_MAX;
use antiphon_toolbox::{OutputStore, STORED_TASK_BYTES_MAX, ToolHandler, Toolbox};
use async_trait::async_trait;
use serde_json::json;
use tempfile::TempDir;

use crate::world::{Outcome, context};

/// Returns its arguments.
struct Echo;

#[async_trait]
impl ToolHandler for Echo {
    fn definition(&self) -> Tool {
        antiphon_toolbox::definition::<String>("echo", "Returns its arguments.")
    }

    fn effect(&self) -> Effect {
        Effect::ReadOnly
    }

    async fn call(&self, arguments: &RawJson, _: ToolContext) -> Result<ToolResult, ToolError> {
        Ok(ToolResult::text(arguments.to::<String>().unwrap()))
    }
}

struct Bench {
    folder: TempDir,
    toolbox: Toolbox,
    outputs: Arc<OutputStore>,
}

impl Bench {
    fn new() -> Self {
        Self::on(tempfile::tempdir().unwrap())
    }

    fn on(folder: TempDir) -> Self {
        let outputs = Arc::new(OutputStore::open(&folder.path().join("results")).unwrap());
        let toolbox = Toolbox::new(vec![Box::new(Echo)], Vec::new(), outputs.clone()).unwrap();
        Self { folder, toolbox, outputs }
    }

    async fn echo(&self, task: &str, call: &str, text: &str) -> String {
        let result =
            self.toolbox.execute("echo", &RawJson::string(text), context(task, call)).await;
        Outcome::of(result).text()
    }

    async fn read(&self, task: &str, id: &str, offset: u64) -> Outcome {
        let arguments = RawJson::of(&json!({ "id": id, "offset": offset })).unwrap();
        Outcome::of(self.toolbox.execute("read_result", &arguments, context(task, "read")).await)
    }

    fn results(&self) -> PathBuf {
        self.folder.path().join("results")
    }
}

fn long(word: &str) -> String {
    format!("{word}\n").repeat(10_000)
}

#[tokio::test]
async fn a_result_is_read_by_range_also_after_a_restart_and_a_release() {
    let bench = Bench::new();
    let preview = bench.echo("t", "call-1", &long("word")).await;
    assert!(
        preview.contains("in result `call-1` (50000 bytes, 10000 lines): read it with read_result")
    );
    bench.toolbox.release(&context("t", "c").task_id).await;
    let bench = Bench::on(bench.folder);
    let read = bench.read("t", "call-1", 9_999).await.text();
    assert_eq!(read, "  9999\tword\n 10000\tword\n[lines 9999-10000 of 10000]\n");
    let read = bench.read("t", "call-1", 1).await.text();
    assert!(read.ends_with("[lines 1-2000 of 10000: continue at offset 2001]\n"));
    let failed = bench.read("t", "call-1", 10_001).await.failed();
    assert!(failed.contains("has 10000 lines, there is nothing at offset 10001"));
}

#[tokio::test]
async fn a_result_belongs_to_its_task() {
    let bench = Bench::new();
    bench.echo("t", "call", &long("word")).await;
    fs::write(bench.folder.path().join("secret"), "TOP SECRET").unwrap();
    fs::write(bench.results().join("secret"), "TOP SECRET").unwrap();
    std::os::unix::fs::symlink("/etc/passwd", bench.results().join("t/link")).unwrap();
    for (task, id) in [
        ("other", "call"),
        ("other", "../t/call"),
        ("t/../t", "call"),
        ("t", "../secret"),
        ("t", "../../secret"),
        ("t", "/etc/passwd"),
        ("t", "link"),
        ("t", "."),
        ("t", ".."),
        ("t", ""),
        ("t", "call\0"),
        ("t", "none"),
        ("t", &"x".repeat(5_000)),
    ] {
        let failed = bench.read(task, id, 1).await.failed();
        assert!(!failed.contains("SECRET") && !failed.contains("root:"), "{task} {id}: {failed}");
    }
}

#[tokio::test]
async fn strange_ids_stay_within_the_folder() {
    let bench = Bench::new();
    for id in ["../../evil", "/etc/evil", "..", "a/b", "%2e", "é"] {
        let preview = bench.echo(id, id, &long("word")).await;
        let (_, stored) = preview.split_once("in result `").unwrap();
        let (stored, _) = stored.split_once('`').unwrap();
        assert!(bench.read(id, stored, 1).await.text().starts_with("     1\tword"), "{id}");
    }
    assert_eq!(fs::read_dir(bench.folder.path()).unwrap().count(), 1);
    // An id that does not fit in a file name: the result is not stored, and the preview says so.
    let endless = "é".repeat(120);
    let preview = bench.echo(&endless, "c", &long("word")).await;
    assert!(preview.contains("could not be stored"), "{preview}");
}

#[tokio::test]
async fn a_call_that_runs_again_stores_both_results() {
    let bench = Bench::new();
    bench.echo("t", "c", &long("first")).await;
    assert!(bench.echo("t", "c", &long("second")).await.contains("in result `c.2`"));
    assert!(bench.read("t", "c", 1).await.text().contains("first"));
    assert!(bench.read("t", "c.2", 1).await.text().contains("second"));
}

#[tokio::test]
async fn stored_results_are_private() {
    let bench = Bench::new();
    bench.echo("t", "c", &long("word")).await;
    let mode = |path: &str| fs::metadata(bench.results().join(path)).unwrap().permissions().mode();
    assert_eq!([mode(""), mode("t"), mode("t/c")].map(|mode| mode & 0o777), [0o700, 0o700, 0o600]);
}

#[test]
fn an_existing_folder_is_made_private_or_refused() {
    let folder = tempfile::tempdir().unwrap();
    let open = folder.path().join("open");
    fs::create_dir(&open).unwrap();
    fs::set_permissions(&open, fs::Permissions::from_mode(0o777)).unwrap();
    OutputStore::open(&open).unwrap();
    assert_eq!(fs::metadata(&open).unwrap().permissions().mode() & 0o777, 0o700);
    let link = folder.path().join("link");
    std::os::unix::fs::symlink(&open, &link).unwrap();
    assert!(OutputStore::open(&link).is_err());
}

#[tokio::test]
async fn a_line_without_end_can_be_read_to_its_end() {
    let bench = Bench::new();
    let line: String = (0..20_000).flat_map(|i| [i.to_string(), ",".to_owned()]).collect();
    let preview = bench.echo("t", "c", &line).await;
    assert!(preview.contains("1 lines") && preview.ends_with("19998,19999,"));
    let read = bench.read("t", "c", 1).await.text();
    let rows = read.lines().filter(|line| !line.starts_with('['));
    let whole: String = rows.map(|row| row.split_once('\t').unwrap().1).collect();
    assert_eq!(whole, line);
    assert!(read.lines().all(|row| row.len() <= LINE_CHARS_MAX + 8));
}

#[tokio::test]
async fn the_oldest_results_of_a_task_are_removed_first() {
    let bench = Bench::new();
    bench.echo("t", "newest", &long("word")).await;
    bench.echo("other", "c", &long("word")).await;
    // Sparse files: only their length counts.
    for (age, name) in [(2, "older"), (3, "oldest")] {
        let file = File::create(bench.results().join("t").join(name)).unwrap();
        file.set_len(STORED_TASK_BYTES_MAX / 2).unwrap();
        file.set_modified(SystemTime::now() - Duration::from_secs(age * 60)).unwrap();
    }
    bench.echo("t", "c", &long("word")).await;
    let stored = |name: &str| bench.results().join(name).exists();
    assert!(!stored("t/oldest"));
    assert!(stored("t/older") && stored("t/newest") && stored("t/c") && stored("other/c"));
}

#[tokio::test]
async fn a_sweep_removes_old_results_and_nothing_else() {
    let bench = Bench::new();
    bench.echo("done", "c", &long("word")).await;
    bench.echo("t", "c", &long("word")).await;
    bench.echo("t", "d", &long("word")).await;
    for name in ["done/c", "t/c"] {
        let file = File::options().write(true).open(bench.results().join(name)).unwrap();
        file.set_modified(SystemTime::now() - Duration::from_secs(3_600)).unwrap();
    }
    assert_eq!(bench.outputs.sweep(Duration::from_secs(60)).await.unwrap(), 2);
    assert!(!bench.results().join("done").exists());
    assert!(!bench.results().join("t/c").exists() && bench.results().join("t/d").exists());
    assert!(bench.read("t", "c", 1).await.failed().contains("or no longer"));
    assert_eq!(bench.outputs.sweep(Duration::from_secs(60)).await.unwrap(), 0);
}
