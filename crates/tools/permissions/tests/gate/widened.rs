//! What an agent puts around, before or into a command does not widen a rule that allows it.

use antiphon_permissions::Decision::{self, Allow, Ask, Deny};
use antiphon_permissions::Gate;
use serde_json::json;

use crate::world::{ROOT, bounds, explain, gate, in_repository, open_gate, script};

const PUSH: &str = "allow = ['unsandboxed(git push *)']";

const FETCH: &str = "curl -s http://localhost:8081/a";

fn without_sandbox(gate: &Gate, command: &str, workdir: Option<&str>) -> Decision {
    let arguments =
        json!({ "command": command, "workdir": workdir, "without_sandbox": true }).to_string();
    explain(gate, "bash", &arguments, &[]).decision()
}

#[test]
fn only_harmless_variables_precede_a_command_without_the_sandbox() {
    let gate = gate(&format!("allow = ['unsandboxed({FETCH})']"));
    for set in [
        "LANG=C",
        "LC_ALL=C.UTF-8",
        "TZ=UTC",
        "NO_COLOR=1",
        "CI=true TERM=dumb",
        "RUST_BACKTRACE=full",
        "GIT_AUTHOR_NAME='a b'",
        "",
    ] {
        assert_eq!(without_sandbox(&gate, &format!("{set} {FETCH}"), None), Allow, "{set}");
        assert_eq!(without_sandbox(&gate, &format!("env {set} {FETCH}"), None), Allow, "{set}");
    }
    for set in [
        "CURL_HOME=.",
        "OPENSSL_CONF=./e.cnf",
        "GCONV_PATH=.",
        "WGETRC=./x",
        "KUBECONFIG=./x",
        "AWS_CONFIG_FILE=./x",
        "DOCKER_CONFIG=.",
        "CARGO_HOME=.",
        "RUSTFLAGS=-Clinker=./x",
        "GOFLAGS=-toolexec=./x",
        "CC=./x",
        "XDG_DATA_HOME=.",
        "TERMINFO=.",
        "LOCPATH=.",
        "http_proxy=http://127.0.0.1:9",
        "SSL_CERT_FILE=./x",
        "GIT_DIR=evil/.git",
        "ANYTHING=1",
        "TZ=:/home/me/project/x",
        "LANG=../../x",
        "TERM=$X",
        "LANG=C CURL_HOME=.",
    ] {
        for command in [
            format!("{set} {FETCH}"),
            format!("env {set} {FETCH}"),
            format!("{set}; {FETCH}"),
            format!("export {set}; {FETCH}"),
            format!("env -i {set} timeout 5 {FETCH}"),
        ] {
            assert_eq!(without_sandbox(&gate, &command, None), Ask, "{command}");
        }
    }
    assert_eq!(without_sandbox(&gate, &format!("for CURL_HOME in .; do {FETCH}; done"), None), Ask);
    // A rule for the whole tool `bash` is about the sandbox.
    let both = crate::world::gate(&format!("allow = ['bash', 'unsandboxed({FETCH})']"));
    assert_eq!(without_sandbox(&both, &format!("PATH=. {FETCH}"), None), Ask);
    // A rule for exactly this script names its variables.
    let exact = crate::world::gate(&format!("allow = ['unsandboxed(=CURL_HOME=. {FETCH})']"));
    assert_eq!(without_sandbox(&exact, &format!("CURL_HOME=. {FETCH}"), None), Allow);
}

#[test]
fn where_there_is_no_sandbox_every_rule_is_judged_like_that() {
    let gate = open_gate("allow = ['bash(cargo test *)', 'bash(git push *)']");
    assert_eq!(script(&gate, "RUST_BACKTRACE=1 cargo test"), Allow);
    for command in
        ["CARGO_HOME=. cargo test", "env -C evil cargo test", "flock f cargo test", "git push evil"]
    {
        assert_eq!(script(&gate, command), Ask, "{command}");
    }
}

