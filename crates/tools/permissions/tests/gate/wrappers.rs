//! What real wrappers really run, the gate has seen.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use antiphon_permissions::Decision;
use proptest::prelude::*;

use crate::world::{cases, gate, script};

/// Wrappers with a hole for a command; those that end in a quote take it as a script.
const WRAPPERS: &[&str] = &[
    "env %",
    "env -i PATH=\"$PATH\" LOG=\"$LOG\" %",
    "env -u X %",
    "env -uX %",
    "env --unset=X %",
    "env -C . %",
    "env --chdir=. A=1 %",
    "env -- %",
    "env A=1 B=2 %",
    "/usr/bin/env %",
    "env -S '%'",
    "env -S'%'",
    "env --split-string='%'",
    "env -vS '%'",
    "nice %",
    "nice -n 1 %",
    "nice -n1 %",
    "nice -1 %",
    "nice --adjustment=1 %",
    "nice --adjustment 1 %",
    "nice --1 %",
    "timeout 5 %",
    "timeout -k 1 5 %",
    "timeout -k1 5 %",
    "timeout --kill-after=1 5s %",
    "timeout -s KILL 5 %",
    "timeout -sKILL 5 %",
    "timeout --signal KILL 5 %",
    "timeout --sig=KILL 5 %",
    "timeout --preserve-status 5 %",
    "timeout --foreground -- 5 %",
    "xargs %",
    "echo | xargs %",
    "echo a | xargs -n1 %",
    "echo a | xargs -n 1 -P 2 %",
    "echo a | xargs -I{} % {}",
    "echo a | xargs -I {} % {}",
    "echo a | xargs -i % {}",
    "echo a | xargs -L1 %",
    "echo a | xargs -d '\\n' %",
    "echo a | xargs --max-args=1 %",
    "echo a | xargs --max-args 1 %",
    "echo a | xargs --replace=X % X",
    "echo a | xargs -t -r -0 %",
    "echo % | xargs -I{} sh -c {}",
    "find . -maxdepth 0 -exec % \\;",
    "find . -maxdepth 0 -exec % {} +",
    "find . -maxdepth 0 -execdir % ';'",
    "find . -maxdepth 0 -name '*' -o -exec % \\;",
    "find . -maxdepth 0 -exec true \\; -exec % \\;",
    "find . -maxdepth 0 -exec sh -c '%' \\;",
    "setsid -w %",
    "setsid --wait %",
    "stdbuf -o0 %",
    "stdbuf -o 0 %",
    "stdbuf --output=0 %",
    "nohup %",
    "command %",
    "command -p -- %",
    "exec %",
    "exec -a x %",
    "exec -c env PATH=\"$PATH\" LOG=\"$LOG\" %",
    "builtin command %",
    "flock lock %",
    "flock -w 1 lock %",
    "flock lock -c '%'",
    "flock -n lock sh -c '%'",
    "ionice %",
    "ionice -c 2 -n 7 %",
    "taskset 1 %",
    "taskset -c 0 %",
    "linux64 %",
    "linux64 -R %",
    "linux64 --addr-no-randomize -v %",
    "linux32 %",
    "i386 %",
    "i386 -- %",
    "x86_64 %",
    "setarch %",
    "setarch x86_64 %",
    "setarch x86_64 -R %",
    "setarch -R %",
    "setarch linux64 %",
    "uname26 %",
    "echo '%' | linux64",
    "echo '%' | linux64 -R",
    "echo '%' | setarch x86_64",
    "dbus-run-session %",
    "dbus-run-session -- %",
    "dbus-run-session --config-file=/usr/share/dbus-1/session.conf -- %",
    "faketime yesterday %",
    "faketime -f '@2001-01-01 00:00:00' %",
    "faketime -m -f x %",
    "faketime -p 1 x %",
    "eatmydata %",
    "xvfb-run %",
    "xvfb-run -a -s '-screen 0 1x1x8' %",
    "perf stat %",
    "perf stat -e task-clock -- %",
    "perf record -o /dev/null %",
    "perf trace %",
    "run-parts \"$PROGRAMS\"",
    "run-parts --regex=boom \"$PROGRAMS\"",
    "ls | entr %",
    "ls | entr -nz % /_",
    "ls | entr -s '%'",
    "direnv exec . %",
    "watchexec -1 -- %",
    "hyperfine -N %",
    "hyperfine '%'",
    "valgrind --quiet %",
    "cpulimit -l 50 -- %",
    "tmux new-session -d '%'",
    "screen -dm %",
    "sh -c '%'",
    "bash -c '%'",
    "bash -ec '%'",
    "bash -c -e '%'",
    "bash -o pipefail -c '%'",
    "bash --norc -c '%' x y",
    "bash +x -c '%'",
    "sh -c '%' sh a",
    "dash -c '%'",
    "eval '%'",
    "eval -- '%'",
    "eval %",
    "time %",
    "time -p %",
    "A=1 %",
    "! %",
    "trap '%' EXIT",
    "echo '%' | sh",
    "sh <<< '%'",
    "bash -s <<< '%'",
    "sh - <<< '%'",
    "bash /dev/stdin <<< '%'",
    ". <(echo '%')",
    "source /dev/stdin <<< '%'",
    "bash <(echo '%')",
    "git -c alias.x='!%' x",
    "git -c core.pager='%; cat' -p --version",
    "GIT_PAGER='%' git -p help -a",
    "BASH_ENV=<(echo '%') bash -c true",
    "PS4='$(%)' bash -xc true",
    "ENV=<(echo '%') sh -c true",
    "PROMPT_COMMAND='%' bash -c true",
    "script -qec '%' /dev/null",
    "parallel %",
    "x='%'; $x",
    "x='%'; eval \"$x\"",
    "x() { %; }; x",
    "alias x='%'; x",
    "shopt -s expand_aliases; alias x='%'\nx",
    "printf -v x '%s' '%'; $x",
    "mapfile -C 'x=$(%); :' -c 1 y <<< z",
    "x=-C; mapfile $x 'x=$(%); :' -c 1 y <<< z",
    "jobs -x %",
    "x=-x; jobs $x %",
    "coproc %",
    "select x in 1; do %; done <<< 1",
    "complete -C % x; compgen -C '%' x",
    "hash -p \"$PROGRAMS/boom\" x; x",
    "x=-p; hash $x \"$PROGRAMS/boom\" x; x",
    "PATH=\"$PROGRAMS\"; ln -s boom x 2>/dev/null; %",
    "enable -n echo; %",
    "set -- %; \"$@\"",
    "cp \"$PROGRAMS/boom\" x; ./boom 2>/dev/null || %",
    "\"$PROGRAMS\"/%",
    "cd \"$PROGRAMS\" && ./%",
];

