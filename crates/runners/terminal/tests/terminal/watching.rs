//! What viewers see, and what they can do.

use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};
use std::time::Duration;

use antiphon_terminal::{
    AttachError, Attachment, DetachKey, DetachReason, WATCHERS_MAX, Watching, attach, socket_path,
};

use crate::viewer::Viewer;
use crate::world::{World, script, shell};

const SIZE: (u16, u16) = (24, 80);

/// The socket that another process attaches to, and its terminal.
const SOCKET: &str = "TEST_SOCKET";
const TTY: &str = "TEST_TTY";

#[tokio::test]
async fn a_viewer_types_and_interrupts_and_the_program_has_the_size_of_its_window() {
    let world = World::new(shell());
    let running = world.begin(None).await;
    let mut viewer = Viewer::attach_to(&world, &running.task_id, Watching::Control, (30, 90)).await;
    viewer.sees("ready>").await;
    viewer.press("stty size\r");
    viewer.sees("30 90").await;
    viewer.press("echo a$((1+1)); cat\r");
    // Typed before the shell has let go of the terminal, it would be the shell's.
    viewer.sees("\na2").await;
    viewer.press("parrot\r");
    viewer.sees("parrot\nparrot").await;
    viewer.press("\x03");
    viewer.sees("^C\nready>").await;
    viewer.press("echo $((6*7))\r");
    viewer.sees("\n42\n").await;
    viewer.press("exit\r");
    let left = viewer.leaves().await.unwrap();
    assert_eq!(left, DetachReason::Over { how: "the program has ended".to_owned() });
    running.ended().await.unwrap();
}

#[tokio::test]
async fn two_see_the_same_and_who_comes_back_sees_it_again() {
    let world = World::new(shell());
    let mut running = world.begin(None).await;
    let task_id = running.task_id.clone();
    let mut first = Viewer::attach_to(&world, &task_id, Watching::Control, SIZE).await;
    first.sees("ready>").await;
    let mut second = Viewer::attach_to(&world, &task_id, Watching::Control, SIZE).await;
    second.sees("ready>").await;
    first.press("echo one-$((1+1))\r");
    second.sees("one-2").await;
    second.press("echo two-$((1+2))\r");
    first.sees("two-3\nready>").await;
    second.sees("two-3\nready>").await;
    let shown = first.detach().await;
    assert_eq!(second.detach().await, shown);
    let mut again = Viewer::attach_to(&world, &task_id, Watching::Control, SIZE).await;
    again.sees("two-3\nready>").await;
    assert_eq!(again.detach().await, shown);
    running.cancel();
    running.ended().await.unwrap();
}

#[tokio::test]
async fn the_smallest_window_counts_and_readers_windows_do_not() {
    let world = World::new(shell());
    let mut running = world.begin(None).await;
    let task_id = running.task_id.clone();
    let mut large = Viewer::attach_to(&world, &task_id, Watching::Control, (40, 100)).await;
    large.sees("ready>").await;
    let mut small = Viewer::attach_to(&world, &task_id, Watching::Control, (20, 110)).await;
    small.sees("ready>").await;
    let mut reader = Viewer::attach_to(&world, &task_id, Watching::ReadOnly, (10, 40)).await;
    reader.sees("ready>").await;
    large.press("stty size; printf '%0120d\\n' 7\r");
    // It wraps where the terminal ends, in every window.
    large.sees(&format!("20 100\n{}\n{}7\nready>", "0".repeat(100), "0".repeat(19))).await;
    small.sees(&format!("20 100\n{}\n{}7\nready>", "0".repeat(100), "0".repeat(19))).await;
    reader.sees("20 100").await;
    reader.press("echo never\r");
    small.detach().await;
    large.press("stty size\r");
    large.sees("40 100").await;
    assert!(!large.text().contains("never"));
    reader.press("\x03");
    assert_eq!(reader.leaves().await.unwrap(), DetachReason::Detached);
    large.detach().await;
    running.cancel();
    running.ended().await.unwrap();
}

