//! Attacks on the sandbox in which git may write: each was found in a real attempt.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use antiphon_core::port::Cancel;
use serde_json::json;

use crate::bench::{Bench, eventually};

fn git(folder: &Path, arguments: &[&str]) -> String {
    let who = ["-c", "user.name=a", "-c", "user.email=a@b"];
    let done = Command::new("git").args(who).args(arguments).current_dir(folder).output().unwrap();
    assert!(done.status.success(), "{arguments:?} {done:?}");
    String::from_utf8(done.stdout).unwrap()
}

fn repository(at: &Path) {
    fs::create_dir_all(at).unwrap();
    git(at, &["init", "-q", "-b", "main", "."]);
    git(at, &["config", "user.name", "a"]);
    git(at, &["config", "user.email", "a@b"]);
    fs::write(at.join("file"), "one\n").unwrap();
    git(at, &["add", "."]);
    git(at, &["commit", "-q", "-m", "first"]);
}

/// A workspace in which git starts programs: what holds there needs no other limit.
fn world() -> Bench {
    let bench = Bench::with(|settings| {
        settings.policy.git_programs = antiphon_sandbox::GitPrograms::All;
    });
    repository(&bench.root);
    bench
}

/// Runs git in a folder of the workspace. Whether that is refused, fails or works is not the point.
async fn try_git(bench: &Bench, command: &str, workdir: &str) -> String {
    let arguments = json!({ "command": command, "workdir": workdir });
    match bench.call("bash", arguments, Cancel::never()).await {
        Ok(outcome) => outcome.text,
        Err(error) => error.to_string(),
    }
}

/// Swaps a folder of a repository for a link to the hooks of another, over and over.
const SWAP: &str = "import ctypes, time
swap = ctypes.CDLL(None).renameat2
end = time.time() + 60
while time.time() < end:
    swap(-100, b'cm/objects', -100, b'gd2', 2)
    pause = time.time() + 0.004
    while time.time() < pause: pass
";

#[tokio::test]
async fn a_folder_that_is_swapped_for_a_link_opens_nothing_else() {
    let bench = world();
    let root = &bench.root;
    for folder in ["evil", "gd", "cm/refs/heads", "gd2"] {
        fs::create_dir_all(root.join(folder)).unwrap();
    }
    let payload = "echo ran >> ../ran; test -e ../cm/objects/pre-push.sample && \
                   echo evil > ../cm/objects/pre-commit; cat\n";
    for (name, text) in [
        ("evil/.git", "gitdir: ../gd\n"),
        ("gd/HEAD", "ref: refs/heads/main\n"),
        ("gd/commondir", "../cm\n"),
        ("cm/config", "[core]\nbare = false\n[filter \"x\"]\nclean = sh ../payload.sh\n"),
        ("cm/HEAD", "ref: refs/heads/main\n"),
        ("evil/.gitattributes", "* filter=x\n"),
        ("evil/x", "data\n"),
        ("payload.sh", payload),
        ("swap.py", SWAP),
    ] {
        fs::write(root.join(name), text).unwrap();
    }
    symlink("../.git/hooks", root.join("cm/objects")).unwrap();
    fs::write(root.join(".git/hooks/pre-push.sample"), "").unwrap();
    bench.background("python3 swap.py").await;
    for attempt in 0..20 {
        fs::write(root.join("evil/x"), format!("data {attempt}\n")).unwrap();
        try_git(&bench, "git add x", "evil").await;
        assert!(!root.join(".git/hooks/pre-commit").exists(), "attempt {attempt}");
    }
    bench.release().await;
}

#[tokio::test]
async fn a_folder_of_a_clone_opens_no_repository_that_it_names() {
    let bench = world();
    let victim = bench.outside("victim");
    repository(&victim);
    let before = git(&victim, &["rev-parse", "main"]);
    // What comes with the clone, beside the workspace.
    let from_clone = bench.outside("gd");
    fs::create_dir(&from_clone).unwrap();
    fs::write(from_clone.join("HEAD"), "ref: refs/heads/main\n").unwrap();
    fs::write(from_clone.join("commondir"), "../victim/.git\n").unwrap();
    fs::write(from_clone.join("gitdir"), "../root/evil/.git\n").unwrap();
    bench.works("mkdir evil; echo 'gitdir: ../../gd' > evil/.git; echo evil > evil/file").await;
    let said = try_git(&bench, "git add file && git commit -qm evil", "evil").await;
    assert_eq!(git(&victim, &["rev-parse", "main"]), before, "{said}");
    assert!(said.contains("git could only read the repository"), "{said}");
}

