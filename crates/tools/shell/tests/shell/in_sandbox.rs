//! Features that must work in a sandbox, and changes that must be noticed.

use std::fs;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::Command;

use antiphon_sandbox::{Network, SandboxMode, UnixSockets};

use crate::bench::{Bench, scratch};

fn git(root: &Path, arguments: &[&str]) {
    let done = Command::new("git").args(arguments).current_dir(root).output().unwrap();
    assert!(done.status.success(), "{done:?}");
}

fn repository(bench: &Bench) {
    git(&bench.root, &["init", "-q", "."]);
    fs::write(bench.root.join("file"), "one\n").unwrap();
    git(&bench.root, &["add", "."]);
    let who = ["-c", "user.name=a", "-c", "user.email=a@b"];
    git(&bench.root, &[&who[..], &["commit", "-q", "-m", "first"]].concat());
}

#[tokio::test]
async fn a_repository_can_be_read() {
    let bench = Bench::new();
    repository(&bench);
    bench.works("echo two >> file; echo new > other").await;
    let status = bench.works("git status --short; git log --oneline | wc -l; git diff").await;
    assert!(status.starts_with(" M file\n?? other\n1\n"), "{status}");
    assert!(status.contains("+two"), "{status}");
    assert!(bench.run("true; git commit -aqm second").await.is_error);
}

#[tokio::test]
async fn building_works() {
    let bench = Bench::new();
    bench
        .works(
            "mkdir -p target/debug && for i in $(seq 50); do echo $i > target/debug/$i; done && \
             cp -r target copy && mv copy/debug moved && rm -rf target copy && ls moved | wc -l && \
             ln -s moved link && ln moved/1 hard && chmod 600 hard && touch -d 2001-01-01 hard",
        )
        .await;
    assert!(bench.root.join("moved/50").exists());
}

#[tokio::test]
async fn files_of_every_kind_can_be_created_in_the_workspace() {
    let bench = Bench::new();
    let tool_output = bench.works("mkfifo pipe && (echo through > pipe &) && cat pipe").await;
    assert_eq!(tool_output, "through\n");
    let bench = Bench::with(|settings| settings.policy.unix_sockets = UnixSockets::Allowed);
    let socket = "python3 -c \"import socket; s = socket.socket(socket.AF_UNIX); s.bind('s'); \
                  s.listen(); c = socket.socket(socket.AF_UNIX); c.connect('s'); print('met')\"";
    assert_eq!(bench.works(socket).await, "met\n");
}

#[tokio::test]
async fn features_of_bash_work() {
    let bench = Bench::new();
    assert_eq!(bench.works("cat <(echo a) | tee /dev/stderr | tr a b").await.len(), 4);
    assert_eq!(bench.works("sleep 0.01 & wait $! && echo waited").await, "waited\n");
    assert_eq!(bench.works("cat <<< here; cat << END\ndoc\nEND").await, "here\ndoc\n");
    assert_eq!(
        bench.works("f=$(mktemp) && echo in > $f && cat $f && echo ${f:0:5}").await,
        "in\n/tmp/\n"
    );
    assert_eq!(bench.works("printf 'b\\na\\n' | sort | xargs -P2 -n1 echo | sort").await, "a\nb\n");
}

#[tokio::test]
async fn programs_find_what_they_expect() {
    let bench = Bench::new();
    let tool_output = bench
        .works("ls /dev | tr '\\n' ' '; test -w /dev/null; head -c4 /dev/urandom | wc -c")
        .await;
    assert_eq!(
        tool_output,
        "fd full null ptmx pts random shm stderr stdin stdout tty urandom zero 4\n"
    );
    let ours = rustix::process::geteuid().as_raw();
    assert_eq!(bench.works("id -u").await, format!("{ours}\n"));
    assert_eq!(bench.works("echo $$ $PPID").await.split(' ').nth(1), Some("1\n"));
    let tool_output =
        bench.works("python3 -c 'import pty, sys; sys.exit(pty.spawn([\"tty\"]))'").await;
    assert!(tool_output.contains("/dev/pts/0"), "{tool_output}");
}