#[tokio::test]
async fn an_editor_fills_the_screen_and_gives_it_back() {
    let draws = "echo before; read x; printf '\\033[?1049h\\033[H\\033[2J\\033[5;10Hin the middle\\033[7m\
                 bright\\033[m\\033[24;1Hbottom'; read y; printf '\\033[?1049l'; echo after; read z";
    let world = World::new(script(draws));
    let mut running = world.begin(None).await;
    let task_id = running.task_id.clone();
    let mut viewer = Viewer::attach_to(&world, &task_id, Watching::Control, SIZE).await;
    viewer.sees("before").await;
    viewer.press("\r");
    viewer.sees("bottom").await;
    assert!(!viewer.text().contains("before"));
    let mut late = Viewer::attach_to(&world, &task_id, Watching::ReadOnly, SIZE).await;
    late.sees("bottom").await;
    assert!(late.text().contains("         in the middlebright"));
    viewer.press("\r");
    late.sees("before").await;
    late.sees("after").await;
    running.cancel();
    running.ended().await.unwrap();
    let stopped = DetachReason::Over { how: "the program was stopped".to_owned() };
    assert_eq!(late.leaves().await.unwrap(), stopped);
    // Their own screen is back.
    assert!(!late.text().contains("before"), "{}", late.text());
}

#[tokio::test]
async fn vi_writes_a_file() {
    let command = ["vi", "-u", "NONE", "-N", "text"].map(str::to_owned).into();
    let world = World::new(antiphon_terminal::TerminalProfile { command, ..script("") });
    let running = world.begin(None).await;
    let mut viewer = Viewer::attach_to(&world, &running.task_id, Watching::Control, SIZE).await;
    viewer.sees("~").await;
    viewer.press("ihello\x1b");
    viewer.sees("hello").await;
    viewer.press(":wq\r");
    viewer.leaves().await.unwrap();
    running.ended().await.unwrap();
    assert_eq!(std::fs::read_to_string(world.root().join("text")).unwrap(), "hello\n");
}

#[tokio::test]
async fn only_its_owner_comes_in_and_not_too_many() {
    let world = World::new(shell());
    let mut running = world.begin(None).await;
    let task_id = running.task_id.clone();
    let mut viewers = Vec::new();
    for _ in 0..WATCHERS_MAX {
        let mut viewer = Viewer::attach_to(&world, &task_id, Watching::ReadOnly, SIZE).await;
        viewer.sees("ready>").await;
        viewers.push(viewer);
    }
    let mut one_more = Viewer::attach_to(&world, &task_id, Watching::ReadOnly, SIZE).await;
    let error = one_more.leaves().await.unwrap_err();
    assert_eq!(error.to_string(), "16 watch this terminal already: come back later");
    let socket = socket_path(&world.folder(), &task_id).unwrap();
    let mode =
        |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&socket), 0o600);
    assert_eq!(mode(socket.parent().unwrap()), 0o700);
    assert_eq!(mode(&world.folder()), 0o700);
    running.cancel();
    running.ended().await.unwrap();
    assert!(!socket.exists());
}

#[tokio::test]
async fn attaching_needs_a_running_program_and_a_terminal() {
    let world = World::new(shell());
    let task_id = world.task("", None).await;
    let socket = socket_path(&world.folder(), &task_id).unwrap();
    let attachment = Attachment {
        socket,
        tty: "/dev/null".into(),
        watching: Watching::Control,
        detach: DetachKey::default(),
    };
    let error = attach(attachment.clone()).await.unwrap_err();
    assert!(matches!(error, AttachError::NoTerminal(_)), "{error}");
    let mut running = world.start(&task_id);
    while !attachment.socket.exists() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let error = attach(attachment).await.unwrap_err();
    assert!(matches!(error, AttachError::NoTty(_)), "{error}");
    running.cancel();
    running.ended().await.unwrap();
}

#[tokio::test]
async fn a_signal_leaves_their_terminal_as_it_was() {
    let world = World::new(shell());
    let mut running = world.begin(None).await;
    let task_id = running.task_id.clone();
    let mut viewer = Viewer::attach_to(&world, &task_id, Watching::Control, SIZE).await;
    viewer.sees("ready>").await;
    viewer.press("\x1c");
    viewer.leaves().await.unwrap();
    let socket = socket_path(&world.folder(), &task_id).unwrap();
    let mut other = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "watching::viewer_to_interrupt", "--ignored", "--nocapture"])
        .env(SOCKET, socket)
        .env(TTY, viewer.tty())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    viewer.sees("ready>").await;
    assert!(viewer.is_raw());
    let pid = rustix::process::Pid::from_raw(other.id().try_into().unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    assert!(other.wait().unwrap().success());
    assert!(!viewer.is_raw());
    running.cancel();
    running.ended().await.unwrap();
}

#[tokio::test]
#[ignore = "another test starts it, to interrupt it"]
async fn viewer_to_interrupt() {
    let attachment = Attachment {
        socket: std::env::var_os(SOCKET).unwrap().into(),
        tty: std::env::var_os(TTY).unwrap().into(),
        watching: Watching::Control,
        detach: DetachKey::default(),
    };
    assert_eq!(attach(attachment).await.unwrap(), DetachReason::Interrupted);
}
