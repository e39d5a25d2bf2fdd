//! How a program ends is how its task ends.

use antiphon_core::port::RunnerError;
use antiphon_core::{EventBody, TaskStatus};
use antiphon_terminal::TerminalProfile;
use serde_json::json;

use crate::world::{World, script};

#[tokio::test]
async fn a_program_that_succeeds_completes_its_task_with_its_last_screen() {
    let world = World::new(script("echo one; echo two; pwd; echo $TERM"));
    let running = world.begin(None).await;
    let task_id = running.task_id.clone();
    running.ended().await.unwrap();
    let end = world.end(&task_id).await;
    assert_eq!(end.status, TaskStatus::Completed);
    let root = world.root();
    let expected = format!("one\ntwo\n{}\nxterm-256color", root.display());
    assert_eq!(end.detail, Some(json!(expected)));
    let events = world.events(&task_id).await;
    let EventBody::StatusChanged(began) = &events[1] else { panic!("{:?}", events[1]) };
    assert_eq!(began.status, TaskStatus::Running);
    assert_eq!(began.detail, Some(json!({ "attempt": 1, "typed": 0 })));
    assert_eq!(events.len(), 3);
}

#[tokio::test]
async fn a_program_that_fails_fails_its_task_and_says_how() {
    for (text, how) in [
        ("echo bad; exit 3", "`bash` ended with exit code 3; the last of its screen: bad"),
        ("kill -9 $$", "`bash` was ended by signal 9; the last of its screen: "),
    ] {
        let world = World::new(script(text));
        let running = world.begin(None).await;
        let task_id = running.task_id.clone();
        running.ended().await.unwrap();
        let end = world.end(&task_id).await;
        assert_eq!(end.status, TaskStatus::Failed);
        assert_eq!(end.detail, Some(json!({ "code": "refused", "error": how })));
    }
}

#[tokio::test]
async fn a_program_that_is_not_there_is_refused() {
    let world = World::new(TerminalProfile::of("no-such-program"));
    let running = world.begin(None).await;
    let error = running.ended().await.unwrap_err();
    let reason =
        "the program `no-such-program` is not installed: install it, or change the profile";
    assert_eq!(error, RunnerError::Refused { reason: reason.to_owned() });
}

#[tokio::test]
async fn a_file_that_is_no_program_says_so_on_the_screen() {
    let world = World::new(TerminalProfile::of("./broken"));
    let file = world.root().join("broken");
    std::fs::write(&file, "#!/no/such/interpreter\n").unwrap();
    std::fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
    let running = world.begin(None).await;
    let task_id = running.task_id.clone();
    running.ended().await.unwrap();
    let error = world.end(&task_id).await.detail.unwrap()["error"].to_string();
    assert!(error.contains("exit code 127") && error.contains("cannot be started"), "{error}");
}

#[tokio::test]
async fn a_program_starts_with_the_signals_and_the_terminal_of_any_other() {
    let world = World::new(script(
        "grep SigBlk /proc/self/status; (grep SigIgn /proc/self/status); ps -o sid= -p $$; echo $$; \
         ls -x /proc/$$/fd; tty",
    ));
    let running = world.begin(None).await;
    let task_id = running.task_id.clone();
    running.ended().await.unwrap();
    let end = world.end(&task_id).await.detail.unwrap();
    let mut lines = end.as_str().unwrap().lines();
    let mut mask = |name: &str| {
        let hex = lines.next().unwrap().strip_prefix(name).unwrap().trim();
        u64::from_str_radix(hex, 16).unwrap()
    };
    assert_eq!(mask("SigBlk:"), 0);
    let pipe = 1 << 12;
    assert_eq!(mask("SigIgn:") & pipe, 0);
    let (session, program) = (lines.next().unwrap(), lines.next().unwrap());
    assert_eq!(session.trim(), program);
    // Nothing of ours is open in it.
    let open: Vec<_> = lines.next().unwrap().split_whitespace().collect();
    assert_eq!(open, ["0", "1", "2"], "{end}");
    assert!(lines.next().unwrap().starts_with("/dev/pts/"), "{end}");
}
