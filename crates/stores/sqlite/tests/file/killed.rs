//! Killed at any moment, the journal has every append that it answered.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::Stdio;

use antiphon_core::port::{Expected, JournalLog};
use antiphon_core::{Seq, TaskId};
use tempfile::TempDir;
use tokio::task::JoinSet;

use crate::world::{CHILD, all, append, child, creation, note, open};

/// Writers in the child process, each on its own task.
const WRITERS: u64 = 8;

/// Number of kills.
const KILLS: usize = 12;

/// Writes until it is killed, and prints every answer. Does nothing unless it is a child process.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_child_writes_until_it_is_killed() {
    let Ok(folder) = std::env::var(CHILD) else { return };
    let journal = std::sync::Arc::new(open(&Path::new(&folder).join("journal.db")));
    let mut writers = JoinSet::new();
    let known = all(&*journal).await;
    for number in 1..=WRITERS {
        let journal = std::sync::Arc::clone(&journal);
        let task_id = crate::world::task(number);
        let mut seq = known.iter().filter(|event| event.task_id == task_id).count() as u64;
        writers.spawn(async move {
            loop {
                let next = match seq {
                    0 => creation(number),
                    _ => append(number, Expected::At(Seq(seq)), vec![note("more")]),
                };
                seq = journal.append(next).await.expect("an append").seq.0;
                let line = format!("{number} {seq}\n");
                std::io::stdout().write_all(line.as_bytes()).expect("a reader");
            }
        });
    }
    writers.join_next().await;
}

#[tokio::test]
async fn every_answer_survives_a_kill() {
    let folder = TempDir::new().expect("a folder");
    let mut answered: Vec<(TaskId, u64)> = Vec::new();
    for kill in 0..KILLS {
        let mut writer = child("killed::a_child_writes_until_it_is_killed", folder.path())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a child");
        let lines = BufReader::new(writer.stdout.take().expect("its output")).lines();
        // At another moment each time.
        for line in lines.map_while(Result::ok).take(40 + kill * 37) {
            if let Some((number, seq)) = line.split_once(' ')
                && let (Ok(number), Ok(seq)) = (number.parse(), seq.parse())
            {
                answered.push((crate::world::task(number), seq));
            }
        }
        writer.kill().expect("a kill");
        writer.wait().expect("an end");
    }
    let journal = open(&folder.path().join("journal.db"));
    let events = all(&journal).await;
    for (task_id, seq) in &answered {
        let there = events.iter().any(|event| event.task_id == *task_id && event.seq == Seq(*seq));
        assert!(there, "{task_id} {seq} was answered and is not there");
    }
    for number in 1..=WRITERS {
        let task_id = crate::world::task(number);
        let seqs: Vec<u64> =
            events.iter().filter(|e| e.task_id == task_id).map(|e| e.seq.0).collect();
        assert_eq!(seqs, (1..=seqs.len() as u64).collect::<Vec<_>>());
    }
    assert!(answered.len() > KILLS * 40);
    assert_eq!(journal.verify().await, Ok(()));
}
