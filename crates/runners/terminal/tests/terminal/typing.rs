//! What is typed in, when, and how often.

use std::time::{Duration, Instant};

use antiphon_core::port::Runner;
use antiphon_core::{EventBody, HandlingMode, TaskStatus};
use antiphon_terminal::{Restart, TYPED_BYTES_MAX, TerminalProfile, Watching};

use crate::bench::{Bench, script, shell};
use crate::dying_journal::{Death, DyingJournal};
use crate::viewer::Viewer;

#[tokio::test]
async fn a_task_s_first_message_and_those_that_arrive_are_typed_in_order() {
    let bench = Bench::new(shell());
    let running = bench.begin(Some("echo first > said")).await;
    let task_id = running.task_id.clone();
    let second = running.say("echo second >> said", HandlingMode::Queue).await;
    running.say("exit", HandlingMode::Queue).await;
    running.ended().await.unwrap();
    assert_eq!(bench.end(&task_id).await.status, TaskStatus::Completed);
    let recorded = std::fs::read_to_string(bench.root().join("said")).unwrap();
    assert_eq!(recorded, "first\nsecond\n");
    let appended = bench.events(&task_id).await.into_iter().filter_map(|event| match event {
        EventBody::MessageAppended(appended) => Some(appended.queued),
        _ => None,
    });
    assert_eq!(appended.take(2).collect::<Vec<_>>(), [None, Some(second)]);
}

#[tokio::test]
async fn a_message_waits_until_the_screen_is_still_and_one_that_steers_does_not() {
    // Writes without a pause until input arrives, then prints the input.
    let noisy =
        "echo go; while ! read -t 0; do echo -n .; sleep 0.02; done; read line; echo got $line";
    let bench = Bench::new(TerminalProfile { quiet_ms: 3000, ..script(noisy) });
    let running = bench.begin(None).await;
    running.say("later", HandlingMode::Queue).await;
    let task_id = running.task_id.clone();
    tokio::time::sleep(Duration::from_millis(400)).await;
    let waits = |event: &EventBody| !matches!(event, EventBody::MessageAppended(_));
    assert!(bench.events(&task_id).await.iter().all(waits));
    running.say("now", HandlingMode::Steer).await;
    running.ended().await.unwrap();
    let end = bench.end(&task_id).await.detail.unwrap().to_string();
    assert!(end.contains("got now"), "{end}");
}

#[tokio::test]
async fn a_message_of_many_lines_is_one_paste() {
    // Interactive shells can tell a paste: nothing runs before the whole of it is there.
    let bench = Bench::new(shell());
    let text = "cat > pasted <<'END'\nfirst\n\n  second $HOME\nEND";
    let running = bench.begin(None).await;
    let mut viewer = Viewer::sit_down(&bench, &running.task_id, Watching::Control, (24, 80)).await;
    viewer.sees("ready>").await;
    running.say(text, HandlingMode::Queue).await;
    viewer.sees("END").await;
    running.say("exit", HandlingMode::Queue).await;
    viewer.leaves().await.unwrap();
    let pasted = std::fs::read_to_string(bench.root().join("pasted")).unwrap();
    assert_eq!(pasted, "first\n\n  second $HOME\n");
    running.ended().await.unwrap();
}

#[tokio::test]
async fn a_message_presses_no_keys() {
    let bench = Bench::new(script("echo go; stty -echo; read line; printf '%q' \"$line\""));
    let running = bench.begin(Some("a\u{3}b\u{4}c\u{1b}[201~d\u{1a}")).await;
    let task_id = running.task_id.clone();
    running.ended().await.unwrap();
    let end = bench.end(&task_id).await;
    assert!(end.detail.unwrap().to_string().contains("abc\\\\[201~d"));
}

#[tokio::test]
async fn a_message_that_is_too_long_is_put_into_a_file() {
    let bench = Bench::new(script("echo go; read line; file=${line##* }; cat ${file%]} | wc -c"));
    let long = "x".repeat(TYPED_BYTES_MAX + 1);
    let running = bench.begin(Some(&long)).await;
    let task_id = running.task_id.clone();
    running.ended().await.unwrap();
    let end = bench.end(&task_id).await.detail.unwrap();
    assert!(end.as_str().unwrap().ends_with("65537"), "{end}");
}

#[tokio::test]
async fn a_message_is_typed_once_wherever_everything_dies() {
    let profile = TerminalProfile {
        restart: Restart::OnFailure { max: 5 },
        ..script("echo go; while read line; do echo \"$line\" >> said; done")
    };
    for (death, expected) in
        [(Death::BeforeWriting, "once\nlast\n"), (Death::AfterWriting, "last\n")]
    {
        let journal = DyingJournal::new(death);
        let bench = Bench::with_journal(profile.clone(), journal.clone());
        let running = bench.begin(None).await;
        let task_id = running.task_id.clone();
        running.say("once", HandlingMode::Queue).await;
        running.ended().await.unwrap_err();
        let mut running = bench.start(&task_id);
        running.say("last", HandlingMode::Queue).await;
        let recorded = bench.root().join("said");
        let begun = Instant::now();
        let read = || std::fs::read_to_string(&recorded).unwrap_or_default();
        while !read().contains("last") && begun.elapsed() < crate::bench::LONG {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        running.cancel();
        running.ended().await.unwrap();
        assert_eq!(read(), expected, "{death:?}");
    }
}

#[tokio::test]
async fn what_is_typed_waits_for_a_program_that_does_not_read() {
    let bench = Bench::new(script("echo go; stty raw -echo; sleep 1; head -c 20000 | wc -c"));
    let text = "y".repeat(20_000);
    let running = bench.begin(Some(&text)).await;
    let task_id = running.task_id.clone();
    running.ended().await.unwrap();
    let end = bench.end(&task_id).await.detail.unwrap();
    assert!(end.as_str().unwrap().contains("20000"), "{end}");
    assert_eq!(bench.runner.kind(), "terminal");
}
