//! Attempts on repositories and control folders further down in the workspace.

use std::fs;
use std::path::Path;
use std::process::Command;

use antiphon_sandbox::Mode;

use crate::bench::Bench;

fn git(folder: &Path, arguments: &[&str]) {
    let who = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "protocol.file.allow=always"];
    let done = Command::new("git").args(who).args(arguments).current_dir(folder).output().unwrap();
    assert!(done.status.success(), "{arguments:?} {done:?}");
}

/// A workspace with repositories of every form.
fn world(mode: Mode) -> Bench {
    let bench = Bench::with(|settings| settings.policy.mode = mode);
    let root = &bench.root;
    for repository in [".", "packages/a/lib", "other"] {
        fs::create_dir_all(root.join(repository)).unwrap();
        git(root, &["init", "-q", "-b", "main", repository]);
        git(&root.join(repository), &["commit", "-q", "--allow-empty", "-m", "first"]);
    }
    git(root, &["worktree", "add", "-q", "trees/w"]);
    fs::create_dir(root.join("stores")).unwrap();
    git(root, &["init", "-q", "--separate-git-dir", "stores/apart", "apart"]);
    git(root, &["init", "-q", "--bare", "stores/bare"]);
    let other = root.join("other");
    git(root, &["submodule", "add", "-q", other.to_str().unwrap(), "sub"]);
    fs::create_dir_all(root.join("neighbor/.antiphon/requests")).unwrap();
    fs::write(root.join("neighbor/.antiphon/token"), "the token").unwrap();
    fs::create_dir_all(root.join("neighbor/.ideai")).unwrap();
    bench
}

const ATTEMPTS: &[(&str, &str)] = &[
    ("a hook of a nested repository", "echo evil > packages/a/lib/.git/hooks/pre-commit"),
    ("its configuration", "git -C packages/a/lib config core.fsmonitor evil"),
    ("moving it away", "mv packages/a/lib/.git packages/a/lib/git"),
    ("moving what contains it", "mv packages elsewhere && mkdir -p packages/a/lib/.git/hooks"),
    ("moving the repository", "mv packages/a/lib packages/a/old && mkdir -p packages/a/lib/.git"),
    ("the hooks of a submodule", "echo evil > .git/modules/sub/hooks/post-checkout"),
    ("its configuration", "git -C sub config core.fsmonitor evil"),
    ("the file that names its repository", "echo 'gitdir: /tmp/evil' > sub/.git"),
    ("that file removed", "rm sub/.git"),
    ("another file in its place", "echo 'gitdir: ../evil' > x && mv x sub/.git"),
    ("the file of a worktree", "echo 'gitdir: ../../evil' > trees/w/.git"),
    ("the configuration of a worktree", "echo evil > .git/worktrees/w/config.worktree"),
    ("what a worktree shares", "echo ../../../evil > .git/worktrees/w/commondir"),
    ("a repository kept apart", "echo evil > stores/apart/hooks/pre-commit"),
    ("its configuration", "git -C apart config core.fsmonitor evil"),
    ("a bare repository", "echo evil > stores/bare/hooks/post-receive"),
    ("its configuration", "git -C stores/bare config core.fsmonitor evil"),
    ("its folder", "mv stores gone"),
    ("the token of another project", "grep token neighbor/.antiphon/token"),
    ("orders to another project", "echo '{}' > neighbor/.antiphon/requests/r.json"),
    ("orders to another program", "echo '{}' > neighbor/.ideai/r.json"),
    ("the project itself", "mv neighbor n"),
];

#[tokio::test]
async fn repositories_further_down_are_protected() {
    let bench = world(Mode::Workspace);
    for (what, command) in ATTEMPTS {
        let said = bench.run(command).await;
        assert!(said.is_error, "{what}\n{command}\n{}", said.text);
        // An attempt that works nowhere proves nothing.
        let outside = world(Mode::Full);
        let said = outside.run(command).await;
        assert!(!said.is_error, "{what} works nowhere\n{command}\n{}", said.text);
    }
}

#[tokio::test]
async fn work_beside_nested_repositories_goes_on() {
    let bench = world(Mode::Workspace);
    bench
        .works(
            "echo x > packages/a/lib/file && mkdir packages/b && mv packages/b packages/c && \
             echo x > packages/a/x && mv packages/a/x packages/a/lib/y && git status --short && \
             git -C packages/a/lib log --oneline && git -C sub status && git -C trees/w log -1 && \
             git -C apart status && git -C stores/bare branch",
        )
        .await;
    assert!(bench.root.join("packages/a/lib/y").exists());
}

#[tokio::test]
async fn a_repository_that_appears_is_protected_from_the_next_command_on() {
    let bench = Bench::new();
    bench.works("mkdir -p deep/er").await;
    git(&bench.root, &["init", "-q", "deep/er"]);
    let said = bench.run("echo evil > deep/er/.git/hooks/pre-commit").await;
    assert!(said.is_error, "{}", said.text);
    // Also one that a command has made.
    bench.works("git init -q mine").await;
    assert!(bench.run("echo evil > mine/.git/hooks/pre-commit").await.is_error);
}

#[tokio::test]
async fn a_command_in_the_background_survives_a_repository_that_appears() {
    let bench = Bench::new();
    let id = bench.background("sleep 0.5; echo survived").await;
    bench.works("git init -q mine").await;
    bench.works("true").await;
    let said = bench.output(&id, 5).await;
    assert!(said.text.contains("survived"), "{}", said.text);
}

#[tokio::test]
async fn a_hidden_path_that_appears_is_hidden_from_the_next_command_on() {
    let bench = Bench::with(|settings| {
        let base = settings.results.parent().unwrap().canonicalize().unwrap();
        settings.policy.hidden.push(base.join("home/.claude"));
    });
    bench.works("true").await;
    let secret = bench.outside("home/.claude");
    fs::create_dir_all(&secret).unwrap();
    fs::write(secret.join("key"), "the key").unwrap();
    let said = bench.run(&format!("cat {}/key", secret.display())).await;
    assert!(said.is_error && !said.text.contains("the key"), "{}", said.text);
}