#[tokio::test]
async fn programs_talk_to_each_other_over_the_loopback() {
    for network in [Network::Off, Network::On] {
        let bench = Bench::with(|settings| settings.policy.network = network);
        let script = "python3 -c \"import socket\nfor f, a in ((2, '127.0.0.1'), (10, '::1')):\n \
                      s = socket.socket(f); s.bind((a, 0)); s.listen(); \
                      c = socket.create_connection(s.getsockname()[:2]); print('met')\"";
        assert_eq!(bench.works(script).await, "met\nmet\n");
    }
}

#[tokio::test]
async fn a_workspace_below_tmp_is_visible_and_nothing_else_of_tmp() {
    for base in ["/tmp", "/var/tmp"] {
        let bench = Bench::within(Path::new(base), |settings| {
            let shown = settings.results.with_file_name("shown");
            fs::create_dir(&shown).unwrap();
            fs::write(shown.join("file"), "shown\n").unwrap();
            settings.policy.readable.push(shown);
        });
        fs::write(bench.outside("beside"), "").unwrap();
        let socket = UnixListener::bind(bench.root.join("socket")).unwrap();
        assert_eq!(bench.works("echo in > file; cat file").await, "in\n");
        assert!(bench.root.join("file").exists());
        assert_eq!(bench.works("ls -A .. | tr '\\n' ' '").await, "root shown \n");
        assert_eq!(bench.works("cat ../shown/file").await, "shown\n");
        for command in ["mkdir .git/x", "echo x > ../shown/file", "test -S socket", "rm socket"] {
            assert!(bench.run(command).await.is_error, "{command}");
        }
        drop(socket);
    }
}

#[tokio::test]
async fn own_folders_may_lie_within_hidden_folders() {
    for mode in [SandboxMode::Workspace, SandboxMode::ReadOnly] {
        let bench = Bench::with(|settings| {
            let state = settings.policy.roots[0].join(".antiphon");
            settings.policy.mode = mode;
            settings.policy.tmp = state.join("tmp");
            settings.results = state.join("results");
        });
        assert_eq!(bench.works("echo in > /tmp/file; cat /tmp/file").await, "in\n");
        assert_eq!(bench.works("ls -A .antiphon").await, "(no output)\n");
        let tool_output = bench.run("seq 1 100000; touch .antiphon/x").await;
        assert!(
            tool_output.is_error
                && tool_output.text.contains("left out; the whole is in result `sh-")
        );
        let results = bench.root.join(".antiphon/results/task-1");
        assert_eq!(fs::read_dir(results).unwrap().count(), 1);
        bench.release().await;
        assert_eq!(fs::read_dir(bench.root.join(".antiphon/tmp")).unwrap().count(), 0);
    }
}

#[tokio::test]
async fn without_sandbox_support_nothing_runs_and_the_error_gives_advice() {
    // A worker started this way is not allowed to create user namespaces.
    let bench = Bench::with(|settings| {
        let script = "echo 0 > /proc/sys/user/max_user_namespaces && exec \"$0\"";
        let worker = settings.worker.program.clone().into_os_string();
        settings.worker.args = ["-r", "sh", "-c", script].map(Into::into).into();
        settings.worker.args.push(worker);
        settings.worker.program = "unshare".into();
    });
    let arguments = serde_json::json!({ "command": "touch ran" });
    let cancel = antiphon_core::port::Cancel::never();
    let error = bench.call("bash", arguments, cancel).await.unwrap_err().to_string();
    assert!(error.contains("does not allow user namespaces"), "{error}");
    assert!(error.contains("max_user_namespaces") && error.contains("mode `full`"), "{error}");
    assert!(!bench.root.join("ran").exists() && !bench.root.join(".git").exists());
    assert_eq!(fs::read_dir(bench.outside("tmp")).unwrap().count(), 0);
}

