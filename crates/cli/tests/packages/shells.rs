//! Completions at the prompt of each shell, from the files of a package.

use std::path::Path;
use std::process::Command;

use crate::pty::Terminal;
use crate::world::{World, done, search_path};

/// A shell at a terminal of its own, with the binary of the package first in its path, which has run `begun`.
fn at_prompt(world: &World, root: &Path, shell: &[&str], begun: &str) -> Terminal {
    let mut command: Command = world.command("setsid");
    command.arg("--ctty").args(shell).env("PATH", search_path(Some(&root.join("bin"))));
    command.env("TERM", "dumb").env("PS1", "> ");
    let mut terminal = Terminal::start(command);
    terminal.until("> ");
    // The line itself does not have the word.
    terminal.press(&format!("{begun}; echo rea''dy\n"));
    terminal.until("ready");
    terminal
}

/// Completes a command, an option of the bare program, and the name of an agent.
fn completes(terminal: &mut Terminal) {
    terminal.press("antiphon completi\t");
    terminal.until("antiphon completions");
    terminal.press("\u{15}antiphon --mod\t");
    terminal.until("antiphon --mode");
    terminal.press("\u{15}antiphon send lampl\t");
    terminal.until("antiphon send lamplighter");
    terminal.press("\u{15}exit\n");
}

#[test]
fn bash_zsh_and_fish_complete_from_the_files_of_a_package() {
    let world = World::new(&["tarball"]);
    let root = world.unpacked();
    let binary = root.join("bin/antiphon");
    let agent = ["agents", "new", "lamplighter", "--model", "scripted/hello"];
    done(world.command(&binary).args(agent));
    let share = root.join("share");
    let script = share.join("bash-completion/completions/antiphon");
    let bash = ["bash", "--norc", "--noprofile", "-i"];
    // Without the bell, which rings within a word that has several ends.
    let begun = format!("bind 'set bell-style none'; source {}", script.display());
    completes(&mut at_prompt(&world, &root, &bash, &begun));
    let folder = share.join("zsh/site-functions");
    let begun = format!(
        "unsetopt beep; fpath=({} $fpath); autoload -Uz compinit; compinit -u -D",
        folder.display()
    );
    completes(&mut at_prompt(&world, &root, &["zsh", "-f", "-i"], &begun));
    for (begun, expected) in [
        ("antiphon completi", "completions"),
        ("antiphon --mod", "--mode"),
        ("antiphon send lampl", "lamplighter"),
    ] {
        let mut fish = world.command("fish");
        fish.args(["-c", &format!("complete -C '{begun}'")]);
        fish.env("XDG_DATA_DIRS", &share).env("PATH", search_path(Some(&root.join("bin"))));
        let found = done(&mut fish);
        assert!(found.lines().any(|line| line.starts_with(expected)), "{begun}: {found}");
    }
}

#[test]
fn a_sourced_script_completes_in_a_zsh_without_completion() {
    let world = World::new(&["tarball"]);
    let root = world.unpacked();
    let begun = "source <(antiphon completions zsh)";
    let mut zsh = at_prompt(&world, &root, &["zsh", "-f", "-i"], begun);
    zsh.press("antiphon completi\t");
    zsh.until("antiphon completions");
    zsh.press(" bash >/dev/null; exit\n");
    let (_, text) = zsh.end();
    assert!(!text.contains("not found"), "{text}");
}
