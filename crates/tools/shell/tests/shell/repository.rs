//! Git in the sandbox: what it may write, and what stays out of reach.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

use serde_json::json;

use crate::bench::Bench;

fn git(folder: &Path, arguments: &[&str]) -> String {
    let who = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "protocol.file.allow=always"];
    let done = Command::new("git").args(who).args(arguments).current_dir(folder).output().unwrap();
    assert!(done.status.success(), "{arguments:?} {done:?}");
    String::from_utf8(done.stdout).unwrap()
}

fn world() -> Bench {
    let bench = Bench::new();
    init(&bench);
    bench
}

/// A workspace in which git starts programs, which then try what they may do there.
fn world_with_programs() -> Bench {
    let bench = Bench::with(|settings| {
        settings.policy.git_programs = antiphon_sandbox::GitPrograms::All;
    });
    init(&bench);
    bench
}

fn init(bench: &Bench) {
    let root = &bench.root;
    git(root, &["init", "-q", "-b", "main", "."]);
    git(root, &["config", "user.name", "a"]);
    git(root, &["config", "user.email", "a@b"]);
    fs::write(root.join("file"), "one\n").unwrap();
    git(root, &["add", "."]);
    git(root, &["commit", "-q", "-m", "first"]);
}

/// Paths and contents of what decides which programs git runs.
fn programs(git_dir: &Path) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for name in ["config", "config.worktree", "commondir", "gitdir"] {
        let text = fs::read_to_string(git_dir.join(name)).unwrap_or_default();
        found.push((name.to_owned(), text));
    }
    for name in ["hooks", "info", "modules", "worktrees", "remotes", "branches"] {
        let entries = fs::read_dir(git_dir.join(name)).into_iter().flatten().flatten();
        let mut names: Vec<_> =
            entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        found.push((name.to_owned(), names.join(" ")));
    }
    found
}

#[tokio::test]
async fn work_is_committed_from_inside_the_sandbox() {
    let bench = world();
    let before = programs(&bench.root.join(".git"));
    bench.works("echo two >> file; echo new > other").await;
    bench.works("git add -A && git commit -qm second && git branch topic").await;
    bench.works("git switch -q topic && git tag v1 && git stash list").await;
    bench.works("echo three >> file").await;
    bench.works("git stash -q").await;
    bench.works("git stash pop -q && git commit -qam third && git switch -q main").await;
    bench.works("git merge -q topic && git branch -q -d topic && git rm -q other").await;
    bench
        .works("git reset -q --hard HEAD~1 && git cherry-pick v1 || git cherry-pick --abort")
        .await;
    bench.release().await;
    assert_eq!(programs(&bench.root.join(".git")), before);
    assert_eq!(git(&bench.root, &["log", "--format=%s"]), "second\nfirst\n");
    git(&bench.root, &["fsck", "--strict"]);
    let names = ["commondir", "config.worktree", "modules", "worktrees", "remotes"];
    for name in names {
        assert!(!bench.root.join(".git").join(name).exists(), "{name} is left behind");
    }
}

/// A program that git runs in that sandbox: a filter of the user, which is a file of the workspace.
fn with_filter(bench: &Bench, script: &str) {
    let root = &bench.root;
    fs::write(
        root.join("clean.sh"),
        format!("#!/bin/bash\ncat\nexec 2>> {}/said\n{script}\n", root.display()),
    )
    .unwrap();
    fs::set_permissions(root.join("clean.sh"), fs::Permissions::from_mode(0o755)).unwrap();
    git(root, &["config", "filter.evil.clean", "./clean.sh"]);
    fs::write(root.join(".gitattributes"), "*.txt filter=evil\n").unwrap();
    fs::write(root.join("a.txt"), "text\n").unwrap();
}

