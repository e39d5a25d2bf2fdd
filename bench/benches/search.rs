//! `grep` and `glob` beside the bare `rg`, on the same tree of 50,000 files. Without `rg` on the
//! path there is no baseline, and the bench says so.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use antiphon_core::port::ToolContext;
use antiphon_core::{Cancel, RawJson};
use antiphon_tools::{GlobTool, GrepTool, Mode, ToolHandler, Workspace, WorkspaceConfig};
use tokio::runtime::{Builder, Runtime};

type Error = Box<dyn std::error::Error>;

const FOLDERS: u32 = 1000;
const FILES_PER_FOLDER: u32 = 50;
const ROUNDS: usize = 15;

/// What is asked of the tool, and what of `rg`, so that both do the same.
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

    println!("{} files; milliseconds, the median of {ROUNDS} rounds\n", FOLDERS * FILES_PER_FOLDER);
    if !has_rg {
        println!("rg is not installed (Debian: ripgrep): no baseline\n");
    }
    println!("{:24}{:>10}{:>10}{:>10}", "search", "tool", "rg", "ratio");
    for (name, tool, arguments, baseline) in SEARCHES {
        let tool: &dyn ToolHandler = if tool == "grep" { &grep } else { &glob };
        let arguments = RawJson::parse(arguments)?;
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        // In turns, so that both see the same machine.
        for _ in 0..ROUNDS {
            ours.push(call(&runtime, tool, &arguments)?);
            if has_rg {
                theirs.push(run(folder.path(), baseline)?);
            }
        }
        let ours = median(&mut ours);
        print!("{name:24}{ours:>10.1}");
        if has_rg {
            let theirs = median(&mut theirs);
            print!("{theirs:>10.1}{:>10.2}", ours / theirs);
        }
        println!();
    }
    let mut enough = Vec::new();
    for _ in 0..ROUNDS {
        enough.push(call(&runtime, &grep, &RawJson::parse(r#"{"pattern":"hay"}"#)?)?);
    }
    println!("\na word of every line, until there are 100: {:.1}", median(&mut enough));
    Ok(())
}

/// A tree like those of programmers: many folders, small files, rules at several places.
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

/// Some 2 KB of words; every 500th file has what is looked for.
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

fn call(runtime: &Runtime, tool: &dyn ToolHandler, arguments: &RawJson) -> Result<Duration, Error> {
    let started = Instant::now();
    let result = runtime.block_on(tool.call(arguments, ToolContext::trial(Cancel::never())))?;
    let elapsed = started.elapsed();
    if result.is_error {
        return Err(format!("{:?}", result.content).into());
    }
    Ok(elapsed)
}

fn run(folder: &Path, arguments: &[&str]) -> Result<Duration, Error> {
    let started = Instant::now();
    // Its output goes through a pipe, as it does when an agent calls it.
    let output = Command::new("rg").args(arguments).current_dir(folder).output()?;
    let elapsed = started.elapsed();
    if output.stdout.is_empty() {
        return Err("rg found nothing".into());
    }
    Ok(elapsed)
}

fn median(times: &mut [Duration]) -> f64 {
    times.sort();
    times[times.len() / 2].as_secs_f64() * 1e3
}
