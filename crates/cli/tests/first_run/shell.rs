//! Completions in shells, manual pages, and colors.

use std::fs;
use std::process::{Command, Stdio};

use crate::project_folder::home;
use crate::world::{World, seen};

/// What bash completes for these words, the last of which is begun.
fn bash_completes(world: &World, words: &[&str]) -> Vec<String> {
    let quoted: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
    let script = format!(
        "source <(antiphon completions bash)\n\
         COMP_WORDS=({}); COMP_CWORD={}; COMP_TYPE=9; COMP_LINE='{}'; COMP_POINT=${{#COMP_LINE}}\n\
         _clap_complete_antiphon antiphon \"${{COMP_WORDS[COMP_CWORD]}}\" ''\n\
         printf '%s\\n' \"${{COMPREPLY[@]}}\"\n",
        quoted.join(" "),
        words.len() - 1,
        words.join(" ")
    );
    let binary = std::path::Path::new(env!("CARGO_BIN_EXE_antiphon")).parent().unwrap();
    let path = format!("{}:{}", binary.display(), std::env::var("PATH").unwrap());
    let mut bash = Command::new("bash");
    bash.args(["--norc", "-c", &script]).current_dir(world.path()).env_clear();
    bash.env("HOME", home(world.path())).env("PATH", path).stdin(Stdio::null());
    let seen = seen(&mut bash);
    assert_eq!(seen.err, "");
    seen.out.lines().map(|line| line.trim().to_owned()).filter(|line| !line.is_empty()).collect()
}

#[test]
fn bash_completes_commands_agents_tasks_and_sessions() {
    let world = World::new();
    assert_eq!(world.seen(&["agents", "new", "lamplighter"], &[]).code, 0);
    assert_eq!(world.seen(&["run", "--model", "scripted/hello", "hi"], &[]).code, 0);
    let commands = bash_completes(&world, &["antiphon", "ta"]);
    assert!(commands.contains(&"tasks".to_owned()), "{commands:?}");
    assert_eq!(bash_completes(&world, &["antiphon", "send", "lamp"]), ["lamplighter"]);
    assert_eq!(bash_completes(&world, &["antiphon", "run", "--agent", "la"]), ["lamplighter"]);
    let listed = |list: &str, id: &str| {
        let rows = world.seen(&[list, "list", "--json"], &[]).out;
        let rows: serde_json::Value = serde_json::from_str(&rows).unwrap();
        let row = rows.as_array().or_else(|| rows[list].as_array()).unwrap()[0].clone();
        row[id].as_str().unwrap().to_owned()
    };
    let task = listed("tasks", "task_id");
    assert_eq!(bash_completes(&world, &["antiphon", "tasks", "show", &task[..6]]), [task]);
    let session = listed("sessions", "session_id");
    assert_eq!(bash_completes(&world, &["antiphon", "sessions", "show", &session[..6]]), [session]);
}

#[test]
fn every_shell_gets_a_script() {
    let world = World::new();
    for (shell, part) in
        [("bash", "complete "), ("zsh", "#compdef antiphon"), ("fish", "complete ")]
    {
        let script = world.seen(&["completions", shell], &[]);
        assert_eq!(script.code, 0, "{}", script.err);
        assert!(
            script.out.contains(part) && script.out.contains("ANTIPHON_COMPLETE"),
            "{}",
            script.out
        );
    }
}

#[test]
fn each_command_has_a_manual_page() {
    let world = World::new();
    let folder = world.path().join("man");
    let written = world.seen(&["man", folder.to_str().unwrap()], &[]);
    assert_eq!(written.code, 0, "{}", written.err);
    for name in ["antiphon", "antiphon-run", "antiphon-config", "antiphon-config-set"] {
        let page = fs::read_to_string(folder.join(format!("{name}.1"))).unwrap();
        let title = format!(".TH {} 1 \"\" \"antiphon ", name.to_uppercase());
        assert!(page.contains(&title), "{page}");
    }
    let run = fs::read_to_string(folder.join("antiphon-run.1")).unwrap();
    assert!(run.contains("\\-\\-budget\\-usd") && run.contains(".SH EXAMPLES\n"), "{run}");
}

#[test]
fn colors_follow_the_variables_of_shells() {
    let world = World::new();
    let colored =
        |variables: &[(&str, &str)]| world.seen(&["--help"], variables).out.contains('\x1b');
    assert!(!colored(&[]));
    assert!(colored(&[("CLICOLOR_FORCE", "1")]));
    assert!(!colored(&[("CLICOLOR_FORCE", "0")]));
    assert!(!colored(&[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")]));
}