#[tokio::test]
async fn nothing_that_makes_git_run_programs_can_be_written() {
    for attempt in [
        "echo evil >> .git/config",
        "git config core.fsmonitor evil",
        "mv .git/config .git/c; echo evil > .git/config",
        "echo evil > x; mv x .git/config",
        "echo evil > .git/hooks/pre-commit",
        "rm -rf .git/hooks; mkdir .git/hooks; echo evil > .git/hooks/pre-commit",
        "mv .git/hooks .git/h; mkdir .git/hooks; echo evil > .git/hooks/pre-commit",
        "echo '* filter=x' > .git/info/attributes",
        "mv .git/info .git/i; mkdir .git/info; echo '* filter=x' > .git/info/attributes",
        "echo ../evil > .git/commondir",
        "rm -f .git/commondir; echo ../evil > .git/commondir",
        "echo ../evil > x; mv -f x .git/commondir",
        "ln -sf ../evil .git/commondir",
        "echo evil > .git/config.worktree",
        "mkdir -p .git/modules/sub/hooks",
        "mkdir -p .git/worktrees/w; echo ../../evil > .git/worktrees/w/commondir",
        "mkdir -p .git/remotes; echo 'URL: ext::evil' > .git/remotes/origin",
        "mv .git aside; mkdir -p .git/hooks; echo evil > .git/hooks/pre-commit",
        "echo evil > nested/.git/hooks/pre-commit",
    ] {
        let bench = world_with_programs();
        git(&bench.root, &["init", "-q", "nested"]);
        with_filter(&bench, attempt);
        let (here, nested) = (bench.root.join(".git"), bench.root.join("nested/.git"));
        let before = (programs(&here), programs(&nested));
        bench.run("git add a.txt").await;
        bench.release().await;
        assert!(bench.root.join("said").exists(), "{attempt} was not tried");
        assert_eq!((programs(&here), programs(&nested)), before, "{attempt}");
        git(&bench.root, &["status"]);
    }
}

#[tokio::test]
async fn links_and_programs_left_in_a_repository_are_removed() {
    let bench = world_with_programs();
    let victim = bench.outside("victim");
    fs::write(&victim, "as it was").unwrap();
    let script = format!(
        "ln -s {0} .git/COMMIT_EDITMSG.x; ln -s {0} .git/refs/heads/evil; ln -s {0} .git/logs/evil\n\
         mkdir .git/rebase-merge; printf 'pick 1\\nexec evil\\n' > .git/rebase-merge/git-rebase-todo",
        victim.display()
    );
    with_filter(&bench, &script);
    bench.run("git add a.txt").await;
    let here = bench.root.join(".git");
    for link in ["COMMIT_EDITMSG.x", "refs/heads/evil", "logs/evil"] {
        assert!(here.join(link).symlink_metadata().is_err(), "{link}");
    }
    let todo = fs::read_to_string(here.join("rebase-merge/git-rebase-todo")).unwrap();
    assert_eq!(todo, "pick 1\n");
    assert_eq!(fs::read_to_string(victim).unwrap(), "as it was");
}

#[tokio::test]
async fn hooks_do_not_run_where_git_may_write() {
    let bench = world();
    let hook = bench.root.join(".git/hooks/pre-commit");
    fs::write(&hook, "#!/bin/sh\ntouch ran\n").unwrap();
    fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).unwrap();
    bench.works("git commit -q --allow-empty -m second").await;
    assert!(!bench.root.join("ran").exists());
}

#[tokio::test]
async fn commands_beside_git_do_not_write_to_the_repository() {
    let bench = world();
    for command in ["echo x > .git/refs/heads/evil", "rm .git/HEAD", "true; git branch x"] {
        let said = bench.run(command).await;
        assert!(said.is_error, "{command}");
        assert!(said.text.contains("the sandbox refused to write"), "{}", said.text);
        assert!(said.text.contains("nothing but git commands"), "{}", said.text);
    }
}

#[tokio::test]
async fn what_git_may_not_change_is_said_in_plain_words() {
    let bench = world();
    for command in ["git branch --edit-description", "git config user.name b"] {
        let said = bench.run(command).await;
        if said.is_error {
            assert!(said.text.contains("the sandbox refused to write"), "{command}\n{}", said.text);
            assert!(said.text.contains("`without_sandbox: true`"), "{command}\n{}", said.text);
        }
    }
    let config = fs::read_to_string(bench.root.join(".git/config")).unwrap();
    assert!(config.contains("name = a") && !config.contains("name = b"), "{config}");
}

