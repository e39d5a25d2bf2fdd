//! What is typed in, when, and how often.

use std::time::{Duration, Instant};

use antiphon_core::port::Runner;
use antiphon_core::{EventBody, HandlingMode, TaskStatus};
use antiphon_terminal::{Restart, TYPED_BYTES_MAX, TerminalProfile, Watching};

use crate::dying_journal::{Death, DyingJournal};
use crate::viewer::Viewer;
use crate::world::{World, script, shell};

#[tokio::test]
async fn a_task_s_first_message_and_those_that_arrive_are_typed_in_order() {
    let world = World::new(shell());
    let running = world.begin(Some("echo first > said")).await;
    let task_id = running.task_id.clone();
    let second = running.say("echo second >> said", HandlingMode::Queue).await;
    running.say("exit", HandlingMode::Queue).await;
    running.ended().await.unwrap();
    assert_eq!(world.end(&task_id).await.status, TaskStatus::Completed);
    let recorded = std::fs::read_to_string(world.root().join("said")).unwrap();
    assert_eq!(recorded, "first\nsecond\n");
    let appended = world.events(&task_id).await.into_iter().filter_map(|event| match event {
        EventBody::MessageAppended(appended) => Some(appended.queued),
        _ => None,
    });
    assert_eq!(appended.take(2).collect::<Vec<_>>(), [None, Some(second)]);
}

#[tokio::test]
async fn a_message_waits_until_the_screen_is_still_and_one_that_steers_goes_first() {
    // Writes without a pause, with the prompt on the screen all the time, then says what was typed.
    let noisy = "printf '> '; for n in $(seq 100); do printf '\\r\\033[K> '; sleep 0.02; done; \
                 read one; read -p '> ' two; echo got $one, $two";
    let world = World::new(TerminalProfile { quiet_ms: 1500, ..script(noisy) });
    let running = world.begin(None).await;
    running.say("later", HandlingMode::Queue).await;
    running.say("now", HandlingMode::Steer).await;
    let task_id = running.task_id.clone();
    tokio::time::sleep(Duration::from_millis(600)).await;
    let waits = |event: &EventBody| !matches!(event, EventBody::MessageAppended(_));
    assert!(world.events(&task_id).await.iter().all(waits));
    running.ended().await.unwrap();
    let end = world.end(&task_id).await.detail.unwrap().to_string();
    assert!(end.contains("got now, later"), "{end}");
}

#[tokio::test]
async fn a_message_of_many_lines_is_one_paste() {
    // Interactive shells can tell a paste: nothing runs before the whole of it is there.
    let world = World::new(shell());
    let text = "cat > pasted <<'END'\nfirst\n\n  second $HOME\nEND";
    let running = world.begin(None).await;
    let mut viewer = Viewer::attach_to(&world, &running.task_id, Watching::Control, (24, 80)).await;
    viewer.sees("ready>").await;
    running.say(text, HandlingMode::Queue).await;
    viewer.sees("END").await;
    running.say("exit", HandlingMode::Queue).await;
    viewer.leaves().await.unwrap();
    let pasted = std::fs::read_to_string(world.root().join("pasted")).unwrap();
    assert_eq!(pasted, "first\n\n  second $HOME\n");
    running.ended().await.unwrap();
}

#[tokio::test]
async fn a_message_presses_no_keys() {
    let world = World::new(script("read -p '> ' line; printf '%q' \"$line\""));
    let running = world.begin(Some("a\u{3}b\u{4}c\u{1b}[201~d\u{1a}")).await;
    let task_id = running.task_id.clone();
    running.ended().await.unwrap();
    let end = world.end(&task_id).await;
    assert!(end.detail.unwrap().to_string().contains("abc\\\\[201~d"));
}

#[tokio::test]
async fn a_message_that_is_too_long_is_put_into_a_file() {
    let world = World::new(script("read -p '> ' line; file=${line##* }; cat ${file%]} | wc -c"));
    let long = "x".repeat(TYPED_BYTES_MAX + 1);
    let running = world.begin(Some(&long)).await;
    let task_id = running.task_id.clone();
    running.ended().await.unwrap();
    let end = world.end(&task_id).await.detail.unwrap();
    assert!(end.as_str().unwrap().ends_with("65537"), "{end}");
}

#[tokio::test]
async fn a_message_is_typed_once_wherever_everything_dies() {
    let profile = TerminalProfile {
        restart: Restart::OnFailure { max: 5 },
        ..script("while read -p '> ' line; do echo \"$line\" >> said; done")
    };
    for (death, expected) in
        [(Death::BeforeWriting, "once\nlast\n"), (Death::AfterWriting, "last\n")]
    {
        let journal = DyingJournal::new(death);
        let world = World::with_journal(profile.clone(), journal.clone());
        let running = world.begin(None).await;
        let task_id = running.task_id.clone();
        running.say("once", HandlingMode::Queue).await;
        running.ended().await.unwrap_err();
        let mut running = world.start(&task_id);
        running.say("last", HandlingMode::Queue).await;
        let recorded = world.root().join("said");
        let begun = Instant::now();
        let read = || std::fs::read_to_string(&recorded).unwrap_or_default();
        while !read().contains("last") && begun.elapsed() < crate::world::LONG {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        running.cancel();
        running.ended().await.unwrap();
        assert_eq!(read(), expected, "{death:?}");
    }
}

#[tokio::test]
async fn what_is_typed_waits_for_a_program_that_does_not_read() {
    let world = World::new(script("stty raw -echo; printf '> '; sleep 1; head -c 20000 | wc -c"));
    let text = "y".repeat(20_000);
    let running = world.begin(Some(&text)).await;
    let task_id = running.task_id.clone();
    running.ended().await.unwrap();
    let end = world.end(&task_id).await.detail.unwrap();
    assert!(end.as_str().unwrap().contains("20000"), "{end}");
    assert_eq!(world.runner.kind(), "terminal");
}
