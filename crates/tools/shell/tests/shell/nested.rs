//! Attempts on repositories and control folders further down in the workspace.

use std::fs;
use std::path::Path;
use std::process::Command;

use antiphon_sandbox::SandboxMode;

use crate::bench::Bench;

fn git(folder: &Path, arguments: &[&str]) {
    let who = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "protocol.file.allow=always"];
    let done = Command::new("git").args(who).args(arguments).current_dir(folder).output().unwrap();
    assert!(done.status.success(), "{arguments:?} {done:?}");
}

/// A workspace with repositories of every form.
fn world(mode: SandboxMode) -> Bench {
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
    let bench = world(SandboxMode::Workspace);
    for (what, command) in ATTEMPTS {
        let said = bench.run(command).await;
        assert!(said.is_error, "{what}\n{command}\n{}", said.text);
        // An attempt that works nowhere proves nothing.
        let outside = world(SandboxMode::Full);
        let said = outside.run(command).await;
        assert!(!said.is_error, "{what} works nowhere\n{command}\n{}", said.text);
    }
}

#[tokio::test]
async fn control_folders_further_down_are_hidden_in_read_only_mode_too() {
    let bench = world(SandboxMode::ReadOnly);
    let said = bench.run("grep token neighbor/.antiphon/token").await;
    assert!(said.is_error, "{}", said.text);
    bench.works("git -C packages/a/lib status").await;
    // Also one that appears later.
    fs::create_dir_all(bench.root.join("late/.antiphon")).unwrap();
    fs::write(bench.root.join("late/.antiphon/token"), "the token").unwrap();
    let said = bench.run("grep token late/.antiphon/token").await;
    assert!(said.is_error, "{}", said.text);
}

#[tokio::test]
async fn a_link_in_place_of_a_nested_repository_is_refused_with_advice() {
    let bench = Bench::new();
    fs::create_dir_all(bench.root.join("sub")).unwrap();
    git(&bench.root, &["init", "-q", "store"]);
    std::os::unix::fs::symlink("../store/.git", bench.root.join("sub/.git")).unwrap();
    let arguments = serde_json::json!({ "command": "true" });
    let cancel = antiphon_core::port::Cancel::never();
    let error = bench.call("bash", arguments, cancel).await.unwrap_err().to_string();
    assert!(error.contains("sub/.git") && error.contains("symbolic link"), "{error}");
    fs::remove_file(bench.root.join("sub/.git")).unwrap();
    fs::write(bench.root.join("sub/.git"), "gitdir: ../store/.git\n").unwrap();
    bench.works("git -C sub status").await;
}

#[tokio::test]
async fn work_beside_nested_repositories_goes_on() {
    let bench = world(SandboxMode::Workspace);
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

/// A repository with a submodule that was not fetched, as after `git clone`.
fn with_submodule(root: &Path) {
    git(root, &["init", "-q", "-b", "main", "."]);
    let entry = format!("160000,{},vendor/lib", "1".repeat(40));
    git(root, &["update-index", "--add", "--cacheinfo", &entry]);
    fs::write(root.join(".gitmodules"), "[submodule \"lib\"]\npath = vendor/lib\nurl = x\n")
        .unwrap();
    git(root, &["add", ".gitmodules"]);
    git(root, &["commit", "-q", "-m", "first"]);
}

const IN_SUBMODULE: [&str; 5] = [
    "git init -q vendor/lib && git -C vendor/lib config core.fsmonitor 'touch ran; false'",
    "rm -r vendor; git init -q vendor/lib",
    "mv vendor old && git init -q vendor/lib",
    "git init -q x && mkdir -p vendor && mv x vendor/lib",
    "mkdir -p vendor/lib; echo 'gitdir: ../../evil' > vendor/lib/.git",
];

#[tokio::test]
async fn no_repository_can_be_made_in_the_folder_of_a_submodule() {
    for command in IN_SUBMODULE {
        // The folder may be missing.
        for prepare in ["mkdir -p vendor/lib", "true"] {
            let bench = Bench::new();
            with_submodule(&bench.root);
            let done = Command::new("sh").args(["-c", prepare]).current_dir(&bench.root).status();
            assert!(done.unwrap().success());
            bench.run(command).await;
            bench.run("git status").await;
            bench.run(command).await;
            let made = bench.root.join("vendor/lib/.git").symlink_metadata();
            assert!(made.is_err(), "{prepare}: {command}");
            git(&bench.root, &["status"]);
        }
    }
}

#[tokio::test]
async fn the_folder_of_a_submodule_is_writable_once_it_is_a_repository() {
    let bench = Bench::new();
    with_submodule(&bench.root);
    fs::create_dir_all(bench.root.join("vendor/lib")).unwrap();
    assert!(bench.run("touch vendor/lib/x").await.is_error);
    git(&bench.root, &["init", "-q", "vendor/lib"]);
    bench.works("touch vendor/lib/x vendor/y").await;
    assert!(bench.run("touch vendor/lib/.git/x").await.is_error);
}

#[tokio::test]
async fn a_submodule_of_the_repository_around_the_workspace_is_protected() {
    let bench = Bench::new();
    let around = bench.folder.path();
    git(around, &["init", "-q", "-b", "main", "."]);
    let entry = format!("160000,{},root/lib", "1".repeat(40));
    git(around, &["update-index", "--add", "--cacheinfo", &entry]);
    bench.run("mkdir -p lib; git init -q lib").await;
    assert!(bench.root.join("lib/.git").symlink_metadata().is_err());
    bench.works("git init -q other").await;
}

#[tokio::test]
async fn a_repository_that_a_command_made_is_harmless_as_a_submodule() {
    for (what, evil) in [
        ("a setting", "git -C mine config core.fsmonitor 'touch ran; false'"),
        ("a hook", "cp /bin/true mine/.git/hooks/post-index-change"),
        ("settings elsewhere", "printf '[include]\npath = x\n' >> mine/.git/config"),
        ("a repository elsewhere", "mv mine/.git gd && echo 'gitdir: ../gd' > mine/.git"),
        (
            "a submodule in it",
            "cd mine && git init -q in && cd in && git config alias.a '!b' && \
          git -c user.name=a -c user.email=a@b commit -qm a --allow-empty && cd .. && git add in",
        ),
    ] {
        let bench = Bench::new();
        git(&bench.root, &["init", "-q", "-b", "main", "."]);
        let commit = "git -c user.name=a -c user.email=a@b commit -q --allow-empty -m a";
        bench.works(&format!("(git init -q mine && cd mine && {commit}); {evil}")).await;
        bench.works("git add mine").await;
        let (aside, inner) = ("mine/.git.set-aside", "mine/in/.git.set-aside");
        let is_aside = |path: &str| bench.root.join(path).symlink_metadata().is_ok();
        assert!(is_aside(aside) || is_aside(inner), "{what}");
        // From now on it is the folder of a submodule.
        assert!(bench.run("git init -q mine/in; git init -q mine").await.is_error, "{what}");
    }
    let bench = Bench::new();
    git(&bench.root, &["init", "-q", "-b", "main", "."]);
    git(&bench.root, &["init", "-q", "theirs"]);
    git(&bench.root.join("theirs"), &["commit", "-q", "--allow-empty", "-m", "first"]);
    bench.works("git add theirs").await;
    git(&bench.root.join("theirs"), &["status"]);
    assert!(bench.root.join("theirs/.git/HEAD").exists());
}
