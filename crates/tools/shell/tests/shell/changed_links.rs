//! Links on the way to hidden paths that a program outside changes, such as a manager of dotfiles.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use antiphon_sandbox::SandboxMode;

use crate::bench::Bench;

/// Two folders with a secret each, and a link to the first. The secrets behind the link are hidden.
fn with_link(mode: SandboxMode) -> Bench {
    Bench::with(|settings| {
        settings.policy.mode = mode;
        let base = settings.policy.roots[0].parent().unwrap().to_owned();
        for name in ["one", "two"] {
            fs::create_dir_all(base.join(name).join("keys")).unwrap();
            fs::write(base.join(name).join("keys/a"), "a secret").unwrap();
            fs::write(base.join(name).join("token"), "a secret").unwrap();
        }
        symlink(base.join("one"), base.join("link")).unwrap();
        settings.policy.hidden.push(base.join("link/keys"));
        settings.policy.hidden.push(base.join("link/token"));
    })
}

/// Lets a link lead to another folder, in one step.
fn lead(link: &Path, target: &Path) {
    let new = link.with_extension("new");
    symlink(target, &new).unwrap();
    fs::rename(new, link).unwrap();
}

/// A command that prints the secrets it can read.
fn reading(link: &Path) -> String {
    format!("cat {0}/keys/a {0}/token 2>&1; true", link.display())
}

#[tokio::test]
async fn what_a_changed_link_leads_to_is_hidden_from_the_next_command_on() {
    for mode in [SandboxMode::Workspace, SandboxMode::ReadOnly] {
        let bench = with_link(mode);
        let [link, one, two] = ["link", "one", "two"].map(|name| bench.outside(name));
        for target in [&one, &two, &one, &two] {
            lead(&link, target);
            let read = bench.works(&reading(&link)).await;
            assert!(!read.contains("secret"), "{mode:?}, {}: {read}", target.display());
        }
        // A link that led nowhere.
        fs::remove_file(&link).unwrap();
        bench.works("true").await;
        lead(&link, &one);
        let read = bench.works(&reading(&link)).await;
        assert!(!read.contains("secret"), "{mode:?}, made again: {read}");
    }
}

#[tokio::test]
async fn a_link_that_stays_costs_no_new_sandbox() {
    let bench = with_link(SandboxMode::Workspace);
    bench.works("echo here > /tmp/mark").await;
    let first = bench.works("readlink /proc/self/ns/mnt").await;
    assert_eq!(bench.works("readlink /proc/self/ns/mnt").await, first);
    lead(&bench.outside("link"), &bench.outside("two"));
    let second = bench.works("readlink /proc/self/ns/mnt").await;
    assert_ne!(second, first);
    assert_eq!(bench.works("readlink /proc/self/ns/mnt").await, second);
}

/// Swaps a link over and over until it is dropped.
struct Swapping {
    stop: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Swapping {
    fn begin(link: PathBuf, targets: [PathBuf; 2]) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            while !stopped.load(Ordering::Relaxed) {
                for target in &targets {
                    lead(&link, target);
                }
            }
        });
        Self { stop, thread: Some(thread) }
    }
}

impl Drop for Swapping {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }
}

#[tokio::test]
async fn a_link_that_changes_during_a_start_opens_nothing_once_it_stays() {
    let bench = with_link(SandboxMode::Workspace);
    let [link, one, two] = ["link", "one", "two"].map(|name| bench.outside(name));
    for _ in 0..5 {
        let swapping = Swapping::begin(link.clone(), [one.clone(), two.clone()]);
        // It may be refused: no sandbox stays valid meanwhile.
        let cancel = antiphon_core::port::Cancel::never();
        let arguments = serde_json::json!({ "command": "true" });
        let _ = bench.call("bash", arguments, cancel).await;
        drop(swapping);
        let read = bench.works(&reading(&link)).await;
        assert!(!read.contains("secret"), "{read}");
    }
}

#[tokio::test]
async fn a_link_in_the_workspace_cannot_lead_a_command_to_what_is_protected() {
    let bench = Bench::new();
    fs::create_dir(bench.root.join(".git")).unwrap();
    fs::write(bench.root.join(".git/config"), "as it was").unwrap();
    fs::create_dir(bench.root.join("own")).unwrap();
    // Swaps a link between an own folder and a protected one while it writes through it.
    let command = "for i in $(seq 300); do ln -sfn own l; echo x > l/config; ln -sfn .git l; echo x > l/config; \
                   mv .git aside; done 2>/dev/null; true";
    bench.works(command).await;
    assert_eq!(fs::read_to_string(bench.root.join(".git/config")).unwrap(), "as it was");
    assert_eq!(fs::read_to_string(bench.root.join("own/config")).unwrap(), "x\n");
    // And the folders above a hidden path may become links only outside.
    let bench = Bench::with(|settings| {
        let root = settings.policy.roots[0].clone();
        fs::create_dir_all(root.join("c/keys")).unwrap();
        fs::write(root.join("c/keys/a"), "a secret").unwrap();
        settings.policy.hidden.push(root.join("c/keys"));
    });
    bench.works("true").await;
    fs::rename(bench.root.join("c"), bench.root.join("d")).unwrap();
    symlink("d", bench.root.join("c")).unwrap();
    let cancel = antiphon_core::port::Cancel::never();
    let arguments = serde_json::json!({ "command": "cat c/keys/a d/keys/a; true" });
    let refused = bench.call("bash", arguments, cancel).await.unwrap_err().to_string();
    assert!(refused.contains("symbolic link"), "{refused}");
}
