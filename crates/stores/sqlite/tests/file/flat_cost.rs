//! What an append costs, as the kernel counts it: the checks of the file add no read and no write.

use std::fs;

use antiphon_core::Seq;
use antiphon_core::port::JournalLog;
use tempfile::TempDir;

use crate::world::{add, creation, open};

/// Appends, and then checks, that are counted.
const APPENDS: u64 = 50;

/// Bytes that the writer thread wrote so far.
pub(crate) fn bytes_written() -> u64 {
    calls().1
}

/// Reads of the writer thread so far, and bytes that it wrote. `stat` and `statvfs` are neither.
fn calls() -> (u64, u64) {
    let threads = fs::read_dir("/proc/self/task").expect("threads");
    let writer = threads
        .map(|thread| thread.expect("a thread").path())
        .find(|thread| {
            fs::read_to_string(thread.join("comm")).is_ok_and(|name| name == "journal-writer\n")
        })
        .expect("the writer");
    let counts = fs::read_to_string(writer.join("io")).expect("counts");
    let count = |name: &str| {
        let line = counts.lines().find_map(|line| line.strip_prefix(name)).expect("a count");
        line.trim().parse().expect("a number")
    };
    (count("syscr:"), count("wchar:"))
}

#[tokio::test]
async fn an_append_reads_nothing_and_a_check_writes_nothing() {
    let folder = TempDir::new().expect("a folder");
    let journal = open(&folder.path().join("journal.db"));
    let mut seq = journal.append(creation(1)).await.expect("an append").seq;
    // The first appends read the pages that the next ones find in memory.
    for _ in 0..20 {
        seq = add(&journal, 1, seq, "more").await.expect("an append").seq;
    }
    let (reads, written) = calls();
    for _ in 0..APPENDS {
        seq = add(&journal, 1, seq, "more").await.expect("an append").seq;
    }
    let (after_reads, after_written) = calls();
    // A full page is split now and then, beside a neighbor that is read.
    let page_reads = after_reads - reads;
    assert!(page_reads < APPENDS / 10, "{page_reads} reads for {APPENDS} appends");
    let per_append = (after_written - written) / APPENDS;
    assert!((4096..65536).contains(&per_append), "{per_append} bytes for one append");
    for _ in 0..APPENDS {
        assert_eq!(journal.check_append().await, Ok(()));
    }
    let (last_reads, last_written) = calls();
    assert_eq!(last_reads, after_reads, "a check reads nothing");
    // Each answer wakes the caller with eight bytes; a page has 4096.
    assert!(last_written - after_written < 4096, "a check writes nothing");
    assert_eq!(seq, Seq(2 + 20 + APPENDS));
}
