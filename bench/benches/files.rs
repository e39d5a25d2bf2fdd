//! The overhead of the file tools: a small read and write, and an edit in 10 MB, compared with
//! `std::fs` with the same durability.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use antiphon_core::port::{Cancel, ToolContext};
use antiphon_core::{RawJson, ToolExecutor};
use antiphon_file_tools::{
    EditTool, Mode, ReadTool, ReadTracker, Workspace, WorkspaceConfig, WriteTool,
};
use antiphon_toolbox::{OutputStore, Toolbox};
use serde_json::{Value, json};
use tokio::runtime::{Builder, Runtime};

type Error = Box<dyn std::error::Error>;

const ROUNDS: usize = 200;
const LARGE_BYTES: usize = 10_000_000;

fn main() -> Result<(), Error> {
    let folder = tempfile::tempdir()?;
    let root = folder.path().join("project");
    fs::create_dir(&root)?;
    let tools = toolbox(&root, &folder.path().join("results"))?;
    let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let call = |tool: &str, arguments: Value| call(&runtime, &tools, tool, &arguments);
    println!("{:26}{:>12}{:>12}{:>8}", "median", "bare", "tool", "");

    let small = root.join("small.txt");
    fs::write(&small, "a line\n".repeat(100))?;
    let bare = || {
        timed(|| {
            std::hint::black_box(fs::read(&small)?);
            Ok(())
        })
    };
    print("read of 700 bytes", bare, || call("read", json!({ "path": "small.txt" })))?;

    let mut number = 0;
    let mut next = || {
        number += 1;
        number
    };
    let bare = || timed(|| replace(&root, "bare.txt", b"some text\n"));
    print("write of 10 bytes", bare, || {
        call("write", json!({ "path": format!("new{}.txt", next()), "content": "some text\n" }))
    })?;

    let line = "0123456789abcdef 0123456789abcdef\n";
    let mut text = line.repeat(LARGE_BYTES / line.len());
    text.push_str("the one and only\n");
    fs::write(root.join("large.txt"), &text)?;
    let bare = || timed(|| replace(&root, "bare.txt", text.as_bytes()));
    let mut turn = false;
    print("edit in 10 MB", bare, || {
        turn = !turn;
        let (old, new) =
            if turn { ("and only", "but not the") } else { ("but not the", "and only") };
        let edits = json!([{ "old": old, "new": new }]);
        call("edit", json!({ "path": "large.txt", "edits": edits }))
    })
}

fn toolbox(root: &Path, results: &Path) -> Result<Toolbox, Error> {
    let workspace = Arc::new(Workspace::open(WorkspaceConfig::of(root, Mode::Workspace))?);
    let reads = Arc::new(ReadTracker::new());
    Ok(Toolbox::new(
        vec![
            Box::new(ReadTool::new(Arc::clone(&workspace), Arc::clone(&reads))),
            Box::new(WriteTool::new(Arc::clone(&workspace), Arc::clone(&reads))),
            Box::new(EditTool::new(workspace, reads)),
        ],
        Vec::new(),
        Arc::new(OutputStore::open(results)?),
    )?)
}

fn call(
    runtime: &Runtime,
    tools: &Toolbox,
    tool: &str,
    arguments: &Value,
) -> Result<Duration, Error> {
    let arguments = RawJson::of(arguments)?;
    timed(|| {
        let context = ToolContext::trial(Cancel::never());
        let result = runtime.block_on(tools.execute(tool, &arguments, context))?;
        if result.is_error { Err(format!("{tool}: {:?}", result.content).into()) } else { Ok(()) }
    })
}

/// Replaces a file atomically and durably.
fn replace(folder: &Path, name: &str, bytes: &[u8]) -> Result<(), Error> {
    let draft = folder.join(".draft");
    let mut file = File::create(&draft)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(draft, folder.join(name))?;
    Ok(File::open(folder)?.sync_all()?)
}

fn timed(work: impl FnOnce() -> Result<(), Error>) -> Result<Duration, Error> {
    let start = Instant::now();
    work()?;
    Ok(start.elapsed())
}

/// Alternates, so that other load affects both alike.
fn print(
    name: &str,
    mut bare: impl FnMut() -> Result<Duration, Error>,
    mut tool: impl FnMut() -> Result<Duration, Error>,
) -> Result<(), Error> {
    let (mut bares, mut tools) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        bares.push(bare()?);
        tools.push(tool()?);
    }
    let median = |mut times: Vec<Duration>| {
        times.sort();
        times[times.len() / 2]
    };
    let (bare, tool) = (median(bares), median(tools));
    let ratio = tool.as_secs_f64() / bare.as_secs_f64();
    println!("{name:26}{bare:>12.1?}{tool:>12.1?}{ratio:>7.1}x");
    Ok(())
}
