//! A really full disk: a file system of one megabyte in its own namespace.

use std::path::Path;
use std::process::Command;

use antiphon_core::Seq;
use antiphon_core::port::{JournalError, JournalLog};
use tempfile::TempDir;

use crate::world::{CHILD, add, all, child, creation, open};

/// Fills its disk. Does nothing unless it is a child process.
#[tokio::test]
async fn a_child_fills_its_disk() {
    let Ok(folder) = std::env::var(CHILD) else { return };
    let folder = Path::new(&folder);
    mount(folder, "size=1m");
    let journal = open(&folder.join("journal.db"));
    let mut seq = journal.append(creation(1)).await.expect("there is room").seq;
    let big = "x".repeat(20_000);
    let refused = loop {
        match add(&journal, 1, seq, &big).await {
            Ok(appended) => seq = appended.seq,
            Err(error) => break error,
        }
    };
    assert!(matches!(refused, JournalError::Unavailable { .. }), "{refused:?}");
    assert!(refused.to_string().contains("full"), "{refused}");
    let before = all(&journal).await;
    assert_eq!(Seq(before.len() as u64), seq, "nothing more and nothing less than was answered");

    mount(folder, "remount,size=8m");
    let appended = add(&journal, 1, seq, &big).await.expect("there is room again");
    assert_eq!(appended.seq, Seq(seq.0 + 1));
    let after = all(&journal).await;
    assert_eq!(after[..before.len()], before);
    assert_eq!(journal.verify().await, Ok(()));
    println!("filled and emptied");
}

fn mount(folder: &Path, options: &str) {
    let status = Command::new("mount")
        .args(["-t", "tmpfs", "-o", options, "tmpfs"])
        .arg(folder)
        .status()
        .expect("mount");
    assert!(status.success());
}

#[test]
fn a_full_disk_refuses_and_loses_nothing_and_goes_on_when_there_is_room() {
    let folder = TempDir::new().expect("a folder");
    let child = child("full_disk::a_child_fills_its_disk", folder.path());
    let output = Command::new("unshare")
        .args(["--user", "--map-root-user", "--mount"])
        .arg(child.get_program())
        .args(child.get_args())
        .env(CHILD, folder.path())
        .output()
        .expect("unshare");
    let out = String::from_utf8_lossy(&output.stdout);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && out.contains("filled and emptied"), "{out}{error}");
}