#[tokio::test]
async fn several_roots_can_be_written_to_and_each_is_protected() {
    let other = tempfile::tempdir_in(scratch()).unwrap();
    let path = other.path().canonicalize().unwrap();
    let bench = Bench::with(|settings| settings.policy.roots.push(path.clone()));
    bench.works(&format!("echo a > file; echo b > {}/file", path.display())).await;
    assert!(path.join("file").exists());
    assert!(bench.run(&format!("mkdir {}/.git", path.display())).await.is_error);
    let tool_output =
        bench.works(&format!("mv file {0}/moved && cat {0}/moved", path.display())).await;
    assert_eq!(tool_output, "a\n");
}

#[tokio::test]
async fn a_repository_within_a_file_is_protected_too() {
    let bench = Bench::new();
    fs::write(bench.root.join(".git"), "gitdir: /elsewhere\n").unwrap();
    for command in ["echo x > .git", "rm .git", "mv .git aside", "ln -sf /tmp .git"] {
        assert!(bench.run(command).await.is_error, "{command}");
    }
    assert_eq!(fs::read_to_string(bench.root.join(".git")).unwrap(), "gitdir: /elsewhere\n");
}

#[tokio::test]
async fn a_protected_name_that_is_a_link_is_refused_with_advice() {
    let bench = Bench::new();
    fs::create_dir(bench.outside("elsewhere")).unwrap();
    std::os::unix::fs::symlink(bench.outside("elsewhere"), bench.root.join(".git")).unwrap();
    let arguments = serde_json::json!({ "command": "true" });
    let cancel = antiphon_core::port::Cancel::never();
    let error = bench.call("bash", arguments, cancel).await.unwrap_err().to_string();
    assert!(error.contains("symbolic link") && error.contains("Make it a real folder"), "{error}");
}

#[tokio::test]
async fn a_protected_file_replaced_from_outside_is_protected_again() {
    let bench = Bench::new();
    repository(&bench);
    bench.works("git status").await;
    // A person starts over with the repository.
    fs::remove_dir_all(bench.root.join(".git")).unwrap();
    git(&bench.root, &["init", "-q", "."]);
    assert!(bench.run("echo x > .git/config").await.is_error);
    assert!(!fs::read_to_string(bench.root.join(".git/config")).unwrap().starts_with('x'));
}

#[tokio::test]
async fn a_protected_file_created_from_outside_is_protected() {
    let bench = Bench::new();
    bench.works("true").await;
    git(&bench.root, &["init", "-q", "."]);
    assert!(bench.run("echo x > .git/config").await.is_error);
    assert_eq!(bench.works("git status --short").await, "(no output)\n");
    bench.release().await;
    assert!(bench.root.join(".git/config").exists());
    assert!(!bench.root.join(".ideai").exists());
}

#[tokio::test]
async fn settings_within_a_workspace_cannot_be_moved_away() {
    let bench = Bench::with(|settings| {
        let root = settings.policy.roots[0].clone();
        fs::create_dir_all(root.join(".config/antiphon")).unwrap();
        fs::write(root.join(".config/antiphon/antiphon.toml"), "key").unwrap();
        settings.policy.hidden.push(root.join(".config/antiphon"));
    });
    for command in [
        "cat .config/antiphon/antiphon.toml",
        "echo x > .config/antiphon/antiphon.toml",
        "mv .config aside",
        "rm -rf .config; test ! -e .config",
        "mv .config/antiphon aside",
    ] {
        assert!(bench.run(command).await.is_error, "{command}");
    }
    bench.works("echo fine > .config/other").await;
    let kept = fs::read_to_string(bench.root.join(".config/antiphon/antiphon.toml")).unwrap();
    assert_eq!(kept, "key");
}