#[test]
fn wrappers_that_write_or_that_nothing_is_known_of_are_no_part_of_a_rule() {
    let gate = gate(&format!("allow = ['unsandboxed({FETCH})', 'unsandboxed(git push *)']"));
    for wrapper in ["timeout 5", "nice -n 1", "nohup", "command", "env time -p", "setsid -w"] {
        let command = format!("{wrapper} {FETCH}");
        assert_eq!(without_sandbox(&gate, &command, None), Allow, "{command}");
    }
    for wrapper in [
        "env time -a -f 'id > x' -o /home/me/.bashrc",
        "env time -ao/home/me/.bashrc",
        "command time --output=/home/me/.bashrc",
        "command time --output /home/me/.bashrc",
        "env time --outp=/home/me/.bashrc",
        "flock /home/me/.bashrc",
        "flock -n /home/me/.bashrc",
        "choom -n 1",
        "uclampset -m 1",
        "ssh-agent",
        "ssh-agent -a x",
        "linux64",
        "i386",
        "setarch -X",
        "faketime yesterday",
        "dbus-run-session --config-file=./x --",
        "busybox",
        "xargs",
        "watch -x",
        "env -C evil",
        "env --chdir=evil",
        "env -i",
        "env -",
        "env -u PATH",
        "env --unset=PATH",
        "unknown-wrapper",
    ] {
        let command = format!("{wrapper} {FETCH}");
        assert_eq!(without_sandbox(&gate, &command, None), Ask, "{command}");
    }
}

#[test]
fn a_denied_program_is_seen_in_wrappers_and_options() {
    let gate = gate("mode = 'full'\ndeny = ['bash(rm *)', 'write(kept/**)']");
    for command in [
        "choom -n 1 -- rm x",
        "uclampset -m 1 rm x",
        "ssh-agent rm x",
        "ssh-agent -s -t 5 rm x",
        "linux64 rm x",
        "i386 rm x",
        "faketime yesterday rm x",
        "dbus-run-session -- rm x",
        "split --filter='rm x' y",
        "split --filt 'rm x' y",
        "tar cf x y --checkpoint=1 --checkpoint-action=exec='rm x'",
        "tar cf x y --checkpoint-act exec='rm x'",
        "tar -cI 'rm x' -f y z",
        "tar --to-comm='rm x' -xf y",
        "rsync -ave 'rm x' a b",
        "rsync --rs='rm x' a b",
        "sort --compress-prog=rm x",
        "git rebase '-xrm x' main",
        "git rebase -ix 'rm x' main",
        "git rebase --exe='rm x' main",
        "env time -o kept/x true",
        "flock kept/x true",
    ] {
        assert_eq!(script(&gate, command), Deny, "{command}");
    }
}

#[test]
fn a_rule_for_a_push_covers_pushes_of_the_project_to_its_remotes() {
    let folder = tempfile::tempdir().unwrap();
    let gate = in_repository(folder.path(), PUSH, &["origin", "fork"], bounds(true));
    for command in [
        "git push",
        "git push origin HEAD:refs/heads/x",
        "git push -u fork main",
        "git push -o ci.skip origin main",
        "git --no-pager push origin",
        "git push https://example.com/x main",
        "git push git@example.com:a/b.git main",
        "git push --force-with-lease origin main",
        "timeout 5 git push origin",
        "LANG=C git push",
    ] {
        assert_eq!(without_sandbox(&gate, command, None), Allow, "{command}");
        assert_eq!(without_sandbox(&gate, command, Some(".")), Allow, "{command}");
    }
    for command in [
        "git push --receive-pack='id; false' origin x",
        "git push --receive-p='id; false' origin x",
        "git push --rec 'id; false' origin x",
        "git push --exec=id origin x",
        "git push --exe=id origin x",
        "git push --e=id origin x",
        "timeout 5 git push --rece=id origin x",
        "git --no-pager -c user.name=x push --exe=id origin x",
        "git push --recurse-submodules=on-demand",
        "git push --repo=./evil",
        "git push --rep ./evil",
        "git push ./evil.git x",
        "git push evil.git x",
        "git push evil x",
        "git push . x",
        "git push /tmp/evil x",
        "git push ~/evil x",
        "git push file:///tmp/evil x",
        "git push 'ext::sh -c id' x",
        "git push transport::x x",
        "git push -- evil x",
        "git push \"$X\"",
        "git push $X",
        "echo x | xargs git push",
        "git -C evil push origin x",
        "git --git-dir=evil/.git push origin x",
        "git --git-dir evil/.git push origin x",
        "git --work-tree=evil push origin x",
        "env -C evil git push origin x",
        "GIT_DIR=evil git push origin x",
        "cd evil && git push origin x",
    ] {
        assert_eq!(without_sandbox(&gate, command, None), Ask, "{command}");
    }
    assert_eq!(without_sandbox(&gate, "git push origin x", Some("evil")), Ask);
    let absolute = folder.path().join("evil");
    assert_eq!(without_sandbox(&gate, "git push origin x", absolute.to_str()), Ask);
    // Without a remote of that name, git takes the name as a folder.
    let other = tempfile::tempdir().unwrap();
    let gate = in_repository(other.path(), PUSH, &[], bounds(true));
    for command in ["git push", "git push origin x"] {
        assert_eq!(without_sandbox(&gate, command, None), Ask, "{command}");
    }
}

