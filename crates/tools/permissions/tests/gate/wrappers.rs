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
    "coproc %",
    "select x in 1; do %; done <<< 1",
    "complete -C % x; compgen -C '%' x",
    "hash -p \"$PROGRAMS/boom\" x; x",
    "PATH=\"$PROGRAMS\"; ln -s boom x 2>/dev/null; %",
    "enable -n echo; %",
    "set -- %; \"$@\"",
    "cp \"$PROGRAMS/boom\" x; ./boom 2>/dev/null || %",
    "\"$PROGRAMS\"/%",
    "cd \"$PROGRAMS\" && ./%",
];

fn runs_boom(text: &str, folder: &Path) -> bool {
    let (log, programs) = (folder.join("log"), folder.join("programs"));
    std::fs::create_dir(&programs).unwrap();
    let boom = programs.join("boom");
    std::fs::write(&boom, "#!/bin/sh\necho boom >> \"$LOG\"\n").unwrap();
    std::fs::set_permissions(&boom, std::fs::Permissions::from_mode(0o755)).unwrap();
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
    for wrapper in
        ["env %", "timeout -k 1 5 %", "echo a | xargs -I{} % {}", "nice -n1 %", "eval '%'"]
    {
        let folder = tempfile::tempdir().unwrap();
        assert!(runs_boom(&wrapped(&[wrapper]), folder.path()), "{wrapper}");
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
