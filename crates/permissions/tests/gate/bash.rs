//! What bash really runs, the gate has seen.
//!
//! Scripts are made of pieces that are hard to read, in any order, and given to a bash in which
//! nothing but `boom` can be run. Whenever bash runs it, a gate that denies it must not have
//! allowed the script.

use std::path::Path;
use std::process::{Command, Stdio};

use antiphon_permissions::Decision;
use proptest::prelude::*;

use crate::world::{gate, script};

const PIECES: &[&str] = &[
    "boom", "boom", "boom", "boom", "b'oo'm", "\\boom", "\"boom\"", "$'bo\\x6fm'", "bo\\\nom",
    " ", " ", " ", " ", " ", "\n", "\n", "\n", ";", ";", "&", "|", "&&", "||", "'", "'", "\"",
    "\"", "`", "`", "\\", "\\\\", "\\\n", "#", " #", "$", "$(", "$(", ")", ")", "(", "((", "))",
    "$((", "${x:-", "${", "}", "{ ", "; }", "<<E\n", "<<'E'\n", "<<-E\n", "<<E", "\nE\n", "\nE\n",
    "E", "\tE\n", "<", ">", "<(", ">(", ">/dev/null", "2>&1", "<<<", "&>/dev/null", "[[ ", " ]]",
    "]]", "=~", "==", "-eq", "a[", "]=", "]", "[", "a=", "a=(", "if ", "then ", "fi", "else ",
    "for x in ", "; do ", "; done", "while ", "case x in ", "x) ", "*) ", ";; ", "esac", "g() ",
    "function g ", "! ", "time ", "eval ", "'a[$(boom)]'", "x", "x", "1", "!", "@(", "*", "~",
    "$x", "$@", "${x[", "${x:", "$'", "$\"", "\\'", "\\\"", "\\`", "\\$", ":", "-", "+", "=", "{x,",
    "coproc ", "select x in ", "until false", "command ", "exec ", "\t", "let ", "declare ",
    "printf -v ", "export ",
];

/// Whether bash runs `boom` when it is given `text`.
fn runs_boom(text: &str, folder: &Path) -> bool {
    let log = folder.join("log");
    let _absent = std::fs::remove_file(&log);
    // A loop that never ends is ended by its use of the processor.
    let output = Command::new("/bin/sh")
        .args(["-c", "ulimit -t 1; exec /bin/bash --norc --noprofile -c \"$1\"", "sh", text])
        .env_clear()
        .env("PATH", "/nowhere")
        .env("LOG", &log)
        .env("FUNCNEST", "8")
        .env(
            "BASH_FUNC_command_not_found_handle%%",
            "() { case $1 in boom) echo boom >> \"$LOG\";; esac; return 1; }",
        )
        .current_dir(folder)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    drop(output);
    log.exists()
}

fn cases() -> u32 {
    std::env::var("ANTIPHON_BASH_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(600)
}

/// Forms with holes.
const FORMS: &[&str] = &[
    "%", "% %", "%; %", "%\n%", "% && %", "% | %", "% & %", "(%)", "{ %; }", "! %", "time %",
    "if %; then %; fi", "if %; then %; else %; fi", "for x in %; do %; done", "while %; do %; break; done",
    "case % in %) % ;; esac", "case % in (%|%) % ;& *) % ;; esac", "g() { %; }; g", "g() ( % ); g",
    "function g { %; }; g", "x=$(%)", "x=`%`", "$(%)", "`%`", "\"%\"", "'%'", "$'%'", "$\"%\"",
    "x=(% %)", "x[%]=%", "x=%", "x=% %", "${x:-%}", "\"${x:-%}\"", "${x[%]}", "${x:%}", "$((%))",
    "((%))", "[[ % ]]", "[[ % =~ % ]]", "[[ % == % && % ]]", "[[ % -eq % ]]", ": <<E\n%\nE\n%",
    ": <<'E'\n%\nE\n%", ": <<-E\n\t%\n\tE\n%", ": <<E; : <<F\n%\nE\n%\nF\n%",
    "$(: <<E\n%\nE\n)", ": <<<%", "% >/dev/null", "% 2>&1", "% # %\n%", ": <(%)", ": >(%)",
    "eval %", "eval '%'", "eval \"%\"", "% \\\n%", "%\\\n%", "\\%", "command %", "exec %", "{ %; } > /dev/null",
    "for ((%;;)); do %; break; done", "[ % ]", "%#%", "trap '%' EXIT", "declare x=(%)", "export x=%",
    "printf -v '%' x", "let '%'", "{%,%}", "(% # )\n%)", "$(% # )\n%)", "%=%", "x+=(%)", "until %; do %; break; done",
    "select x in %; do %; done", "%&&%", "%|&%", "%;%", "{fd}>/dev/null %", "3>/dev/null %", "&>/dev/null %", "test -v '%'",
];

const WORDS: &[&str] = &[
    "boom", "boom", "boom", "b'oo'm", "\\boom", "$'b\\x6fom'", "bo\\\nom", "true", ":", "x", "'", "\"", "`", "\\", "#",
    ")", "}", "E", "$x", "$@", "*", "a[$(boom)]", "'a[$(boom)]'", "~", "1", "", " ", "\n", "]]", "(", "{", "$(", "${",
    "!", "-v", "in", "do", "done", "fi", "esac", ";;", "<<E", "@(", "\\'", "\\\"", "\\`", "\\$",
];

/// Scripts of nested forms; now and then something in them is out of place.
fn forms() -> impl Strategy<Value = String> {
    let word = prop::sample::select(WORDS).prop_map(str::to_owned);
    word.prop_recursive(4, 24, 3, |inner| {
        (prop::sample::select(FORMS), prop::collection::vec(inner, 5)).prop_map(|(form, parts)| {
            let mut pieces = form.split('%');
            let first = pieces.next().unwrap_or_default().to_owned();
            pieces.zip(parts).fold(first, |text, (piece, part)| text + &part + piece)
        })
    })
}

fn seen_if_run(text: &str) {
    let denying = gate("mode = \"full\"\ndeny = [\"bash(boom *)\"]");
    if script(&denying, text) == Decision::Allow {
        let folder = tempfile::tempdir().unwrap();
        assert!(!runs_boom(text, folder.path()), "bash ran boom: {text:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), ..ProptestConfig::default() })]

    #[test]
    fn what_bash_runs_was_seen(
        pieces in prop::collection::vec(prop::sample::select(PIECES), 1..24)
    ) {
        seen_if_run(&pieces.concat());
    }

    #[test]
    fn what_bash_runs_in_nested_forms_was_seen(text in forms()) {
        seen_if_run(&text);
    }
}

#[test]
fn bash_runs_boom_where_it_should() {
    let folder = tempfile::tempdir().unwrap();
    assert!(runs_boom("true; x=$(boom)", folder.path()));
    assert!(!runs_boom("true 'boom'", folder.path()));
}