#[tokio::test]
async fn a_worktree_of_a_repository_outside_can_be_committed_to() {
    let bench = Bench::new();
    let main = bench.outside("main");
    repository(&main);
    fs::remove_dir(&bench.root).unwrap();
    git(&main, &["worktree", "add", "-q", bench.root.to_str().unwrap()]);
    bench.works("git commit -q --allow-empty -m inside").await;
    assert_eq!(git(&bench.root, &["log", "--format=%s"]), "inside\nfirst\n");
}

#[tokio::test]
async fn a_folder_that_looks_like_a_repository_opens_no_repository_in_it() {
    let bench = world();
    repository(&bench.root.join("packages/objects/lib"));
    let hooks = bench.root.join("packages/objects/lib/.git/hooks");
    filter(&bench, &format!("echo evil > {}/pre-commit", hooks.display()));
    let config = bench.root.join(".git/config");
    bench
        .works(
            "mkdir -p evil packages/refs packages/worktrees/w && cp .gitattributes a.txt evil && \
             echo 'ref: refs/heads/main' | tee packages/HEAD > packages/worktrees/w/HEAD && \
             echo ../.. > packages/worktrees/w/commondir && cp .git/config packages/config && \
             echo 'gitdir: ../packages/worktrees/w' > evil/.git",
        )
        .await;
    assert!(config.exists());
    try_git(&bench, "git add a.txt", "evil").await;
    assert!(!hooks.join("pre-commit").exists());
    fs::write(bench.root.join("evil/.git"), "gitdir: ../packages\n").unwrap();
    try_git(&bench, "git add a.txt", "evil").await;
    assert!(!hooks.join("pre-commit").exists());
}

/// A filter of the user that runs in the sandbox of git.
fn filter(bench: &Bench, script: &str) {
    let program = bench.root.join("clean.sh");
    fs::write(&program, format!("#!/bin/bash\ncat\ntouch ran\n{script}\n")).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let clean = program.to_str().unwrap().to_owned();
    git(&bench.root, &["config", "filter.evil.clean", &clean]);
    fs::write(bench.root.join(".gitattributes"), "*.txt filter=evil\n").unwrap();
    fs::write(bench.root.join("a.txt"), "text\n").unwrap();
}

#[tokio::test]
async fn nothing_that_misleads_git_is_left_in_a_repository() {
    for (what, script, left) in [
        ("a link to the settings", "ln -sf refs/../config .git/COMMIT_EDITMSG", "COMMIT_EDITMSG"),
        ("a pipe", "mkdir .git/rebase-merge; mkfifo .git/rebase-merge/git-rebase-todo", PIPE),
        ("a link among objects", "ln -s /etc .git/objects/zz", "objects/zz"),
    ] {
        let bench = world();
        filter(&bench, script);
        bench.run("git add a.txt").await;
        assert!(bench.root.join("ran").exists(), "{what} was not tried");
        assert!(bench.root.join(".git").join(left).symlink_metadata().is_err(), "{what}");
    }
}

const PIPE: &str = "rebase-merge/git-rebase-todo";

#[tokio::test]
async fn files_of_the_user_are_left_alone_after_a_git_command() {
    let bench = world();
    let victim: PathBuf = bench.outside("xinitrc");
    fs::write(&victim, "exec i3\n").unwrap();
    let tools = bench.outside("local/bin");
    fs::create_dir_all(tools.join("refs")).unwrap();
    symlink("/usr/bin/true", tools.join("tool")).unwrap();
    filter(
        &bench,
        &format!(
            "mkdir .git/rebase-merge; ln -s {} .git/rebase-merge/git-rebase-todo",
            victim.display()
        ),
    );
    bench.run("git add a.txt").await;
    assert!(bench.root.join("ran").exists());
    assert_eq!(fs::read_to_string(&victim).unwrap(), "exec i3\n");
    // A folder above an own repository is replaced while git runs.
    let program = bench.root.join("clean.sh");
    fs::write(&program, "#!/bin/bash\ntouch ../go; while [ -e ../go ]; do sleep 0.02; done; cat\n")
        .unwrap();
    let swap = format!(
        "mkdir evil par && git init -q evil && mv evil/.git par/bin && \
         cp .gitattributes a.txt evil && echo 'gitdir: ../par/bin' > evil/.git && \
         git config -f par/bin/config filter.evil.clean {} && ln -s {} lnk && touch ready; \
         while [ ! -e go ]; do sleep 0.02; done; mv par away; mv lnk par; rm go; sleep 9",
        program.display(),
        bench.outside("local").display()
    );
    bench.background(&swap).await;
    eventually("the repository", || bench.root.join("ready").exists()).await;
    try_git(&bench, "git add a.txt", "evil").await;
    assert!(bench.root.join("away").exists(), "the folder was not replaced");
    assert!(tools.join("tool").symlink_metadata().is_ok());
    bench.release().await;
}

