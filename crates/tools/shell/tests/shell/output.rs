//! How output arrives: bounded, plain, and stored.

use std::time::{Duration, Instant};

use crate::bench::{Bench, SOON, eventually};

#[tokio::test]
async fn output_without_end_is_ended() {
    let bench = Bench::new();
    let begun = Instant::now();
    let tool_output = bench.run("yes").await;
    assert!(
        tool_output.is_error && tool_output.text.contains("it wrote more than 64 MB"),
        "{}",
        tool_output.text
    );
    assert!(tool_output.text.len() < 30_000);
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    assert_eq!(bench.works("echo next").await, "next\n");
}

#[tokio::test]
async fn long_output_is_shown_in_part_and_stored_whole() {
    let bench = Bench::new();
    let tool_output = bench.run("seq 1 100000; exit 1").await;
    assert!(tool_output.text.len() <= 30_000 && tool_output.is_error, "{}", tool_output.text.len());
    assert!(tool_output.text.starts_with("1\n2\n3\n"));
    assert!(tool_output.text.contains("99999\n100000\n[exit code 1, "));
    let gap = tool_output.text.lines().find(|line| line.contains("left out")).unwrap();
    let id = gap.split('`').nth(1).unwrap();
    let whole = std::fs::read_to_string(bench.outside("results/task-1").join(id)).unwrap();
    assert_eq!(whole.lines().count(), 100_000);
}

#[tokio::test]
async fn a_line_without_end_is_bounded() {
    let bench = Bench::new();
    let tool_output = bench.run("head -c 20000000 /dev/zero | tr '\\0' x").await;
    assert!(
        !tool_output.is_error && tool_output.text.len() <= 30_000,
        "{}",
        tool_output.text.len()
    );
    assert!(tool_output.text.contains("left out"));
}

#[tokio::test]
async fn binary_output_does_no_harm() {
    let bench = Bench::new();
    let tool_output = bench.run("head -c 100000 /dev/urandom; echo; echo visible").await;
    assert!(!tool_output.is_error && tool_output.text.contains("visible\n[exit code 0"));
    assert!(tool_output.text.len() <= 30_000);
    assert!(!tool_output.text.chars().any(|c| c.is_control() && c != '\n' && c != '\t'));
}

#[tokio::test]
async fn invalid_utf_8_is_replaced() {
    let bench = Bench::new();
    assert_eq!(bench.works(r"printf 'a\xff\xfeb\n'").await, "a\u{fffd}\u{fffd}b\n");
}

#[tokio::test]
async fn colors_and_cursor_movements_are_removed() {
    let bench = Bench::new();
    let soup = r"printf '\033[1;31mred\033[0m \033]0;title\007\033[2Jclear\033[5Cfar\n'";
    assert_eq!(bench.works(soup).await, "red clear     far\n");
}

#[tokio::test]
async fn a_progress_bar_is_its_last_state() {
    let bench = Bench::new();
    let bar = r"for i in $(seq 1 100); do printf '\r%3d%%' $i; done; echo";
    assert_eq!(bench.works(bar).await, "100%\n");
}

#[tokio::test]
async fn a_watcher_gets_output_while_the_command_runs() {
    let bench = Bench::new();
    let command = "echo begun; printf half; until [ -e go ]; do sleep 0.01; done; echo ' line'";
    let mut call = std::pin::pin!(bench.run(command));
    tokio::select! {
        tool_output = &mut call => assert!(tool_output.is_error, "ended early: {}", tool_output.text),
        () = eventually("hearing", || bench.progress() == "begun\nhalf") => {}
    }
    std::fs::write(bench.root.join("go"), "").unwrap();
    assert_eq!(call.await.output(), "begun\nhalf line\n");
    assert_eq!(bench.progress(), "begun\nhalf line\n");
}

#[tokio::test]
async fn a_flood_of_output_is_bounded_for_watchers() {
    let bench = Bench::new();
    bench.works("seq 1 2000000").await;
    // At most ten pieces a second, of 8 KB.
    assert!(bench.progress().len() < 2_000_000, "{}", bench.progress().len());
}

#[tokio::test]
async fn a_removed_output_file_is_still_readable() {
    let bench = Bench::new();
    let id = bench.background("seq 1 200000; until [ -e go ]; do sleep 0.01; done; seq 1 10").await;
    let file = bench.outside("results/task-1").join(&id);
    eventually("a file", || file.exists()).await;
    std::fs::remove_file(&file).unwrap();
    std::fs::write(bench.root.join("go"), "").unwrap();
    let tool_output = bench.output(&id, 5).await;
    assert!(
        tool_output.text.contains("[exit code 0") && tool_output.text.contains("\n9\n10\n"),
        "{}",
        tool_output.text
    );
}

#[tokio::test]
async fn long_output_that_cannot_be_stored_shows_its_start_and_end() {
    let bench = Bench::new();
    bench.works("true").await;
    let results = bench.outside("results");
    std::fs::remove_dir_all(&results).unwrap();
    std::fs::write(&results, "in the way").unwrap();
    let tool_output = bench.run("seq 1 200000").await;
    assert!(
        !tool_output.is_error && tool_output.text.contains("could not be stored: Not a directory")
    );
    assert!(tool_output.text.contains("\n200000\n[exit code 0"));
}

#[tokio::test]
async fn many_short_calls_leave_no_files_and_no_processes() {
    let bench = Bench::new();
    for number in 0..50 {
        assert_eq!(bench.works(&format!("echo {number}")).await, format!("{number}\n"));
    }
    // What is kept of running calls is removed with their results.
    let names = |folder: &str| {
        let entries = std::fs::read_dir(bench.outside(folder)).unwrap();
        entries.map(|entry| entry.unwrap().file_name()).collect::<Vec<_>>()
    };
    assert_eq!((names("results"), names("results/.calls")), (vec![".calls".into()], vec![]));
    let processes = bench.works("ls -d /proc/[0-9]*/ | wc -l").await;
    // The worker, the shell, `ls` and `wc`.
    assert!(processes.trim().parse::<u32>().unwrap() <= 4, "{processes}");
    tokio::time::timeout(SOON, bench.release()).await.unwrap();
}
