//! What bash really runs, the gate has seen.
//!
//! Scripts are made of pieces that are hard to read, in any order, and given to a bash in which
//! nothing but `boom` can be run. Whenever bash runs it, a gate that denies it must not have
//! allowed the script. `ANTIPHON_CASES` sets how many scripts are tried.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use antiphon_permissions::{Decision, Gate};
use proptest::prelude::*;

use crate::world::{cases, gate, script};

const PIECES: &[&str] = &[
    " ",
    " ",
    " ",
    " ",
    " ",
    "\n",
    "\n",
    "\n",
    ";",
    ";",
    "&",
    "|",
    "&&",
    "||",
    "'",
    "'",
    "\"",
    "\"",
    "`",
    "`",
    "\\",
    "\\\\",
    "\\\n",
    "#",
    " #",
    "$",
    "$(",
    "$(",
    ")",
    ")",
    "(",
    "((",
    "))",
    "$((",
    "${x:-",
    "${",
    "}",
    "{ ",
    "; }",
    "<<E\n",
    "<<'E'\n",
    "<<-E\n",
    "<<E",
    "\nE\n",
    "\nE\n",
    "E",
    "\tE\n",
    "<",
    ">",
    "<(",
    ">(",
    ">/dev/null",
    "2>&1",
    "<<<",
    "&>/dev/null",
    "[[ ",
    " ]]",
    "]]",
    "=~",
    "==",
    "-eq",
    "a[",
    "]=",
    "]",
    "[",
    "a=",
    "a=(",
    "if ",
    "then ",
    "fi",
    "else ",
    "for x in ",
    "; do ",
    "; done",
    "while ",
    "case x in ",
    "x) ",
    "*) ",
    ";; ",
    "esac",
    "g() ",
    "function g ",
    "! ",
    "time ",
    "eval ",
    "x",
    "x",
    "1",
    "!",
    "@(",
    "*",
    "~",
    "$x",
    "$@",
    "${x[",
    "${x:",
    "$'",
    "$\"",
    "\\'",
    "\\\"",
    "\\`",
    "\\$",
    ":",
    "-",
    "+",
    "=",
    "{x,",
    "coproc ",
    "select x in ",
    "until false",
    "command ",
    "exec ",
    "\t",
    "let ",
    "declare ",
    "printf -v ",
    "export ",
];

/// The one command that can be run, written in many ways. It is in a script once: where it is
/// twice, one of them is easily seen.
const BOOMS: &[&str] = &[
    "boom",
    "boom",
    "boom",
    "boom",
    "b'oo'm",
    "\\boom",
    "\"boom\"",
    "$'bo\\x6fm'",
    "bo\\\nom",
    "a[$(boom)]",
    "'a[$(boom)]'",
];