#[tokio::test]
async fn git_does_not_write_to_the_repository_after_its_call() {
    let bench = world();
    let arguments = json!({ "command": "git branch x", "background": true });
    let said = bench.bash(arguments).await;
    assert!(said.text.contains("it runs in the background"), "{}", said.text);
    filter(&bench, "sleep 30");
    let said = bench.bash(json!({ "command": "git add a.txt", "timeout_s": 1 })).await;
    assert!(said.is_error && said.text.contains("larger `timeout_s`"), "{}", said.text);
    assert!(!git(&bench.root, &["branch"]).contains('x'));
}

/// A repository of the user's with a script that a command wrote, and one of the command's own that
/// names it as its program for differences.
async fn world_of_programs() -> Bench {
    let bench = Bench::new();
    repository(&bench.root);
    git(&bench.root, &["commit", "-q", "--allow-empty", "-m", "second"]);
    bench
        .works(
            "printf '#!/bin/sh\\n: > ran; : > ../ran; : > ../.git/ran; : > .git/ran\\n' > p.sh && \
             chmod +x p.sh && cp /bin/true p && git init -q evil && cd evil && echo a > a && \
             git add a && cp ../p.sh a",
        )
        .await;
    bench
}

#[tokio::test]
async fn git_starts_no_program_of_a_command_where_it_may_write() {
    let bench = world_of_programs().await;
    let script = bench.root.join("p.sh");
    let script = script.display();
    let own = |settings: &str| format!("git -C evil diff; git {settings} -C evil diff");
    for command in [
        "git rebase -f '-xsh p.sh' HEAD~1".to_owned(),
        "git rebase -f --exe='sh p.sh' HEAD~1".to_owned(),
        "git rebase -f -ix 'sh p.sh' HEAD~1".to_owned(),
        format!("git rebase -f -x {script} HEAD~1"),
        "git fetch --upload-pac='sh p.sh;' .".to_owned(),
        "git pull --upload-pa='sh p.sh;' .".to_owned(),
        format!("git fetch --upload-pack={script} ."),
        format!("git fetch 'ext::{script}'"),
        own(&format!("-c diff.external={script}")),
        own(&format!("-c diff.external='sh {script}'")),
        own("-c diff.external=/bin/sh"),
        own("-c diff.external=/bin/bash"),
        own("-c diff.external=/proc/2/exe"),
        own("-c diff.external=/proc/1/exe"),
        format!("git -c core.editor={script} commit --allow-empty --amend"),
        format!("git -c alias.x='!{script}' x"),
        format!("git -c core.fsmonitor={script} status"),
        format!("git -c core.sshCommand={script} fetch ssh://localhost/x"),
        format!("git -c filter.x.clean={script} -c core.attributesFile=attributes add -A p.sh"),
        format!("git branch x; {script}"),
        "git branch y; /proc/$$/exe p.sh; /proc/1/exe p.sh".to_owned(),
        "git branch z; /lib64/ld-linux-x86-64.so.2 ./p && touch .git/ran".to_owned(),
        "git branch w; python3 -c 'open(\".git/ran\", \"w\")'".to_owned(),
    ] {
        fs::write(bench.root.join("attributes"), "* filter=x\n").unwrap();
        let said = bench.run(&command).await;
        if bench.root.join(".git/rebase-merge").exists() {
            git(&bench.root, &["rebase", "--abort"]);
        }
        for ran in ["ran", ".git/ran", "evil/ran"] {
            assert!(!bench.root.join(ran).exists(), "{command}\n{}", said.text);
        }
    }
    git(&bench.root, &["reset", "-q"]);
    let said = bench.run("git rebase -f -x 'sh p.sh' HEAD~1").await;
    assert!(said.text.contains("start no other program"), "{}", said.text);
}

#[tokio::test]
async fn what_git_does_by_itself_works_without_other_programs() {
    let bench = Bench::new();
    repository(&bench.root);
    let other = bench.outside("other");
    repository(&other);
    git(&other, &["commit", "-q", "--allow-empty", "-m", "theirs"]);
    for command in [
        "git commit -q --allow-empty -m second && git commit -q --amend --allow-empty",
        "git rebase -q -f HEAD~1 && git log --stat && git diff HEAD~1 | cat 2>/dev/null || true",
        "git merge -q --no-ff -m x HEAD && git gc -q && git repack -adq && git prune",
        "git format-patch -q -1 --stdout --root > /dev/null && git stash list",
        "git commit -q --allow-empty -m \"$(cat <<'END'\nfrom here\nEND\n)\" && git log | head -3",
        "git branch copy && git notes add -m x && git notes show",
        "git bisect start && git bisect reset && git blame file && git grep one",
        "git -c core.editor=true commit --allow-empty -qm third && git revert --no-edit HEAD || true",
    ] {
        bench.works(command).await;
    }
    git(&bench.root, &["fsck", "--strict"]);
}