/// Wrappers that are not on every machine: the options with a value, what comes before the command, and how
/// it is run.
const STAND_INS: &[(&str, &str, &str, &str)] = &[
    ("faketime", "-p", "shift", "exec \"$@\""),
    ("xvfb-run", "-s", "", "exec \"$@\""),
    (
        "perf",
        "x",
        "shift; while :; do case $1 in -e|-o) shift 2;; -*) shift;; *) break;; esac; done",
        "exec \"$@\"",
    ),
    ("entr", "x", "", "exec sh -c \"$*\""),
    ("direnv", "x", "shift 2", "exec \"$@\""),
    ("watchexec", "x", "", "exec \"$@\""),
    ("hyperfine", "x", "", "exec sh -c \"$*\""),
    ("valgrind", "x", "", "exec \"$@\""),
    ("cpulimit", "-l", "", "exec \"$@\""),
    (
        "tmux",
        "x",
        "shift; while :; do case $1 in -*) shift;; *) break;; esac; done",
        "exec sh -c \"$*\"",
    ),
    ("screen", "x", "", "exec \"$@\""),
];

fn runs_boom(text: &str, folder: &Path) -> bool {
    let (log, programs) = (folder.join("log"), folder.join("programs"));
    std::fs::create_dir(&programs).unwrap();
    let boom = programs.join("boom");
    std::fs::write(&boom, "#!/bin/sh\necho boom >> \"$LOG\"\n").unwrap();
    std::fs::set_permissions(&boom, std::fs::Permissions::from_mode(0o755)).unwrap();
    for (name, valued, operands, run) in STAND_INS {
        let program = programs.join(name);
        let script = format!(
            "#!/bin/sh\nwhile :; do case $1 in {valued}) shift 2;; -*) shift;; *) break;; esac; done\n\
             {operands}\n{run}\n"
        );
        std::fs::write(&program, script).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    let output = Command::new("/bin/bash")
        .args(["--norc", "--noprofile", "-c", text])
        .env_clear()
        .env("PATH", format!("{}:/usr/bin:/bin", programs.display()))
        .env("HOME", folder)
        .env("LOG", &log)
        .env("PROGRAMS", &programs)
        .current_dir(folder)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    drop(output);
    log.exists()
}

fn wrapped(wrappers: &[&str]) -> String {
    wrappers.iter().fold("boom".to_owned(), |text, wrapper| {
        let quoted = text.replace('\'', "'\\''");
        wrapper.replace("'%'", &format!("'{quoted}'")).replace('%', &text)
    })
}

fn denied_if_run(text: &str) -> Result<(), TestCaseError> {
    let denying = gate("mode = \"full\"\ndeny = [\"bash(boom *)\"]");
    if script(&denying, text) == Decision::Allow {
        let folder = tempfile::tempdir().unwrap();
        prop_assert!(!runs_boom(text, folder.path()), "it ran: {text}");
    }
    Ok(())
}

#[test]
fn what_a_wrapper_runs_was_seen() {
    for wrapper in WRAPPERS {
        denied_if_run(&wrapped(&[wrapper])).unwrap();
    }
}

#[test]
fn the_wrappers_of_the_test_do_run_what_they_wrap() {
    // Those that are on every machine.
    for wrapper in [
        "env %",
        "linux64 -R %",
        "setarch x86_64 %",
        "faketime -f x %",
        "xvfb-run -a %",
        "perf stat -e task-clock -- %",
        "run-parts \"$PROGRAMS\"",
        "ls | entr -s '%'",
        "direnv exec . %",
        "timeout -k 1 5 %",
        "echo a | xargs -I{} % {}",
        "nice -n1 %",
        "eval '%'",
    ] {
        let folder = tempfile::tempdir().unwrap();
        assert!(runs_boom(&wrapped(&[wrapper]), folder.path()), "{wrapper}");
    }
}

/// Ways to change a file in a folder that no command may write to, and some that do not.
const OVERWRITES: &[&str] = &[
    "cp new kept/file",
    "cp -f new kept/file",
    "cp -- new kept/file",
    "cp new ./kept//file",
    "cp new other/../kept/file",
    "cp new $PWD/kept/file",
    "cp kept/../new kept/file",
    "cp other/file kept",
    "cp other/file kept/",
    "cp -r other/. kept",
    "cp -r other/* kept/",
    "cp -t kept other/file",
    "cp -tkept other/file",
    "cp -ft kept other/file",
    "cp --target-directory=kept other/file",
    "cp --target-directory kept other/file",
    "cp --targ=kept other/file",
    "cd kept && cp ../new file",
    "cd kept; cp ../new .; mv new file",
    "mv new kept/file",
    "mv kept/file gone",
    "mv kept gone",
    "mv -t kept other/file",
    "install new kept/file",
    "install -m 600 new kept/file",
    "install -t kept other/file",
    "ln -sf ../new kept/file",
    "ln -f new kept/file",
    "cd kept && ln -sf ../other/file",
    "dd if=new of=kept/file",
    "truncate -s 0 kept/file",
    "rm kept/file",
    "rm -rf kept",
    "unlink kept/file",
    "shred -u kept/file",
    "timeout 5 cp new kept/file",
    "sh -c 'cp new kept/file'",
    "find . -maxdepth 0 -exec cp new kept/file \\;",
    "echo kept/file | xargs cp new",
    "d=kept; cp new $d/file",
    "cat new > kept/file",
    "cat new | tee kept/file",
    "cp kept/file copy",
    "cp -r kept copy",
    "mv new copy",
    "cp other/file .",
];

/// Whether a script changes what is in `kept`.
fn overwrites(text: &str, folder: &Path) -> bool {
    for name in ["kept", "other"] {
        std::fs::create_dir(folder.join(name)).unwrap();
    }
    std::fs::write(folder.join("kept/file"), "as it was").unwrap();
    std::fs::write(folder.join("other/file"), "other").unwrap();
    std::fs::write(folder.join("new"), "new").unwrap();
    Command::new("/bin/bash")
        .args(["--norc", "--noprofile", "-c", text])
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .current_dir(folder)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    !std::fs::read(folder.join("kept/file")).is_ok_and(|text| text == b"as it was")
}

#[test]
fn what_writes_to_a_denied_path_was_seen() {
    let denying = gate("mode = \"full\"\ndeny = [\"write(kept)\", \"write(kept/**)\"]");
    let mut changed = 0;
    for text in OVERWRITES {
        let folder = tempfile::tempdir().unwrap();
        let has_effect = overwrites(text, folder.path());
        changed += usize::from(has_effect);
        let decision = script(&denying, text);
        assert!(!has_effect || decision != Decision::Allow, "it was allowed: {text}");
    }
    assert_eq!(changed, OVERWRITES.len() - 4, "attempts that change nothing prove nothing");
    // Reading is not writing.
    for text in [
        "cp kept/file copy",
        "cp -r kept copy",
        "mv new copy",
        "cp other/file .",
        "touch -r kept/file new",
        "touch --reference kept/file new",
        "truncate -rkept/file new",
    ] {
        assert_eq!(script(&denying, text), Decision::Allow, "{text}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases(250)))]

    #[test]
    fn what_wrappers_in_wrappers_run_was_seen(
        wrappers in prop::collection::vec(prop::sample::select(WRAPPERS), 2..4)
    ) {
        denied_if_run(&wrapped(&wrappers))?;
    }
}