#[tokio::test]
async fn worktrees_and_submodules_can_be_committed_to() {
    let bench = world();
    let root = &bench.root;
    git(root, &["worktree", "add", "-q", "trees/w"]);
    fs::create_dir(bench.outside("other")).unwrap();
    git(&bench.outside("other"), &["init", "-q", "."]);
    git(&bench.outside("other"), &["commit", "-q", "--allow-empty", "-m", "first"]);
    git(root, &["submodule", "add", "-q", bench.outside("other").to_str().unwrap(), "sub"]);
    git(&root.join("sub"), &["config", "user.name", "a"]);
    git(&root.join("sub"), &["config", "user.email", "a@b"]);
    for folder in ["trees/w", "sub"] {
        let command = "git commit -q --allow-empty -m inside";
        let said = bench.bash(json!({ "command": command, "workdir": folder })).await;
        assert!(!said.is_error, "{folder}\n{}", said.text);
        assert!(
            git(&root.join(folder), &["log", "--format=%s"]).starts_with("inside\n"),
            "{folder}"
        );
        let hook =
            "git commit -q --allow-empty -m x; echo evil > \"$(git rev-parse --git-path hooks)/x\"";
        bench.bash(json!({ "command": hook, "workdir": folder })).await;
        let hooks = git(&root.join(folder), &["rev-parse", "--git-path", "hooks"]);
        assert!(!root.join(folder).join(hooks.trim()).join("x").exists(), "{folder}");
    }
}

#[tokio::test]
async fn a_pointer_that_was_made_up_opens_no_other_repository() {
    let bench = world();
    let other = bench.outside("other");
    fs::create_dir(&other).unwrap();
    git(&other, &["init", "-q", "-b", "main", "."]);
    git(&other, &["commit", "-q", "--allow-empty", "-m", "first"]);
    let before = git(&other, &["rev-parse", "main"]);
    for (what, make) in [
        ("a pointer to it", format!("mkdir p && echo 'gitdir: {}/.git' > p/.git", other.display())),
        (
            "a folder that says it shares it",
            format!(
                "mkdir -p p/.git && echo 'ref: refs/heads/main' > p/.git/HEAD && \
                 echo {}/.git > p/.git/commondir",
                other.display()
            ),
        ),
    ] {
        bench.works(&make).await;
        let command = "git commit -q --allow-empty -m evil";
        let said = bench
            .call(
                "bash",
                json!({ "command": command, "workdir": "p" }),
                antiphon_core::port::Cancel::never(),
            )
            .await;
        assert!(said.is_err() || said.unwrap().is_error, "{what}");
        assert_eq!(git(&other, &["rev-parse", "main"]), before, "{what}");
        fs::remove_dir_all(bench.root.join("p")).unwrap();
    }
    symlink(&other, bench.root.join("q")).unwrap();
}

#[tokio::test]
async fn a_command_without_the_sandbox_reaches_what_the_sandbox_refused() {
    let bench = world();
    let file = bench.outside("made");
    let command = format!("touch {} && git config user.name b", file.display());
    let said = bench.run(&command).await;
    assert!(said.is_error && said.text.contains("the sandbox refused to write"), "{}", said.text);
    let said = bench.bash(json!({ "command": command, "without_sandbox": true })).await;
    assert!(!said.is_error && file.exists(), "{}", said.text);
    // The next command is in the sandbox again.
    assert!(bench.run(&format!("rm {}", file.display())).await.is_error);
}

#[tokio::test]
async fn there_is_no_way_out_of_a_task_that_runs_in_a_sandbox_as_a_whole() {
    let bench = Bench::with(|settings| {
        settings.without_sandbox = antiphon_shell::WithoutSandbox::Impossible;
    });
    let said = bench.bash(json!({ "command": "true", "without_sandbox": true })).await;
    assert!(said.is_error && said.text.contains("in a sandbox as a whole"), "{}", said.text);
}

#[tokio::test]
async fn a_failure_for_lack_of_network_is_named_as_such() {
    let bench = Bench::new();
    let said =
        bench.run("python3 -c \"import socket; socket.getaddrinfo('example.com', 80)\"").await;
    assert!(said.is_error && said.text.contains("the sandbox has no network"), "{}", said.text);
}
