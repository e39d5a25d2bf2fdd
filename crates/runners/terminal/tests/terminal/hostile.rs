//! The output of a program cannot control the terminals of its viewers.

use std::time::Duration;

use antiphon_terminal::Watching;

use crate::viewer::Viewer;
use crate::world::{World, script};

/// What sequences are made of.
const LOUD: &[u8] = b"\x1b[];?0123456789HJKLMPSXdhlmr@\n\r\t\x08";

#[tokio::test]
async fn sequences_that_could_do_harm_end_at_the_screen() {
    // A clipboard, a title, a hyperlink, questions for settings, title and colors, a device string,
    // a print-out, a resize, and notes of some terminals.
    let hostile = [
        "\\033]52;c;ZXZpbA==\\007",
        "\\033]0;evil\\007",
        "\\033]8;;http://evil\\033\\\\link\\033]8;;\\033\\\\",
        "\\033P$qm\\033\\\\",
        "\\033[21t",
        "\\033]10;?\\007",
        "\\033P+q544e\\033\\\\",
        "\\033[5i",
        "\\033[8;10;10t",
        "\\033]1337;SetUserVar=evil=1\\007",
        "\\033]777;notify;evil;evil\\007",
        "\\033[?1004h",
        "\\033[>4;2m",
        "\\033[>1u",
        "\\033_evil\\033\\\\",
        "\\033^evil\\033\\\\",
        "\\0233evil",
    ]
    .concat();
    let world = World::new(script(&format!(
        "echo ready; read -p '> ' x; printf '{hostile}'; echo shown; read x"
    )));
    let mut running = world.begin(None).await;
    for size in [(24, 80), (30, 100)] {
        let mut viewer =
            Viewer::attach_to(&world, &running.task_id, Watching::ReadOnly, size).await;
        viewer.watches_for(Duration::from_millis(100)).await;
        if size == (24, 80) {
            running.say("go", antiphon_core::HandlingMode::Steer).await;
        }
        viewer.sees("shown").await;
        viewer.watches_for(Duration::from_millis(50)).await;
        let written = String::from_utf8_lossy(&viewer.written).into_owned();
        for never in ["\x1b]", "\x1bP", "\x1b_", "\x1b^", "1004h", "\x1b[>", "[8;10;10t", "[5i"] {
            assert!(!written.contains(never), "{never:?} in {written:?}");
        }
        viewer.detach().await;
    }
    running.cancel();
    running.ended().await.unwrap();
}

#[tokio::test]
async fn a_program_s_questions_are_answered_without_its_own_words() {
    let asks = "stty raw -echo; printf 'ab\\033[6n\\033[c\\033[5n\\033[21t\\033P$qm\\033\\\\'; \
                head -c 17 | od -An -c | tr -d ' \\n'; stty sane; read -t 0.3 x; echo \"<$x>\"";
    let world = World::new(script(asks));
    let running = world.begin(None).await;
    let task_id = running.task_id.clone();
    running.ended().await.unwrap();
    let end = world.end(&task_id).await.detail.unwrap();
    assert_eq!(end, "ab033[1;3R033[?1;2c033[0n<>");
}

#[tokio::test]
async fn noise_does_not_take_a_terminal_down() {
    let shows =
        "stty raw -echo; cat noise; stty sane; printf '\\030\\033c'; echo calm; read x; read x";
    let world = World::new(script(shows));
    // A sequence that repeats: escapes, brackets, digits and letters, and anything else.
    let mut state: u32 = 7;
    let noise = (0..300_000).map(|_| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let [_, _, choice, byte] = state.to_le_bytes();
        if choice < 128 { LOUD[usize::from(byte) % LOUD.len()] } else { byte }
    });
    std::fs::write(world.root().join("noise"), noise.collect::<Vec<u8>>()).unwrap();
    let mut running = world.begin(None).await;
    for size in [(24, 80), (1, 2)] {
        let mut viewer = Viewer::attach_to(&world, &running.task_id, Watching::Control, size).await;
        viewer.watches_for(Duration::from_millis(100)).await;
        if size == (24, 80) {
            viewer.sees("calm").await;
        }
        viewer.detach().await;
    }
    running.cancel();
    running.ended().await.unwrap();
}