#[test]
fn a_rule_for_exactly_one_script_is_for_one_folder() {
    let gate = gate("allow = ['unsandboxed(=make; ls)', 'unsandboxed(@sub=make x)']");
    assert_eq!(without_sandbox(&gate, "make; ls", None), Allow);
    assert_eq!(without_sandbox(&gate, "make; ls", Some(ROOT)), Allow);
    assert_eq!(without_sandbox(&gate, "make; ls", Some("sub")), Ask);
    assert_eq!(without_sandbox(&gate, "make x", Some("sub")), Allow);
    assert_eq!(without_sandbox(&gate, "make x", Some("./sub/")), Allow);
    assert_eq!(without_sandbox(&gate, "make x", None), Ask);
    let arguments =
        json!({ "command": "a; b", "workdir": "sub", "without_sandbox": true }).to_string();
    let verdict = crate::world::judge(&gate, "bash", &arguments, &[]);
    let rule = crate::world::proposed(&verdict);
    assert_eq!(rule, "unsandboxed(@sub=a; b)");
    assert_eq!(explain(&gate, "bash", &arguments, &[rule]).decision(), Allow);
}

#[test]
fn a_rule_for_changes_of_the_repository_is_for_the_repository_of_the_workspace() {
    let rules = "allow = ['bash(git commit *)', 'bash(git fetch *)', 'bash(cd *)']";
    let folder = tempfile::tempdir().unwrap();
    let gate = in_repository(folder.path(), rules, &["origin"], bounds(true));
    let root = folder.path().display();
    for command in
        ["git commit -m x", &format!("cd {root} && git commit -m x"), "git fetch origin main"]
    {
        assert_eq!(script(&gate, command), Allow, "{command}");
    }
    for command in ["cd evil && git commit -m x", "git fetch evil"] {
        assert_eq!(script(&gate, command), Ask, "{command}");
    }
    let arguments = json!({ "command": "git commit -m x", "workdir": "evil" }).to_string();
    assert_eq!(explain(&gate, "bash", &arguments, &[]).decision(), Ask);
}

#[test]
fn a_denied_folder_is_seen_by_whichever_program_writes_to_it() {
    let gate = gate("deny = ['write(migrations/**)']");
    for command in [
        "cp x migrations/c",
        "cp -t migrations x",
        "cp --target-dir=migrations x",
        "cp x migrations",
        "sort -o migrations/c x",
        "sort x -uomigrations/c",
        "sort x --outp=migrations/c",
        "uniq x migrations/c",
        "uniq -f 1 x migrations/c",
        "split x migrations/c",
        "link x migrations/c",
        "mkdir migrations/c",
        "mkdir -p -m 700 migrations/c",
        "mkfifo migrations/c",
        "mknod migrations/c p",
        "mktemp -p migrations",
        "mktemp --tmpdir=migrations",
        "mktemp migrations/XXXXXX",
        "ln -s ../x migrations/c",
        "flock migrations/c true",
        "linux64 cp x migrations/c",
        "dbus-run-session cp x migrations/c",
    ] {
        assert_eq!(script(&gate, command), Deny, "{command}");
    }
    for command in [
        "mv migrations m2",
        "mv ./migrations/ m2",
        "rm -r migrations",
        "rm -rf .",
        "ln -s migrations mm; cp x mm/c",
        "ln -s ../migrations src/mm",
        "ln -sfn $PWD/migrations mm",
    ] {
        assert!(script(&gate, command) >= Ask, "{command}");
    }
    for command in [
        "mkdir other",
        "mv a b",
        "rm -rf target",
        "ln -s a b",
        "sort x",
        "uniq migrations/c",
        "link a b",
        "rm migrations2",
        "mktemp -d",
    ] {
        assert_eq!(script(&gate, command), Allow, "{command}");
    }
}
