//! What has no end takes a bounded place.

use antiphon_core::{EventBody, HandlingMode, TaskStatus};
use antiphon_terminal::{RECORDING_BYTES_MAX, Watching};
use serde_json::Value;

use crate::viewer::Viewer;
use crate::world::{World, script};

/// Takes much more room in a recording than on a screen.
const MUCH: &str =
    "stty -opost; head -c 1600000 /dev/zero | tr '\\0' '\\1'; stty opost; echo the end; read y";

#[tokio::test]
async fn a_program_that_writes_much_is_recorded_in_two_files_and_shown_at_the_end() {
    let world = World::new(script(MUCH));
    let running = world.begin(None).await;
    let task_id = running.task_id.clone();
    let mut viewer = Viewer::attach_to(&world, &task_id, Watching::Control, (24, 80)).await;
    viewer.sees("the end").await;
    viewer.press("\r");
    running.ended().await.unwrap();
    let end = world.end(&task_id).await;
    assert_eq!(end.status, TaskStatus::Completed);
    assert_eq!(end.detail, Some(Value::from("the end")));
    let place = world.folder().join(task_id.as_str());
    for name in ["screen.cast", "screen.1.cast"] {
        let text = std::fs::read_to_string(place.join(name)).unwrap();
        let most = RECORDING_BYTES_MAX + 1024 * 1024;
        assert!(u64::try_from(text.len()).unwrap() < most, "{}", text.len());
        let mut lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let header = lines.next().unwrap();
        assert_eq!(header["version"], 2);
        assert!(lines.all(|line| line[1] == "o" || line[1] == "r"));
    }
}

#[tokio::test]
async fn a_viewer_that_never_reads_delays_no_other() {
    let world = World::new(script(
        "echo ready; read -p '> ' x; yes 0123456789abcdef | head -c 400000; echo; echo done; read y",
    ));
    let running = world.begin(None).await;
    let task_id = running.task_id.clone();
    // Their terminal takes a few kilobytes, and then nothing more.
    let idle = Viewer::attach_to(&world, &task_id, Watching::Control, (24, 80)).await;
    let mut viewer = Viewer::attach_to(&world, &task_id, Watching::Control, (24, 80)).await;
    running.say("go", HandlingMode::Steer).await;
    viewer.sees("done").await;
    viewer.press("\r");
    running.ended().await.unwrap();
    drop(idle);
}

#[tokio::test]
async fn the_output_of_many_recordings_takes_a_bounded_place() {
    // Enough for a third recording, which replaces the first.
    let much = MUCH.replace("1600000", "3600000").replace("; read y", "");
    let world = World::new(script(&much));
    let running = world.begin(None).await;
    let task_id = running.task_id.clone();
    while !world.events(&task_id).await.last().is_some_and(EventBody::ends_task) {
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    running.ended().await.unwrap();
    let place = world.folder().join(task_id.as_str());
    let files = std::fs::read_dir(place).unwrap().flatten();
    let bytes: u64 = files.map(|file| file.metadata().unwrap().len()).sum();
    assert!(bytes <= 2 * RECORDING_BYTES_MAX + 1024 * 1024, "{bytes}");
}

#[tokio::test]
async fn a_recording_keeps_characters_whole() {
    let world = World::new(script(
        "for i in 1 2 3; do printf '\\342'; sleep 0.05; printf '\\202\\254'; done; printf '\\342.'",
    ));
    let running = world.begin(None).await;
    let task_id = running.task_id.clone();
    running.ended().await.unwrap();
    let place = world.folder().join(task_id.as_str());
    let text = std::fs::read_to_string(place.join("screen.cast")).unwrap();
    let lines = text.lines().skip(1).map(|line| serde_json::from_str::<Value>(line).unwrap());
    let recorded: String = lines.map(|line| line[2].as_str().unwrap().to_owned()).collect();
    assert_eq!(recorded, "€€€\u{fffd}.");
    assert!(!place.join("socket").exists());
}
