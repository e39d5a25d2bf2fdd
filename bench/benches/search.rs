//! `grep` and `glob` compared with `rg`, on the same tree of 50,000 files. Without `rg` on the path
//! there is no baseline, and the benchmark says so.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use antiphon_core::port::ToolContext;
use antiphon_core::{Cancel, RawJson};
use antiphon_file_tools::{GlobTool, GrepTool, Mode, Workspace, WorkspaceConfig};
use antiphon_toolbox::ToolHandler;
use cpu_time::ProcessTime;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use tokio::runtime::{Builder, Runtime};

type Error = Box<dyn std::error::Error>;

const FOLDERS: u32 = 1000;
const FILES_PER_FOLDER: u32 = 50;
const ROUNDS: usize = 15;

/// Arguments of the tool and of `rg` that do the same.
const SEARCHES: [(&str, &str, &str, &[&str]); 5] = [
    ("a rare word", "grep", r#"{"pattern":"needle_in_hay"}"#, &["-nS", "needle_in_hay"]),
    ("a regex", "grep", r#"{"pattern":"\\w+_in_\\w+\\(\\)"}"#, &["-nS", r"\w+_in_\w+\(\)"]),
    ("files with it", "grep", r#"{"pattern":"needle","mode":"files"}"#, &["-lS", "needle"]),
    ("*.rs", "glob", r#"{"pattern":"*.rs"}"#, &["--files", "-g", "*.rs"]),
    (
        "*.rs, newest first",
        "glob",
        r#"{"pattern":"*.rs"}"#,
        &["--files", "-g", "*.rs", "--sortr", "modified"],
    ),
];

fn main() -> Result<(), Error> {
    let folder = tempfile::tempdir()?;
    grow(folder.path())?;
    let config = WorkspaceConfig::of(folder.path(), Mode::ReadOnly);
    let workspace = Arc::new(Workspace::open(config)?);
    let (grep, glob) = (GrepTool::new(Arc::clone(&workspace)), GlobTool::new(workspace));
    let runtime = Builder::new_current_thread().build()?;
    let has_rg = Command::new("rg").arg("--version").stdout(Stdio::null()).status().is_ok();

    println!("{} files; milliseconds, medians of {ROUNDS} rounds", FOLDERS * FILES_PER_FOLDER);
    println!("on a busy machine the processor's time says more than the clock's\n");
    if !has_rg {
        println!("rg is not installed (Debian: ripgrep): no baseline\n");
    }
    println!("{:20}{:>27}{:>27}", "", "clock", "processor");
    let columns = ["tool", "rg", "ratio"].map(|column| format!("{column:>9}")).concat();
    println!("{:20}{columns}{columns}", "search");
    for (name, tool, arguments, baseline) in SEARCHES {
        let tool: &dyn ToolHandler = if tool == "grep" { &grep } else { &glob };
        let arguments = RawJson::parse(arguments)?;
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        // Alternates, so that both see the same machine.
        for _ in 0..ROUNDS {
            ours.push(call(&runtime, tool, &arguments)?);
            if has_rg {
                theirs.push(run(folder.path(), baseline)?);
            }
        }
        print!("{name:20}");
        print_ratio(median(&ours, |cost| cost.clock), median(&theirs, |cost| cost.clock));
        print_ratio(median(&ours, |cost| cost.processor), median(&theirs, |cost| cost.processor));
        println!();
    }
    let mut enough = Vec::new();
    for _ in 0..ROUNDS {
        enough.push(call(&runtime, &grep, &RawJson::parse(r#"{"pattern":"hay"}"#)?)?);
    }
    let clock = median(&enough, |cost| cost.clock).unwrap_or_default();
    println!("\na word of every line, until there are 100: {clock:.1}");
    Ok(())
}

/// Time of a search.
struct Cost {
    clock: Duration,
    processor: Duration,
}

fn print_ratio(ours: Option<f64>, theirs: Option<f64>) {
    let ours = ours.unwrap_or_default();
    match theirs {
        Some(theirs) => print!("{ours:>9.1}{theirs:>9.1}{:>9.2}", ours / theirs),
        None => print!("{ours:>9.1}{:>18}", ""),
    }
}

/// A tree like a source repository: many folders, small files, ignore rules at several places.
fn grow(root: &Path) -> Result<(), Error> {
    fs::create_dir(root.join(".git"))?;
    fs::write(root.join(".gitignore"), "target/\n*.log\nnode_modules\n/build\n*.tmp\n")?;
    for folder in 0..FOLDERS {
        let path = root.join(format!("crate{:02}/module{:02}", folder / 20, folder % 20));
        fs::create_dir_all(&path)?;
        if folder % 10 == 0 {
            fs::write(path.join(".gitignore"), "*.gen\n!keep.gen\n")?;
        }
        for file in 0..FILES_PER_FOLDER {
            let extension = ["rs", "toml", "md", "rs", "py", "rs", "log"][(file % 7) as usize];
            let name = path.join(format!("file{file:02}.{extension}"));
            fs::write(name, text(folder * FILES_PER_FOLDER + file))?;
        }
    }
    Ok(())
}

/// About 2 KB of words; every 500th file contains the pattern.
fn text(number: u32) -> String {
    let lines = 20 + number % 40;
    let mut text = String::new();
    for line in 0..lines {
        let word = number.wrapping_mul(2_654_435_761).wrapping_add(line.wrapping_mul(40_503));
        // Writing to a string does not fail.
        let _ = writeln!(text, "    let hay_{word:x} = straw({line}) + barn({number});");
    }
    if number.is_multiple_of(500) {
        text.push_str("fn needle_in_hay() {}\n");
    }
    text
}

fn call(runtime: &Runtime, tool: &dyn ToolHandler, arguments: &RawJson) -> Result<Cost, Error> {
    let (started, before) = (Instant::now(), ProcessTime::now());
    let result = runtime.block_on(tool.call(arguments, ToolContext::trial(Cancel::never())))?;
    let cost = Cost { clock: started.elapsed(), processor: before.elapsed() };
    if result.is_error {
        return Err(format!("{:?}", result.content).into());
    }
    Ok(cost)
}

fn run(folder: &Path, arguments: &[&str]) -> Result<Cost, Error> {
    let (started, before) = (Instant::now(), children_time()?);
    // Its output goes through a pipe, as when an agent calls it.
    let output = Command::new("rg").args(arguments).current_dir(folder).output()?;
    let processor = children_time()?.saturating_sub(before);
    let cost = Cost { clock: started.elapsed(), processor };
    if output.stdout.is_empty() {
        return Err("rg found nothing".into());
    }
    Ok(cost)
}

/// CPU time of all children so far.
fn children_time() -> Result<Duration, Error> {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    let time = usage.user_time() + usage.system_time();
    Ok(Duration::from_micros(time.num_microseconds().try_into()?))
}

/// In milliseconds.
fn median(costs: &[Cost], of: impl Fn(&Cost) -> Duration) -> Option<f64> {
    let mut times: Vec<Duration> = costs.iter().map(of).collect();
    times.sort();
    times.get(times.len() / 2).map(|time| time.as_secs_f64() * 1e3)
}
