//! Commands that mean harm, or do it by mistake.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::bench::{Bench, eventually, running, token};

#[tokio::test]
async fn a_fork_bomb_is_ended_and_other_commands_continue() {
    let bench = Bench::new();
    let token = token();
    let id = bench.background(&format!("sleep {token}")).await;
    let begun = Instant::now();
    let tool_output = bench.run(":(){ :|:& };: ; sleep 100").await;
    assert!(
        tool_output.is_error && tool_output.text.contains("more than 512 processes"),
        "{}",
        tool_output.text
    );
    assert!(begun.elapsed() < Duration::from_secs(15), "{:?}", begun.elapsed());
    assert_eq!(running(&token), 1);
    assert_eq!(bench.works("echo next").await, "next\n");
    bench.kill(&id).await;
}

#[tokio::test]
async fn a_fork_bomb_without_a_sandbox_is_ended() {
    let bench = Bench::full();
    let command = "for i in $(seq 700); do sleep 100 & done; wait";
    let tool_output = bench.run(command).await;
    assert!(
        tool_output.is_error && tool_output.text.contains("more than 512 processes"),
        "{}",
        tool_output.text
    );
    assert_eq!(bench.works("echo next").await, "next\n");
}

#[tokio::test]
async fn a_fork_bomb_left_by_a_command_is_ended_too() {
    let bench = Bench::new();
    let token = token();
    let command =
        format!("(for i in $(seq 700); do setsid sleep {token} & done; wait) > /dev/null 2>&1 &");
    bench.works(&command).await;
    eventually("many", || running(&token) > 10).await;
    // That many do not start at once, and only more than 512 are too many.
    let begun = Instant::now();
    while running(&token) > 0 {
        assert!(begun.elapsed() < Duration::from_secs(20), "{} are left", running(&token));
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(bench.works("echo next").await, "next\n");
}

#[tokio::test]
async fn many_processes_below_the_limit_are_allowed() {
    let bench = Bench::new();
    bench.works("for i in $(seq 100); do sleep 0.3 & done; wait").await;
}

#[tokio::test]
async fn orphans_are_reaped() {
    let bench = Bench::new();
    bench.works("for i in $(seq 50); do (sleep 0.01 &) ; done; sleep 0.2").await;
    let zombies = bench.works("grep -l 'State:.Z' /proc/[0-9]*/status | wc -l").await;
    assert_eq!(zombies, "0\n");
}

#[tokio::test]
async fn zombies_of_a_command_do_no_harm() {
    let bench = Bench::new();
    let command = "python3 -c \"import os, time\nfor _ in range(50):\n if os.fork() == 0: os._exit(0)\ntime.sleep(100)\"";
    let id = bench.background(command).await;
    assert_eq!(bench.works("echo next").await, "next\n");
    bench.kill(&id).await;
    assert_eq!(bench.works("grep -l 'State:.Z' /proc/[0-9]*/status | wc -l").await, "0\n");
}

#[tokio::test]
async fn memory_can_be_limited() {
    let bench = Bench::with(|settings| {
        settings.policy.limits.process_bytes_max = Some(512 * 1024 * 1024);
    });
    let tool_output = bench.run("python3 -c 'x = bytearray(1 << 30)'").await;
    assert!(
        tool_output.is_error && tool_output.text.contains("MemoryError"),
        "{}",
        tool_output.text
    );
    assert_eq!(bench.works("echo next").await, "next\n");
}

#[tokio::test]
async fn a_command_that_uses_too_much_memory_is_stopped_and_others_continue() {
    let bench = Bench::with(|settings| {
        settings.policy.limits.memory_bytes_max = Some(256 << 20);
    });
    let token = token();
    let id = bench.background(&format!("sleep {token}")).await;
    for command in [
        // One process; many; and one whose memory no process has mapped.
        "python3 -c \"x = bytearray(600 << 20)\nimport time; time.sleep(20)\"",
        "for i in $(seq 12); do python3 -c \"x = bytearray(60 << 20)\nimport time; time.sleep(20)\" & done; wait",
        "python3 -c \"import os, time\nf = os.memfd_create('x')\n\
         for _ in range(600): os.write(f, bytes(1 << 20))\ntime.sleep(20)\"",
    ] {
        let begun = Instant::now();
        let said = bench.run(command).await;
        let expected = "stopped: it used more than 256 MiB of memory";
        assert!(said.is_error && said.text.contains(expected), "{command}\n{}", said.text);
        assert!(begun.elapsed() < Duration::from_secs(15), "{:?}", begun.elapsed());
    }
    assert_eq!(running(&token), 1);
    assert_eq!(bench.works("echo next").await, "next\n");
    bench.kill(&id).await;
}

/// Memory that is in no page table: given up but still mapped, behind many descriptors, and held by a
/// process that lets no other look into it.
#[tokio::test]
async fn shared_memory_counts_though_no_process_shows_it() {
    let bench = Bench::with(|settings| {
        settings.policy.limits.memory_bytes_max = Some(256 << 20);
    });
    let write = "\nf = os.memfd_create('x')\nfor _ in range(600): os.write(f, bytes(1 << 20))\ntime.sleep(20)";
    for python in [
        "import mmap, time\nm = mmap.mmap(-1, 600 << 20)\n\
         for i in range(0, 600 << 20, 1 << 20): m[i:i + (1 << 20)] = bytes(1 << 20); m.madvise(mmap.MADV_DONTNEED)\n\
         time.sleep(20)"
            .to_owned(),
        format!("import os, time\nd = [os.open('/dev/null', 0) for _ in range(4200)]{write}"),
        format!("import ctypes, os, time\nctypes.CDLL(None).prctl(4, 0, 0, 0, 0){write}"),
    ] {
        let begun = Instant::now();
        let said = bench.run(&format!("python3 -c \"{python}\"")).await;
        let expected = "stopped: it used more than 256 MiB of memory";
        assert!(said.is_error && said.text.contains(expected), "{python}\n{}", said.text);
        assert!(begun.elapsed() < Duration::from_secs(15), "{:?}", begun.elapsed());
    }
    assert_eq!(bench.works("echo next").await, "next\n");
}

/// Segments of System V stay when their processes have ended.
#[tokio::test]
async fn shared_memory_that_outlives_its_process_is_limited() {
    let bench = Bench::new();
    let python = "import ctypes\nl = ctypes.CDLL(None)\n\
                  made = [l.shmget(0, 100 << 20, 0o1600) >= 0 for _ in range(20)]\nprint(sum(made))";
    let made = bench.works(&format!("python3 -c \"{python}\"")).await;
    assert!(made.trim().parse::<u32>().unwrap() <= 5, "{made}");
    // Databases use small ones.
    let small = "python3 -c \"import ctypes; print(ctypes.CDLL(None).shmget(0, 56, 0o1600) >= 0)\"";
    assert_eq!(bench.works(small).await, "True\n");
}

#[tokio::test]
async fn shared_memory_counts_once() {
    let bench = Bench::with(|settings| {
        settings.policy.limits.memory_bytes_max = Some(256 << 20);
    });
    let command = "python3 -c \"import os, time\nx = bytearray(100 << 20)\n\
                   for _ in range(8):\n if os.fork() == 0: time.sleep(1); os._exit(0)\n\
                   time.sleep(1); print('done')\"";
    assert_eq!(bench.works(command).await, "done\n");
}

#[tokio::test]
async fn a_command_that_fills_the_disk_is_stopped() {
    let bench = Bench::with(|settings| {
        settings.policy.limits.disk_bytes_max = Some(64 << 20);
    });
    let said =
        bench.run("head -c 100M /dev/zero > large; echo $?; head -c 100M /dev/zero > l").await;
    assert!(said.is_error && said.text.contains("larger than 64 MiB"), "{}", said.text);
    bench.works("rm -f large l").await;
    let many = "for i in $(seq 20); do head -c 30M /dev/urandom > f$i; done; sleep 20";
    let begun = Instant::now();
    let said = bench.run(many).await;
    let expected = "stopped: it filled the disk by more than 64 MiB";
    assert!(said.is_error && said.text.contains(expected), "{}", said.text);
    assert!(begun.elapsed() < Duration::from_secs(15), "{:?}", begun.elapsed());
    // The next command starts with what is free then.
    assert_eq!(bench.works("rm -f f*; echo next").await, "next\n");
}

#[tokio::test]
async fn the_number_of_processes_can_be_set() {
    let bench = Bench::with(|settings| settings.policy.limits.processes_max = Some(20));
    let said = bench.run("for i in $(seq 30); do sleep 20 & done; wait").await;
    assert!(said.is_error && said.text.contains("more than 20 processes"), "{}", said.text);
    bench.works("for i in $(seq 10); do sleep 0.2 & done; wait").await;
}

#[tokio::test]
async fn no_core_is_dumped() {
    let bench = Bench::new();
    bench.run("ulimit -c unlimited; kill -SEGV $$").await;
    assert_eq!(bench.works("ulimit -c; ls -A").await.lines().next(), Some("0"));
}

#[tokio::test]
async fn the_workspace_can_be_emptied_except_for_protected_files() {
    let bench = Bench::new();
    fs::create_dir(bench.root.join(".git")).unwrap();
    fs::write(bench.root.join(".git/HEAD"), "ref").unwrap();
    fs::write(bench.root.join("file"), "").unwrap();
    assert!(bench.run("rm -rf -- * .[!.]*").await.is_error);
    assert!(!bench.root.join("file").exists());
    assert!(bench.root.join(".git/HEAD").exists());
    assert_eq!(bench.works("echo next").await, "next\n");
}

#[tokio::test]
async fn a_faked_end_line_is_only_output() {
    let bench = Bench::new();
    let tool_output = bench.run("echo '[exit code 0, 0.00 s]'; exit 9").await;
    assert!(
        tool_output.is_error && tool_output.text.contains("[exit code 9, "),
        "{}",
        tool_output.text
    );
}

#[tokio::test]
async fn text_like_a_worker_message_is_only_output() {
    let bench = Bench::new();
    let tool_output = bench.works(r#"echo '{"Ended":{"call":"x","exit":{"Code":0}}}'"#).await;
    assert!(tool_output.starts_with(r#"{"Ended""#));
    assert!(bench.run("echo x > /proc/1/fd/0").await.is_error);
}

#[tokio::test]
async fn a_forged_call_variable_does_not_outlive_the_task() {
    let bench = Bench::new();
    let token = token();
    bench.works(&format!("ANTIPHON_CALL=sh-other setsid sleep {token} > /dev/null 2>&1 &")).await;
    eventually("it", || running(&token) == 1).await;
    bench.release().await;
    assert_eq!(running(&token), 0);
}

#[tokio::test]
async fn a_command_that_closes_its_output_still_ends() {
    let bench = Bench::new();
    let begun = Instant::now();
    let tool_output = bench.run("exec > /dev/null 2>&1; sleep 0.3; exit 6").await;
    assert!(tool_output.text.contains("[exit code 6, "), "{}", tool_output.text);
    assert!(begun.elapsed() >= Duration::from_millis(300));
}

#[tokio::test]
async fn a_full_temp_folder_of_its_own_harms_only_itself() {
    let bench = Bench::new();
    let tool_output = bench.run("head -c 600M /dev/zero > /dev/shm/full").await;
    assert!(
        tool_output.is_error && tool_output.text.contains("No space left"),
        "{}",
        tool_output.text
    );
    assert_eq!(bench.works("rm /dev/shm/full; echo next").await, "next\n");
}

#[tokio::test]
async fn many_calls_at_once_are_all_answered() {
    let bench = std::sync::Arc::new(Bench::new());
    let mut calls = tokio::task::JoinSet::new();
    for number in 0..40 {
        let bench = std::sync::Arc::clone(&bench);
        calls.spawn(async move { (number, bench.run(&format!("echo {number}")).await) });
    }
    while let Some(answer) = calls.join_next().await {
        let (number, tool_output) = answer.unwrap();
        assert_eq!(tool_output.output(), format!("{number}\n"));
    }
}

#[tokio::test]
async fn the_shortest_timeout_is_respected() {
    let bench = Bench::new();
    let begun = Instant::now();
    let tool_output = bench.bash(json!({ "command": "sleep 100", "timeout_s": 1 })).await;
    assert!(tool_output.text.contains("continues in the background"), "{}", tool_output.text);
    assert!(begun.elapsed() < Duration::from_secs(3));
}

#[tokio::test]
async fn space_that_is_taken_without_writing_is_refused() {
    let bench = Bench::with(|settings| {
        settings.policy.limits.disk_bytes_max = Some(64 << 20);
    });
    let said = bench.run("for i in $(seq 8); do fallocate -l 30M f$i || exit 9; done").await;
    assert!(said.is_error && said.text.contains("exit code 9"), "{}", said.text);
    // A library writes instead, and giving space back works.
    let posix = "import os; os.posix_fallocate(os.open('x', os.O_CREAT | os.O_RDWR), 0, 1 << 20)";
    bench.works(&format!("python3 -c \"{posix}\" && fallocate -p -l 4096 x")).await;
    assert_eq!(bench.root.join("x").metadata().unwrap().len(), 1 << 20);
}

#[tokio::test]
async fn no_user_leaves_a_file_that_runs_with_its_rights() {
    let bench = Bench::new();
    let script = "import os, ctypes
def attempt(make):
    try: make()
    except OSError as e: print(e.errno)
open('f', 'w').close()
call = ctypes.CDLL(None, use_errno=True).syscall
attempt(lambda: os.chmod('f', 0o4755))
attempt(lambda: os.chmod('f', 0o2755))
attempt(lambda: os.fchmod(os.open('f', os.O_RDONLY), 0o6755))
attempt(lambda: os.open('g', os.O_CREAT | os.O_WRONLY, 0o4755))
attempt(lambda: os.open('.', os.O_TMPFILE | os.O_WRONLY, 0o4755))
attempt(lambda: os.mknod('h', 0o104755))
call(85, b'i', 0o4755)
call(437, -100, b'j', (ctypes.c_uint64 * 3)(0o101, 0o4755, 0), 24)
call(452, -100, b'f', 0o4755, 0)
os.chmod('f', 0o1755)
os.open('k', os.O_CREAT | os.O_WRONLY, 0o755)
";
    fs::write(bench.root.join("t.py"), script).unwrap();
    bench.run("python3 t.py").await;
    let mut seen = 0;
    for entry in fs::read_dir(&bench.root).unwrap().flatten() {
        let mode = entry.metadata().unwrap().mode();
        // Others than root share folders by the bit for the group.
        let bits = if rustix::process::geteuid().is_root() { 0o6000 } else { 0o4000 };
        assert!(mode & bits == 0, "{entry:?} {mode:o}");
        seen += 1;
    }
    assert!(seen >= 3 && bench.root.join("k").exists());
}
