//! Which processes there are.

use std::fs;
use std::time::Duration;

use tokio::time::{sleep, timeout};

use crate::world::LONG;

/// Processes whose command line begins so, those aside that have ended.
pub(crate) fn with(text: &str) -> Vec<i32> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let is_it = |pid: &i32| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).replace('\0', " ").starts_with(text)
    };
    pids.filter(is_it).collect()
}

/// Waits until there are this many.
pub(crate) async fn are(count: usize, text: &str) {
    let there = timeout(LONG, async {
        while with(text).len() != count {
            sleep(Duration::from_millis(5)).await;
        }
    });
    assert!(there.await.is_ok(), "there are {:?}, not {count}", with(text));
}
