//! A message is typed only when the program waits for it at its prompt, and never as an answer to a dialog.

use std::time::Duration;

use antiphon_core::{EventBody, HandlingMode, InteractionId, TaskId};
use antiphon_terminal::{TerminalProfile, Watching};

use crate::viewer::Viewer;
use crate::world::{LONG, World, script, shell};

/// Longer than a message waits when nothing holds it up.
const A_WHILE: Duration = Duration::from_millis(1500);

/// Why the next message waits, as the journal has it.
async fn waits(world: &World, task_id: &TaskId) -> Option<String> {
    let events = world.events(task_id).await.into_iter().rev();
    let mut details = events.filter_map(|event| match event {
        EventBody::StatusChanged(change) => change.detail,
        _ => None,
    });
    details.next().and_then(|detail| detail["waits"].as_str().map(str::to_owned))
}

/// Looks until the journal says that the next message waits for this reason.
async fn waits_because(world: &World, task_id: &TaskId, reason: &str) {
    let begun = std::time::Instant::now();
    loop {
        let said = waits(world, task_id).await;
        if said.as_ref().is_some_and(|said| said.contains(reason)) {
            return;
        }
        assert!(begun.elapsed() < LONG, "it waits because: {said:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn is_in_inbox(world: &World, task_id: &TaskId, id: InteractionId) -> bool {
    let taken = |event: &EventBody| matches!(event, EventBody::MessageAppended(it) if it.queued == Some(id));
    !world.events(task_id).await.iter().any(taken)
}

fn said(world: &World) -> String {
    std::fs::read_to_string(world.root().join("said")).unwrap_or_default()
}

#[tokio::test]
async fn a_message_never_answers_a_dialog_even_if_the_pattern_of_the_prompt_is_too_wide() {
    let asks = "read -p 'Trust this folder? [y/N] ' x; echo \"dialog: $x\" >> said; \
                read -p '> ' y; echo \"prompt: $y\" >> said";
    for ready in ["^> $", " $"] {
        let profile = TerminalProfile { ready: Some(ready.to_owned()), ..script(asks) };
        let world = World::new(profile);
        let running = world.begin(None).await;
        let task_id = running.task_id.clone();
        let id = running.say("y", HandlingMode::Steer).await;
        waits_because(&world, &task_id, "asks a question").await;
        assert!(is_in_inbox(&world, &task_id, id).await);
        assert_eq!(said(&world), "");
        let mut viewer = Viewer::attach_to(&world, &task_id, Watching::Control, (24, 80)).await;
        viewer.sees("Trust this folder?").await;
        viewer.press("n\r");
        running.ended().await.unwrap();
        assert_eq!(said(&world), "dialog: n\nprompt: y\n");
    }
}

#[tokio::test]
async fn a_dialog_with_a_list_of_choices_is_no_prompt() {
    let asks = "printf 'Do you trust the files in this folder?\\n\\n > 1. Yes\\n   2. No\\n'; \
                read x; echo \"dialog: $x\" >> said";
    let claude = TerminalProfile::built_in().remove("claude-code").unwrap();
    let TerminalProfile { ready, ready_lines, busy, .. } = claude;
    let world = World::new(TerminalProfile { ready, ready_lines, busy, ..script(asks) });
    let mut running = world.begin(Some("1")).await;
    waits_because(&world, &running.task_id, "busy or shows a dialog").await;
    assert_eq!(said(&world), "");
    running.cancel();
    running.ended().await.unwrap();
}

#[tokio::test]
async fn line_breaks_are_not_typed_into_a_program_without_bracketed_paste() {
    let world =
        World::new(script("while read -p '> ' line; do echo \"$line\" >> said; done; true"));
    let mut running = world.begin(None).await;
    let task_id = running.task_id.clone();
    let lines = running.say("first\nrm -rf /", HandlingMode::Queue).await;
    running.say("other", HandlingMode::Queue).await;
    waits_because(&world, &task_id, "several lines").await;
    assert!(is_in_inbox(&world, &task_id, lines).await);
    assert_eq!(said(&world), "other\n");
    running.cancel();
    running.ended().await.unwrap();
}

#[tokio::test]
async fn control_characters_of_a_message_are_no_keys_and_the_last_return_is_ours() {
    // Enables bracketed paste, and shows every byte that it gets.
    let shows = "stty raw -echo; printf '\\033[?2004h> '; \
                 timeout --foreground 3 cat > typed; stty sane; od -An -tx1 typed | tr -d ' \\n' > said";
    let world = World::new(script(shows));
    let hostile =
        "a\u{1b}[201~\u{3}\u{4}\u{0}\u{7f}\r\nb\u{9b}201~\u{85}\u{202e}c\u{200b}\u{e0041}\td\n";
    let running = world.begin(Some(hostile)).await;
    running.ended().await.unwrap();
    let digit = |value: u8| char::from_digit(value.into(), 16).unwrap();
    let hex = |text: &str| {
        let digits = text.bytes().flat_map(|byte| [byte >> 4, byte & 15]).map(digit);
        digits.collect::<String>()
    };
    assert_eq!(said(&world), hex("\u{1b}[200~a[201~\rb201~c    d\u{1b}[201~\r"));
}

#[tokio::test]
async fn nothing_is_typed_by_itself_without_a_pattern_of_the_prompt() {
    let profile = TerminalProfile { ready: None, ..shell() };
    let world = World::new(profile);
    let mut running = world.begin(Some("touch said")).await;
    let task_id = running.task_id.clone();
    let id = running.say("touch said", HandlingMode::Steer).await;
    waits_because(&world, &task_id, "no `ready` pattern").await;
    assert!(is_in_inbox(&world, &task_id, id).await);
    assert!(!world.root().join("said").exists());
    running.cancel();
    running.ended().await.unwrap();
}

#[tokio::test]
async fn a_program_that_imitates_the_prompt_of_the_shell_gets_nothing() {
    let world = World::new(shell());
    let imitates = "bash -c 'read -p \"ready> \" x; echo \"imitation: $x\" >> said'";
    let mut running = world.begin(Some(imitates)).await;
    let task_id = running.task_id.clone();
    let viewer = Viewer::attach_to(&world, &task_id, Watching::Control, (24, 80)).await;
    let id = running.say("echo \"shell: typed\" >> said", HandlingMode::Queue).await;
    waits_because(&world, &task_id, "another program").await;
    assert!(is_in_inbox(&world, &task_id, id).await);
    viewer.press("me\r");
    let begun = std::time::Instant::now();
    while !said(&world).contains("shell") && begun.elapsed() < LONG {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(said(&world), "imitation: me\nshell: typed\n");
    viewer.detach().await;
    running.cancel();
    running.ended().await.unwrap();
}

#[tokio::test]
async fn a_message_is_never_typed_as_a_password() {
    let world = World::new(script("read -s -p '> ' x; echo \"hidden: $x\" >> said"));
    let mut running = world.begin(Some("secret")).await;
    waits_because(&world, &running.task_id, "hidden input").await;
    assert_eq!(said(&world), "");
    running.cancel();
    running.ended().await.unwrap();
}

#[tokio::test]
async fn a_message_does_not_join_what_a_person_has_begun_to_type() {
    let world = World::new(shell());
    let mut running = world.begin(None).await;
    let task_id = running.task_id.clone();
    let mut viewer = Viewer::attach_to(&world, &task_id, Watching::Control, (24, 80)).await;
    viewer.sees("ready>").await;
    // Then back to the beginning of the line: the cursor is behind the prompt.
    viewer.press("rm -rf \u{1}");
    viewer.sees("rm -rf").await;
    let id = running.say("echo typed > said", HandlingMode::Queue).await;
    tokio::time::sleep(A_WHILE).await;
    assert!(is_in_inbox(&world, &task_id, id).await);
    viewer.press("\u{b}");
    let begun = std::time::Instant::now();
    while said(&world).is_empty() && begun.elapsed() < LONG {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(said(&world), "typed\n");
    viewer.detach().await;
    running.cancel();
    running.ended().await.unwrap();
}