/// Whether bash runs `boom` when it is given `text`.
fn runs_boom(text: &str, folder: &Path) -> bool {
    let log = folder.join("log");
    let _absent = std::fs::remove_file(&log);
    // A loop that never ends is ended by its use of the processor.
    let output = Command::new("/bin/bash")
        .args(["-c", "ulimit -t 1; exec /bin/bash --norc --noprofile -c \"$1\"", "bash", text])
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

/// Whether a plain `sh` runs `boom` when it is given `text`.
fn sh_runs_boom(text: &str, folder: &Path) -> bool {
    let (log, programs) = (folder.join("log"), folder.join("programs"));
    std::fs::create_dir(&programs).unwrap();
    let boom = programs.join("boom");
    std::fs::write(&boom, "#!/bin/sh\necho boom >> \"$LOG\"\n").unwrap();
    std::fs::set_permissions(&boom, std::fs::Permissions::from_mode(0o755)).unwrap();
    let output = Command::new("/bin/sh")
        .args(["-c", "ulimit -t 1; exec /bin/sh -c \"$1\"", "sh", text])
        .env_clear()
        .env("PATH", &programs)
        .env("LOG", &log)
        .current_dir(folder)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    drop(output);
    log.exists()
}

/// Forms with holes.
const FORMS: &[&str] = &[
    ": >&%",
    ": 2>&%",
    "x['%']=1",
    "x[\"%\"]=1",
    ": ${x['%']}",
    "read '%' <<<1",
    "unset '%'",
    "wait -p '%'",
    "[[ -v '%' ]]",
    ": ${!%}",
    "x='%'; : ${!x}",
    "declare '%'=1",
    "export '%'",
    "mapfile '%' <<<1",
    "getopts a '%'",
    "printf %d '%'",
    "type '%'",
    "test '%' -eq 1",
    "shift '%'",
    "(( x['%'] ))",
    ": $((x['%']))",
    "x=%; ((x))",
    "x='%'; : $((x))",
    "declare -i x='%'",
    ": ${x:'%'}",
    ": ${x/'%'/}",
    "[[ x -eq '%' ]]",
    "[[ '%' -lt 1 ]]",
    "x='%'; : ${y:x}",
    "x='%'; y[x]=1",
    "x='%'; : ${y[x]}",
    "x='%'; [[ x -eq 1 ]]",
    "declare -A x=(['%']=1)",
    "x=([%]=1)",
    "x=(['%']=1)",
    "x=% declare -i y=x",
    "let x='%'",
    "let '%'",
    "set -- '%'; : $(($1))",
    "for x in '%'; do ((x)); done",
    "read x <<<'%'; ((x))",
    "case '%' in x) ;; esac",
    "case x in '%') ;; esac",
    "exec 3>&%",
    ": <&%",
    "hash '%'",
    "cd '%'",
    "ulimit '%'",
    "umask '%'",
    "kill '%'",
    "printf '%q' '%'",
    "${x@%}",
    ": ${x@Q}",
    ": ${x//%/%}",
    ": ${x#%}",
    ": ${x%%}",
    ": ${x^%}",
    ": ${x:=%}",
    ": ${x:+%}",
    ": ${x?%}",
    "readonly '%'",
    "local '%'",
    "g() { local '%'=1; }; g",
    "[ -v '%' ]",
    "test -n '%'",
    "%",
    "% %",
    "%; %",
    "%\n%",
    "% && %",
    "% | %",
    "% & %",
    "(%)",
    "{ %; }",
    "! %",
    "time %",
    "if %; then %; fi",
    "if %; then %; else %; fi",
    "for x in %; do %; done",
    "while %; do %; break; done",
    "case % in %) % ;; esac",
    "case % in (%|%) % ;& *) % ;; esac",
    "g() { %; }; g",
    "g() ( % ); g",
    "function g { %; }; g",
    "x=$(%)",
    "x=`%`",
    "$(%)",
    "`%`",
    "\"%\"",
    "'%'",
    "$'%'",
    "$\"%\"",
    "x=(% %)",
    "x[%]=%",
    "x=%",
    "x=% %",
    "${x:-%}",
    "\"${x:-%}\"",
    "${x[%]}",
    "${x:%}",
    "$((%))",
    "((%))",
    "[[ % ]]",
    "[[ % =~ % ]]",
    "[[ % == % && % ]]",
    "[[ % -eq % ]]",
    ": <<E\n%\nE\n%",
    ": <<'E'\n%\nE\n%",
    ": <<-E\n\t%\n\tE\n%",
    ": <<E; : <<F\n%\nE\n%\nF\n%",
    "$(: <<E\n%\nE\n)",
    ": <<<%",
    "% >/dev/null",
    "% 2>&1",
    "% # %\n%",
    ": <(%)",
    ": >(%)",
    "eval %",
    "eval '%'",
    "eval \"%\"",
    "% \\\n%",
    "%\\\n%",
    "\\%",
    "command %",
    "exec %",
    "{ %; } > /dev/null",
    "for ((%;;)); do %; break; done",
    "[ % ]",
    "%#%",
    "trap '%' EXIT",
    "declare x=(%)",
    "export x=%",
    "printf -v '%' x",
    "let '%'",
    "{%,%}",
    "(% # )\n%)",
    "$(% # )\n%)",
    "%=%",
    "x+=(%)",
    "until %; do %; break; done",
    "select x in %; do %; done",
    "%&&%",
    "%|&%",
    "%;%",
    "{fd}>/dev/null %",
    "3>/dev/null %",
    "&>/dev/null %",
    "test -v '%'",
];

/// What stands in the other holes: mostly nothing special.
const WORDS: &[&str] = &["true", ":", "x", "true", ":", "x", "true", ":", "x", "1"];

/// What should not stand there.
const ODD_WORDS: &[&str] = &[
    "'", "\"", "`", "\\", "#", ")", "}", "E", "$x", "$@", "*", "~", "", " ", "\n", "]]", "(", "{",
    "$(", "${", "!", "-v", "in", "do", "done", "fi", "esac", ";;", "<<E", "@(", "\\'", "\\\"",
    "\\`", "\\$", "\\\n", " #", "\nE\n", "<<'E'", "((", "))", "[[ ", "=~",
];

/// Scripts of nested forms; now and then something in them is out of place.
fn forms() -> impl Strategy<Value = String> {
    let nested = Just("\0".to_owned()).prop_recursive(5, 16, 2, |inner| {
        (prop::sample::select(FORMS), prop::collection::vec(inner, 5)).prop_map(|(form, parts)| {
            let mut pieces = form.split('%');
            let first = pieces.next().unwrap_or_default().to_owned();
            pieces.zip(parts).fold(first, |text, (piece, part)| text + &part + piece)
        })
    });
    let word = prop_oneof![
        12 => prop::sample::select(WORDS),
        1 => prop::sample::select(ODD_WORDS),
    ];
    let words = prop::collection::vec(word, 64);
    let boom = prop::sample::select(BOOMS);
    (nested, words, boom, any::<prop::sample::Index>()).prop_map(|(nested, words, boom, at)| {
        let holes = nested.matches('\0').count();
        let at = at.index(holes.max(1));
        let mut pieces = nested.split('\0');
        let first = pieces.next().unwrap_or_default().to_owned();
        pieces.zip(words.iter().cycle()).enumerate().fold(first, |text, (hole, (piece, word))| {
            text + if hole == at { boom } else { word } + piece
        })
    })
}

/// Scripts of pieces in any order.
fn soup() -> impl Strategy<Value = String> {
    let pieces = prop::collection::vec(prop::sample::select(PIECES), 1..24);
    (pieces, prop::sample::select(BOOMS), any::<prop::sample::Index>()).prop_map(
        |(mut pieces, boom, at)| {
            pieces.insert(at.index(pieces.len()), boom);
            pieces.concat()
        },
    )
}

/// A gate that denies `boom`, and one that allows much, but not `boom`.
fn gates() -> [Gate; 2] {
    let harmless = [
        "true", ":", "x", "1", "g", "[", "break", "cd", "declare", "export", "getopts", "hash",
        "kill", "let", "local", "mapfile", "printf", "read", "readonly", "set", "shift", "test",
        "trap", "type", "ulimit", "umask", "unset", "wait",
    ];
    let allow: Vec<String> = harmless.iter().map(|name| format!("\"bash({name} *)\"")).collect();
    [
        gate("mode = \"full\"\ndeny = [\"bash(boom *)\"]"),
        gate(&format!("mode = \"read-only\"\nallow = [{}]", allow.join(", "))),
    ]
}

fn seen_if_run(text: &str) -> Result<(), TestCaseError> {
    if gates().iter().any(|gate| script(gate, text) == Decision::Allow) {
        let folder = tempfile::tempdir().unwrap();
        prop_assert!(!runs_boom(text, folder.path()), "bash ran boom: {text:?}");
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases(400)))]

    #[test]
    fn what_bash_runs_was_seen(text in soup()) {
        seen_if_run(&text)?;
    }

    #[test]
    fn what_sh_runs_was_seen(text in prop_oneof![forms(), soup()]) {
        let denying = gate("mode = \"full\"\ndeny = [\"bash(boom *)\"]");
        let called = format!("sh -c '{}'", text.replace('\'', "'\\''"));
        if script(&denying, &called) == Decision::Allow {
            let folder = tempfile::tempdir().unwrap();
            prop_assert!(!sh_runs_boom(&text, folder.path()), "sh ran boom: {text:?}");
        }
    }

    #[test]
    fn what_bash_runs_in_nested_forms_was_seen(text in forms()) {
        seen_if_run(&text)?;
    }
}

#[test]
fn bash_runs_boom_where_it_should() {
    let folder = tempfile::tempdir().unwrap();
    assert!(runs_boom("true; x=$(boom)", folder.path()));
    assert!(!runs_boom("true 'boom'", folder.path()));
    let folder = tempfile::tempdir().unwrap();
    assert!(sh_runs_boom("true; x=$(boom)", folder.path()));
}
